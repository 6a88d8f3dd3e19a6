/* SPDX-License-Identifier: Apache-2.0
 *
 * The host device: its table, copies, and what a plan may ask of it.
 */
#include "core/host/device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

struct copy_payload {
    void *dst;
    const void *src;
    size_t bytes;
    int byte;
};

static int run_copy(void *payload, void *native, strata_error *err)
{
    const struct copy_payload *c = payload;
    (void)native;
    (void)err;
    memcpy(c->dst, c->src, c->bytes);
    return STRATA_OK;
}

static int run_fill(void *payload, void *native, strata_error *err)
{
    const struct copy_payload *c = payload;
    (void)native;
    (void)err;
    memset(c->dst, c->byte, c->bytes);
    return STRATA_OK;
}

static int copy(strata_stream *s, void *dst, const void *src, size_t bytes,
                enum device_copy direction, strata_error *err)
{
    struct copy_payload c = {.dst = dst, .src = src, .bytes = bytes};
    (void)direction; /* one memory */
    return bytes ? host_submit(s, run_copy, &c, sizeof c, err) : STRATA_OK;
}

static int fill(strata_stream *s, void *dst, int byte, size_t bytes, strata_error *err)
{
    struct copy_payload c = {.dst = dst, .bytes = bytes, .byte = byte};
    return bytes ? host_submit(s, run_fill, &c, sizeof c, err) : STRATA_OK;
}

/* Ceilings of a thread of a current server core with AVX-512, caches included: only
 * their ratios matter to a plan. */
void host_ceilings(struct device_properties *out, int threads)
{
    /* What a core has for itself: the rest is shared with whatever else runs. */
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    out->threads = threads;
    for (int dtype = 0; dtype < STRATA_DTYPE_COUNT; dtype++)
        out->flops[dtype] = 250e9 * threads;
    out->bandwidth = 25e9 * (threads > 4 ? 4 : threads);
    out->launch_ns = 1500;
    out->cache_bytes = cache > 0 ? cache * threads : 0;
}

static void properties(struct device *d, struct device_properties *out)
{
    int threads = 1;
    (void)d;
    memset(out, 0, sizeof *out);
    strcpy(out->name, "host");
    strcpy(out->build, "host");
    out->kind = STRATA_HOST;
#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    host_ceilings(out, threads);
}

static strata_allocator memory(struct device *d)
{
    (void)d;
    return host_memory();
}

static void *stream_native(strata_stream *s)
{
    (void)s;
    return NULL;
}

static uint64_t free_bytes(struct device *d)
{
    (void)d;
    return 0;
}

static int check(struct device *d, strata_error *err)
{
    (void)d;
    (void)err;
    return STRATA_OK;
}

static void close_device(struct device *d)
{
    free(d);
}

static const struct device_ops host_ops = {
    .close = close_device,
    .properties = properties,
    .memory = memory,
    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .stream_synchronize = host_stream_synchronize,
    .stream_run_here = host_stream_run_here,
    .stream_visit = host_stream_visit,
    .stream_wait = host_stream_wait,
    .run_begin = host_run_begin,
    .run_end = host_run_end,
    .submit = host_submit,
    .copy = copy,
    .fill = fill,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_synchronize = host_event_synchronize,
    .event_elapsed = host_event_elapsed,
    .stream_native = stream_native,
    .host_memory = memory,
    .free_bytes = free_bytes,
    .check = check,
};

int host_device_open(struct device **out, int index, strata_error *err)
{
    if (index != 0)
        return error_set(err, STRATA_ENOTFOUND, "device host:%d: there is one host",
                         index);
    struct device *d = zalloc(1, sizeof *d, "the host device", err);
    if (!d)
        return STRATA_ENOMEM;
    d->ops = &host_ops;
    *out = d;
    return STRATA_OK;
}
