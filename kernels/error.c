/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA results in three classes. Sticky ones leave the GPU's context useless until the
 * process ends: the device is lost, and nothing calls CUDA for it any more. The driver
 * extends that to all GPUs of the process, whose calls return the same from then on.
 * Running out of memory is retryable. The rest belong to the call that failed. None stays
 * on CUDA's own record, where it would be blamed on the next caller.
 */
#include "kernels/device.h"

#include <stdio.h>

enum { USABLE, LOSING, LOST };

static const cudaError_t sticky[] = {
    cudaErrorIllegalAddress,
    cudaErrorLaunchTimeout,
    cudaErrorHardwareStackError,
    cudaErrorIllegalInstruction,
    cudaErrorMisalignedAddress,
    cudaErrorInvalidAddressSpace,
    cudaErrorInvalidPc,
    cudaErrorLaunchFailure,
    cudaErrorECCUncorrectable,
    cudaErrorNvlinkUncorrectable,
    cudaErrorAssert,
    cudaErrorContained,
    cudaErrorExternalDevice,
};

static bool is_sticky(cudaError_t result)
{
    for (size_t i = 0; i < ARRAY_LENGTH(sticky); i++)
        if (result == sticky[i])
            return true;
    return false;
}

struct cuda_state *cuda_state_of(int index)
{
    static struct cuda_state states[CUDA_DEVICES];
    return &states[index];
}

/* Of the GPUs of the process the one that was found lost first; -1: none is. */
static atomic_int first_lost = -1;

/* The first failure is kept as the reason; of a GPU that is lost behind another, that. */
static void lose(struct cuda_device *d, cudaError_t result, const char *what)
{
    int expected = USABLE, first = -1;
    if (!atomic_compare_exchange_strong(&d->state->lost, &expected, LOSING))
        return;
    if (atomic_compare_exchange_strong(&first_lost, &first, d->index))
        snprintf(d->state->reason, sizeof d->state->reason, "%s: %s (%s)", what,
                 cudaGetErrorString(result), cudaGetErrorName(result));
    else
        snprintf(
            d->state->reason, sizeof d->state->reason,
            "cuda:%d was, which the driver extends to all GPUs of a process (%s: %s)",
            first, what, cudaGetErrorString(result));
    atomic_store(&d->state->lost, LOST);
}

/* Whether the loss of another GPU is this one's, too, before some work of it finds out.
 */
static void ask_own(struct cuda_device *d)
{
    if (atomic_load(&first_lost) < 0 || !d->memory_stream ||
        cudaSetDevice(d->index) != cudaSuccess)
        return;
    const cudaError_t own = cudaStreamQuery(d->memory_stream);
    cudaGetLastError();
    if (is_sticky(own))
        lose(d, own, "its streams");
}

int cuda_check(struct device *base, strata_error *err)
{
    struct cuda_device *d = cuda_device(base);
    if (atomic_load(&d->state->lost) == USABLE)
        ask_own(d);
    const int lost = atomic_load(&d->state->lost);
    if (lost == USABLE)
        return STRATA_OK;
    return error_set(err, STRATA_EDEVICELOST,
                     "device cuda:%d is lost since %s; start the process again, or use "
                     "another device",
                     d->index, lost == LOST ? d->state->reason : "a failure just now");
}

int cuda_enter(struct cuda_device *d, strata_error *err)
{
    int status = cuda_check(&d->base, err);
    return status != STRATA_OK
               ? status
               : cuda_status(d, cudaSetDevice(d->index), "cudaSetDevice", err);
}

uint64_t cuda_unused_bytes(const struct cuda_device *d)
{
    size_t unused = 0, total = 0;
    if (cudaSetDevice(d->index) != cudaSuccess ||
        cudaMemGetInfo(&unused, &total) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return unused;
}

int cuda_status(struct cuda_device *d, cudaError_t result, const char *what,
                strata_error *err)
{
    if (result == cudaSuccess)
        return STRATA_OK;
    cudaGetLastError();
    if (is_sticky(result)) {
        lose(d, result, what);
        return cuda_check(&d->base, err);
    }
    if (result == cudaErrorMemoryAllocation)
        return error_set(err, STRATA_ENOMEM,
                         "device cuda:%d, %s: out of memory, %llu bytes free; use a "
                         "smaller batch, or free memory of other programs",
                         d->index, what, (unsigned long long)cuda_unused_bytes(d));
    return error_set(err, STRATA_EDEVICE, "device cuda:%d, %s: %s (%s)", d->index, what,
                     cudaGetErrorString(result), cudaGetErrorName(result));
}

int cuda_foreign(struct cuda_device *d, const char *what, strata_error *err)
{
    const cudaError_t left = cudaPeekAtLastError();
    if (left == cudaSuccess)
        return STRATA_OK;
    cudaGetLastError();
    if (is_sticky(left))
        return cuda_status(d, left, "work of other code in this process", err);
    return error_set(err, STRATA_EDEVICE,
                     "device cuda:%d, before %s: other code in this process left the "
                     "error \"%s\" (%s) unread; it has been cleared, try again",
                     d->index, what, cudaGetErrorString(left), cudaGetErrorName(left));
}
