/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream and what is measured on it. A run is: copy in, compute, copy out. One that is
 * marked has an event between each two, without copies the two around compute, and is
 * waited for by the last.
 */
#include "tools/bench/bench.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "engine/context/context.h"
#include "tools/run/run.h"

enum { START, COPIED_IN, COMPUTED, COPIED_OUT, MARKS };
enum { HOST_CACHE = 64 << 20 }; /* bytes, where the system does not tell */
enum { MARKED = 4 };            /* one run in so many */

struct bench_slot {
    strata_event *marks[MARKS]; /* START and COPIED_OUT with copies alone */
    struct bench_sample sample;
    strata_context *context;
    bool under_way;
};

double bench_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- opening ---------------------------------------------------------------------- */

static int open_slots(struct bench_lane *l, strata_error *err)
{
    const struct bench_options *o = &l->settings->base;
    l->slots = zalloc((size_t)o->in_flight, sizeof *l->slots, "runs", err);
    int status = l->slots ? STRATA_OK : STRATA_ENOMEM;
    for (int64_t i = 0; i < o->in_flight && status == STRATA_OK; i++)
        for (int m = 0; m < MARKS && status == STRATA_OK; m++)
            if (o->transfers || m == COPIED_IN || m == COMPUTED)
                status = strata_event_create(&l->slots[i].marks[m], l->handle, err);
    return status == STRATA_OK ? strata_event_create(&l->base, l->handle, err) : status;
}

static int read_inputs(struct bench_lane *l, strata_context *c,
                       const struct bench_arguments *a, strata_error *err)
{
    const strata_engine *e = c->engine;
    int status = run_read_inputs(c, e, &a->common, err);
    for (int i = 0; i < (int)e->execution->n_inputs && status == STRATA_OK && l->host;
         i++)
        status = strata_copy_out(c, i, l->host[i], err);
    return status;
}

static size_t binding_bytes(const strata_engine *e, size_t index)
{
    const struct execution *x = e->execution;
    return (size_t)x->values[x->bindings[index].value].bytes;
}

static int open_host_memory(struct bench_lane *l, const strata_engine *e,
                            strata_error *err)
{
    const struct execution *x = e->execution;
    l->host = zalloc(x->n_bindings, sizeof *l->host, "host memory", err);
    if (!l->host)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < x->n_bindings; i++)
        if (!(l->host[i] = strata_host_alloc(l->handle, binding_bytes(e, i), err)))
            return STRATA_ENOMEM;
    return STRATA_OK;
}

/* Twice what the cache holds. */
static int open_scratch(struct bench_lane *l, strata_error *err)
{
    int64_t cache = l->handle->properties.cache_bytes;
    if (cache == 0)
        cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    l->scratch_bytes = 2 * (size_t)(cache > 0 ? cache : HOST_CACHE);
    l->scratch =
        allocator_get(&l->handle->allocator, l->scratch_bytes, "a cold cache", err);
    return l->scratch ? STRATA_OK : STRATA_ENOMEM;
}

static int open_contexts(struct bench_lane *l, const strata_engine *e,
                         const struct bench_arguments *a, strata_error *err)
{
    int status = STRATA_OK;
    l->contexts = zalloc(l->n_contexts, sizeof *l->contexts, "contexts", err);
    if (!l->contexts)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < l->n_contexts && status == STRATA_OK; i++) {
        strata_context **c = &l->contexts[i];
        status = strata_context_create(c, e, l->handle, err);
        if (status == STRATA_OK)
            (*c)->starts_over = true;
        if (status == STRATA_OK && l->settings->no_graph)
            status = strata_context_use_graph(*c, 0, err);
        if (status == STRATA_OK && l->settings->batch > 0)
            status = strata_context_set_batch(*c, l->settings->batch, err);
        if (status == STRATA_OK)
            status = run_set_sizes(*c, &a->common, err);
        if (status == STRATA_OK)
            status = read_inputs(l, *c, a, err);
        if (status == STRATA_OK)
            status = strata_context_prepare(*c, err);
    }
    return status;
}

/* Where it is not said, by the rule for runs of parts. */
static int set_turns(strata_context *c, const struct bench_settings *s, int64_t lanes,
                     strata_error *err)
{
    const strata_engine *e = c->active->engine;
    uint64_t moved = 0;
    for (size_t i = 0; i < e->execution->n_bindings && s->base.transfers; i++)
        moved += binding_bytes(e, i);
    const int use = s->turns != STRATA_TURNS_AUTO              ? s->turns
                    : lanes > 1 && context_turn_pays(c, moved) ? STRATA_TURNS_ON
                                                               : STRATA_TURNS_OFF;
    return strata_context_set_turns(c, use, err);
}

static int open_all_turns(struct bench_lane *l, int64_t lanes, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < l->n_contexts && status == STRATA_OK; i++)
        status = set_turns(l->contexts[i], l->settings, lanes, err);
    return status;
}

int bench_lane_open(struct bench_lane *l, const strata_engine *e, const char *device,
                    const struct bench_arguments *a, const struct bench_settings *s,
                    int64_t lane, int64_t of, strata_error *err)
{
    l->settings = s;
    l->engine = e;
    l->n_contexts = (size_t)((s->base.contexts - lane + of - 1) / of);
    int status = strata_create(&l->handle, device, err);
    if (status == STRATA_OK) {
        l->whole = l->handle->device->ops->stream_visit && s->base.in_flight == 1 &&
                   !s->base.transfers;
        status = open_slots(l, err);
    }
    if (status == STRATA_OK && s->base.transfers)
        status = open_host_memory(l, e, err);
    if (status == STRATA_OK && s->base.cold_cache)
        status = open_scratch(l, err);
    if (status == STRATA_OK)
        status = open_contexts(l, e, a, err);
    return status == STRATA_OK ? open_all_turns(l, of, err) : status;
}

void bench_lane_close(struct bench_lane *l)
{
    const strata_engine *e = l->engine;
    if (l->handle) /* what is under way uses what goes */
        strata_stream_synchronize(strata_get_stream(l->handle), NULL);
    for (int64_t i = 0; l->slots && i < l->settings->base.in_flight; i++)
        for (int m = 0; m < MARKS; m++)
            strata_event_destroy(l->slots[i].marks[m]);
    strata_event_destroy(l->base);
    for (size_t i = 0; l->host && i < e->execution->n_bindings; i++)
        strata_host_free(l->handle, l->host[i], binding_bytes(e, i));
    for (size_t i = 0; l->contexts && i < l->n_contexts; i++)
        strata_context_destroy(l->contexts[i]);
    if (l->handle)
        allocator_put(&l->handle->allocator, l->scratch, l->scratch_bytes);
    strata_destroy(l->handle);
    free(l->slots);
    free(l->host);
    free(l->contexts);
    free(l->samples);
}

/* ---- runs ------------------------------------------------------------------------- */

static int empty_cache(struct bench_lane *l, strata_error *err)
{
    const struct device_ops *ops = l->handle->device->ops;
    strata_stream *stream = strata_get_stream(l->handle);
    int status =
        ops->fill(stream, l->scratch, (int)(l->begun & 0x7f), l->scratch_bytes, err);
    return status == STRATA_OK ? strata_stream_synchronize(stream, err) : status;
}

static int copy_all(struct bench_lane *l, strata_context *c, bool in, strata_error *err)
{
    const strata_engine *e = c->engine;
    int status = STRATA_OK;
    for (size_t i = in ? 0 : e->execution->n_inputs;
         i < (in ? e->execution->n_inputs : e->execution->n_bindings) &&
         status == STRATA_OK;
         i++)
        status = in ? strata_enqueue_copy_in(c, (int)i, l->host[i], err)
                    : strata_enqueue_copy_out(c, (int)i, l->host[i], err);
    return status;
}

/* An event that the run does without is passed over. */
static int mark(struct bench_lane *l, const struct bench_slot *s, int which,
                strata_error *err)
{
    return s->sample.marked && s->marks[which]
               ? strata_event_record(s->marks[which], strata_get_stream(l->handle), err)
               : STRATA_OK;
}

static int enqueue(struct bench_lane *l, struct bench_slot *s, strata_error *err)
{
    strata_context *c = s->context = l->contexts[l->next_context];
    const bool copies = l->settings->base.transfers;
    l->next_context = (l->next_context + 1) % l->n_contexts;
    int status = mark(l, s, START, err);
    if (status == STRATA_OK && copies)
        status = copy_all(l, c, true, err);
    if (status == STRATA_OK)
        status = mark(l, s, COPIED_IN, err);
    if (status == STRATA_OK)
        status =
            l->whole ? strata_context_run(c, err) : strata_context_enqueue(c, NULL, err);
    if (status == STRATA_OK)
        status = mark(l, s, COMPUTED, err);
    if (status == STRATA_OK && copies)
        status = copy_all(l, c, false, err);
    return status == STRATA_OK ? mark(l, s, COPIED_OUT, err) : status;
}

/* Of several runs under way, one is waited for by its event. */
static bool is_marked(const struct bench_lane *l)
{
    const struct bench_settings *s = l->settings;
    return s->mark_all || s->spin || s->base.in_flight > 1 || l->begun % MARKED == 0;
}

static int begin(struct bench_lane *l, struct bench_slot *s, double start_ms,
                 strata_error *err)
{
    int status = l->scratch ? empty_cache(l, err) : STRATA_OK;
    s->sample = (struct bench_sample){.marked = is_marked(l)};
    l->begun++;
    s->sample.enqueue[0] = bench_now_ms() - start_ms;
    if (status == STRATA_OK)
        status = enqueue(l, s, err);
    s->sample.enqueue[1] = bench_now_ms() - start_ms;
    s->under_way = status == STRATA_OK;
    return status;
}

static int wait_for(const struct bench_lane *l, const struct bench_slot *s,
                    strata_error *err)
{
    strata_event *e = s->marks[COPIED_OUT] ? s->marks[COPIED_OUT] : s->marks[COMPUTED];
    double ms;
    int status = STRATA_EBUSY;
    if (!s->sample.marked)
        return l->whole ? STRATA_OK : strata_context_wait(s->context, err);
    if (!l->settings->spin)
        return strata_event_synchronize(e, err);
    while (status == STRATA_EBUSY)
        status = strata_event_elapsed(&ms, e, e, NULL);
    return status == STRATA_OK ? status : strata_event_synchronize(e, err);
}

static int span(double out[2], struct bench_lane *l, strata_event *from, strata_event *to,
                strata_error *err)
{
    int status = STRATA_OK;
    if (!from || !to)
        return status; /* no copies */
    if ((status = strata_event_elapsed(&out[0], l->base, from, err)) == STRATA_OK)
        status = strata_event_elapsed(&out[1], from, to, err);
    out[1] += out[0];
    return status;
}

static int keep(struct bench_lane *l, struct bench_slot *s, strata_error *err)
{
    struct bench_sample *sample = &s->sample;
    int status = grow(&l->samples, &l->capacity, l->n_samples, sizeof *l->samples, err);
    if (status == STRATA_OK && sample->marked)
        status = span(sample->h2d, l, s->marks[START], s->marks[COPIED_IN], err);
    if (status == STRATA_OK && sample->marked)
        status = span(sample->compute, l, s->marks[COPIED_IN], s->marks[COMPUTED], err);
    if (status == STRATA_OK && sample->marked)
        status = span(sample->d2h, l, s->marks[COMPUTED], s->marks[COPIED_OUT], err);
    if (status == STRATA_OK)
        l->samples[l->n_samples++] = *sample;
    return status;
}

static int finish(struct bench_lane *l, struct bench_slot *s, double start_ms,
                  strata_error *err)
{
    if (!s->under_way)
        return STRATA_OK;
    s->under_way = false;
    int status = wait_for(l, s, err);
    s->sample.done = bench_now_ms() - start_ms;
    if (status == STRATA_OK && l->record)
        status = keep(l, s, err);
    return status;
}

int bench_lane_record(struct bench_lane *l, double start_ms, strata_error *err)
{
    int status = strata_event_record(l->base, strata_get_stream(l->handle), err);
    if (status == STRATA_OK)
        status = strata_event_synchronize(l->base, err);
    l->base_ms = bench_now_ms() - start_ms;
    l->record = true;
    return status;
}

int bench_lane_step(struct bench_lane *l, double start_ms, strata_error *err)
{
    const int64_t n = l->settings->base.in_flight;
    const struct timespec idle = {(time_t)(l->settings->idle / 1000000000),
                                  (long)(l->settings->idle % 1000000000)};
    struct bench_slot *s = &l->slots[l->next_slot];
    l->next_slot = (l->next_slot + 1) % (size_t)n;
    int status = finish(l, s, start_ms, err);
    if (status == STRATA_OK && l->settings->idle > 0)
        nanosleep(&idle, NULL);
    if (status == STRATA_OK)
        status = begin(l, s, start_ms, err);
    return status == STRATA_OK && n == 1 ? finish(l, s, start_ms, err) : status;
}

int bench_lane_drain(struct bench_lane *l, double start_ms, strata_error *err)
{
    const size_t n = (size_t)l->settings->base.in_flight;
    int status = STRATA_OK;
    for (size_t i = 0; i < n && status == STRATA_OK; i++)
        status = finish(l, &l->slots[(l->next_slot + i) % n], start_ms, err);
    for (size_t i = 0; i < l->n_contexts && status == STRATA_OK; i++)
        status = strata_context_wait(l->contexts[i], err);
    return status;
}
