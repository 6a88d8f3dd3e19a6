/* SPDX-License-Identifier: Apache-2.0
 *
 * For kernels that load what comes next while they compute: a thread copies what it alone
 * will read into shared memory, asynchronously, so that loads need no barrier. And what
 * their launches ask of the device.
 */
#ifndef PLUGINS_COMMON_COPY_AHEAD_CUH
#define PLUGINS_COMMON_COPY_AHEAD_CUH

#include "kernels/layer.cuh"

template <int Bytes>
static __device__ inline void copy_ahead(void *shared, const void *memory)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    if (Bytes == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to),
                     "l"(memory)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;" ::"r"(to),
                     "l"(memory), "n"(Bytes)
                     : "memory");
}

static __device__ inline void end_copies(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int Later>
static __device__ inline void await_copies(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Later) : "memory");
}

static inline int device_attribute(cudaDeviceAttr name)
{
    int device = 0, value = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
                   cudaDeviceGetAttribute(&value, name, device) == cudaSuccess
               ? value
               : 1;
}

/* The next way is tried: what this one left as an error is none of its. */
static inline bool give_up(void)
{
    (void)cudaGetLastError();
    return false;
}

#endif /* PLUGINS_COMMON_COPY_AHEAD_CUH */
