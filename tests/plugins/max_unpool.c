/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of MaxUnpool: indices into every plane, beyond the output, and several to one
 * place; and what it must refuse.
 */
#include "tests/layers/cases.h"

