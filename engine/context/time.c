/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of whole runs behind each other, for who compares engines: on random inputs, by
 * the device's events, the run one graph.
 */
#include "engine/context/context.h"

#include <strata/state.h>

#include <stdlib.h>

#include "planner/cost/trial.h"

enum { MOST_PAIRS = 31, MOST_RUNS = 256, GUESS_RUNS = 2 };

/* Random elements: what is computed with zeros takes less power, and so less time. */
static int fill_input(strata_context *c, size_t index, const struct trial_pattern *p,
                      strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    const struct execution *x = c->execution;
    const struct execution_value *v = &x->values[x->bindings[index].value];
    const size_t bytes = (size_t)v->bytes;
    char *data = context_binding_data(c, index, err);
    size_t done = TRIAL_PATTERN * strata_dtype_size(v->desc.dtype);
    done = done < bytes ? done : bytes;
    if (!data)
        return STRATA_ENOMEM;
    int status =
        ops->copy(c->stream, data, p->of[v->desc.dtype], done, COPY_TO_DEVICE, err);
    for (size_t n; done < bytes && status == STRATA_OK; done += n) {
        n = done < bytes - done ? done : bytes - done;
        status = ops->copy(c->stream, data + done, data, n, COPY_ON_DEVICE, err);
    }
    return status;
}

static int fill_inputs(strata_context *c, strata_error *err)
{
    struct trial_pattern *p = zalloc(1, sizeof *p, "random data", err);
    int status = p ? STRATA_OK : STRATA_ENOMEM;
    if (p)
        trial_pattern_fill(p);
    for (size_t i = 0; i < c->execution->n_inputs && status == STRATA_OK; i++)
        status = fill_input(c, i, p, err);
    if (status == STRATA_OK) /* before the pattern is gone */
        status = strata_stream_synchronize(c->stream, err);
    free(p);
    return status;
}

int context_prepare_times(strata_context *c, strata_error *err)
{
    int status = fill_inputs(c, err);
    if (status == STRATA_OK)
        status = strata_context_prepare(c, err);
    if (status == STRATA_OK && !(c->graphs[0].n == 1 && c->graphs[0].segments[0].graph))
        status = error_set(err, STRATA_EUNSUPPORTED, "its runs are not one graph");
    return status;
}

/* Of so many runs together, ms; states as at their beginning. */
static int time_some(strata_context *c, strata_event *const events[2], int runs,
                     double *ms, strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    int status = c->execution->n_states ? context_reset_states(c, STRATA_ALL_ROWS, err)
                                        : STRATA_OK;
    if (status == STRATA_OK)
        status = ops->event_record(events[0], c->stream, err);
    for (int i = 0; i < runs && status == STRATA_OK; i++)
        status = ops->graph_launch(c->stream, c->graphs[0].segments[0].graph, err);
    if (status == STRATA_OK)
        status = ops->event_record(events[1], c->stream, err);
    if (status == STRATA_OK)
        status = ops->stream_synchronize(c->stream, err);
    return status == STRATA_OK ? ops->event_elapsed(ms, events[0], events[1], err)
                               : status;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double context_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Runs of a turn. */
static int fit(strata_context *c, strata_event *const events[2], double turn_ms,
               int *runs, strata_error *err)
{
    double guess = 0;
    int status = time_some(c, events, GUESS_RUNS, &guess, err);
    const double most = guess > 0 ? turn_ms * GUESS_RUNS / guess : MOST_RUNS;
    *runs = most < 1 ? 1 : most < MOST_RUNS ? (int)most : MOST_RUNS;
    return status;
}

static int time_pairs(strata_context *const contexts[2], strata_event *const events[2],
                      int runs, int pairs, struct context_turns *out, strata_error *err)
{
    double samples[2][MOST_PAIRS], gains[MOST_PAIRS];
    int status = time_some(contexts[1], events, GUESS_RUNS, &gains[0], err); /* warm */
    pairs = pairs < MOST_PAIRS ? pairs : MOST_PAIRS;
    for (int i = 0; i < 2 * pairs && status == STRATA_OK; i++) {
        const int pair = i / 2, which = (i ^ pair) & 1;
        status = time_some(contexts[which], events, runs, &samples[which][pair], err);
    }
    if (status != STRATA_OK)
        return status;
    for (int i = 0; i < pairs; i++)
        gains[i] = samples[0][i] > 0 ? 1 - samples[1][i] / samples[0][i] : 0;
    for (int k = 0; k < 2; k++)
        out->ms[k] = context_median(samples[k], (size_t)pairs) / runs;
    out->gain = context_median(gains, (size_t)pairs);
    return STRATA_OK;
}

int context_time_turns(strata_context *const contexts[2], double turn_ms, int pairs,
                       struct context_turns *out, strata_error *err)
{
    struct device *d = contexts[0]->handle->device;
    strata_event *events[2] = {NULL, NULL};
    int runs = 1;
    int status = d->ops->event_create(d, &events[0], err);
    if (status == STRATA_OK)
        status = d->ops->event_create(d, &events[1], err);
    if (status == STRATA_OK)
        status = fit(contexts[0], events, turn_ms, &runs, err);
    if (status == STRATA_OK)
        status = time_pairs(contexts, events, runs, pairs, out, err);
    strata_event_destroy(events[0]);
    strata_event_destroy(events[1]);
    return status;
}
