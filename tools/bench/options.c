/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `strata bench`. A spelling of trtexec is one more row.
 */
#include "tools/bench/bench.h"

#include <math.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    OPTION_WARMUP = TOOL_OWN,
    OPTION_WARMUP_MS,
    OPTION_DURATION,
    OPTION_ITERATIONS,
    OPTION_STREAMS,
    OPTION_CONTEXTS,
    OPTION_THREADS,
    OPTION_IN_FLIGHT,
    OPTION_TRANSFERS,
    OPTION_NO_TRANSFERS,
    OPTION_TURNS,
    OPTION_NO_TURNS,
    OPTION_COLD,
    OPTION_WARM,
    OPTION_SPIN,
    OPTION_NO_SPIN,
    OPTION_GRAPH,
    OPTION_NO_GRAPH,
    OPTION_PERCENTILES,
    OPTION_AVERAGES,
    OPTION_IDLE,
    OPTION_BATCH,
    OPTION_DIM,
    OPTION_SHAPES,
    OPTION_PRECISION,
    OPTION_FP16,
    OPTION_BEST,
    OPTION_INPUT,
    OPTION_INPUTS,
    OPTION_ENGINE,
    OPTION_POOL,
    OPTION_PLUGIN,
    OPTION_CACHE,
    OPTION_TIMES,
    OPTION_PROFILE,
    OPTION_DUMP_PROFILE,
    OPTION_SAVE,
    OPTION_SKIP,
    OPTION_NOTHING, /* what is so here anyway */
};

static const struct option options[] = {
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"duration", required_argument, NULL, OPTION_DURATION},
    {"iterations", required_argument, NULL, OPTION_ITERATIONS},
    {"streams", required_argument, NULL, OPTION_STREAMS},
    {"contexts", required_argument, NULL, OPTION_CONTEXTS},
    {"threads", optional_argument, NULL, OPTION_THREADS},
    {"in-flight", required_argument, NULL, OPTION_IN_FLIGHT},
    {"transfers", no_argument, NULL, OPTION_TRANSFERS},
    {"no-transfers", no_argument, NULL, OPTION_NO_TRANSFERS},
    {"turns", no_argument, NULL, OPTION_TURNS},
    {"no-turns", no_argument, NULL, OPTION_NO_TURNS},
    {"cold-cache", no_argument, NULL, OPTION_COLD},
    {"warm-cache", no_argument, NULL, OPTION_WARM},
    {"spin", no_argument, NULL, OPTION_SPIN},
    {"no-graph", no_argument, NULL, OPTION_NO_GRAPH},
    {"percentiles", required_argument, NULL, OPTION_PERCENTILES},
    {"averages", required_argument, NULL, OPTION_AVERAGES},
    {"idle", required_argument, NULL, OPTION_IDLE},
    {"batch", required_argument, NULL, OPTION_BATCH},
    {"dim", required_argument, NULL, OPTION_DIM},
    {"shapes", required_argument, NULL, OPTION_SHAPES},
    {"precision", required_argument, NULL, OPTION_PRECISION},
    {"input", required_argument, NULL, OPTION_INPUT},
    {"times", required_argument, NULL, OPTION_TIMES},
    {"layers", no_argument, NULL, OPTION_DUMP_PROFILE},
    /* trtexec's own */
    {"warmUp", required_argument, NULL, OPTION_WARMUP_MS},
    {"infStreams", required_argument, NULL, OPTION_STREAMS},
    {"includeDataTransfers", no_argument, NULL, OPTION_TRANSFERS},
    {"noDataTransfers", no_argument, NULL, OPTION_NO_TRANSFERS},
    {"useSpinWait", no_argument, NULL, OPTION_SPIN},
    {"noSpinWait", no_argument, NULL, OPTION_NO_SPIN},
    {"useCudaGraph", no_argument, NULL, OPTION_GRAPH},
    {"noCudaGraph", no_argument, NULL, OPTION_NO_GRAPH},
    {"percentile", required_argument, NULL, OPTION_PERCENTILES},
    {"avgRuns", required_argument, NULL, OPTION_AVERAGES},
    {"idleTime", required_argument, NULL, OPTION_IDLE},
    {"fp16", no_argument, NULL, OPTION_FP16},
    {"best", no_argument, NULL, OPTION_BEST},
    {"loadInputs", required_argument, NULL, OPTION_INPUTS},
    {"loadEngine", required_argument, NULL, OPTION_ENGINE},
    {"saveEngine", required_argument, NULL, OPTION_SAVE},
    {"skipInference", no_argument, NULL, OPTION_SKIP},
    {"memPoolSize", required_argument, NULL, OPTION_POOL},
    {"plugins", required_argument, NULL, OPTION_PLUGIN},
    {"staticPlugins", required_argument, NULL, OPTION_PLUGIN},
    {"dynamicPlugins", required_argument, NULL, OPTION_PLUGIN},
    {"timingCacheFile", required_argument, NULL, OPTION_CACHE},
    {"exportTimes", required_argument, NULL, OPTION_TIMES},
    {"exportProfile", required_argument, NULL, OPTION_PROFILE},
    {"dumpProfile", no_argument, NULL, OPTION_DUMP_PROFILE},
    {"separateProfileRun", no_argument, NULL, OPTION_NOTHING},
    {"exposeDMA", no_argument, NULL, OPTION_NOTHING},
    {"stronglyTyped", no_argument, NULL, OPTION_NOTHING},
    {"noTF32", no_argument, NULL, OPTION_NOTHING},
    {0},
};

/* ---- values ----------------------------------------------------------------------- */

static bool bad(const char *name, const char *text, const char *needed)
{
    tool_error("%s '%s': %s is needed", name, text, needed);
    return false;
}

/* "200ms", "3s"; a bare number is in `unit` ns. */
static bool read_time(uint64_t *out, const char *text, double unit, const char *name)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double value = strtod(text, &end);
    const char *suffix = end + strspn(end, " ");
    bool known = !*suffix;
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++)
        if (strcmp(suffix, units[i].name) == 0) {
            unit = units[i].ns;
            known = true;
        }
    if (end == text || !known || !(value >= 0) || value * unit > 1e15)
        return bad(name, text, "a time, as 500us, 200ms or 3s,");
    *out = (uint64_t)(value * unit);
    return true;
}

static bool read_percentiles(struct bench_arguments *a, const char *text)
{
    a->n_percentiles = 0;
    for (const char *p = text; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char *end;
        double value = strtod(p, &end);
        if (end == p || (*end && *end != ',') || !(value > 0 && value <= 100) ||
            a->n_percentiles == BENCH_MAX_PERCENTILES)
            return bad("--percentiles", text, "up to 8 numbers above 0, at most 100,");
        a->percentiles[a->n_percentiles++] = value;
    }
    return true;
}

/* "1,8,32" */
static bool read_list(struct bench_list *out, const char *text, const char *name)
{
    if (out->n > 0)
        free(out->items[0]);
    out->n = 0;
    char *rest = duplicate(text, NULL), *item = strsep(&rest, ",");
    for (; item && *item && out->n < BENCH_MAX_CASES; item = strsep(&rest, ","))
        out->items[out->n++] = item;
    if (out->n > 0 && !item)
        return true;
    if (out->n == 0)
        free(item);
    return bad(name, text, "a list of 1 to 16 values, ',' between,");
}

/* A list of numbers, 1 to `most`. */
static bool read_counts(struct bench_list *out, const char *text, int64_t most,
                        const char *name)
{
    int64_t value;
    if (!read_list(out, text, name))
        return false;
    for (size_t i = 0; i < out->n; i++)
        if (!tool_number(&value, out->items[i], 1, most, name))
            return false;
    return true;
}

static bool push(const char ***list, size_t *capacity, size_t *n, const char *text)
{
    if (grow(list, capacity, *n, sizeof **list, NULL) != STRATA_OK)
        return bad("option", text, "more memory");
    (*list)[(*n)++] = text;
    return true;
}

/* A text of our own; taken. */
static bool keep(struct bench_arguments *a, char *text)
{
    if (!text || grow(&a->made, &a->made_capacity, a->n_made, sizeof *a->made, NULL)) {
        free(text);
        return bad("option", "", "more memory");
    }
    a->made[a->n_made++] = text;
    return true;
}

static bool add_set(struct bench_arguments *a, char *text)
{
    struct tool_options *o = &a->common;
    return keep(a, text) && push(&o->set, &o->set_capacity, &o->n_set, text);
}

/* trtexec's "x:1x3x224x224,y:1x10", for shapes.c. */
static bool read_shapes(struct bench_arguments *a, const char *list)
{
    a->shapes = list;
    while (*list) {
        const size_t n = strcspn(list, ","), name = strcspn(list, ":");
        if (name == 0 || name + 1 >= n)
            return bad("--shapes", list, "NAME:DIMS, as x:1x3x224x224,");
        list += n + (list[n] == ',');
    }
    return true;
}

/* trtexec's "workspace:64", in MiB, or with B, K, M, G behind. */
static bool read_pool(struct bench_arguments *a, const char *text)
{
    static const struct {
        const char *suffix, *unit;
    } units[] = {{"", "MiB"}, {"M", "MiB"}, {"K", "KiB"}, {"G", "GiB"}, {"B", ""}};
    const char *size = strncmp(text, "workspace:", 10) == 0 ? text + 10 : "";
    const size_t digits = strspn(size, "0123456789");
    char *set = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(units) && digits > 0; i++)
        if (strcmp(size + digits, units[i].suffix) == 0 &&
            asprintf(&set, "build.workspace=%.*s%s", (int)digits, size, units[i].unit) >=
                0)
            return add_set(a, set);
    return bad("--memPoolSize", text, "workspace:SIZE, as workspace:64M,");
}

/* trtexec's "x:x.dat,y:y.dat", each to --input x=x.dat. */
static bool read_inputs(struct bench_arguments *a, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        char *text = strndup(list, n);
        char *colon = text ? strchr(text, ':') : NULL;
        if (!keep(a, text))
            return false;
        if (!colon)
            return bad("--loadInputs", text, "NAME:FILE");
        *colon = '=';
        if (!tool_input(&a->common, text))
            return false;
        list += n + (list[n] == ',');
    }
    return true;
}

/* ---- options ---------------------------------------------------------------------- */

static bool count_option(struct bench_arguments *a, int option)
{
    switch (option) {
    case OPTION_ITERATIONS:
        return tool_number(&a->iterations, optarg, 1, 1000000000, "--iterations");
    case OPTION_STREAMS:
        return read_counts(&a->streams, optarg, 256, "--streams");
    case OPTION_CONTEXTS:
        return tool_number(&a->contexts, optarg, 1, 1024, "--contexts");
    case OPTION_THREADS: /* trtexec's: as many as streams */
        a->threads = 0;
        return !optarg || tool_number(&a->threads, optarg, 1, 256, "--threads");
    case OPTION_IN_FLIGHT:
        return tool_number(&a->in_flight, optarg, 1, 256, "--in-flight");
    default:
        return tool_number(&a->rest.averages, optarg, 1, 1000000, "--averages");
    }
}

static bool network_option(struct bench_arguments *a, int option)
{
    switch (option) {
    case OPTION_BATCH:
        return read_counts(&a->batches, optarg, 65536, "--batch");
    case OPTION_DIM:
        return tool_dim(&a->common, optarg);
    case OPTION_SHAPES:
        return read_shapes(a, optarg);
    case OPTION_PRECISION:
        return read_list(&a->precisions, optarg, "--precision");
    case OPTION_FP16:
        return read_list(&a->precisions, "fp16", "--fp16");
    case OPTION_BEST:
        return read_list(&a->precisions, "any", "--best");
    case OPTION_INPUT:
        return tool_input(&a->common, optarg);
    case OPTION_INPUTS:
        return read_inputs(a, optarg);
    case OPTION_ENGINE:
        a->path = optarg;
        return true;
    case OPTION_POOL:
        return read_pool(a, optarg);
    case OPTION_CACHE:
        a->common.save_costs = optarg;
        a->common.costs = a->common.costs ? a->common.costs : "measure";
        return true;
    default:
        return push(&a->common.plugins, &a->common.plugins_capacity, &a->common.n_plugins,
                    optarg);
    }
}

static bool own_option(struct bench_arguments *a, int option)
{
    switch (option) {
    case OPTION_WARMUP:
        return read_time(&a->warmup, optarg, 1e6, "--warmup");
    case OPTION_WARMUP_MS:
        return read_time(&a->warmup, optarg, 1e6, "--warmUp");
    case OPTION_DURATION:
        return read_time(&a->duration, optarg, 1e9, "--duration");
    case OPTION_IDLE:
        return read_time(&a->rest.idle, optarg, 1e6, "--idle");
    case OPTION_TRANSFERS:
    case OPTION_NO_TRANSFERS:
        a->transfers = option == OPTION_TRANSFERS;
        return true;
    case OPTION_TURNS:
    case OPTION_NO_TURNS:
        a->rest.turns = option == OPTION_TURNS ? STRATA_TURNS_ON : STRATA_TURNS_OFF;
        return true;
    case OPTION_COLD:
    case OPTION_WARM:
        a->cold_cache = option == OPTION_COLD;
        return true;
    case OPTION_SPIN:
    case OPTION_NO_SPIN:
        a->rest.spin = option == OPTION_SPIN;
        return true;
    case OPTION_GRAPH:
    case OPTION_NO_GRAPH:
        a->rest.no_graph = option == OPTION_NO_GRAPH;
        return true;
    case OPTION_PERCENTILES:
        return read_percentiles(a, optarg);
    case OPTION_TIMES:
        a->times_file = optarg;
        return tool_output(&a->common, optarg);
    case OPTION_PROFILE:
        a->profile_file = optarg;
        return tool_output(&a->common, optarg);
    case OPTION_DUMP_PROFILE:
        a->layers = true;
        return true;
    case OPTION_SAVE:
        a->save_file = optarg;
        return tool_output(&a->common, optarg);
    case OPTION_SKIP:
        a->build_only = true;
        return true;
    case OPTION_NOTHING:
        return true;
    }
    return option >= OPTION_BATCH ? network_option(a, option) : count_option(a, option);
}

/* trtexec numbers its devices. */
static bool name_device(struct bench_arguments *a)
{
    const char *d = a->common.device;
    char *text = NULL;
    if (!d || !*d || d[strspn(d, "0123456789")])
        return true;
    if (asprintf(&text, "cuda:%s", d) < 0)
        text = NULL;
    a->common.device = text;
    return keep(a, text);
}

int bench_parse(struct bench_arguments *a, const struct tool_command *bench, int argc,
                char **argv)
{
    int option;
    *a = (struct bench_arguments){.warmup = UINT64_MAX,
                                  .duration = UINT64_MAX,
                                  .iterations = -1,
                                  .contexts = -1,
                                  .threads = -1,
                                  .in_flight = -1,
                                  .transfers = -1,
                                  .cold_cache = -1,
                                  .rest = {.turns = STRATA_TURNS_AUTO}};
    while ((option = tool_next_option(&a->common, argc, argv, options)) != -1)
        if (option == '?' || !own_option(a, option))
            return EXIT_USAGE;
    if (a->common.help)
        return EXIT_OK;
    if (argc - optind == 1 && !a->path)
        a->path = argv[optind];
    else if (!a->path || argc > optind)
        return tool_usage(bench, argc > optind ? "one network file is needed"
                                               : "a network file is needed");
    return name_device(a) ? EXIT_OK : EXIT_USAGE;
}

void bench_arguments_free(struct bench_arguments *a)
{
    struct bench_list *lists[] = {&a->batches, &a->precisions, &a->streams};
    for (size_t i = 0; i < ARRAY_LENGTH(lists); i++)
        if (lists[i]->n > 0)
            free(lists[i]->items[0]);
    for (size_t i = 0; i < a->n_made; i++)
        free(a->made[i]);
    free(a->made);
    tool_options_free(&a->common);
}

/* ---- settings --------------------------------------------------------------------- */

static int64_t either(int64_t option, int64_t otherwise)
{
    return option >= 0 ? option : otherwise;
}

struct bench_settings bench_settings(const struct bench_arguments *a,
                                     const strata_network *net, int64_t streams)
{
    struct bench_settings s = a->rest;
    struct bench_options *o = &s.base;
    *o = net->bench;
    o->warmup = a->warmup != UINT64_MAX ? a->warmup : o->warmup;
    o->duration = a->duration != UINT64_MAX ? a->duration : o->duration;
    o->iterations = either(a->iterations, o->iterations);
    o->streams = streams > 0 ? streams : o->streams;
    o->contexts = either(a->contexts, o->contexts);
    o->threads = either(a->threads, o->threads);
    o->in_flight = either(a->in_flight, o->in_flight);
    o->transfers = either(a->transfers, o->transfers);
    o->cold_cache = either(a->cold_cache, o->cold_cache);
    if (s.turns == STRATA_TURNS_AUTO && o->turns)
        s.turns = o->turns > 0 ? STRATA_TURNS_ON : STRATA_TURNS_OFF;
    if (o->contexts < o->streams)
        o->contexts = o->streams;
    if (o->threads == 0 || o->threads > o->streams)
        o->threads = o->streams;
    s.mark_all = a->times_file || s.averages > 0;
    if (o->cold_cache) /* emptying waits for the stream */
        o->in_flight = 1;
    if (a->n_percentiles > 0) {
        memcpy(o->percentiles, a->percentiles, sizeof o->percentiles);
        o->n_percentiles = a->n_percentiles;
    }
    return s;
}
