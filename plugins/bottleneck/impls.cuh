/* SPDX-License-Identifier: Apache-2.0
 *
 * The impls for many pixels, for the table of impls.
 */
#ifndef PLUGINS_BOTTLENECK_IMPLS_CUH
#define PLUGINS_BOTTLENECK_IMPLS_CUH

#include "plugins/bottleneck/roll_job.cuh"
#include "plugins/bottleneck/stream_job.cuh"
#include "plugins/bottleneck/strip_job.cuh"

/* Jobs have maps, which want 64 bytes; a state has not. */
template <class Job>
struct many_state {
    uint8_t job[sizeof(Job)];
    int32_t clusters; /* at once */
    void *packed;
};

int strip_accept(const strata_node *n);
int strip_setup(const strata_node *n, void *state);
int strip_run(const strata_run *r);
int stream_accept(const strata_node *n);
int stream_setup(const strata_node *n, void *state);
int stream_run(const strata_run *r);
int roll_accept(const strata_node *n);
int roll_setup(const strata_node *n, void *state);
int roll_run(const strata_run *r);

#endif /* PLUGINS_BOTTLENECK_IMPLS_CUH */
