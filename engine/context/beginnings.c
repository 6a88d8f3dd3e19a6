/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan timed in place. The prices by which it is chosen are each taken alone; what a
 * step takes among the others, with the caches, launches and clocks of a run, is the
 * difference between two beginnings of the run, one of which ends with it. Each beginning
 * is a graph, and goes behind a whole run, as it would where runs follow each other. What
 * the steps add up to is what runs behind each other take, in time enough for the
 * device's power to have settled.
 */
#include "engine/context/context.h"

#include <strata/state.h>

#include <math.h>
#include <stdlib.h>

#include "planner/cost/cost.h"

#define SETTLED_MS 200.0 /* for whole runs, of each size */
#define BATCH_MS 2.0     /* whole runs between two events */
#define QUEUED_MS 50.0   /* and on the stream at once */
#define BEFORE_MS 0.1    /* of whole runs before what is timed: the host gets ahead */
#define LATE_MS 0.004    /* at most, that events and a graph's launch add */

enum {
    PAIRS = 16, /* of events that are put on the stream at once */
    MOST_ROUNDS = 9,
    LEAST_ROUNDS = 3,
    MOST_BEFORE = 16,
    MOST_BATCH = 64,
    MOST_NODES = 16000 /* of graphs that are there at once, about */
};

/* What times of one plan are taken with. */
struct timing {
    strata_context *c;
    struct execution *x;
    strata_event *events[2 * PAIRS];
    struct context_segment *begins; /* from the first step; the last is the whole run */
    struct cost_prefix *prefixes;   /* the times of each */
    double *samples;                /* ms: MOST_ROUNDS of each */
    size_t n;
    int rounds, before; /* whole runs before what is timed */
    double whole_ms;
};

/* ---- what is put on the stream --------------------------------------------- */

static void *whole_of(const struct timing *t)
{
    return t->c->graphs[0].segments[0].graph;
}

static int launch(struct timing *t, void *graph, int times, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < times && status == STRATA_OK; i++)
        status = t->c->handle->device->ops->graph_launch(t->c->stream, graph, err);
    return status;
}

/* So many launches between the k-th pair of events, behind whole runs; states as at their
 * beginning. */
static int enqueue_pair(struct timing *t, int k, void *graph, int times,
                        strata_error *err)
{
    const struct device_ops *ops = t->c->handle->device->ops;
    strata_stream *s = t->c->stream;
    int status = t->x->n_states ? context_reset_states(t->c->whole, STRATA_ALL_ROWS, err)
                                : STRATA_OK;
    if (status == STRATA_OK)
        status = launch(t, whole_of(t), t->before, err);
    if (status == STRATA_OK)
        status = ops->event_record(t->events[2 * k], s, err);
    if (status == STRATA_OK)
        status = launch(t, graph, times, err);
    return status == STRATA_OK ? ops->event_record(t->events[2 * k + 1], s, err) : status;
}

/* Of the first n pairs, ms. */
static int read_pairs(struct timing *t, int n, double *ms, strata_error *err)
{
    const struct device_ops *ops = t->c->handle->device->ops;
    int status = ops->stream_synchronize(t->c->stream, err);
    for (int k = 0; k < n && status == STRATA_OK; k++)
        status = ops->event_elapsed(&ms[k], t->events[2 * k], t->events[2 * k + 1], err);
    return status;
}

/* ---- times ----------------------------------------------------------------- */

static int clamp(double x, int most)
{
    return x < 1 ? 1 : x < most ? (int)x : most;
}

/* Whole runs behind each other for so long at least: the median of batches. */
static int time_whole(struct timing *t, double least_ms, strata_error *err)
{
    enum { MOST = 64 * PAIRS };
    double *ms = zalloc(MOST + PAIRS, sizeof *ms, "times", err), spent = 0;
    size_t n = 0;
    int status = ms ? STRATA_OK : STRATA_ENOMEM;
    while (n < MOST && spent < least_ms && status == STRATA_OK) {
        const double known = t->whole_ms; /* 0: not yet */
        const int batch = known > 0 ? clamp(BATCH_MS / known, MOST_BATCH) : 1;
        const int pairs = known > 0 ? clamp(QUEUED_MS / (batch * known), PAIRS) : 1;
        for (int k = 0; k < pairs && status == STRATA_OK; k++)
            status = enqueue_pair(t, k, whole_of(t), batch, err);
        if (status == STRATA_OK)
            status = read_pairs(t, pairs, ms + n, err);
        for (int k = 0; k < pairs && status == STRATA_OK; k++, n++) {
            spent += ms[n];
            ms[n] /= batch;
        }
    }
    if (status == STRATA_OK && n > 0)
        t->whole_ms = context_median(ms, n);
    free(ms);
    return status;
}

/* Each beginning once in each round, so that a slow moment falls on all alike; the first
 * round, in which graphs come to the device, does not count. */
static int time_beginnings(struct timing *t, strata_error *err)
{
    const size_t all = t->n * (size_t)(t->rounds + 1);
    double ms[PAIRS];
    int status = STRATA_OK;
    for (size_t first = 0; first < all && status == STRATA_OK; first += PAIRS) {
        const int n = all - first < PAIRS ? (int)(all - first) : PAIRS;
        for (int k = 0; k < n && status == STRATA_OK; k++)
            status =
                enqueue_pair(t, k, t->begins[(first + (size_t)k) % t->n].graph, 1, err);
        if (status == STRATA_OK)
            status = read_pairs(t, n, ms, err);
        for (int k = 0; k < n && status == STRATA_OK; k++) {
            const size_t round = (first + (size_t)k) / t->n,
                         at = (first + (size_t)k) % t->n;
            if (round > 0)
                t->samples[at * MOST_ROUNDS + round - 1] = ms[k];
        }
    }
    return status;
}

/* The last beginning is a whole run: what it seems to take more than whole runs do behind
 * each other is the events' and the launch's, the same in all, or the clock's. */
static void settle_times(struct timing *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->prefixes[i] = (struct cost_prefix){
            t->begins[i].end,
            context_median(&t->samples[i * MOST_ROUNDS], (size_t)t->rounds)};
    const double alone = t->prefixes[t->n - 1].ns; /* still ms */
    double late = alone - t->whole_ms;
    late = late < 0 ? 0 : late < LATE_MS ? late : LATE_MS;
    const double scale = t->n > 1 ? t->whole_ms / (alone - late) : 0;
    for (size_t i = 0; i < t->n; i++) {
        const double ms = (t->prefixes[i].ns - late) * scale;
        t->prefixes[i].ns = ms > 0 ? ms * 1e6 : 0;
    }
    t->prefixes[t->n - 1].ns = t->whole_ms * 1e6;
}

/* ---- one plan -------------------------------------------------------------- */

/* Of how many steps each next beginning is longer, by the time and memory that they take.
 */
static size_t choose_stride(struct timing *t, double budget_ms)
{
    size_t steps = 0;
    for (size_t i = 0; i < t->x->n_steps; i++)
        steps += context_step_enqueues(t->c, i);
    const double round_ms = (t->before + 0.5) * t->whole_ms;
    const double fit = budget_ms / (LEAST_ROUNDS + 1) / round_ms;
    const double nodes = 2.0 * MOST_NODES / (double)(steps ? steps : 1);
    const double most = fit < nodes ? fit : nodes;
    const size_t stride = most < 1 ? steps : (size_t)ceil((double)steps / most);
    const double rounds =
        budget_ms / round_ms / ((double)steps / (double)(stride + !stride));
    t->rounds = clamp(rounds - 1, MOST_ROUNDS);
    t->rounds = t->rounds < LEAST_ROUNDS ? LEAST_ROUNDS : t->rounds;
    return stride ? stride : 1;
}

/* Graphs of all beginnings but the whole run's, which is the context's. */
static int capture_beginnings(struct timing *t, size_t stride, strata_error *err)
{
    size_t capacity = 0, since = 0, last = t->x->n_steps, step;
    int status = context_begin(t->c, err);
    if (status != STRATA_OK)
        return status;
    context_end(t->c);
    while (last > 0 && !context_step_enqueues(t->c, last - 1))
        last--;
    for (size_t i = 0; i < last && status == STRATA_OK; i++) {
        since += context_step_enqueues(t->c, i);
        if (!context_step_enqueues(t->c, i) || (since < stride && i + 1 < last))
            continue;
        since = 0;
        status = grow(&t->begins, &capacity, t->n, sizeof *t->begins, err);
        if (status != STRATA_OK)
            return status;
        struct context_segment *s = &t->begins[t->n];
        *s = (struct context_segment){.end = i + 1 < last ? i + 1 : t->x->n_steps};
        if (s->end == t->x->n_steps)
            s->graph = whole_of(t);
        else
            status = context_capture_segment(t->c, s, &step, err);
        t->n += status == STRATA_OK;
    }
    return status;
}

static int time_plan(struct timing *t, double budget_ms, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(t->events) && status == STRATA_OK; i++)
        status = t->c->handle->device->ops->event_create(t->c->handle->device,
                                                         &t->events[i], err);
    t->before = 1;
    if (status == STRATA_OK)
        status = time_whole(t, BATCH_MS, err); /* a first guess */
    if (status != STRATA_OK || !(t->whole_ms > 0))
        return status;
    t->before = clamp(ceil(BEFORE_MS / t->whole_ms), MOST_BEFORE);
    status = capture_beginnings(t, choose_stride(t, budget_ms), err);
    if (status != STRATA_OK || t->n == 0)
        return status;
    t->prefixes = zalloc(t->n, sizeof *t->prefixes, "times", err);
    t->samples = zalloc(t->n * MOST_ROUNDS, sizeof *t->samples, "times", err);
    if (!t->prefixes || !t->samples)
        return STRATA_ENOMEM;
    if (t->n > 1)
        status = time_beginnings(t, err);
    if (status == STRATA_OK)
        status = time_whole(t, SETTLED_MS, err);
    if (status != STRATA_OK)
        return status;
    settle_times(t);
    cost_in_place(t->x, t->prefixes, t->n);
    return status;
}

static void close_timing(struct timing *t)
{
    const struct device_ops *ops = t->c->handle->device->ops;
    strata_stream_synchronize(t->c->stream, NULL);
    for (size_t i = 0; i < t->n; i++)
        if (t->begins[i].end < t->x->n_steps)
            ops->graph_destroy(t->c->handle->device, t->begins[i].graph);
    for (size_t i = 0; i < ARRAY_LENGTH(t->events); i++)
        strata_event_destroy(t->events[i]);
    free(t->begins);
    free(t->prefixes);
    free(t->samples);
}

int context_cost_in_place(strata_context *c, struct execution *x, double budget_ms,
                          strata_error *err)
{
    const struct context_graph *g = &c->graphs[0];
    if (g->n != 1 || !g->segments[0].graph)
        return STRATA_OK;
    struct timing t = {.c = c, .x = x};
    int status = time_plan(&t, budget_ms, err);
    close_timing(&t);
    return status;
}
