/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of the device. What is to be measured is set up side by side, on random data,
 * and runs once to warm up; then rounds go over all of it, so that a slow moment of the
 * machine falls on everything alike, and medians are taken. Work is submitted to the
 * handle's stream between two events, on the host thus with the threads that later runs
 * have.
 *
 * Where a device says how large its cache is, a run is timed as it will find it. A
 * network that fits in finds everything there, as it was left by the run before. In a
 * larger one, weights and outputs were driven out since, and only the inputs have just
 * been written: between runs the cache is filled with other data, and then the inputs are
 * written anew.
 *
 * On the host a time is taken again, some times, where threads waited for processors
 * meanwhile: of a busy machine's times those of its quiet moments count. A cost that has
 * none says that it was measured under load.
 *
 * Kernels may begin while the one before them ends, and a graph launches them faster than
 * the host does. So where the device has a lead, a short kernel, and graphs, what counts
 * is what a run adds to a graph of two leads when it stands between them.
 */
#include "planner/cost/cost.h"

#include <stdlib.h>
#include <string.h>

#include "planner/cost/busy.h"
#include "planner/cost/progress.h"
#include "planner/cost/trial.h"

#define SLOW 1.5        /* times the layer's best: one round is enough */
#define SHORT_NS 200000 /* below it an untimed run goes before the timed ones */
#define ENOUGH_NS 20000 /* that a round should take */
#define MOST_REPEATS 8
#define MOST_TRIES 4  /* of a time on the host, until it is quiet */
#define MANY_TRIES 64 /* if of so many hardly any was quiet, one each will do */
#define LATE 1.15     /* times the shortest lead: there was a gap */
#define BATCH_BYTES (INT64_C(256) << 20) /* at least, of tensors set up side by side */

/* What times are taken with. */
struct timer {
    const struct planner *planner;
    strata_handle *handle;
    strata_event *events[3 * MOST_REPEATS];
    char *scratch; /* three times the device's cache; NULL if it has none */
    size_t scratch_bytes;
    bool cold;        /* the network is larger than the cache */
    void *lead;       /* a graph of the device's lead, twice; NULL without one */
    double deadline;  /* of progress_now(); 0: none */
    int tries, quiet; /* of times on the host */
    /* Of the lead on the stream and of that graph between events; 0 without one. */
    double lead_ms[2];
};

/* ---- the device's cache ------------------------------------------------------------ */

static int timer_open(struct timer *m, const struct planner *planner,
                      strata_handle *handle, strata_error *err)
{
    const struct device_ops *ops = handle->device->ops;
    const int64_t cache = handle->properties.cache_bytes;
    int status = STRATA_OK;
    *m = (struct timer){.planner = planner,
                        .handle = handle,
                        .scratch_bytes = 3 * (size_t)cache,
                        .cold = planner->cold};
    for (size_t i = 0; i < ARRAY_LENGTH(m->events) && status == STRATA_OK; i++)
        status = ops->event_create(handle->device, &m->events[i], err);
    if (status == STRATA_OK && cache > 0) {
        m->scratch =
            allocator_get(&handle->allocator, m->scratch_bytes, "a measurement", err);
        status = m->scratch ? STRATA_OK : STRATA_ENOMEM;
    }
    return status;
}

static void timer_close(struct timer *m)
{
    for (size_t i = 0; i < ARRAY_LENGTH(m->events); i++)
        strata_event_destroy(m->events[i]);
    if (m->lead)
        m->handle->device->ops->graph_destroy(m->handle->device, m->lead);
    allocator_put(&m->handle->allocator, m->scratch, m->scratch_bytes);
}

/* Save the inputs in the scratch memory, or write them back. Inputs too large to stay in
 * the cache are left alone. */
static int move_inputs(struct timer *m, const struct trial *t, bool back,
                       strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    const size_t room = m->scratch_bytes / 6; /* half the cache */
    size_t used = 0, bytes;
    char *data;
    int status = STRATA_OK;
    for (int k = 0; (data = trial_input(t, k, &bytes)) && status == STRATA_OK; k++) {
        if (bytes > room - used)
            continue;
        char *saved = m->scratch + used;
        status = ops->copy(m->handle->stream, back ? data : saved, back ? saved : data,
                           bytes, COPY_ON_DEVICE, err);
        used += bytes;
    }
    return status;
}

/* Fill the cache with other data. Takes longer than enqueueing the runs that follow, so
 * that no gap lies between their events. */
static int evict(struct timer *m, strata_error *err)
{
    const size_t first = m->scratch_bytes / 6;
    return m->handle->device->ops->fill(m->handle->stream, m->scratch + first, 0x3c,
                                        m->scratch_bytes - first, err);
}

/* ---- timing -------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What goes before a timed run as the layer before it would: kernels that may be launched
 * while another one ends shall be seen to gain by it. */
static int enqueue_lead(struct timer *m, strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    return ops->lead ? ops->lead(m->handle->stream, err) : STRATA_OK;
}

/* A run of a trial (NULL: none) between leads as a graph, NULL where there is none of
 * them. The second one tells whether a run lets the layer behind it begin early.
 */
static void *capture(struct timer *m, struct trial *t)
{
    const struct device_ops *ops = m->handle->device->ops;
    strata_error why; /* without a graph it goes on */
    void *graph = NULL;
    error_clear(&why);
    if (!ops->capture_begin || !ops->lead ||
        (t && t->query->candidate &&
         t->query->candidate->impl->impl.flags & STRATA_NO_CAPTURE) ||
        ops->capture_begin(m->handle->stream, &why) != STRATA_OK)
        return NULL;
    int status = enqueue_lead(m, &why);
    if (status == STRATA_OK && t)
        status = trial_enqueue(t, 1, &why);
    if (status == STRATA_OK)
        status = enqueue_lead(m, &why);
    if (ops->capture_end(m->handle->stream, &graph, &why) != STRATA_OK)
        return NULL;
    if (status != STRATA_OK && graph)
        ops->graph_destroy(m->handle->device, graph);
    return status == STRATA_OK ? graph : NULL;
}

/* The leads' own time, the median of some, is no part of a run's. */
static int time_lead(struct timer *m, bool graph, strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    strata_stream *s = m->handle->stream;
    double ms[MOST_REPEATS] = {0};
    int status = STRATA_OK;
    for (int i = 0; i < MOST_REPEATS && status == STRATA_OK; i++) {
        if ((status = evict(m, err)) == STRATA_OK &&
            (status = ops->event_record(m->events[2 * i], s, err)) == STRATA_OK &&
            (status = graph ? ops->graph_launch(s, m->lead, err)
                            : enqueue_lead(m, err)) == STRATA_OK)
            status = ops->event_record(m->events[2 * i + 1], s, err);
    }
    if (status == STRATA_OK)
        status = ops->stream_synchronize(s, err);
    for (int i = 0; i < MOST_REPEATS && status == STRATA_OK; i++)
        status = ops->event_elapsed(&ms[i], m->events[2 * i], m->events[2 * i + 1], err);
    qsort(ms, MOST_REPEATS, sizeof *ms, ascending);
    m->lead_ms[graph] = ms[MOST_REPEATS / 2];
    return status;
}

static int time_leads(struct timer *m, strata_error *err)
{
    if (!m->handle->device->ops->lead)
        return STRATA_OK;
    m->lead = capture(m, NULL);
    int status = time_lead(m, false, err);
    return status == STRATA_OK && m->lead ? time_lead(m, true, err) : status;
}

/* What is timed: runs behind a lead. */
static int enqueue_runs(struct timer *m, struct trial *t, int runs, strata_error *err)
{
    if (t->graph)
        return m->handle->device->ops->graph_launch(m->handle->stream, t->graph, err);
    int status = enqueue_lead(m, err);
    return status == STRATA_OK ? trial_enqueue(t, runs, err) : status;
}

/* Runs, each with the cache as it will be in a larger network. */
static int enqueue_cold(struct timer *m, struct trial *t, int repeats, strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    strata_stream *s = m->handle->stream;
    int status = STRATA_OK;
    for (int i = 0; i < repeats && status == STRATA_OK; i++) {
        if ((status = move_inputs(m, t, false, err)) == STRATA_OK &&
            (status = evict(m, err)) == STRATA_OK &&
            (status = move_inputs(m, t, true, err)) == STRATA_OK &&
            (status = ops->event_record(m->events[2 * i], s, err)) == STRATA_OK &&
            (status = enqueue_runs(m, t, 1, err)) == STRATA_OK)
            status = ops->event_record(m->events[2 * i + 1], s, err);
    }
    return status;
}

/* Runs one behind the other, the first behind a lead. Short ones follow an untimed one:
 * while that runs (on a device with a cache, while it is evicted), the rest is put on the
 * stream, so that no gap lies between the events. */
static int enqueue_warm(struct timer *m, struct trial *t, int repeats, bool brief,
                        strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    strata_stream *s = m->handle->stream;
    int status = brief && m->scratch ? evict(m, err) : STRATA_OK;
    if (status == STRATA_OK && brief)
        status = trial_enqueue(t, 1, err);
    if (status == STRATA_OK)
        status = ops->event_record(m->events[0], s, err);
    if (status == STRATA_OK)
        status = enqueue_runs(m, t, repeats, err);
    return status == STRATA_OK ? ops->event_record(m->events[1], s, err) : status;
}

/* A graph of leads and one of a run between leads, in turns, all in the cache. */
static int enqueue_pairs(struct timer *m, struct trial *t, int repeats, strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    strata_stream *s = m->handle->stream;
    int status = evict(m, err);
    if (status == STRATA_OK)
        status = ops->graph_launch(s, t->graph, err); /* untimed: fills the cache */
    for (int i = 0; i < repeats && status == STRATA_OK; i++) {
        strata_event **e = &m->events[3 * i];
        if ((status = ops->event_record(e[0], s, err)) == STRATA_OK &&
            (status = ops->graph_launch(s, m->lead, err)) == STRATA_OK &&
            (status = ops->event_record(e[1], s, err)) == STRATA_OK &&
            (status = ops->graph_launch(s, t->graph, err)) == STRATA_OK)
            status = ops->event_record(e[2], s, err);
    }
    return status == STRATA_OK ? ops->stream_synchronize(s, err) : status;
}

/* The median of what pairs add, of how long their leads took. Where the host was late,
 * the lead's time has a gap in it and the run seems short, so pairs whose leads took
 * longer than the shortest are left out. */
static double median_pair(double (*pairs)[2], int n)
{
    double more[MOST_REPEATS], least = pairs[0][0];
    int kept = 0;
    for (int i = 1; i < n; i++)
        least = pairs[i][0] < least ? pairs[i][0] : least;
    for (int i = 0; i < n; i++)
        if (pairs[i][0] <= least * LATE)
            more[kept++] = pairs[i][1] - pairs[i][0];
    qsort(more, (size_t)kept, sizeof *more, ascending);
    return more[kept / 2];
}

/* ns that a run adds to leads. */
static int time_pairs(struct timer *m, struct trial *t, double *ns, strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    const int repeats = t->repeats < 3 ? 3 : t->repeats;
    double pairs[MOST_REPEATS][2] = {{0}};
    int status = enqueue_pairs(m, t, repeats, err);
    for (int i = 0; i < repeats && status == STRATA_OK; i++) {
        strata_event **e = &m->events[3 * i];
        status = ops->event_elapsed(&pairs[i][0], e[0], e[1], err);
        if (status == STRATA_OK)
            status = ops->event_elapsed(&pairs[i][1], e[1], e[2], err);
    }
    const double more = status == STRATA_OK ? median_pair(pairs, repeats) : 0;
    *ns = more > 0 ? more * 1e6 : 0;
    return status;
}

/* ns of one run. */
static int time_trial(struct timer *m, struct trial *t, double *ns, strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    const int repeats = t->repeats ? t->repeats : 1; /* 0: to warm up */
    const int pairs = m->cold ? repeats : 1;
    double ms = 0, sum = 0;
    int status = m->cold
                     ? enqueue_cold(m, t, repeats, err)
                     : enqueue_warm(m, t, repeats, t->repeats && t->warm < SHORT_NS, err);
    if (status == STRATA_OK)
        status = ops->stream_synchronize(m->handle->stream, err);
    for (int i = 0; i < pairs && status == STRATA_OK; i++) {
        status = ops->event_elapsed(&ms, m->events[2 * i], m->events[2 * i + 1], err);
        sum += ms - m->lead_ms[t->graph != NULL];
    }
    *ns = sum > 0 ? sum * 1e6 / repeats : 0;
    return status;
}

/* Best of the trial's layer, in this batch or before, without the trial itself. */
static double rival(const struct trial *trials, size_t n, size_t index)
{
    const struct planner_candidate *c = trials[index].query->candidate;
    double best = (double)trials[index].best;
    for (size_t i = 0; c && i < n; i++) {
        const struct trial *t = &trials[i];
        if (i != index && t->n && t->query->candidate &&
            t->query->candidate->node == c->node && (best == 0 || t->samples[0] < best))
            best = t->samples[0];
    }
    return best;
}

/* The first run may load the kernels, which is no part of a run's time; on the host it
 * tells enough. */
static int warm_up(struct timer *m, struct trial *t, strata_error *err)
{
    int status = m->scratch ? trial_enqueue(t, 1, err) : STRATA_OK;
    if (status == STRATA_OK)
        status = time_trial(m, t, &t->warm, err);
    double repeats = t->warm > 0 ? ENOUGH_NS / t->warm : MOST_REPEATS;
    t->repeats = repeats < 1 ? 1 : repeats > MOST_REPEATS ? MOST_REPEATS : (int)repeats;
    if (status == STRATA_OK && m->lead)
        t->graph = capture(m, t);
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
static int time_quietly(struct timer *m, struct trial *t, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < MOST_TRIES && status == STRATA_OK; i++) {
        const struct busy_times before = busy_times();
        const double begin = progress_now();
        double ns;
        status = time_trial(m, t, &ns, err);
        const bool quiet = !busy_since(before, progress_now() - begin);
        m->tries++;
        m->quiet += quiet;
        if (status == STRATA_OK && quiet)
            t->samples[t->n++] = ns;
        else if (status == STRATA_OK && (t->loaded == 0 || ns < t->loaded))
            t->loaded = ns;
        if (quiet || !tries_on(m))
            break;
    }
    return status;
}

static int time_device(struct timer *m, struct trial *t, strata_error *err)
{
    int status = m->cold || !t->graph ? time_trial(m, t, &t->samples[t->n], err)
                                      : time_pairs(m, t, &t->samples[t->n], err);
    t->n += status == STRATA_OK;
    return status;
}

static int time_once(struct timer *m, struct trial *t, int round, strata_error *err)
{
    strata_error why;
    error_clear(&why);
    int status = round == 0                                  ? warm_up(m, t, &why)
                 : m->handle->properties.kind == STRATA_HOST ? time_quietly(m, t, &why)
                                                             : time_device(m, t, &why);
    return excuse(t, status, &why, err);
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
            if (t->broken || trial_empty(t) ||
                (t->n && best > 0 && t->samples[0] > SLOW * best))
                continue;
            report(&progress, trials, n, round, i);
            status = time_once(m, t, round, err);
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
    qsort(t->samples, (size_t)t->n, sizeof *t->samples, ascending);
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
    if (status == STRATA_OK && timer.scratch)
        status = time_leads(&timer, err);
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
