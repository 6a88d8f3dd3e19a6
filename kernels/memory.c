/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory from a pool that keeps some of what is freed, and pinned host memory.
 * Blocks are freed by the host: whoever frees one has waited for the work that used it.
 */
#include "kernels/device.h"

#include <stdlib.h>

/* A pool of our own, so that trimming it at close takes nothing from others. */
int cuda_memory_open(struct cuda_device *d, strata_error *err)
{
    uint64_t keep = UINT64_C(64) << 20; /* what measuring took goes back to others */
    int supported = 0;
    struct cudaMemPoolProps props = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice, .id = d->index}};
    cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, d->index);
    if (!supported)
        return STRATA_OK;
    int status = cuda_status(
        d, cudaStreamCreateWithFlags(&d->memory_stream, cudaStreamNonBlocking),
        "creating the memory's stream", err);
    if (status == STRATA_OK)
        status = cuda_status(d, cudaMemPoolCreate(&d->pool, &props),
                             "creating the memory pool", err);
    if (status == STRATA_OK)
        status = cuda_status(
            d, cudaMemPoolSetAttribute(d->pool, cudaMemPoolAttrReleaseThreshold, &keep),
            "setting up the memory pool", err);
    return status;
}

void cuda_memory_close(struct cuda_device *d)
{
    if (cuda_enter(d, NULL) != STRATA_OK)
        return;
    if (d->pool)
        cudaMemPoolDestroy(d->pool);
    if (d->memory_stream)
        cudaStreamDestroy(d->memory_stream);
}

static void *device_alloc(void *user, size_t bytes, size_t alignment)
{
    struct cuda_device *d = user;
    void *ptr = NULL;
    cudaError_t result;
    if (alignment > 256 || cuda_enter(d, NULL) != STRATA_OK)
        return NULL; /* CUDA's own alignment is 256 */
    if (!d->pool) {
        result = cudaMalloc(&ptr, bytes);
    } else {
        result = cudaMallocFromPoolAsync(&ptr, bytes, d->pool, d->memory_stream);
        if (result == cudaSuccess)
            result = cudaStreamSynchronize(d->memory_stream);
    }
    return cuda_status(d, result, "allocating device memory", NULL) == STRATA_OK ? ptr
                                                                                 : NULL;
}

static void device_free(void *user, void *ptr, size_t bytes)
{
    struct cuda_device *d = user;
    (void)bytes;
    if (cuda_enter(d, NULL) == STRATA_OK)
        cuda_status(d, d->pool ? cudaFreeAsync(ptr, d->memory_stream) : cudaFree(ptr),
                    "freeing device memory", NULL);
}

strata_allocator cuda_memory(struct device *d)
{
    return (strata_allocator){.alloc = device_alloc, .free = device_free, .user = d};
}

static void *pinned_alloc(void *user, size_t bytes, size_t alignment)
{
    struct cuda_device *d = user;
    struct cuda_node before;
    void *ptr = NULL;
    if (alignment > 256 || cuda_enter(d, NULL) != STRATA_OK)
        return NULL;
    const bool near = cuda_prefer_node(&before, d->index);
    const cudaError_t result = cudaHostAlloc(&ptr, bytes, cudaHostAllocPortable);
    if (near)
        cuda_leave_node(&before);
    return cuda_status(d, result, "allocating pinned host memory", NULL) == STRATA_OK
               ? ptr
               : NULL;
}

static void pinned_free(void *user, void *ptr, size_t bytes)
{
    struct cuda_device *d = user;
    (void)bytes;
    if (cuda_enter(d, NULL) == STRATA_OK)
        cuda_status(d, cudaFreeHost(ptr), "freeing pinned host memory", NULL);
}

strata_allocator cuda_host_memory(struct device *d)
{
    return (strata_allocator){.alloc = pinned_alloc, .free = pinned_free, .user = d};
}

/* Or registered by the application, or managed: the driver copies it without a stop. */
bool cuda_is_pinned(struct device *d, const void *data)
{
    struct cudaPointerAttributes found = {.type = cudaMemoryTypeUnregistered};
    return cuda_enter(cuda_device(d), NULL) == STRATA_OK &&
           cuda_status(cuda_device(d), cudaPointerGetAttributes(&found, data),
                       "asking for a pointer's memory", NULL) == STRATA_OK &&
           found.type != cudaMemoryTypeUnregistered;
}

uint64_t cuda_free_bytes(struct device *d)
{
    return cuda_check(d, NULL) == STRATA_OK ? cuda_unused_bytes(cuda_device(d)) : 0;
}
