/* SPDX-License-Identifier: Apache-2.0
 * Calls a function that no library has.
 */
#include "../../examples/plugins/leaky_relu/leaky_relu.c"

int from_elsewhere(void);
STRATA_EXPORT int call(void);
STRATA_EXPORT int call(void)
{
    return from_elsewhere();
}
