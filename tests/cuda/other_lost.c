/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CUDA module says of a GPU when another one of the process is lost, over a
 * runtime of this file: it needs no GPU. That driver ends the work of all GPUs, as those
 * of today do, or only of the one.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"

TestSuite(cuda_other_lost, .timeout = 60);

enum { GPUS = 2 };

/* ---- the runtime ------------------------------------------------------------------- */

static bool is_lost[GPUS], ends_all;
static int streams[GPUS]; /* their addresses are the streams */
static int current, calls;
static cudaError_t last;

static cudaError_t end(bool failed)
{
    calls++;
    if (failed)
        last = cudaErrorIllegalAddress;
    return failed ? cudaErrorIllegalAddress : cudaSuccess;
}

static bool any_lost(void)
{
    return is_lost[0] || is_lost[1];
}

static bool gpu_lost(int gpu)
{
    return is_lost[gpu] || (ends_all && any_lost());
}

static bool lost_of(cudaStream_t s)
{
    return gpu_lost((int)((int *)(void *)s - streams));
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t e = last;
    last = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess ? "no error" : "an illegal memory access was encountered";
}

const char *cudaGetErrorName(cudaError_t e)
{
    return e == cudaSuccess ? "cudaSuccess" : "cudaErrorIllegalAddress";
}

cudaError_t cudaSetDevice(int device)
{
    current = device;
    return end(false);
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    *unused = *total = 1 << 20;
    return end(gpu_lost(current));
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device)
{
    (void)which, (void)device;
    *value = 1;
    return end(false);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device)
{
    (void)device;
    if (size > 0)
        *id = '\0';
    return end(false);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    (void)flags;
    *out = (cudaStream_t)(void *)&streams[current];
    return end(gpu_lost(current));
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
    return end(lost_of(s));
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    return end(lost_of(s));
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    return end(lost_of(s));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const struct cudaMemPoolProps *how)
{
    *out = (cudaMemPool_t)(void *)&streams[how->location.id];
    return end(gpu_lost(how->location.id));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which,
                                    void *value)
{
    (void)pool, (void)which, (void)value;
    return end(false);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    (void)pool;
    return end(false);
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t n, cudaMemPool_t pool,
                                    cudaStream_t s)
{
    (void)pool;
    *out = lost_of(s) ? NULL : malloc(n);
    return end(lost_of(s));
}

cudaError_t cudaMalloc(void **out, size_t n)
{
    *out = gpu_lost(current) ? NULL : malloc(n);
    return end(gpu_lost(current));
}

cudaError_t cudaFreeAsync(void *data, cudaStream_t s)
{
    free(data);
    return end(lost_of(s));
}

cudaError_t cudaFree(void *data)
{
    free(data);
    return end(gpu_lost(current));
}

cudaError_t cudaHostAlloc(void **out, size_t n, unsigned flags)
{
    (void)flags;
    *out = gpu_lost(current) ? NULL : malloc(n);
    return end(gpu_lost(current));
}

cudaError_t cudaFreeHost(void *data)
{
    free(data);
    return end(gpu_lost(current));
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *data)
{
    (void)data;
    out->type = cudaMemoryTypeHost;
    return end(gpu_lost(current));
}

/* ---- the GPUs ------------------------------------------------------------------------
 */

static struct cuda_device gpus[GPUS];

static void open_gpus(void)
{
    strata_error err;
    for (int i = 0; i < GPUS; i++) {
        gpus[i].index = i;
        gpus[i].state = cuda_state_of(i);
        cr_assert_eq(cuda_enter(&gpus[i], &err), STRATA_OK);
        cr_assert_eq(cuda_memory_open(&gpus[i], &err), STRATA_OK, "%s", err.message);
    }
}

static struct device *base(int i)
{
    return &gpus[i].base;
}

static void *get(strata_allocator a)
{
    return a.alloc(a.user, 4096, 256);
}

static void put(strata_allocator a, void *data)
{
    a.free(a.user, data, 4096);
}

static void lose_first(void)
{
    strata_error err;
    is_lost[0] = true;
    cr_expect_eq(cuda_status(&gpus[0], cudaStreamSynchronize(gpus[0].memory_stream),
                             "work on a stream", &err),
                 STRATA_EDEVICELOST);
    cr_expect(strstr(err.message, "cuda:0 is lost since work on a stream: an illegal"),
              "%s", err.message);
    cr_expect_eq(last, cudaSuccess, "nothing is left to the next who asks");
}

Test(cuda_other_lost, one_that_is_lost_with_another_says_so_before_any_work)
{
    strata_error err;
    open_gpus();
    void *data = get(cuda_memory(base(1))), *pinned = get(cuda_host_memory(base(1)));
    cr_assert(data && pinned);
    cr_expect(cuda_is_pinned(base(1), pinned));
    ends_all = true;
    lose_first();
    cr_expect_eq(cuda_check(base(1), &err), STRATA_EDEVICELOST);
    cr_expect(strstr(err.message, "cuda:1 is lost since cuda:0 was, which the driver"),
              "%s", err.message);
    const int before = calls;
    cr_expect_null(get(cuda_memory(base(1))));
    cr_expect_null(get(cuda_host_memory(base(1))));
    cr_expect_not(cuda_is_pinned(base(1), pinned));
    put(cuda_memory(base(1)), data);
    put(cuda_host_memory(base(1)), pinned);
    cr_expect_eq(calls, before, "a lost GPU is not called");
    free(data);
    free(pinned);
}

Test(cuda_other_lost, one_that_is_well_goes_on)
{
    strata_error err;
    open_gpus();
    lose_first();
    cr_expect_eq(cuda_check(base(1), &err), STRATA_OK, "%s", err.message);
    void *data = get(cuda_memory(base(1))), *pinned = get(cuda_host_memory(base(1)));
    cr_expect(data && pinned);
    cr_expect(cuda_is_pinned(base(1), pinned));
    put(cuda_memory(base(1)), data);
    put(cuda_host_memory(base(1)), pinned);
    cr_expect_eq(cuda_check(base(1), &err), STRATA_OK, "%s", err.message);
}

Test(cuda_other_lost, a_question_that_fails_leaves_nothing_behind)
{
    strata_error err;
    open_gpus();
    is_lost[1] = true;
    cr_expect_not(cuda_is_pinned(base(1), &err));
    cr_expect_eq(last, cudaSuccess);
    cr_expect_eq(cuda_check(base(1), &err), STRATA_EDEVICELOST);
    cr_expect_eq(cuda_check(base(0), &err), STRATA_OK, "%s", err.message);
}
