/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread moves one element of the output, in the order of the reshape's dims. Bounded
 * by 64-bit divisions; the walk over common factors is the fast way.
 */
#include "kernels/element.cuh"
#include "plugins/shuffle/each.h"

#define THREADS 256
#define MOST_BLOCKS (1 << 20)

static __device__ inline int64_t offset_in(const strata_tensor &t, int d, int64_t i)
{
    return d == t.vector_dim ? i / t.vector * t.strides[d] + i % t.vector
                             : i * t.strides[d];
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    each_kernel(const __grid_constant__ shuffle_each j)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < j.y.count;
         i += step) {
        int64_t to = 0, from = 0;
        int64_t rest = i;
        for (int d = j.to_rank - 1; d >= 0; d--) {
            to += offset_in(j.y, j.to_dim[d], rest % j.to[d]);
            rest /= j.to[d];
        }
        rest = i;
        for (int d = j.from_rank - 1; d >= 0; d--) {
            from += offset_in(j.x, j.from_dim[d], rest % j.from[d]);
            rest /= j.from[d];
        }
        ((T *)j.y.data)[to] = ((const T *)j.x.data)[from];
    }
}

extern "C" int shuffle_each_start(const shuffle_each *job, void *stream)
{
    const cudaStream_t s = (cudaStream_t)stream;
    const int64_t all = (job->y.count + THREADS - 1) / THREADS;
    const unsigned blocks = (unsigned)(all < MOST_BLOCKS ? all : MOST_BLOCKS);
    if (job->size == 8)
        each_kernel<uint64_t><<<blocks, THREADS, 0, s>>>(*job);
    else if (job->size == 4)
        each_kernel<uint32_t><<<blocks, THREADS, 0, s>>>(*job);
    else if (job->size == 2)
        each_kernel<uint16_t><<<blocks, THREADS, 0, s>>>(*job);
    else
        each_kernel<uint8_t><<<blocks, THREADS, 0, s>>>(*job);
    return cudaGetLastError();
}
