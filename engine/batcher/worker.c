/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker runs with. On the host its stream runs on the worker's own thread, which
 * would only wait for another; that thread alone then has a team.
 */
#include "engine/batcher/batcher.h"

#include <stdio.h>

int batcher_open_worker(struct worker *w, strata_error *err)
{
    static const char *const kinds[] = {[STRATA_HOST] = "host", [STRATA_CUDA] = "cuda"};
    const struct device_properties *p = &w->place->engine->handle->properties;
    char device[32];
    snprintf(device, sizeof device, "%s:%d", kinds[p->kind], p->index);
    int status = strata_create(&w->handle, device, err);
    if (status != STRATA_OK)
        return status;
    const struct device_ops *ops = w->handle->device->ops;
    w->ahead = !ops->stream_run_here;
    if (ops->stream_run_here)
        ops->stream_run_here(w->handle->stream);
    status = strata_context_create(&w->context, w->place->engine, w->handle, err);
    if (status == STRATA_OK)
        status = strata_context_set_turns(w->context, w->batcher->turns, err);
    if (status == STRATA_OK)
        status = strata_context_prepare(w->context, err);
    return status == STRATA_OK
               ? parts_open(&w->room, w->context, w->batcher->max_batch, err)
               : status;
}

void batcher_close_worker(struct worker *w)
{
    parts_close(&w->room);
    strata_context_destroy(w->context);
    strata_destroy(w->handle);
    sem_destroy(&w->begun);
}
