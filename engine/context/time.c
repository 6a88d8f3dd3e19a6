/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of whole runs behind each other, for who compares engines: on random inputs, by
 * the device's events, the run one graph.
 */
#include "engine/context/context.h"

#include <strata/state.h>

#include <stdlib.h>

#include "planner/cost/trial.h"

#define GUESS_RUNS 4

enum { SAMPLES = 15, MOST_RUNS = 256 };

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

static int time_samples(strata_context *c, strata_event *const events[2], double least_ms,
                        double *ms, strata_error *err)
{
    double samples[SAMPLES], guess = 0;
    int status = time_some(c, events, GUESS_RUNS, &guess, err);
    const double fit = guess > 0 ? least_ms / SAMPLES * GUESS_RUNS / guess : MOST_RUNS;
    const int runs = fit < 1 ? 1 : fit < MOST_RUNS ? (int)fit : MOST_RUNS;
    for (int i = 0; i < SAMPLES && status == STRATA_OK; i++)
        status = time_some(c, events, runs, &samples[i], err);
    if (status == STRATA_OK)
        *ms = context_median(samples, SAMPLES) / runs;
    return status;
}

int context_time_runs(strata_context *c, double least_ms, double *ms, strata_error *err)
{
    struct device *d = c->handle->device;
    strata_event *events[2] = {NULL, NULL};
    int status = d->ops->event_create(d, &events[0], err);
    if (status == STRATA_OK)
        status = d->ops->event_create(d, &events[1], err);
    if (status == STRATA_OK)
        status = time_samples(c, events, least_ms, ms, err);
    strata_event_destroy(events[0]);
    strata_event_destroy(events[1]);
    return status;
}
