/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as tables for people, and as JSON and CSV with everything in them.
 */
#include "tools/bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "io/file.h"

/* ---- tables ----------------------------------------------------------------------- */

static void print_metrics(const struct bench_result *r, int format)
{
    const char *columns[6 + BENCH_MAX_PERCENTILES] = {"ms", "min", "mean", "median"};
    char names[BENCH_MAX_PERCENTILES][16];
    const size_t n = r->settings.base.n_percentiles;
    struct table t;
    for (size_t p = 0; p < n; p++) {
        snprintf(names[p], sizeof names[p], "p%g", r->settings.base.percentiles[p]);
        columns[4 + p] = names[p];
    }
    columns[4 + n] = "max";
    table_open(&t, columns, 5 + n, ~UINT64_C(1));
    for (int m = 0; m < BENCH_METRICS; m++) {
        const struct bench_stats *s = &r->stats[m];
        if (!r->settings.base.transfers && (m == BENCH_H2D || m == BENCH_D2H))
            continue;
        table_cell(&t, "%s", bench_metric_names[m]);
        table_cell(&t, "%.4f", s->min);
        table_cell(&t, "%.4f", s->mean);
        table_cell(&t, "%.4f", s->median);
        for (size_t p = 0; p < n; p++)
            table_cell(&t, "%.4f", s->percentiles[p]);
        table_cell(&t, "%.4f", s->max);
    }
    table_print(&t, format, stdout);
    table_close(&t);
}

static void print_setup(const struct bench_result *r, const char *gap)
{
    const struct bench_options *o = &r->settings.base;
    tool_print("%s, input %s, %s, on %s%s", r->network, r->dims, r->precision, r->device,
               gap);
    tool_print(
        "%lld stream%s, %lld context%s, %lld thread%s, %lld in flight a stream; %s; "
        "caches %s; %s%s%s",
        (long long)o->streams, o->streams == 1 ? "" : "s", (long long)o->contexts,
        o->contexts == 1 ? "" : "s", (long long)o->threads, o->threads == 1 ? "" : "s",
        (long long)o->in_flight, o->transfers ? "copies included" : "no copies",
        o->cold_cache ? "cold" : "warm", r->graph ? "by graph" : "step by step",
        r->turns ? ", in turns" : "", gap);
}

void bench_print_case(const struct bench_result *r, int format)
{
    const bool markdown = format == TABLE_MARKDOWN;
    const char *gap = markdown ? "\n\n" : "\n", *item = markdown ? "- " : "";
    const double mebi = 1048576;
    print_setup(r, gap);
    fputs(markdown ? "" : "\n", stdout);
    print_metrics(r, format);
    tool_print("\n%sthroughput: %.1f inferences a second", item, r->throughput);
    if (r->batch > 1)
        tool_print(", %.1f items a second", r->throughput * (double)r->batch);
    tool_print(" (%zu in %.2f s)\n", r->n, r->wall_ms * 1e-3);
    if (r->predicted_ms > 0)
        tool_print("%spredicted by the plan's costs: %.4g ms; computed in %.4g ms\n", item,
               r->predicted_ms, r->stats[BENCH_COMPUTE].median);
    tool_print("%sbuilt in %.2f s; weights %.2f MiB, each context %.2f MiB\n", item,
           r->build_ms * 1e-3, (double)r->weight_bytes / mebi,
           (double)r->context_bytes / mebi);
    for (size_t i = 0; i < r->n_notes; i++)
        tool_print("%s%s: %s\n", item, "note", r->notes[i]);
    tool_print("%s%s: %s\n", item, markdown ? "**quote**" : "quote", r->quote);
}

static void print_lines(const struct bench_result *results, size_t n, int format)
{
    const struct bench_options *o = &results[0].settings.base;
    char high[32] = "latency max";
    const char *const columns[] = {"batch",      "precision",  "streams", "throughput",
                                   "items/s",    "latency ms", high,      "enqueue ms",
                                   "compute ms", "context MiB"};
    struct table t;
    if (o->n_percentiles > 0)
        snprintf(high, sizeof high, "latency p%g", o->percentiles[o->n_percentiles - 1]);
    table_open(&t, columns, ARRAY_LENGTH(columns), ~UINT64_C(2));
    for (size_t i = 0; i < n; i++) {
        const struct bench_result *r = &results[i];
        const size_t last = r->settings.base.n_percentiles;
        table_cell(&t, "%lld", (long long)r->batch);
        table_cell(&t, "%s", r->precision);
        table_cell(&t, "%lld", (long long)r->settings.base.streams);
        table_cell(&t, "%.1f", r->throughput);
        table_cell(&t, "%.1f", r->throughput * (double)r->batch);
        table_cell(&t, "%.4f", r->stats[BENCH_LATENCY].median);
        table_cell(&t, "%.4f",
                   last ? r->stats[BENCH_LATENCY].percentiles[last - 1]
                        : r->stats[BENCH_LATENCY].max);
        table_cell(&t, "%.4f", r->stats[BENCH_ENQUEUE].median);
        table_cell(&t, "%.4f", r->stats[BENCH_COMPUTE].median);
        table_cell(&t, "%.2f", (double)r->context_bytes / 1048576);
    }
    table_print(&t, format, stdout);
    table_close(&t);
}

/* ---- JSON ------------------------------------------------------------------------- */

static json_t *stats_json(const struct bench_stats *s, const struct bench_options *o)
{
    json_t *j =
        json_pack("{s:f, s:f, s:f, s:f, s:f}", "min_ms", s->min, "mean_ms", s->mean,
                  "median_ms", s->median, "max_ms", s->max, "deviation_ms", s->deviation);
    for (size_t p = 0; p < o->n_percentiles; p++) {
        char name[24];
        snprintf(name, sizeof name, "p%g_ms", o->percentiles[p]);
        json_object_set_new(j, name, json_real(s->percentiles[p]));
    }
    return j;
}

static json_t *case_json(const struct bench_result *r)
{
    const struct bench_options *o = &r->settings.base;
    json_t *notes = json_array();
    for (size_t i = 0; i < r->n_notes; i++)
        json_array_append_new(notes, json_string(r->notes[i]));
    json_t *j = json_pack("{s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:b}",
                          "network", r->network, "device", r->device, "input", r->dims,
                          "batch", (json_int_t)r->batch, "precision", r->precision,
                          "streams", (json_int_t)o->streams, "contexts",
                          (json_int_t)o->contexts, "threads", (json_int_t)o->threads,
                          "in_flight", (json_int_t)o->in_flight, "transfers",
                          o->transfers, "cold_cache", o->cold_cache, "graph", r->graph, "turns",
                          r->turns);
    json_object_set_new(j, "runs", json_integer((json_int_t)r->n));
    json_object_set_new(j, "seconds", json_real(r->wall_ms * 1e-3));
    json_object_set_new(j, "build_seconds", json_real(r->build_ms * 1e-3));
    json_object_set_new(j, "throughput", json_real(r->throughput));
    json_object_set_new(j, "items_per_second",
                        json_real(r->throughput * (double)r->batch));
    for (int m = 0; m < BENCH_METRICS; m++)
        if (o->transfers || (m != BENCH_H2D && m != BENCH_D2H))
            json_object_set_new(j, bench_metric_names[m], stats_json(&r->stats[m], o));
    json_object_set_new(j, "predicted_ms",
                        r->predicted_ms > 0 ? json_real(r->predicted_ms) : json_null());
    json_object_set_new(j, "drift", json_real(r->drift));
    json_object_set_new(j, "processor_wait", json_real(r->waited));
    json_object_set_new(j, "weight_bytes", json_integer((json_int_t)r->weight_bytes));
    json_object_set_new(j, "context_bytes", json_integer((json_int_t)r->context_bytes));
    json_object_set_new(j, "device_bytes", json_integer((json_int_t)r->device_bytes));
    json_object_set_new(j, "quote", json_string(r->quote));
    json_object_set_new(j, "notes", notes);
    return j;
}

/* ---- CSV: the same, an object's keys joined to its own ----------------------------- */

static void csv_text(const char *text)
{
    fputc('"', stdout);
    for (size_t n; *text; text += n + (text[n] == '"')) {
        n = strcspn(text, "\"");
        tool_print("%.*s%s", (int)n, text, text[n] ? "\"\"" : "");
    }
    fputc('"', stdout);
}

static void csv_value(const json_t *v)
{
    size_t i;
    json_t *item;
    if (json_is_string(v)) {
        csv_text(json_string_value(v));
    } else if (json_is_array(v)) {
        fputc('"', stdout);
        json_array_foreach(v, i, item)
            tool_print("%s%s", i ? "; " : "", json_string_value(item));
        fputc('"', stdout);
    } else {
        tool_print_json(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(7));
    }
}

static void csv_line(json_t *object, const char *prefix, bool head, bool *first)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        char name[64];
        snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "_" : "", key);
        if (json_is_object(value)) {
            csv_line(value, name, head, first);
            continue;
        }
        fputs(*first ? "" : ",", stdout);
        *first = false;
        if (head)
            fputs(name, stdout);
        else
            csv_value(value);
    }
}

static void print_csv(json_t *list)
{
    size_t i;
    json_t *object;
    json_array_foreach(list, i, object) for (int head = i == 0; head >= 0; head--)
    {
        bool first = true;
        csv_line(object, "", head, &first);
        fputc('\n', stdout);
    }
}

void bench_print_cases(const struct bench_result *results, size_t n, int format)
{
    if (format == TABLE_TEXT || format == TABLE_MARKDOWN) {
        fputc('\n', stdout);
        print_lines(results, n, format);
        return;
    }
    const size_t flags = JSON_REAL_PRECISION(7);
    json_t *list = json_array(), *object;
    size_t i;
    for (i = 0; i < n; i++)
        json_array_append_new(list, case_json(&results[i]));
    if (format == TABLE_CSV)
        print_csv(list);
    else if (format == TABLE_JSON)
        tool_print_json(list, flags | JSON_INDENT(1)), fputc('\n', stdout);
    else
        json_array_foreach(list, i, object)
        {
            tool_print_json(object, flags | JSON_COMPACT);
            fputc('\n', stdout);
        }
    json_decref(list);
}

/* ---- every run -------------------------------------------------------------------- */

void bench_print_averages(const struct bench_run *run, int64_t every)
{
    for (size_t l = 0; l < run->n_lanes; l++) {
        const struct bench_lane *lane = &run->lanes[l];
        for (size_t i = 0; i + (size_t)every <= lane->n_samples; i += (size_t)every) {
            double latency = 0, compute = 0, enqueue = 0;
            for (size_t k = i; k < i + (size_t)every; k++) {
                const struct bench_sample *s = &lane->samples[k];
                latency += s->done - s->enqueue[0];
                compute += s->compute[1] - s->compute[0];
                enqueue += s->enqueue[1] - s->enqueue[0];
            }
            fprintf(stderr,
                    "stream %zu, runs %zu to %zu, mean ms: latency %.4f, compute %.4f, "
                    "enqueue %.4f\n",
                    l, i, i + (size_t)every - 1, latency / (double)every,
                    compute / (double)every, enqueue / (double)every);
        }
    }
}

static void add_span(json_t *j, const char *begin, const char *end, const double span[2],
                     double base)
{
    json_object_set_new(j, begin, json_real(base + span[0]));
    json_object_set_new(j, end, json_real(base + span[1]));
}

static json_t *sample_json(const struct bench_sample *s, double base, size_t stream)
{
    json_t *j = json_object();
    add_span(j, "startEnqMs", "endEnqMs", s->enqueue, 0);
    add_span(j, "startH2dMs", "endH2dMs", s->h2d, base);
    add_span(j, "startComputeMs", "endComputeMs", s->compute, base);
    add_span(j, "startD2hMs", "endD2hMs", s->d2h, base);
    json_object_set_new(j, "h2dMs", json_real(s->h2d[1] - s->h2d[0]));
    json_object_set_new(j, "computeMs", json_real(s->compute[1] - s->compute[0]));
    json_object_set_new(j, "d2hMs", json_real(s->d2h[1] - s->d2h[0]));
    json_object_set_new(j, "latencyMs", json_real(s->done - s->enqueue[0]));
    json_object_set_new(j, "stream", json_integer((json_int_t)stream));
    return j;
}

int bench_write_times(const struct bench_run *run, const char *path, strata_error *err)
{
    json_t *list = json_array();
    for (size_t l = 0; l < run->n_lanes; l++)
        for (size_t i = 0; i < run->lanes[l].n_samples; i++)
            json_array_append_new(
                list, sample_json(&run->lanes[l].samples[i], run->lanes[l].base_ms, l));
    char *text = json_dumps(list, JSON_REAL_PRECISION(9) | JSON_INDENT(1));
    int status = text ? file_write(path, text, strlen(text), err)
                      : error_no_memory(err, 0, "the times");
    free(text);
    json_decref(list);
    return status;
}
