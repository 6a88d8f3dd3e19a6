/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters by which blocks of a launch find out who is the last, or take their turns:
 * device memory of a context, 0 at first and, which is the kernel's care, after each
 * launch again.
 */
#ifndef KERNELS_COUNTING_CUH
#define KERNELS_COUNTING_CUH

#include "kernels/layer.cuh"

/* A context's, for .ctx_size and .ctx_close. */
struct counting_context {
    void *counters;
};

static int counting_open(const strata_node *n, void *ctx, size_t bytes)
{
    counting_context *c = (counting_context *)ctx;
    c->counters = NULL;
    cudaError_t e = cudaMalloc(&c->counters, bytes);
    if (e == cudaSuccess)
        e = cudaMemsetAsync(c->counters, 0, bytes, (cudaStream_t)n->stream);
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EDEVICE, "%zu bytes of counters: %s (%s)", bytes,
                             cudaGetErrorString(e), cudaGetErrorName(e));
}

static void counting_close(void *ctx)
{
    cudaFree(((counting_context *)ctx)->counters);
}

static inline void *counting_of(const strata_run *r)
{
    return ((const counting_context *)r->ctx)->counters;
}

#endif /* KERNELS_COUNTING_CUH */
