/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel that only takes time, for checks of what other work waits for.
 */
#include "kernels/delay.h"

static __global__ void delay_kernel(unsigned long long ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        __nanosleep(1000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < ns);
}

extern "C" int delay_cuda_launch(double ms, void *stream)
{
    delay_kernel<<<1, 1, 0, (cudaStream_t)stream>>>((unsigned long long)(ms * 1e6));
    return (int)cudaGetLastError();
}
