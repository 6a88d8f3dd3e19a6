/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of single runs. Where a device says how large its cache is, a run is timed as it
 * will find it. A network that fits in finds everything there, as it was left by the run
 * before. In a larger one, weights and outputs were driven out since, and only the inputs
 * have just been written: between runs the cache is filled with other data, and then the
 * inputs are written anew.
 *
 * Kernels may begin while the one before them ends, and a graph launches them faster than
 * the host does. So where the device has a lead, a short kernel, and graphs, what counts
 * is what a run adds to a graph of two leads when it stands between them.
 */
#include "planner/cost/timer.h"

#include <stdlib.h>

#define SHORT_NS 200000 /* below it an untimed run goes before the timed ones */
#define LATE 1.15       /* times the shortest lead: there was a gap */

/* ---- the device's cache ------------------------------------------------------------ */

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

int timer_ascending(const void *a, const void *b)
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

void *timer_capture(struct timer *m, struct trial *t)
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
    double ms[TIMER_REPEATS] = {0};
    int status = STRATA_OK;
    for (int i = 0; i < TIMER_REPEATS && status == STRATA_OK; i++) {
        if ((status = evict(m, err)) == STRATA_OK &&
            (status = ops->event_record(m->events[2 * i], s, err)) == STRATA_OK &&
            (status = graph ? ops->graph_launch(s, m->lead, err)
                            : enqueue_lead(m, err)) == STRATA_OK)
            status = ops->event_record(m->events[2 * i + 1], s, err);
    }
    if (status == STRATA_OK)
        status = ops->stream_synchronize(s, err);
    for (int i = 0; i < TIMER_REPEATS && status == STRATA_OK; i++)
        status = ops->event_elapsed(&ms[i], m->events[2 * i], m->events[2 * i + 1], err);
    qsort(ms, TIMER_REPEATS, sizeof *ms, timer_ascending);
    m->lead_ms[graph] = ms[TIMER_REPEATS / 2];
    return status;
}

static int time_leads(struct timer *m, strata_error *err)
{
    if (!m->handle->device->ops->lead)
        return STRATA_OK;
    m->lead = timer_capture(m, NULL);
    int status = time_lead(m, false, err);
    return status == STRATA_OK && m->lead ? time_lead(m, true, err) : status;
}

int timer_open(struct timer *m, const struct planner *planner, strata_handle *handle,
               strata_error *err)
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
    return status == STRATA_OK && m->scratch ? time_leads(m, err) : status;
}

void timer_close(struct timer *m)
{
    for (size_t i = 0; i < ARRAY_LENGTH(m->events); i++)
        strata_event_destroy(m->events[i]);
    if (m->lead)
        m->handle->device->ops->graph_destroy(m->handle->device, m->lead);
    allocator_put(&m->handle->allocator, m->scratch, m->scratch_bytes);
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
    double more[TIMER_REPEATS], least = pairs[0][0];
    int kept = 0;
    for (int i = 1; i < n; i++)
        least = pairs[i][0] < least ? pairs[i][0] : least;
    for (int i = 0; i < n; i++)
        if (pairs[i][0] <= least * LATE)
            more[kept++] = pairs[i][1] - pairs[i][0];
    qsort(more, (size_t)kept, sizeof *more, timer_ascending);
    return more[kept / 2];
}

int timer_pairs(struct timer *m, struct trial *t, double *ns, strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    const int repeats = t->repeats < 3 ? 3 : t->repeats;
    double pairs[TIMER_REPEATS][2] = {{0}};
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

int timer_trial(struct timer *m, struct trial *t, double *ns, strata_error *err)
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
