/* SPDX-License-Identifier: Apache-2.0
 *
 * Dynamic shared memory beyond what every kernel may have. How much a kernel may have is
 * set for all its launches on a device, whichever engine makes them: a limit that follows
 * one launch's need may be lowered by another thread before that launch is made. So each
 * kernel gets, once, the most that the device has for it.
 */
#ifndef KERNELS_SHARED_CUH
#define KERNELS_SHARED_CUH

#include <stdint.h>

#include <cuda_runtime.h>

enum { SHARED_KNOWN = 256, SHARED_PROBES = 8, SHARED_DEVICES = 64 };

/* Asks for the most beside what the kernel has without being asked. */
static inline cudaError_t shared_allow_most(const void *kernel, int device, int *most)
{
    cudaFuncAttributes own;
    cudaError_t e =
        cudaDeviceGetAttribute(most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&own, kernel);
    if (e == cudaSuccess) {
        *most -= (int)own.sharedSizeBytes;
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 *most);
    }
    return e;
}

/* What is known of kernels on devices, in a table that is only added to. */
struct shared_known {
    uintptr_t key; /* 0: free */
    int most;      /* 0: not yet known */
};

/* The place of a key, or a free one that becomes its own; NULL: there is no room. */
static inline shared_known *shared_find(shared_known *table, uintptr_t key)
{
    const uint32_t first = (uint32_t)((uint64_t)key * 0x9e3779b97f4a7c15u >> 32);
    for (uint32_t i = first; i < first + SHARED_PROBES; i++) {
        shared_known *at = &table[i % SHARED_KNOWN];
        uintptr_t found = __atomic_load_n(&at->key, __ATOMIC_RELAXED);
        if (!found && __atomic_compare_exchange_n(&at->key, &found, key, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return at;
        if (found == key)
            return at;
    }
    return NULL;
}

/* To be asked ahead of a launch with so many bytes; cudaErrorInvalidValue where the
 * device has not as many. Costs next to nothing after the first time. */
static inline cudaError_t shared_allow(const void *kernel, size_t bytes)
{
    static shared_known table[SHARED_KNOWN];
    int device = 0, most = 0;
    cudaError_t e = cudaGetDevice(&device);
    if (e != cudaSuccess)
        return e;
    shared_known *known =
        shared_find(table, (uintptr_t)kernel * SHARED_DEVICES + (unsigned)device);
    if (known)
        most = __atomic_load_n(&known->most, __ATOMIC_ACQUIRE);
    if (most == 0)
        e = shared_allow_most(kernel, device, &most);
    if (e == cudaSuccess && known)
        __atomic_store_n(&known->most, most, __ATOMIC_RELEASE);
    if (e == cudaSuccess && bytes > (size_t)most) /* fails, for cudaGetLastError too */
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 bytes < INT32_MAX ? (int)bytes : INT32_MAX);
    return e;
}

#endif /* KERNELS_SHARED_CUH */
