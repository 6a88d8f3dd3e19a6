/* SPDX-License-Identifier: Apache-2.0
 *
 * A module that asks for a gigabyte as it is loaded.
 */
#include "layer.c"

char large[1 << 30];
