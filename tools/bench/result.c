/* SPDX-License-Identifier: Apache-2.0
 *
 * What the times say: figures for each part of a run, the number to quote, and what
 * makes the numbers doubtful.
 */
#include "tools/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/host/wait.h"
#include "core/text.h"
#include "planner/cost/busy.h"

const char *const bench_metric_names[BENCH_METRICS] = {
    [BENCH_LATENCY] = "latency", [BENCH_ENQUEUE] = "enqueue", [BENCH_H2D] = "h2d",
    [BENCH_COMPUTE] = "compute", [BENCH_D2H] = "d2h",
};

static double value_of(const struct bench_sample *s, enum bench_metric metric)
{
    switch (metric) {
    case BENCH_LATENCY:
        return s->done - s->enqueue[0];
    case BENCH_ENQUEUE:
        return s->enqueue[1] - s->enqueue[0];
    case BENCH_H2D:
        return s->h2d[1] - s->h2d[0];
    case BENCH_COMPUTE:
        return s->compute[1] - s->compute[0];
    default:
        return s->d2h[1] - s->d2h[0];
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest value that so many percent do not exceed; of sorted values. */
static double percentile(const double *sorted, size_t n, double percent)
{
    size_t rank = (size_t)ceil(percent / 100 * (double)n);
    return sorted[rank > n ? n - 1 : rank > 0 ? rank - 1 : 0];
}

static double median(const double *sorted, size_t n)
{
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* Sorts the values. */
static void describe(struct bench_stats *out, double *values, size_t n,
                     const struct bench_options *o)
{
    double sum = 0, squares = 0;
    qsort(values, n, sizeof *values, ascending);
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    out->mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - out->mean) * (values[i] - out->mean);
    out->deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    out->min = values[0];
    out->max = values[n - 1];
    out->median = median(values, n);
    out->low = percentile(values, n, 10);
    out->high = percentile(values, n, 90);
    for (size_t p = 0; p < o->n_percentiles; p++)
        out->percentiles[p] = percentile(values, n, o->percentiles[p]);
}

/* Values of a metric of a lane's runs, in order: what the host sees from runs without
 * events where there are any, what the device does from those with. */
static size_t collect(double *values, const struct bench_lane *l,
                      enum bench_metric metric, bool bare)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_samples; i++) {
        const struct bench_sample *s = &l->samples[i];
        const bool host =
            metric == BENCH_LATENCY || (metric == BENCH_ENQUEUE && !l->whole);
        if (host ? !bare || !s->marked : s->marked)
            values[n++] = value_of(s, metric);
    }
    return n;
}

static bool has_bare(const struct bench_run *r)
{
    for (size_t l = 0; l < r->n_lanes; l++)
        for (size_t i = 0; i < r->lanes[l].n_samples; i++)
            if (!r->lanes[l].samples[i].marked)
                return true;
    return false;
}

/* Median compute time of a lane's last quarter over its first, less 1. */
static double drift_of(const struct bench_lane *l, double *values)
{
    const size_t n = collect(values, l, BENCH_COMPUTE, false), quarter = n / 4;
    if (quarter < 8)
        return 0;
    qsort(values, quarter, sizeof *values, ascending);
    qsort(values + n - quarter, quarter, sizeof *values, ascending);
    const double first = median(values, quarter);
    return first > 0 ? median(values + n - quarter, quarter) / first - 1 : 0;
}

int bench_summarise(struct bench_result *out, const struct bench_run *r,
                    strata_error *err)
{
    out->settings = *r->settings;
    out->wall_ms = r->wall_ms;
    out->waited = r->waited;
    for (size_t l = 0; l < r->n_lanes; l++)
        out->n += r->lanes[l].n_samples;
    if (out->n == 0)
        return error_set(err, STRATA_EINTERNAL, "no run was measured");
    double *values = zalloc(out->n, sizeof *values, "times", err);
    if (!values)
        return STRATA_ENOMEM;
    const bool bare = has_bare(r);
    for (int m = 0; m < BENCH_METRICS; m++) {
        size_t n = 0;
        for (size_t l = 0; l < r->n_lanes; l++)
            n += collect(values + n, &r->lanes[l], m, bare);
        describe(&out->stats[m], values, n, &r->settings->base);
    }
    for (size_t l = 0; l < r->n_lanes; l++) {
        const double drift = drift_of(&r->lanes[l], values);
        if (fabs(drift) > fabs(out->drift))
            out->drift = drift;
    }
    out->throughput = (double)out->n / (out->wall_ms * 1e-3);
    free(values);
    return STRATA_OK;
}

/* ---- sentences -------------------------------------------------------------------- */

bool bench_alone(const struct bench_result *r)
{
    return r->settings.base.streams == 1 && r->settings.base.in_flight == 1;
}

static char *note_host(const struct bench_result *r)
{
    const double enqueue = r->stats[BENCH_ENQUEUE].median;
    const double compute = r->stats[BENCH_COMPUTE].median;
    return enqueue > 0.8 * compute
               ? text_print(
                     "host-bound: enqueueing a run takes %.0f %% of the time that it "
                     "computes, so the host may set the pace%s",
                     100 * enqueue / compute,
                     r->graph ? "" : "; on CUDA, let runs go by graphs")
               : NULL;
}

static char *note_gaps(const struct bench_result *r)
{
    const double device = r->stats[BENCH_H2D].median + r->stats[BENCH_COMPUTE].median +
                          r->stats[BENCH_D2H].median;
    const double share = 1 - device / r->stats[BENCH_LATENCY].median;
    return bench_alone(r) && share > 0.1
               ? text_print(
                     "between runs the device stands still for %.0f %% of the time, "
                     "while the host is told and calls again: --in-flight=2 shows "
                     "the throughput without that",
                     100 * share)
               : NULL;
}

static char *note_transfers(const struct bench_result *r)
{
    static const enum bench_metric copies[] = {BENCH_H2D, BENCH_D2H};
    for (size_t i = 0; i < ARRAY_LENGTH(copies); i++)
        if (r->stats[copies[i]].median >= r->stats[BENCH_COMPUTE].median)
            return text_print(
                "bound by transfers: copying %s takes longer than computing; "
                "leave data on the device, or bind smaller formats",
                i ? "the outputs" : "the inputs");
    return NULL;
}

/* A stream is an order: what is enqueued behind a run's copies waits for them. */
static char *note_order(const struct bench_result *r)
{
    const struct bench_options *o = &r->settings.base;
    return o->transfers && o->streams == 1 && o->in_flight > 1
               ? text_print("copies and runs of one stream follow each other: "
                            "--streams=2 lets one copy while the other computes")
               : NULL;
}

static char *note_noise(const struct bench_result *r)
{
    const struct bench_stats *s = &r->stats[BENCH_COMPUTE];
    const double spread = (s->high - s->low) / s->median;
    return spread > 0.05 && r->settings.base.streams == 1
               ? text_print(
                     "noisy: the middle four fifths of the compute times lie %.0f %% "
                     "apart; end what else runs, or measure longer",
                     100 * spread)
               : NULL;
}

static char *note_drift(const struct bench_result *r)
{
    return fabs(r->drift) > 0.03
               ? text_print(
                     "drifting: from the first to the last quarter the compute time "
                     "went %s by %.1f %%; warm up longer, or look at the clocks",
                     r->drift > 0 ? "up" : "down", 100 * fabs(r->drift))
               : NULL;
}

static char *note_few(const struct bench_result *r)
{
    const struct bench_options *o = &r->settings.base;
    double highest = 0;
    for (size_t p = 0; p < o->n_percentiles; p++)
        if (o->percentiles[p] < 100 && o->percentiles[p] > highest)
            highest = o->percentiles[p];
    return (double)r->n * (100 - highest) < 500
               ? text_print("few runs: p%g of %zu is an outlier or two; measure longer",
                            highest, r->n)
               : NULL;
}

static char *note_load(const struct bench_result *r)
{
    return bench_alone(r)
               ? NULL
               : text_print("latency is that under load: runs wait for each other");
}

/* Where others want the processors too, or the threads of the runs are too many. */
static char *note_busy(const struct bench_result *r)
{
    return r->waited > 0.05
               ? text_print("oversubscribed: threads waited for one of the %d processors "
                            "%.0f %% of the time; end what else runs, or give engines "
                            "fewer threads, or measure with --set runtime.wait=sleep",
                            busy_processors(), 100 * r->waited)
               : NULL;
}

/* A shell's variable that somebody set for another program. */
static char *note_waiting(const struct bench_result *r)
{
    const char *set = wait_decider();
    return set && r->run_threads > 1
               ? text_print("%s=%s is in the environment: it decides how the %d threads "
                            "of a run wait for each other, and figures are not those of "
                            "who sets nothing",
                            set, getenv(set), r->run_threads)
               : NULL;
}

static char *note_cold(const struct bench_result *r)
{
    return r->settings.base.cold_cache
               ? text_print("caches were emptied before each run; throughput counts that")
               : NULL;
}

static char *note_idle(const struct bench_result *r)
{
    return r->settings.idle > 0
               ? text_print("throughput counts the idle time between runs")
               : NULL;
}

static char *quote(const struct bench_result *r)
{
    const char *copies = r->settings.base.transfers ? "copies included" : "no copies";
    if (!bench_alone(r) && r->batch > 1)
        return text_print(
            "throughput, %.1f inferences a second (batch %lld: %.1f a second "
            "of its items), %s",
            r->throughput, (long long)r->batch, r->throughput * (double)r->batch, copies);
    if (!bench_alone(r))
        return text_print("throughput, %.1f inferences a second, %s", r->throughput,
                          copies);
    return text_print(
        "median latency, %.4g ms: one run at a time, from the call until the "
        "result is there, %s, caches %s",
        r->stats[BENCH_LATENCY].median, copies,
        r->settings.base.cold_cache ? "cold" : "warm");
}

int bench_judge(struct bench_result *r, strata_error *err)
{
    static char *(*const notes[])(const struct bench_result *r) = {
        note_host,  note_gaps, note_transfers, note_order, note_noise, note_drift,
        note_few,   note_load, note_busy,      note_waiting, note_cold,  note_idle,
    };
    for (size_t i = 0; i < ARRAY_LENGTH(notes); i++)
        if ((r->notes[r->n_notes] = notes[i](r)))
            r->n_notes++;
    r->quote = quote(r);
    return r->quote ? STRATA_OK : error_no_memory(err, 0, "a sentence");
}

void bench_result_free(struct bench_result *r)
{
    for (size_t i = 0; i < r->n_notes; i++)
        free(r->notes[i]);
    free(r->quote);
}
