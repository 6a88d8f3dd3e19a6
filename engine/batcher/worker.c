/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker runs with. On the host its stream runs on the worker's own thread, which
 * would only wait for another; that thread alone then has a team. Elsewhere requests'
 * rows that are so small that a copy of its own would take longer than the bytes are
 * staged: all of a binding are one copy.
 */
#include "engine/batcher/batcher.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/checked.h"

enum { SMALL = 32 << 10 }; /* bytes that the host moves in about the time of one copy */

static int stage(struct port *p, struct worker *w, size_t index, strata_error *err)
{
    const strata_engine *e = w->batcher->engine;
    const int64_t row_bytes = e->row_bytes[index];
    int64_t bytes;
    if (row_bytes == 0 || row_bytes > SMALL)
        return STRATA_OK;
    if (!checked_mul(row_bytes, 2 * w->batcher->max_batch, &bytes))
        return error_set(err, STRATA_EOVERFLOW, "binding '%s': too large",
                         e->execution->bindings[index].name);
    p->staged = strata_host_alloc(w->handle, (size_t)bytes, err);
    p->staged_bytes = (size_t)bytes / 2;
    return p->staged ? STRATA_OK : STRATA_ENOMEM;
}

static int open_ports(struct worker *w, strata_error *err)
{
    const struct execution *x = w->batcher->engine->execution;
    const bool staged = w->handle->properties.kind != STRATA_HOST;
    int status = STRATA_OK;
    w->ports = zalloc(x->n_bindings, sizeof *w->ports, "a batcher's bindings", err);
    if (!w->ports)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < x->n_bindings && status == STRATA_OK; i++) {
        struct port *p = &w->ports[i];
        if (!(p->data = strata_context_data(w->context, (int)i)))
            return error_no_memory(err, 0, "a batcher's bindings");
        if (staged)
            status = stage(p, w, i, err);
    }
    return status;
}

int batcher_open_worker(struct worker *w, strata_error *err)
{
    static const char *const kinds[] = {[STRATA_HOST] = "host", [STRATA_CUDA] = "cuda"};
    const struct device_properties *p = &w->batcher->engine->handle->properties;
    char device[32];
    snprintf(device, sizeof device, "%s:%d", kinds[p->kind], p->index);
    int status = strata_create(&w->handle, device, err);
    if (status != STRATA_OK)
        return status;
    const struct device_ops *ops = w->handle->device->ops;
    w->ahead = !ops->stream_run_here;
    if (ops->stream_run_here)
        ops->stream_run_here(w->handle->stream);
    status = strata_context_create(&w->context, w->batcher->engine, w->handle, err);
    if (status == STRATA_OK)
        status = strata_context_prepare(w->context, err);
    return status == STRATA_OK ? open_ports(w, err) : status;
}

void batcher_close_worker(struct worker *w)
{
    strata_context_destroy(w->context);
    for (size_t i = 0; w->ports && i < w->batcher->engine->execution->n_bindings; i++)
        strata_host_free(w->handle, w->ports[i].staged, 2 * w->ports[i].staged_bytes);
    free(w->ports);
    strata_destroy(w->handle);
    sem_destroy(&w->begun);
}
