/* SPDX-License-Identifier: Apache-2.0
 *
 * Events, timed by the device, and streams that wait for them.
 */
#include <stdlib.h>

#include "kernels/stream.h"

struct cuda_event {
    strata_event base;
    cudaEvent_t native;
    bool recorded; /* or foreign, whose records are not seen here */
    bool foreign;  /* the application's */
};

static struct cuda_event *cuda_event(strata_event *e)
{
    return (struct cuda_event *)e;
}

int cuda_event_create(struct device *base, strata_event **out, strata_error *err)
{
    struct cuda_device *d = cuda_device(base);
    struct cuda_event *e = zalloc(1, sizeof *e, "an event", err);
    if (!e)
        return STRATA_ENOMEM;
    e->base.device = base;
    int status = cuda_enter(d, err);
    if (status == STRATA_OK)
        status = cuda_status(d, cudaEventCreate(&e->native), "creating an event", err);
    if (status != STRATA_OK) {
        free(e);
        return status;
    }
    *out = &e->base;
    return STRATA_OK;
}

int cuda_event_wrap(struct device *base, void *native, strata_event **out,
                    strata_error *err)
{
    struct cuda_event *e = zalloc(1, sizeof *e, "an event", err);
    if (!e)
        return STRATA_ENOMEM;
    *e = (struct cuda_event){{base}, (cudaEvent_t)native, true, true};
    *out = &e->base;
    return STRATA_OK;
}

void *cuda_event_native(const strata_event *e)
{
    return ((const struct cuda_event *)e)->native;
}

void cuda_event_destroy(strata_event *base)
{
    struct cuda_device *d = cuda_device(base->device);
    if (!cuda_event(base)->foreign && cuda_enter(d, NULL) == STRATA_OK)
        cuda_status(d, cudaEventDestroy(cuda_event(base)->native), "destroying an event",
                    NULL);
    free(cuda_event(base));
}

int cuda_event_record(strata_event *base, strata_stream *s, strata_error *err)
{
    struct cuda_device *d = cuda_device(base->device);
    struct cuda_event *e = cuda_event(base);
    int status = cuda_enter(d, err);
    if (status == STRATA_OK)
        status = cuda_status(d, cudaEventRecord(e->native, cuda_stream(s)->native),
                             "recording an event", err);
    e->recorded |= status == STRATA_OK;
    return status;
}

int cuda_event_synchronize(strata_event *base, strata_error *err)
{
    struct cuda_device *d = cuda_device(base->device);
    int status = cuda_enter(d, err);
    return status != STRATA_OK
               ? status
               : cuda_status(d, cudaEventSynchronize(cuda_event(base)->native),
                             "work before an event", err);
}

int cuda_event_elapsed(double *ms, strata_event *from, strata_event *to,
                       strata_error *err)
{
    struct cuda_device *d = cuda_device(from->device);
    float elapsed = 0;
    int status = cuda_enter(d, err);
    if (status != STRATA_OK)
        return status;
    if (!cuda_event(from)->recorded || !cuda_event(to)->recorded)
        return error_set(err, STRATA_EINVAL, "event was never recorded");
    const cudaError_t result =
        cudaEventElapsedTime(&elapsed, cuda_event(from)->native, cuda_event(to)->native);
    if (result == cudaErrorNotReady) {
        cudaGetLastError();
        return error_set(err, STRATA_EBUSY,
                         "event has not happened yet; synchronize with it first");
    }
    *ms = (double)elapsed;
    return cuda_status(d, result, "timing two events", err);
}

int cuda_stream_wait(strata_stream *s, strata_event *base, strata_error *err)
{
    struct cuda_device *d = cuda_device(s->device);
    int status = cuda_enter(d, err);
    return status != STRATA_OK
               ? status
               : cuda_status(d,
                             cudaStreamWaitEvent(cuda_stream(s)->native,
                                                 cuda_event(base)->native, 0),
                             "waiting for an event", err);
}
