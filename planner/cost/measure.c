/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of the device. What is to be measured is set up side by side, on random data,
 * and runs once to warm up; then rounds go over all of it, so that a slow moment of the
 * machine falls on everything alike, and medians are taken. Work is submitted to the
 * handle's stream between two events, on the host thus with the threads that later runs
 * have.
 *
 * On the host a time is taken again, some times, where threads waited for processors
 * meanwhile: of a busy machine's times those of its quiet moments count. A cost that has
 * none says that it was measured under load.
 */
#include "planner/cost/cost.h"

#include <stdlib.h>
#include <string.h>

#include "core/host/wait.h"
#include "planner/cost/busy.h"
#include "planner/cost/progress.h"
#include "planner/cost/timer.h"

#define SLOW 1.5        /* times the layer's best: one round is enough */
#define ENOUGH_NS 20000 /* that a round should take */
#define MOST_TRIES 4    /* of a time on the host, until it is quiet */
#define MANY_TRIES 64   /* if of so many hardly any was quiet, one each will do */
#define BATCH_BYTES (INT64_C(256) << 20) /* at least, of tensors set up side by side */

/* What a trial took so far; 0: it was not timed. */
static double seen(const struct trial *t)
{
    return t->n > 0 ? t->samples[0] : t->loaded;
}

/* One round told enough; of a busy moment's time half counts. */
static bool is_slow(const struct trial *t, double best)
{
    return best > 0 && seen(t) > (t->n > 0 ? SLOW : 2 * SLOW) * best;
}

/* Best of the trial's layer, in this batch or before, without the trial itself. */
static double rival(const struct trial *trials, size_t n, size_t index)
{
    const struct planner_candidate *c = trials[index].query->candidate;
    double best = (double)trials[index].best;
    for (size_t i = 0; c && i < n; i++) {
        const struct trial *t = &trials[i];
        if (i != index && seen(t) > 0 && t->query->candidate &&
            t->query->candidate->node == c->node && (best == 0 || seen(t) < best))
            best = seen(t);
    }
    return best;
}

/* The first run may load the kernels, which is no part of a run's time; on the host it
 * tells enough. */
static int warm_up(struct timer *m, struct trial *t, strata_error *err)
{
    int status = m->scratch ? trial_enqueue(t, 1, err) : STRATA_OK;
    if (status == STRATA_OK)
        status = timer_trial(m, t, &t->warm, err);
    double repeats = t->warm > 0 ? ENOUGH_NS / t->warm : TIMER_REPEATS;
    t->repeats = repeats < 1 ? 1 : repeats > TIMER_REPEATS ? TIMER_REPEATS : (int)repeats;
    if (status == STRATA_OK && m->lead)
        t->graph = timer_capture(m, t);
    return status;
}

static void report(struct progress *p, const struct trial *trials, size_t n, int round,
                   size_t index)
{
    const struct cost_query *q = trials[index].query;
    struct progress_state s = {.layer = q->layer,
                               .impl = q->candidate ? q->candidate->impl->impl.name
                                                    : "(reformat)",
                               .best_us = rival(trials, n, index) / 1e3,
                               .index = (size_t)round * n + index,
                               .count = (TRIAL_ROUNDS + 1) * n};
    progress_show(p, &s);
}

/* An impl that fails is left out of plans, with a warning, as long as another can do its
 * work; without a device there is nothing to go on with. */
static int excuse(struct trial *t, int status, const strata_error *why, strata_error *err)
{
    if (status == STRATA_OK)
        return status;
    if (!t->query->candidate || status == STRATA_EDEVICELOST)
        return error_set(err, status, "%s", why->message);
    t->broken = true;
    log_line(STRATA_LOG_WARNING, "%s; it counts as the slowest", why->message);
    return STRATA_OK;
}

static bool is_late(const struct timer *m)
{
    return m->deadline > 0 && progress_now() > m->deadline;
}

static bool tries_on(const struct timer *m)
{
    return (m->tries < MANY_TRIES || m->quiet > m->tries / 16) && !is_late(m);
}

/* A time of the host, if possible a quiet one, which counts as a sample; of others the
 * least is remembered. */
static int time_quietly(struct timer *m, struct trial *t, double best, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < MOST_TRIES && status == STRATA_OK; i++) {
        const struct busy_times before = busy_times();
        const double begin = progress_now();
        const bool gave = wait_gives(); /* teams that sleep wait for no processor */
        double ns;
        status = timer_trial(m, t, &ns, err);
        const bool quiet =
            !gave && !wait_gives() && !busy_since(before, progress_now() - begin);
        m->tries++;
        m->quiet += quiet;
        if (status == STRATA_OK && quiet)
            t->samples[t->n++] = ns;
        else if (status == STRATA_OK && (t->loaded == 0 || ns < t->loaded))
            t->loaded = ns;
        if (quiet || is_slow(t, best) || !tries_on(m))
            break;
    }
    return status;
}

static int time_device(struct timer *m, struct trial *t, strata_error *err)
{
    int status = m->cold || !t->graph ? timer_trial(m, t, &t->samples[t->n], err)
                                      : timer_pairs(m, t, &t->samples[t->n], err);
    t->n += status == STRATA_OK;
    return status;
}

static int time_once(struct timer *m, struct trial *t, int round, double best,
                     strata_error *err)
{
    const bool host = m->handle->properties.kind == STRATA_HOST;
    strata_error why;
    error_clear(&why);
    int status = round == 0 ? warm_up(m, t, &why)
                 : host     ? time_quietly(m, t, best, &why)
                            : time_device(m, t, &why);
    return excuse(t, status, &why, err);
}

/* Past the deadline every trial has one round still, that no plan lacks a cost. */
static bool is_done(const struct timer *m, const struct trial *t, int round, double best)
{
    return t->broken || trial_empty(t) || is_slow(t, best) ||
           (round > 1 && seen(t) > 0 && is_late(m));
}

static int time_trials(struct timer *m, struct trial *trials, size_t n, strata_error *err)
{
    struct progress progress;
    int status = STRATA_OK;
    progress_begin(&progress);
    for (int round = 0; round <= TRIAL_ROUNDS; round++) /* round 0 warms up */
        for (size_t i = 0; i < n && status == STRATA_OK && !progress_interrupted(); i++) {
            struct trial *t = &trials[i];
            double best = rival(trials, n, i);
            if (is_done(m, t, round, best))
                continue;
            report(&progress, trials, n, round, i);
            status = time_once(m, t, round, best, err);
        }
    progress_end(&progress);
    return status;
}

static struct cost summarise(struct trial *t)
{
    if (trial_empty(t))
        return (struct cost){.ns = 1, .runs = 1};
    if (t->broken)
        return (struct cost){.ns = COST_NS_MAX, .runs = 1};
    const bool loaded = t->n == 0 && t->loaded > 0;
    if (loaded)
        t->samples[t->n++] = t->loaded;
    if (t->n == 0)
        return (struct cost){0};
    qsort(t->samples, (size_t)t->n, sizeof *t->samples, timer_ascending);
    double middle = t->samples[t->n / 2];
    double spread = t->samples[t->n * 3 / 4] - t->samples[t->n / 4];
    int64_t ns = middle < 1 ? 1 : (int64_t)(middle + 0.5);
    return (struct cost){.ns = ns < COST_NS_MAX ? ns : COST_NS_MAX,
                         .spread = (int64_t)(spread < COST_NS_MAX ? spread : 0),
                         .runs = t->n,
                         .loaded = loaded};
}

/* ---- the source ---------------------------------------------------------------- */

static int measure_batch(struct timer *m, const struct cost_query *const *queries,
                         const int64_t *best, size_t n, const struct trial_pattern *p,
                         struct cost *costs, strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    strata_error why;
    size_t opened = 0;
    int status = STRATA_ENOMEM;
    struct trial *trials = zalloc(n, sizeof *trials, "measurements", err);
    if (!trials)
        return status;
    status = STRATA_OK;
    for (; opened < n && status == STRATA_OK; opened++) {
        struct trial *t = &trials[opened];
        *t = (struct trial){.query = queries[opened],
                            .planner = m->planner,
                            .handle = m->handle,
                            .best = best[opened]};
        error_clear(&why);
        status = excuse(t, trial_open(t, p, &why), &why, err);
    }
    if (status == STRATA_OK)
        status = ops->stream_synchronize(m->handle->stream, err);
    if (status == STRATA_OK)
        status = time_trials(m, trials, n, err);
    ops->stream_synchronize(m->handle->stream, NULL); /* nothing runs on what goes */
    for (size_t i = 0; i < opened; i++) {
        costs[i] = summarise(&trials[i]);
        trial_close(&trials[i]);
    }
    free(trials);
    return status;
}

/* Rivals should be timed side by side, as far as memory goes. */
static int64_t batch_bytes(const strata_handle *handle)
{
    const uint64_t eighth = handle->device->ops->free_bytes(handle->device) / 8;
    return eighth > BATCH_BYTES ? (int64_t)eighth : BATCH_BYTES;
}

static int measure(struct cost_source *s, const struct planner *planner,
                   const struct cost_query *const *queries, const int64_t *best, size_t n,
                   struct cost *costs, strata_error *err)
{
    strata_handle *handle = ((struct cost_device *)s)->handle;
    struct timer timer = {.handle = handle};
    const int64_t limit = batch_bytes(handle);
    struct trial_pattern *pattern = zalloc(1, sizeof *pattern, "random data", err);
    int status = pattern ? timer_open(&timer, planner, handle, err) : STRATA_ENOMEM;
    timer.deadline = s->deadline;
    if (pattern)
        trial_pattern_fill(pattern);
    for (size_t first = 0, last; first < n && status == STRATA_OK; first = last) {
        int64_t bytes = 0;
        for (last = first; last < n && (last == first || bytes < limit); last++)
            bytes += trial_bytes(planner, queries[last]);
        if (progress_interrupted() || (s->deadline > 0 && progress_now() > s->deadline))
            break;
        status = measure_batch(&timer, queries + first, best + first, last - first,
                               pattern, costs + first, err);
    }
    timer_close(&timer);
    free(pattern);
    return status;
}

void cost_device_init(struct cost_device *d, strata_handle *handle)
{
    *d = (struct cost_device){{.name = "device", .measure = measure, .confirms = true},
                              handle};
}
