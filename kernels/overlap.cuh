/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that are launched while the one before them still runs (programmatic dependent
 * launch). Who is launched so and does not wait lets the kernel after it begin too early.
 */
#ifndef KERNELS_OVERLAP_CUH
#define KERNELS_OVERLAP_CUH

#include <type_traits>

#include <cuda_runtime.h>

/* A kernel launched while the one before it still runs: until that one has ended. */
static __device__ inline void wait_for_previous(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}

/* Lets the next kernel be launched; it waits for this one's end by itself. */
static __device__ inline void launch_next(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}

/* Launch a kernel that waits so before it touches memory. A refusal is for
 * cudaGetLastError. */
template <typename... Parameters>
static inline void launch_overlapped(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                     size_t shared, cudaStream_t stream,
                                     std::type_identity_t<Parameters>... arguments)
{
    cudaLaunchAttribute overlap = {};
    cudaLaunchConfig_t config = {};
    int device = 0, major = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) !=
            cudaSuccess)
        return;
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &overlap;
    config.numAttrs = major >= 9;
    cudaLaunchKernelEx(&config, kernel, arguments...);
}

#endif /* KERNELS_OVERLAP_CUH */
