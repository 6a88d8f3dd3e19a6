/* SPDX-License-Identifier: Apache-2.0
 *
 * strata bench: every combination of the lists given is a case with an engine of its own.
 */
#include "tools/bench/bench.h"

#include <strata/sizes.h>

#include <stdlib.h>
#include <string.h>

#include "io/engine_file.h"
#include "tools/predicted.h"
#include "tools/profile/profile.h"
#include "tools/run/run.h"
#include "tools/compare/variant.h"

/* The lists' entries of one case; NULL: as the network says. */
struct bench_case {
    const char *batch, *precision, *streams;
};

/* ---- the network of a case -------------------------------------------------------- */

static size_t add_sum(char *text, size_t size, const strata_network *net,
                      const struct network_sum *sum)
{
    const char *first = net->symbols[sum->first].name;
    return (size_t)(sum->second >= 0 ? snprintf(text, size, " x %s+%s", first,
                                                net->symbols[sum->second].name)
                                     : snprintf(text, size, " x %s+%lld", first,
                                                (long long)sum->more));
}

/* Dims behind the first, where names of [profile] stay. */
static void add_dims(char *text, size_t size, const strata_network *net,
                     const struct network_input *input)
{
    const struct network_tensor *t = &net->tensors[input->tensor];
    size_t used = 0;
    text[0] = '\0';
    for (int d = 1; d < t->rank && used < size; d++) {
        const int symbol = input->symbols[d];
        const struct network_sum *sum = &input->sums[d];
        if (sum->first >= 0) {
            used += add_sum(text + used, size - used, net, sum);
            continue;
        }
        used += (size_t)(symbol >= 0 ? snprintf(text + used, size - used, " x %s",
                                                net->symbols[symbol].name)
                                     : snprintf(text + used, size - used, " x %lld",
                                                (long long)t->dims[d]));
    }
}

/* The first dim of an input, or the name that stands there. */
static int set_shape(struct tool_options *o, const strata_network *net,
                     const struct network_input *input, const char *batch,
                     strata_error *err)
{
    char dims[STRATA_MAX_RANK * (CONFIG_MAX_KEY + 4)];
    int n;
    const char *name = run_first_name(net, input->name, &n);
    if (n > 0)
        return variant_set_once(o, err, "profile.%.*s=%s", n, name, batch);
    add_dims(dims, sizeof dims, net, input);
    return variant_set(o, err, "input %s.shape=%s%s", input->name, batch, dims);
}

/* By the network's variable `batch`, the name of [profile] that has several values, or
 * the first dim of every input. */
static int set_batch(struct tool_options *o, const char *path, const char *batch,
                     strata_error *err)
{
    struct tool_session s = {0};
    int status = tool_open_network(&s, o, path, err);
    struct config_section *vars =
        status == STRATA_OK ? config_find(s.network->config, "vars") : NULL;
    const char *symbol = status == STRATA_OK && s.network->batch_symbol >= 0
                             ? s.network->symbols[s.network->batch_symbol].name
                             : NULL;
    if (vars && config_get(vars, "batch"))
        status = variant_define(o, err, "batch=%s", batch);
    else if (symbol)
        status = variant_set(o, err, "profile.%s=%s", symbol, batch);
    else
        for (size_t i = 0; status == STRATA_OK && i < s.network->n_inputs; i++)
            status = set_shape(o, s.network, &s.network->inputs[i], batch, err);
    tool_close(&s);
    return status;
}

static int set_shapes(struct tool_options *o, const struct bench_arguments *a,
                      strata_error *err)
{
    struct tool_session s = {0};
    int status =
        engine_file_at(a->path) ? STRATA_OK : tool_open_network(&s, o, a->path, err);
    if (status == STRATA_OK)
        status = bench_set_shapes(o, s.network, a->shapes, err);
    tool_close(&s);
    s = (struct tool_session){0};
    if (status == STRATA_OK && !engine_file_at(a->path) &&
        (status = tool_open_network(&s, o, a->path, err)) == STRATA_OK)
        status = bench_check_shapes(s.network, a->shapes, err);
    tool_close(&s);
    return status;
}

/* The options given and those of the case. The batch of an engine that is built is
 * chosen as it runs. */
static int case_options(struct tool_options *o, const struct bench_arguments *a,
                        const struct bench_case *c, strata_error *err)
{
    int status = variant_open(o, &a->common, err);
    if (status == STRATA_OK && c->precision)
        status = variant_set(o, err, "build.precision=%s", c->precision);
    if (status == STRATA_OK && a->shapes)
        status = set_shapes(o, a, err);
    return status == STRATA_OK && c->batch && !engine_file_at(a->path)
               ? set_batch(o, a->path, c->batch, err)
               : status;
}

static bool for_people(const struct bench_arguments *a)
{
    return a->common.format == TABLE_TEXT || a->common.format == TABLE_MARKDOWN;
}

/* ---- a case ----------------------------------------------------------------------- */

/* The host's name is its processor's, where the system tells it. */
static void name_device(char *text, size_t size, const strata_handle *h)
{
    char line[256];
    FILE *f = h->properties.kind == STRATA_HOST ? fopen("/proc/cpuinfo", "r") : NULL;
    snprintf(text, size, "%s", strata_device_name(h));
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(text, size, "host (%.80s)", strchr(line, ':') + 2);
            break;
        }
    if (f)
        fclose(f);
}

static void note_costs(struct bench_result *r, const strata_context *c)
{
    const strata_engine *e = c->engine;
    if (e->execution->n_inputs == 0 || context_rows(c) != c->active->engine->batch)
        return;
    r->predicted_ms =
        explain_microseconds(execution_predicts(c->active->execution)) * 1e-3;
    char *doubt = bench_alone(r) && c->active == c
                      ? tool_doubt_costs(e, 1e3 * r->stats[BENCH_COMPUTE].median)
                      : NULL;
    if (doubt)
        r->notes[r->n_notes++] = doubt;
}

/* Of a context that ran. */
static void note_engine(struct bench_result *r, const struct tool_session *s,
                        strata_context *c)
{
    static const char *const precisions[] = {[PRECISION_FP32] = "fp32",
                                             [PRECISION_FP16] = "fp16",
                                             [PRECISION_ANY] = "any",
                                             [PRECISION_BF16] = "bf16"};
    const strata_network *net = s->engine->network;
    strata_memory_stats memory = {.struct_size = sizeof memory};
    strata_binding b = {.struct_size = sizeof b};
    strata_get_memory_stats(s->handle, &memory, NULL);
    name_device(r->device, sizeof r->device, s->handle);
    snprintf(r->network, sizeof r->network, "%s", net->name ? net->name : net->path);
    snprintf(r->precision, sizeof r->precision, "%s", precisions[net->build.precision]);
    r->batch = 1;
    if (s->engine->execution->n_inputs > 0 &&
        strata_context_binding(c, 0, &b, NULL) == STRATA_OK) {
        r->batch = b.desc.rank > 1 ? b.desc.dims[0] : 1;
        tool_dims(r->dims, sizeof r->dims, b.desc.dims, b.desc.rank);
    }
    note_costs(r, c);
    r->run_threads = s->engine->execution->threads;
    r->weight_bytes = strata_engine_weight_bytes(s->engine);
    r->context_bytes = strata_engine_arena_bytes(s->engine);
    r->device_bytes = memory.current_bytes;
    r->graph = !r->settings.no_graph && net->runtime.graph &&
               s->handle->device->ops->capture_begin;
    r->turns = c->turn.use == STRATA_TURNS_ON;
}

static int measure(struct bench_run *run, const struct bench_devices *d,
                   const struct bench_arguments *a, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < run->n_lanes && status == STRATA_OK; i++) {
        const struct tool_session *s = &d->sessions[i % d->n];
        char device[32] = "host";
        if (s->handle->properties.kind == STRATA_CUDA)
            snprintf(device, sizeof device, "cuda:%d", s->handle->properties.index);
        status = bench_lane_open(&run->lanes[i], s->engine, device, a, run->settings,
                                 (int64_t)i, (int64_t)run->n_lanes, err);
    }
    return status == STRATA_OK ? bench_run(run, err) : status;
}

/* What is asked for is of each device. */
static void multiply(struct bench_options *o, size_t devices)
{
    o->streams *= (int64_t)devices;
    o->contexts *= (int64_t)devices;
    o->threads *= (int64_t)devices;
}

static void name_devices(struct bench_result *r, size_t n)
{
    char one[sizeof r->device];
    snprintf(one, sizeof one, "%s", r->device);
    if (n > 1)
        snprintf(r->device, sizeof r->device, "%zu x %.70s", n, one);
}

/* Runs of their own, after the measurement, of its sizes. */
static int profile_case(const struct tool_session *s, const struct bench_arguments *a,
                        int64_t batch, strata_error *err)
{
    const struct profile_print how = {.format = a->common.format};
    struct profile p = {0};
    strata_context *c = NULL;
    int status = strata_context_create(&c, s->engine, s->handle, err);
    if (status == STRATA_OK)
        c->starts_over = true;
    if (status == STRATA_OK && batch > 0)
        status = strata_context_set_batch(c, batch, err);
    if (status == STRATA_OK)
        status = run_set_sizes(c, &a->common, err);
    if (status == STRATA_OK)
        status = run_read_inputs(c, s->engine, &a->common, err);
    if (status == STRATA_OK)
        status = profile_measure(&p, c, PROFILE_RUNS, false, err);
    if (status == STRATA_OK && a->profile_file)
        status = profile_write(&p, a->profile_file, err);
    if (status == STRATA_OK && a->layers && for_people(a))
        profile_print(&p, &how);
    profile_free(&p);
    strata_context_destroy(c);
    return status;
}

static int export_times(const struct bench_run *run, const struct bench_arguments *a,
                        strata_error *err)
{
    if (run->settings->averages > 0)
        bench_print_averages(run, run->settings->averages);
    return a->times_file ? bench_write_times(run, a->times_file, err) : STRATA_OK;
}

/* Everything but an engine; case_close drops it, after a failure, too. */
static int case_open(struct bench_devices *d, struct tool_options *o,
                     const struct bench_arguments *a, const struct bench_case *c,
                     strata_error *err)
{
    int status = bench_devices_parse(d, a->common.device, err);
    *o = (struct tool_options){0};
    if (status == STRATA_OK)
        status = case_options(o, a, c, err);
    o->look = run_look;
    o->look_of = o;
    return status == STRATA_OK ? bench_devices_prepare(d, o, a->path, err) : status;
}

static void case_close(struct bench_devices *d, struct tool_options *o)
{
    bench_devices_close(d);
    variant_close(o);
}

/* What is wrong with it; told of the last one before the first one is measured. */
static int check_case(const struct bench_arguments *a, const struct bench_case *c,
                      strata_error *err)
{
    struct tool_options options;
    struct bench_devices devices = {0};
    int status = case_open(&devices, &options, a, c, err);
    case_close(&devices, &options);
    return status;
}

static int run_case(struct bench_result *out, const struct bench_arguments *a,
                    const struct bench_case *c, strata_error *err)
{
    struct tool_options options;
    struct bench_devices devices = {0};
    const struct tool_session *const s = &devices.sessions[0];
    struct bench_run run = {0};
    const double begin = bench_now_ms();
    int status = case_open(&devices, &options, a, c, err);
    if (status == STRATA_OK)
        status = bench_devices_plan(&devices, &options, err);
    if (status != STRATA_OK)
        goto done;
    out->build_ms = bench_now_ms() - begin;
    if (a->save_file)
        status = strata_engine_save(s->engine, a->save_file, err);
    if (status != STRATA_OK || a->build_only)
        goto done;
    struct bench_settings settings =
        bench_settings(a, s->engine->network, c->streams ? atoll(c->streams) : 0);
    if (c->batch && engine_file_at(a->path))
        settings.batch = atoll(c->batch);
    multiply(&settings.base, devices.n);
    run.settings = &settings;
    run.n_lanes = (size_t)settings.base.streams;
    run.lanes = zalloc(run.n_lanes, sizeof *run.lanes, "streams", err);
    status = run.lanes ? measure(&run, &devices, a, err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = bench_summarise(out, &run, err);
    if (status == STRATA_OK) {
        note_engine(out, s, run.lanes[0].contexts[0]);
        name_devices(out, devices.n);
        status = bench_judge(out, err);
    }
    if (status == STRATA_OK)
        status = export_times(&run, a, err);
    for (size_t i = 0; run.lanes && i < run.n_lanes; i++)
        bench_lane_close(&run.lanes[i]);
    if (status == STRATA_OK && (a->layers || a->profile_file))
        status = profile_case(s, a, settings.batch, err);
done:
    free(run.lanes);
    case_close(&devices, &options);
    return status;
}

/* Each case would replace the file of the one before. */
static int check_files(const struct bench_arguments *a, size_t n_cases, strata_error *err)
{
    const char *file = a->times_file     ? a->times_file
                       : a->profile_file ? a->profile_file
                                         : a->save_file;
    return n_cases > 1 && file
               ? error_set(err, STRATA_EINVAL,
                           "%s: one file, but %zu cases; write one case at a time", file,
                           n_cases)
               : STRATA_OK;
}

static size_t some(const struct bench_list *list)
{
    return list->n ? list->n : 1;
}

/* The i-th: of all precisions, batches and streams, the last of these fastest. */
static struct bench_case case_at(const struct bench_arguments *a, size_t i)
{
    const size_t n_streams = some(&a->streams), n_batches = some(&a->batches);
    return (struct bench_case){
        a->batches.n ? a->batches.items[i / n_streams % n_batches] : NULL,
        a->precisions.n ? a->precisions.items[i / n_streams / n_batches] : NULL,
        a->streams.n ? a->streams.items[i % n_streams] : NULL};
}

static int run_cases(const struct bench_arguments *a, strata_error *err)
{
    const size_t n = some(&a->batches) * some(&a->precisions) * some(&a->streams);
    const bool people = for_people(a);
    struct bench_result *results = zalloc(n, sizeof *results, "results", err);
    int status = results ? check_files(a, n, err) : STRATA_ENOMEM;
    for (size_t i = 1; i < n && status == STRATA_OK && !engine_file_at(a->path); i++) {
        const struct bench_case c = case_at(a, i);
        status = check_case(a, &c, err);
    }
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        const struct bench_case c = case_at(a, i);
        status = run_case(&results[i], a, &c, err);
        if (status == STRATA_OK && people && !a->build_only) {
            fputs(i ? "\n" : "", stdout);
            bench_print_case(&results[i], a->common.format);
            fflush(stdout);
        }
    }
    if (status == STRATA_OK && (n > 1 || !people) && !a->build_only)
        bench_print_cases(results, n, a->common.format);
    for (size_t i = 0; results && i < n; i++)
        bench_result_free(&results[i]);
    free(results);
    return status;
}

static int run_bench(int argc, char **argv)
{
    struct bench_arguments a;
    strata_error err;
    error_clear(&err);
    int code = bench_parse(&a, &tool_bench, argc, argv);
    if (code == EXIT_OK && a.common.help)
        code = tool_help(&tool_bench);
    else if (code == EXIT_OK && run_cases(&a, &err) != STRATA_OK)
        code = tool_fail(&err);
    bench_arguments_free(&a);
    return code;
}

const struct tool_command tool_bench = {
    .name = "bench",
    .summary = "Measure latency and throughput, and say which number to quote",
    .usage = "NET.ini|NET.engine [OPTION...]",
    .help =
        "Options:\n"
        "      --warmup=TIME        run so long first (default 200ms)\n"
        "      --duration=TIME      measure at least so long (default 3s)\n"
        "      --iterations=N       and at least so many runs (default 10)\n"
        "      --batch=N,...        batch sizes, one case each\n"
        "      --dim=NAME=SIZE      the size of a name of [profile] in all cases, as "
        "T=77\n"
        "      --precision=P,...    fp32, fp16, bf16, any: one case each\n"
        "      --streams=N,...      streams that run beside each other: one case each\n"
        "      --contexts=N         contexts, dealt to the streams (default: one each)\n"
        "      --threads[=N]        host threads that drive the streams (default: one\n"
        "                           each)\n"
        "      --in-flight=N        runs under way on a stream at a time (default 1)\n"
        "      --transfers          copy inputs in and outputs out with every run\n"
        "      --no-transfers       leave them where they are (default)\n"
        "      --turns              runs of several streams one after the other, each\n"
        "                           copying while another computes; --no-turns: they\n"
        "                           share the device (default: what pays, "
        "docs/serving.md)\n"
        "      --cold-cache         empty the device's cache before each run\n"
        "      --warm-cache         leave it as the last run left it (default)\n"
        "      --spin               poll for the end of a run instead of sleeping\n"
        "      --no-graph           enqueue kernel by kernel\n"
        "      --idle=TIME          wait between runs\n"
        "      --percentiles=P,...  default 90,95,99\n"
        "      --device=D,D,...     several devices at a time, each with the streams,\n"
        "                           contexts and threads that one would have; cuda:all:\n"
        "                           every GPU\n"
        "      --averages=N         print the mean of every N runs on stderr\n"
        "      --shapes=NAME:DIMS,...  shapes of inputs, and so sizes of their names\n"
        "      --input=[NAME=]FILE  an input as in `strata run`; random by default\n"
        "      --times=FILE         write the times of every run as JSON\n"
        "      --layers             a table of the layers before each case, as `strata\n"
        "                           profile` has it\n\n"
        "Defaults come from the network's [bench] section. trtexec's spellings work "
        "too:\n"
        "--warmUp (ms), --infStreams, --avgRuns, --percentile, --noDataTransfers,\n"
        "--includeDataTransfers, --useSpinWait, --noCudaGraph, --idleTime, --fp16,\n"
        "--best, --loadInputs, --loadEngine, --saveEngine, --skipInference,\n"
        "--memPoolSize=workspace:SIZE, --plugins, --timingCacheFile, --exportTimes,\n"
        "--dumpProfile, --exportProfile; --device=0 means cuda:0.\n\n"
        "Figures: latency, from the call until the host has the result; enqueue, the\n"
        "host's part of it; h2d, compute and d2h, on the device.\n",
    .examples =
        "  strata bench net.ini\n"
        "  strata bench net.ini --device cuda --batch 1,8,32 --precision fp16 -o md\n"
        "  strata bench net.ini --streams 1,2,4 --in-flight 2 --transfers -o csv\n"
        "  strata bench net.ini --device cuda:all --batch 32 --in-flight 2\n"
        "  strata bench net.ini --warmUp=500 --duration=10 --exportTimes=t.json\n",
    .run = run_bench,
};
