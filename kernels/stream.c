/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and what is put on them: copies, fills, reformats, and work that enqueues
 * kernels of its own.
 */
#include "kernels/stream.h"

#include <stdlib.h>

#include "formats/reformat/kernels.h"
#include "kernels/lead.h"
#include "kernels/reformat/reformat.h"

int cuda_stream_make(struct device *base, unsigned flags, strata_stream **out,
                     strata_error *err)
{
    struct cuda_device *d = cuda_device(base);
    struct cuda_stream *s = zalloc(1, sizeof *s, "a stream", err);
    if (!s)
        return STRATA_ENOMEM;
    s->base.device = base;
    int status = cuda_enter(d, err);
    if (status == STRATA_OK)
        status = cuda_status(d, cudaStreamCreateWithFlags(&s->native, flags),
                             "creating a stream", err);
    if (status != STRATA_OK) {
        free(s);
        return status;
    }
    *out = &s->base;
    return STRATA_OK;
}

int cuda_stream_create(struct device *base, strata_stream **out, strata_error *err)
{
    return cuda_stream_make(base, cudaStreamNonBlocking, out, err);
}

int cuda_stream_wrap(struct device *base, void *native, strata_stream **out,
                     strata_error *err)
{
    struct cuda_device *d = cuda_device(base);
    int index = d->index, status = cuda_enter(d, err);
    if (status == STRATA_OK)
        status = cuda_status(d, cudaStreamGetDevice((cudaStream_t)native, &index),
                             "a stream of the application", err);
    if (status == STRATA_OK && index != d->index)
        status =
            error_set(err, STRATA_EINVAL,
                      "the stream is of GPU %d, the handle of GPU %d; use a handle of "
                      "cuda:%d",
                      index, d->index, index);
    if (status != STRATA_OK)
        return status;
    struct cuda_stream *s = zalloc(1, sizeof *s, "a stream", err);
    if (!s)
        return STRATA_ENOMEM;
    *s = (struct cuda_stream){{base}, (cudaStream_t)native, true};
    *out = &s->base;
    return STRATA_OK;
}

void cuda_stream_destroy(strata_stream *base)
{
    struct cuda_stream *s = cuda_stream(base);
    struct cuda_device *d = cuda_device(base->device);
    if (!s->foreign && cuda_enter(d, NULL) == STRATA_OK) {
        cuda_status(d, cudaStreamSynchronize(s->native), "a stream's last work", NULL);
        if (cuda_enter(d, NULL) == STRATA_OK)
            cudaStreamDestroy(s->native);
    }
    free(s);
}

void *cuda_stream_native(strata_stream *s)
{
    return cuda_stream(s)->native;
}

int cuda_stream_synchronize(strata_stream *s, strata_error *err)
{
    struct cuda_device *d = cuda_device(s->device);
    int status = cuda_enter(d, err);
    return status != STRATA_OK
               ? status
               : cuda_status(d, cudaStreamSynchronize(cuda_stream(s)->native),
                             "work on a stream", err);
}

/* Whether work broke the capture it was to be part of: by waiting, allocating, or
 * touching another stream. */
static int check_capture(struct cuda_device *d, cudaStream_t stream, strata_error *err)
{
    enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    int status =
        cuda_status(d, cudaStreamIsCapturing(stream, &state), "after a layer", err);
    if (status != STRATA_OK || state != cudaStreamCaptureStatusInvalidated)
        return status;
    return error_set(err, STRATA_EUNSUPPORTED,
                     "run did what a graph cannot hold: it waited for the device, "
                     "allocated, or used another stream");
}

int cuda_submit(strata_stream *s, device_work work, const void *payload, size_t bytes,
                strata_error *err)
{
    struct cuda_device *d = cuda_device(s->device);
    (void)bytes;
    int status = cuda_enter(d, err);
    if (status == STRATA_OK)
        status = cuda_foreign(d, "a layer", err);
    if (status == STRATA_OK)
        status = work((void *)(uintptr_t)payload, cuda_stream(s)->native, err);
    if (status != STRATA_OK)
        return error_set(err, status, "%s", strata_status_text(status));
    status = cuda_status(d, cudaPeekAtLastError(), "launching a layer's kernels", err);
    return status != STRATA_OK ? status : check_capture(d, cuda_stream(s)->native, err);
}

int cuda_copy(strata_stream *s, void *dst, const void *src, size_t bytes,
              enum device_copy direction, strata_error *err)
{
    static const enum cudaMemcpyKind kinds[] = {
        [COPY_TO_DEVICE] = cudaMemcpyHostToDevice,
        [COPY_FROM_DEVICE] = cudaMemcpyDeviceToHost,
        [COPY_ON_DEVICE] = cudaMemcpyDeviceToDevice,
    };
    struct cuda_device *d = cuda_device(s->device);
    int status = cuda_enter(d, err);
    if (status != STRATA_OK || bytes == 0)
        return status;
    return cuda_status(
        d, cudaMemcpyAsync(dst, src, bytes, kinds[direction], cuda_stream(s)->native),
        "a copy", err);
}

int cuda_lead(strata_stream *s, strata_error *err)
{
    struct cuda_device *d = cuda_device(s->device);
    int status = cuda_enter(d, err);
    return status != STRATA_OK
               ? status
               : cuda_status(d, (cudaError_t)lead_cuda_launch(cuda_stream(s)->native),
                             "launching what goes before a timed run", err);
}

int cuda_fill(strata_stream *s, void *dst, int byte, size_t bytes, strata_error *err)
{
    struct cuda_device *d = cuda_device(s->device);
    int status = cuda_enter(d, err);
    if (status != STRATA_OK || bytes == 0)
        return status;
    return cuda_status(d, cudaMemsetAsync(dst, byte, bytes, cuda_stream(s)->native),
                       "a fill", err);
}

int cuda_reformat_row(strata_stream *s, size_t row, const strata_desc *dst,
                      void *dst_data, const strata_desc *src, const void *src_data,
                      strata_error *err)
{
    struct cuda_device *d = cuda_device(s->device);
    int result = cudaSuccess, status = cuda_enter(d, err);
    if (status == STRATA_OK)
        status = reformat_check(dst, dst_data, src, src_data, err);
    if (status != STRATA_OK || strata_desc_count(dst) == 0)
        return status;
    if ((status = cuda_foreign(d, "a reformat", err)) != STRATA_OK)
        return status;
    status = reformat_cuda_row(row, dst, dst_data, src, src_data, cuda_stream(s)->native,
                               &result, err);
    return status != STRATA_OK
               ? status
               : cuda_status(d, (cudaError_t)result, "launching a reformat", err);
}

int cuda_reformat(strata_stream *s, const strata_desc *dst, void *dst_data,
                  const strata_desc *src, const void *src_data, strata_error *err)
{
    size_t row = 0;
    if (reformat_check(dst, dst_data, src, src_data, NULL) == STRATA_OK &&
        strata_desc_count(dst) > 0)
        row = reformat_cuda_choose(dst, dst_data, src, src_data);
    return cuda_reformat_row(s, row, dst, dst_data, src, src_data, err);
}
