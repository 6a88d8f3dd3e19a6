/* SPDX-License-Identifier: Apache-2.0
 *
 * Time one network: build an engine, run it, print one JSON object a batch and precision.
 * Set OMP_NUM_THREADS for the number of threads on the host.
 *
 *     net_time [-d DEVICE] [-b BATCH,...] [-p PRECISION,...] [-m MATH]
 *              [-l] [-t] [-v] [-c COST_FILE] [-D NAME=VALUE]... [-s SECTION.KEY=VALUE]...
 *              [-n RUNS] [-w WARMUP_RUNS] [-i RAW_INPUT] [-o RAW_OUTPUT] NETWORK.ini
 *
 * -b gives the network's variable `batch`, -p its build.precision; -l adds a table of the
 * layers on stderr, -v what a build logs, twice for more; -c measures the costs that the
 * file does not hold and adds them. With -t every line on stdin has device_ms measured
 * again, as an object of its own, so that programs can take turns. RAW_INPUT holds the
 * bytes of the first input as bound (without it the inputs are random); the bytes of the
 * first output after the last run go to RAW_OUTPUT.
 *
 *   median_ms         of whole runs, from the call to the result, as the host sees it
 *   device_ms         median of runs enqueued one behind the other, between events
 *   enqueue_us        median time of the host in enqueue, nothing else on the stream
 *   predicted_ms      timed in place (with -c), or as price_ms
 *   price_ms          the sum of the prices that the plan was made from
 *   plain_device_ms, plain_enqueue_us: the same kernel by kernel, where graphs are had
 *   reformats         kernels of the plan that change a format; inner_reformats: those
 *                     that stand between two layers, not at an input or output
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/net_layers.h"
#include "bench/samples.h"
#include "registry/math/mode.h"
#include "engine/engine.h"
#include "planner/planner.h"

enum { MAX_LIST = 32, MAX_RUNS = 1000000, MAX_CASES = 8 };

struct arguments {
    const char *path, *input, *output, *device, *costs;
    const char *define[MAX_LIST + 1], *set[MAX_LIST + 1];
    const char *batches[MAX_CASES], *precisions[MAX_CASES];
    size_t n_define, n_set, n_batches, n_precisions;
    int runs, warmup, math;
    int layers, turns, log;
};

struct session {
    strata_handle *handle;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
};

struct times {
    double median_ms, min_ms, p90_ms, device_ms, enqueue_us;
    double plain_device_ms, plain_enqueue_us;
};

static int usage(void)
{
    fputs("usage: net_time [-d DEVICE] [-b BATCH,...] [-p PRECISION,...]\n"
          "                [-m MATH] [-l] [-t] [-v] [-c COST_FILE]\n"
          "                [-D NAME=VALUE]... [-s SECTION.KEY=VALUE]...\n"
          "                [-n RUNS] [-w WARMUP_RUNS]\n"
          "                [-i RAW_INPUT] [-o RAW_OUTPUT] NETWORK.ini\n",
          stderr);
    return 2;
}

static int count_from(const char *text, int *out)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < 0 || v > MAX_RUNS)
        return -1;
    *out = (int)v;
    return 0;
}

static int append(const char **list, size_t *n, const char *text)
{
    if (*n == MAX_LIST)
        return -1;
    list[(*n)++] = text;
    return 0;
}

/* "1,8,32": the commas become ends. */
static int split(const char *list[MAX_CASES], size_t *n, char *text)
{
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        if (*n == MAX_CASES)
            return -1;
        list[(*n)++] = word;
    }
    return *n ? 0 : -1;
}

static int parse(struct arguments *a, int argc, char **argv)
{
    int c, bad = 0;
    *a = (struct arguments){.runs = 100, .warmup = 10};
    while (!bad && (c = getopt(argc, argv, "d:b:p:m:ltvc:D:s:n:w:i:o:")) != -1)
        switch (c) {
        case 'd':
            a->device = optarg;
            break;
        case 'b':
            bad = split(a->batches, &a->n_batches, optarg);
            break;
        case 'p':
            bad = split(a->precisions, &a->n_precisions, optarg);
            break;
        case 'm':
            bad = !math_from_name(optarg, &a->math);
            break;
        case 'l':
            a->layers = 1;
            break;
        case 't':
            a->turns = 1;
            break;
        case 'v':
            strata_set_logger(NULL, NULL, a->log++ ? STRATA_LOG_DEBUG : STRATA_LOG_INFO);
            break;
        case 'c':
            a->costs = optarg;
            break;
        case 'D':
            bad = append(a->define, &a->n_define, optarg);
            break;
        case 's':
            bad = append(a->set, &a->n_set, optarg);
            break;
        case 'n':
            bad = count_from(optarg, &a->runs) || a->runs == 0;
            break;
        case 'w':
            bad = count_from(optarg, &a->warmup);
            break;
        case 'i':
            a->input = optarg;
            break;
        case 'o':
            a->output = optarg;
            break;
        default:
            bad = 1;
        }
    a->path = argv[optind];
    return bad || optind != argc - 1 ? -1 : 0;
}

/* ---- one engine ------------------------------------------------------------------ */

/* Measured costs are kept in a file; those it holds are not measured again. */
static int keep_costs(strata_network *n, const char *path, strata_error *err)
{
    if (!path)
        return STRATA_OK;
    n->build.costs.kind = COSTS_MEASURE;
    free(n->build.costs.save);
    n->build.costs.save = strdup(path);
    return n->build.costs.save ? STRATA_OK : error_no_memory(err, 0, "a path");
}

/* batch and precision may be NULL: as the network says. */
static int session_open(struct session *s, const struct arguments *a, const char *batch,
                        const char *precision, strata_error *err)
{
    int st;
    char batch_text[64], precision_text[64];
    struct arguments all = *a;
    snprintf(batch_text, sizeof batch_text, "batch=%s", batch ? batch : "");
    snprintf(precision_text, sizeof precision_text, "build.precision=%s",
             precision ? precision : "");
    if (batch)
        all.define[all.n_define++] = batch_text;
    if (precision)
        all.set[all.n_set++] = precision_text;
    const strata_network_options options = {.struct_size = sizeof options,
                                            .define = all.define,
                                            .n_define = all.n_define,
                                            .set = all.set,
                                            .n_set = all.n_set};
    if ((st = strata_create(&s->handle, a->device, err)) ||
        (st = strata_set_math_mode(s->handle, a->math, err)) ||
        (st = strata_registry_create(&s->registry, NULL, err)) ||
        (st = strata_network_load(&s->network, a->path, s->registry, &options, err)) ||
        (st = keep_costs(s->network, a->costs, err)) ||
        (st = strata_engine_build(&s->engine, s->handle, s->network, err)))
        return st;
    return strata_context_create(&s->context, s->engine, s->handle, err);
}

static void session_close(struct session *s)
{
    strata_context_destroy(s->context);
    strata_engine_destroy(s->engine);
    strata_network_destroy(s->network);
    strata_registry_destroy(s->registry);
    strata_destroy(s->handle);
}

/* The first binding that is (or is not) an input; every network has one of each. */
static int first_binding(const struct session *s, int is_input, strata_binding *b,
                         strata_error *err)
{
    for (int i = 0; i < strata_engine_bindings(s->engine); i++)
        if (!strata_engine_binding(s->engine, i, b, err) && b->is_input == is_input)
            return i;
    return -1;
}

static int read_input(const struct session *s, const char *path, strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    int index = first_binding(s, 1, &b, err);
    if (index < 0)
        return -1;
    char *data = malloc((size_t)b.bytes + 1);
    FILE *f = fopen(path, "rb");
    int bad = !f || !data || fread(data, 1, (size_t)b.bytes + 1, f) != (size_t)b.bytes;
    if (f)
        fclose(f);
    if (bad)
        fprintf(stderr, "net_time: %s does not hold the %lld bytes of '%s' (%s)\n", path,
                (long long)b.bytes, b.name, b.format);
    else
        bad = strata_copy_in(s->context, index, data, err);
    free(data);
    return bad;
}

/* Values in [-1, 1) for floats, small numbers for bytes and INT64, 0 for INT32. */
static int random_input(const struct session *s, int index, const strata_binding *b,
                        strata_error *err)
{
    int64_t n = strata_desc_count(&b->desc);
    strata_desc linear;
    uint64_t state = 1;
    float *values = malloc((size_t)n * sizeof *values);
    void *data = calloc(1, (size_t)b->bytes);
    int st = values && data ? STRATA_OK : STRATA_ENOMEM;
    float scale = b->desc.dtype <= STRATA_FP16    ? 1
                  : b->desc.dtype == STRATA_INT32 ? 0
                                                  : 8;
    for (int64_t i = 0; i < n && !st; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        values[i] = scale * ((float)(state >> 40) / (float)(1 << 23) - 1);
    }
    if (!st)
        st = strata_desc_format(&linear, "fp32:nchw", b->desc.dims, b->desc.rank, err);
    if (!st)
        st = strata_reformat(&b->desc, data, &linear, values, err);
    if (!st)
        st = strata_copy_in(s->context, index, data, err);
    free(values);
    free(data);
    return st;
}

static int random_inputs(const struct session *s, strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    int st = STRATA_OK;
    for (int i = 0; i < strata_engine_bindings(s->engine) && !st; i++)
        if (!(st = strata_engine_binding(s->engine, i, &b, err)) && b.is_input)
            st = random_input(s, i, &b, err);
    return st;
}

static int write_output(const struct session *s, const char *path, strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    int index = first_binding(s, 0, &b, err);
    if (index < 0)
        return -1;
    char *data = malloc((size_t)b.bytes);
    int bad = !data || strata_copy_out(s->context, index, data, err);
    FILE *f = bad ? NULL : fopen(path, "wb");
    bad = !f || fwrite(data, 1, (size_t)b.bytes, f) != (size_t)b.bytes;
    if (f && fclose(f))
        bad = 1;
    if (bad)
        fprintf(stderr, "net_time: cannot write %s\n", path);
    free(data);
    return bad;
}

/* ---- timing -------------------------------------------------------------------- */

static int time_runs(const struct session *s, const struct arguments *a, double *ms,
                     struct times *t, strata_error *err)
{
    int st = strata_context_prepare(s->context, err);
    for (int i = -a->warmup; i < a->runs && !st; i++) {
        double begin = now_ms();
        st = strata_context_run(s->context, err);
        if (i >= 0)
            ms[i] = now_ms() - begin;
    }
    t->median_ms = median(ms, (size_t)a->runs);
    t->min_ms = ms[0];
    t->p90_ms = ms[(a->runs - 1) * 9 / 10];
    return st;
}

static int time_enqueue(const struct session *s, const struct arguments *a, double *us,
                        double *out, strata_error *err)
{
    int st = strata_context_prepare(s->context, err);
    for (int i = -a->warmup; i < a->runs && !st; i++) {
        double begin = now_ms();
        st = strata_context_enqueue(s->context, NULL, err);
        if (i >= 0)
            us[i] = (now_ms() - begin) * 1e3;
        if (!st)
            st = strata_context_wait(s->context, err);
    }
    *out = median(us, (size_t)a->runs);
    return st;
}

/* Runs one behind the other, an event between each two. */
static int time_device(const struct session *s, const struct arguments *a, double *ms,
                       double *out, strata_error *err)
{
    enum { QUEUED = 20 };
    strata_event *events[QUEUED + 1] = {NULL};
    strata_stream *stream = strata_get_stream(s->handle);
    int st = strata_context_prepare(s->context, err), n = 0;
    for (int i = 0; i <= QUEUED && !st; i++)
        st = strata_event_create(&events[i], s->handle, err);
    while (n < a->runs && !st) {
        st = strata_event_record(events[0], stream, err);
        for (int i = 0; i < QUEUED && !st; i++)
            if (!(st = strata_context_enqueue(s->context, NULL, err)))
                st = strata_event_record(events[i + 1], stream, err);
        if (!st)
            st = strata_context_wait(s->context, err);
        for (int i = 0; i < QUEUED && n < a->runs && !st; i++)
            st = strata_event_elapsed(&ms[n++], events[i], events[i + 1], err);
    }
    for (int i = 0; i <= QUEUED; i++)
        strata_event_destroy(events[i]);
    *out = median(ms, (size_t)a->runs);
    return st;
}

static int time_all(const struct session *s, const struct arguments *a, struct times *t,
                    strata_error *err)
{
    double *samples = calloc((size_t)a->runs, sizeof *samples);
    if (!samples)
        return STRATA_ENOMEM;
    int st = time_runs(s, a, samples, t, err);
    if (!st)
        st = time_device(s, a, samples, &t->device_ms, err);
    if (!st)
        st = time_enqueue(s, a, samples, &t->enqueue_us, err);
    if (!st)
        st = strata_context_use_graph(s->context, 0, err);
    if (!st)
        st = time_device(s, a, samples, &t->plain_device_ms, err);
    if (!st)
        st = time_enqueue(s, a, samples, &t->plain_enqueue_us, err);
    free(samples);
    return st;
}

/* The graph again, whenever a line comes. */
static int take_turns(const struct session *s, const struct arguments *a,
                      strata_error *err)
{
    char line[16];
    double ms = 0;
    double *samples = calloc((size_t)a->runs, sizeof *samples);
    int st = samples ? strata_context_use_graph(s->context, 1, err) : STRATA_ENOMEM;
    while (!st && fgets(line, sizeof line, stdin))
        if (!(st = time_device(s, a, samples, &ms, err))) {
            printf("{\"device_ms\": %.4f}\n", ms);
            fflush(stdout);
        }
    free(samples);
    return st;
}

static void count_reformats(const strata_engine *e, int *all, int *inner)
{
    const struct execution *x = e->execution;
    *all = *inner = 0;
    for (size_t i = 0; i < x->n_steps; i++) {
        const struct execution_step *step = &x->steps[i];
        if (step->kind != STEP_REFORMAT)
            continue;
        *all += 1;
        *inner += x->values[step->from].binding < 0 && x->values[step->to].binding < 0;
    }
}

static void print_times(const struct session *s, const struct arguments *a,
                        const char *batch, const char *precision, const struct times *t,
                        double build_ms)
{
    struct rusage usage = {0};
    strata_memory_stats memory = {.struct_size = sizeof memory};
    int reformats, inner;
    count_reformats(s->engine, &reformats, &inner);
    getrusage(RUSAGE_SELF, &usage);
    strata_get_memory_stats(s->handle, &memory, NULL);
    printf("{\"device\": \"%s\", ", strata_device_name(s->handle));
    if (batch)
        printf("\"batch\": %s, ", batch);
    if (precision)
        printf("\"precision\": \"%s\", ", precision);
    printf("\"math\": \"%s\", \"median_ms\": %.4f, \"min_ms\": %.4f, "
           "\"p90_ms\": %.4f, \"device_ms\": %.4f, \"enqueue_us\": %.2f, "
           "\"plain_device_ms\": %.4f, \"plain_enqueue_us\": %.2f, ",
           math_name(a->math), t->median_ms, t->min_ms, t->p90_ms, t->device_ms,
           t->enqueue_us, t->plain_device_ms, t->plain_enqueue_us);
    printf("\"reformats\": %d, \"inner_reformats\": %d, ", reformats, inner);
    printf("\"predicted_ms\": %.4f, \"price_ms\": %.4f, \"runs\": %d, "
           "\"build_ms\": %.2f, \"weight_bytes\": %llu, "
           "\"arena_bytes\": %llu, \"device_bytes\": %llu, \"peak_rss_bytes\": %llu}\n",
           (double)execution_predicts(s->engine->execution) / (PLAN_UNIT_PER_NS * 1e6),
           (double)s->engine->execution->cost / (PLAN_UNIT_PER_NS * 1e6), a->runs,
           build_ms, (unsigned long long)strata_engine_weight_bytes(s->engine),
           (unsigned long long)strata_engine_arena_bytes(s->engine),
           (unsigned long long)memory.current_bytes,
           (unsigned long long)usage.ru_maxrss * 1024);
    fflush(stdout);
}

static int run_case(const struct arguments *a, const char *batch, const char *precision)
{
    static strata_error err;
    struct session s = {0};
    struct times t = {0};
    memset(&err, 0, sizeof err);
    double begin = now_ms();
    int st = session_open(&s, a, batch, precision, &err);
    double build_ms = now_ms() - begin;
    if (!st)
        st = a->input ? read_input(&s, a->input, &err) : random_inputs(&s, &err);
    if (!st)
        st = time_all(&s, a, &t, &err);
    if (!st && a->output)
        st = write_output(&s, a->output, &err);
    if (!st)
        print_times(&s, a, batch, precision, &t, build_ms);
    if (!st && a->layers)
        st = net_layers_print(s.engine, s.context, &err);
    if (!st && a->turns)
        st = take_turns(&s, a, &err);
    if (st && err.length)
        fprintf(stderr, "%s\n", err.message);
    session_close(&s);
    return st ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct arguments a;
    int failed = 0;
    if (parse(&a, argc, argv))
        return usage();
    for (size_t p = 0; p < (a.n_precisions ? a.n_precisions : 1); p++)
        for (size_t b = 0; b < (a.n_batches ? a.n_batches : 1); b++)
            failed |= run_case(&a, a.n_batches ? a.batches[b] : NULL,
                               a.n_precisions ? a.precisions[p] : NULL);
    return failed;
}
