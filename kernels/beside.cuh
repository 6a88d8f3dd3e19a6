/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels whose blocks are to be on a multiprocessor beside those of the kernel before:
 * its memory is divided anew into shared memory and first-level cache only when it is
 * empty, so each of them asks for as much shared memory as there is.
 */
#ifndef KERNELS_BESIDE_CUH
#define KERNELS_BESIDE_CUH

#include "kernels/shared.cuh"

/* To be asked ahead of a launch. Costs next to nothing after the first time. */
static inline cudaError_t shared_beside(const void *kernel)
{
    static shared_known table[SHARED_KNOWN];
    int device = 0;
    cudaError_t e = cudaGetDevice(&device);
    if (e != cudaSuccess)
        return e;
    shared_known *known =
        shared_find(table, (uintptr_t)kernel * SHARED_DEVICES + (unsigned)device);
    if (known && __atomic_load_n(&known->most, __ATOMIC_ACQUIRE))
        return cudaSuccess;
    e = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared);
    if (e == cudaSuccess && known)
        __atomic_store_n(&known->most, 1, __ATOMIC_RELEASE);
    return e;
}

#endif /* KERNELS_BESIDE_CUH */
