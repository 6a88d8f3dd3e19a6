/* SPDX-License-Identifier: Apache-2.0
 *
 * Timing impls of layers on a CUDA device, outside of an engine.
 */
#include "bench/cuda/impl_time.h"

#include <stdlib.h>

enum { MOST_RUNS = 9, QUICK_RUNS = 3, CHUNK = 1 << 22 };

/* ---- the device -----------------------------------------------------------------------
 */

static struct impl_device *the_device; /* the pack extension finds it */

static int pack_alloc(const strata_node *n, size_t bytes, void **out)
{
    struct impl_device *d = the_device;
    if (d->n_packs == IMPL_PACKS)
        return error_set(n->err, STRATA_ENOMEM, "over %d packs", IMPL_PACKS);
    *out = allocator_get(&d->handle->allocator, bytes, "packed weights", n->err);
    d->packs[d->n_packs] = *out;
    d->pack_bytes[d->n_packs++] = bytes;
    return *out ? STRATA_OK : STRATA_ENOMEM;
}

static const strata_pack pack_table = {.struct_size = sizeof(strata_pack),
                                       .alloc = pack_alloc};

static void free_packs(struct impl_device *d)
{
    while (d->n_packs > 0) {
        d->n_packs--;
        allocator_put(&d->handle->allocator, d->packs[d->n_packs],
                      d->pack_bytes[d->n_packs]);
    }
}

int impl_device_open(struct impl_device *d, bool quick, strata_error *err)
{
    const strata_registry_options options = {.struct_size = sizeof options,
                                             .allow_untrusted = 1};
    *d = (struct impl_device){.runs = quick ? QUICK_RUNS : MOST_RUNS};
    the_device = d;
    int status = strata_create(&d->handle, "cuda:0", err);
    if (status != STRATA_OK)
        return status;
    d->ops = d->handle->device->ops;
    status = strata_registry_create(&d->registry, &options, err);
    if (status == STRATA_OK)
        status = registry_set_extension(STRATA_PACK_V1, &pack_table);
    if (status == STRATA_OK)
        status = d->ops->event_create(d->handle->device, &d->from, err);
    if (status == STRATA_OK)
        status = d->ops->event_create(d->handle->device, &d->to, err);
    return status;
}

void impl_device_close(struct impl_device *d)
{
    if (!d->handle)
        return;
    strata_event_destroy(d->from);
    strata_event_destroy(d->to);
    strata_registry_destroy(d->registry);
    strata_destroy(d->handle);
}

int impl_fill(struct impl_device *d, void *to, size_t bytes, bool half, strata_error *err)
{
    static uint32_t state = 12345;
    const size_t first = bytes < CHUNK ? bytes : CHUNK;
    char *noise = malloc(CHUNK);
    if (!noise)
        return error_no_memory(err, CHUNK, "random data");
    for (size_t i = 0; i < CHUNK / (half ? 2 : 4); i++) {
        state = state * 1664525u + 1013904223u;
        if (half) /* exponents of 2^-4 to 2^-1, any sign and fraction; no byte is a NaN
                     of E4M3 */
            ((uint16_t *)noise)[i] =
                (uint16_t)(state >> 16 &
                           ((state >> 16 & 0x7f) == 0x7f ? 0x83fe : 0x83ff)) |
                (uint16_t)((11 + (state >> 8 & 3)) << 10);
        else
            ((float *)noise)[i] = (float)(int32_t)state * 0x1p-31f;
    }
    int status = d->ops->copy(d->handle->stream, to, noise, first, COPY_TO_DEVICE, err);
    for (size_t done = first; done < bytes && status == STRATA_OK; done *= 2)
        status =
            d->ops->copy(d->handle->stream, (char *)to + done, to,
                         bytes - done < done ? bytes - done : done, COPY_ON_DEVICE, err);
    if (status == STRATA_OK)
        status = strata_stream_synchronize(d->handle->stream, err);
    free(noise);
    return status;
}

/* ---- an impl --------------------------------------------------------------------------
 */

bool impl_admits(const strata_impl *impl, const strata_node *n)
{
    if (impl->device != STRATA_CUDA || (impl->min_sm && n->sm < impl->min_sm) ||
        (impl->max_sm && n->sm > impl->max_sm))
        return false;
    const bool accepted = !impl->accept || impl->accept(n) == STRATA_OK;
    error_clear(n->err);
    return accepted;
}

int impl_open(struct impl_state *s, struct impl_device *d, const strata_node *n,
              strata_error *err)
{
    const strata_impl *impl = s->impl;
    s->state = calloc(1, impl->state_size + 1);
    s->ctx = calloc(1, impl->ctx_size + 1);
    if (!s->state || !s->ctx)
        return error_no_memory(err, impl->state_size + impl->ctx_size, "a state");
    s->workspace_size = impl->workspace ? impl->workspace(n) : 0;
    if (s->workspace_size)
        s->workspace =
            allocator_get(&d->handle->allocator, s->workspace_size, "a workspace", err);
    if (s->workspace_size && !s->workspace)
        return STRATA_ENOMEM;
    int status = impl->setup ? impl->setup(n, s->state) : STRATA_OK;
    s->set_up = status == STRATA_OK;
    if (status == STRATA_OK && impl->ctx_open)
        status = impl->ctx_open(n, s->state, s->ctx);
    s->opened = status == STRATA_OK;
    return status;
}

void impl_close(struct impl_state *s, struct impl_device *d)
{
    strata_stream_synchronize(d->handle->stream, NULL);
    if (s->opened && s->impl->ctx_close)
        s->impl->ctx_close(s->ctx);
    if (s->set_up && s->impl->teardown)
        s->impl->teardown(s->state);
    allocator_put(&d->handle->allocator, s->workspace, s->workspace_size);
    free_packs(d);
    free(s->state);
    free(s->ctx);
    *s = (struct impl_state){.impl = NULL};
}

/* ---- timing ---------------------------------------------------------------------------
 */

static int launches(impl_launch *launch, void *user, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < IMPL_LAUNCHES && status == STRATA_OK; i++)
        status = launch(user, i % IMPL_SETS, err);
    return status;
}

static int capture_launches(void **graph, struct impl_device *d, impl_launch *launch,
                            void *user, strata_error *err)
{
    int status = d->ops->capture_begin(d->handle->stream, err);
    if (status != STRATA_OK)
        return status;
    status = launches(launch, user, err);
    const int ended = d->ops->capture_end(d->handle->stream, graph, err);
    return status == STRATA_OK ? ended : status;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int impl_time(double *us, struct impl_device *d, impl_launch *launch, void *user,
              bool capture, strata_error *err)
{
    double times[MOST_RUNS + 1]; /* the first warms up */
    strata_stream *stream = d->handle->stream;
    void *graph = NULL;
    int status = launch(user, 0, err); /* what a first launch loads, it loads here */
    if (status == STRATA_OK)
        status = strata_stream_synchronize(stream, err);
    if (status == STRATA_OK && capture)
        status = capture_launches(&graph, d, launch, user, err);
    for (int i = 0; i <= d->runs && status == STRATA_OK; i++) {
        status = d->ops->event_record(d->from, stream, err);
        if (status == STRATA_OK)
            status = capture ? d->ops->graph_launch(stream, graph, err)
                             : launches(launch, user, err);
        if (status == STRATA_OK)
            status = d->ops->event_record(d->to, stream, err);
        if (status == STRATA_OK)
            status = d->ops->event_synchronize(d->to, err);
        if (status == STRATA_OK)
            status = d->ops->event_elapsed(&times[i], d->from, d->to, err);
    }
    if (graph)
        d->ops->graph_destroy(d->handle->device, graph);
    if (status != STRATA_OK)
        return status;
    qsort(times + 1, (size_t)d->runs, sizeof times[0], by_value);
    *us = times[1 + d->runs / 2] * 1e3 / IMPL_LAUNCHES;
    return STRATA_OK;
}
