/* SPDX-License-Identifier: Apache-2.0
 *
 * The impl that goes along strips, for the table of impls.
 */
#ifndef PLUGINS_BOTTLENECK_STRIP_IMPL_CUH
#define PLUGINS_BOTTLENECK_STRIP_IMPL_CUH

#include "plugins/bottleneck/strip_job.cuh"

struct strip_state {
    uint8_t job[sizeof(strip_job)]; /* whose maps want 64 bytes, which this has not */
    int32_t blocks;                 /* at once */
    void *packed;
};

int strip_accept(const strata_node *n);
int strip_setup(const strata_node *n, void *state);
int strip_run(const strata_run *r);

#endif /* PLUGINS_BOTTLENECK_STRIP_IMPL_CUH */
