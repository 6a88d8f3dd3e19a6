/* SPDX-License-Identifier: Apache-2.0
 * More initial-exec thread storage than a loaded object can have.
 */
#include "../../examples/plugins/leaky_relu/leaky_relu.c"

static __thread char big[1 << 20] __attribute__((tls_model("initial-exec")));
STRATA_EXPORT char *storage(void);
STRATA_EXPORT char *storage(void)
{
    return big;
}
