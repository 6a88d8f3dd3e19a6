/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of cuda_trial.c: an addition, a wait, and a fault.
 */
#include "tests/modules/cuda_trial.h"

#include <cuda_runtime.h>

static __global__ void add_to_all(float *y, const float *x, int64_t n, float add)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * (int64_t)blockDim.x)
        y[i] = x[i] + add;
}

static __device__ int64_t nanoseconds()
{
    int64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __global__ void wait_for(int64_t ns)
{
    const int64_t begin = nanoseconds();
    while (nanoseconds() - begin < ns)
        ;
}

static __global__ void write_nowhere(volatile float *p)
{
    *p = 1;
}

extern "C" int trial_add(float *y, const float *x, int64_t n, float add, void *stream)
{
    add_to_all<<<256, 256, 0, (cudaStream_t)stream>>>(y, x, n, add);
    return cudaGetLastError();
}

extern "C" int trial_wait(int64_t ns, void *stream)
{
    wait_for<<<1, 1, 0, (cudaStream_t)stream>>>(ns);
    return cudaGetLastError();
}

extern "C" int trial_fault(void *stream)
{
    write_nowhere<<<1, 1, 0, (cudaStream_t)stream>>>((float *)16);
    return cudaGetLastError();
}
