/* SPDX-License-Identifier: Apache-2.0
 * A good note and tables behind an entry that does what -DENTRY says.
 */
#define strata_module_v1 generated
#include "../../examples/plugins/leaky_relu/leaky_relu.c"
#undef strata_module_v1

STRATA_ENTRY const strata_module *strata_module_v1(const strata_host *host)
{
    int *volatile nowhere = NULL;
    (void)nowhere;
    ENTRY;
    return NULL;
}
