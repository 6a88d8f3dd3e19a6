/* SPDX-License-Identifier: Apache-2.0
 *
 * Time one network: build an engine, run it, print one JSON object. Set OMP_NUM_THREADS
 * for the number of threads.
 *
 *     net_time [-D NAME=VALUE]... [-s SECTION.KEY=VALUE]... [-n RUNS] [-w WARMUP_RUNS]
 *              [-i RAW_INPUT] [-o RAW_OUTPUT] NETWORK.ini
 *
 * RAW_INPUT holds the bytes of the first input as bound (zeros if not given); the bytes
 * of the first output after the last run go to RAW_OUTPUT.
 */
#include <strata/strata.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LIST = 32, MAX_RUNS = 1000000 };

struct arguments {
    const char *path, *input, *output;
    const char *define[MAX_LIST], *set[MAX_LIST];
    size_t n_define, n_set;
    int runs, warmup;
};

struct session {
    strata_handle *handle;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
};

static int usage(void)
{
    fputs("usage: net_time [-D NAME=VALUE]... [-s SECTION.KEY=VALUE]... [-n RUNS]\n"
          "                [-w WARMUP_RUNS] [-i RAW_INPUT] [-o RAW_OUTPUT] NETWORK.ini\n",
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

static int parse(struct arguments *a, int argc, char **argv)
{
    int c, bad = 0;
    *a = (struct arguments){.runs = 100, .warmup = 10};
    while (!bad && (c = getopt(argc, argv, "D:s:n:w:i:o:")) != -1)
        switch (c) {
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

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int session_open(struct session *s, const struct arguments *a, strata_error *err)
{
    int st;
    const strata_network_options options = {.struct_size = sizeof options,
                                            .define = a->define,
                                            .n_define = a->n_define,
                                            .set = a->set,
                                            .n_set = a->n_set};
    if ((st = strata_create(&s->handle, "host", err)) ||
        (st = strata_registry_create(&s->registry, NULL, err)) ||
        (st = strata_network_load(&s->network, a->path, s->registry, &options, err)) ||
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
    strata_binding b;
    int index = first_binding(s, 1, &b, err);
    if (index < 0)
        return -1;
    char *data = strata_context_data(s->context, index);
    memset(data, 0, (size_t)b.bytes);
    if (!path)
        return 0;
    FILE *f = fopen(path, "rb");
    int bad =
        !f || fread(data, 1, (size_t)b.bytes, f) != (size_t)b.bytes || fgetc(f) != EOF;
    if (f)
        fclose(f);
    if (bad)
        fprintf(stderr, "net_time: %s does not hold the %lld bytes of '%s' (%s)\n", path,
                (long long)b.bytes, b.name, b.format);
    return bad;
}

static int write_output(const struct session *s, const char *path, strata_error *err)
{
    strata_binding b;
    int index = first_binding(s, 0, &b, err);
    if (index < 0)
        return -1;
    FILE *f = fopen(path, "wb");
    const char *data = strata_context_data(s->context, index);
    int bad = !f || fwrite(data, 1, (size_t)b.bytes, f) != (size_t)b.bytes;
    if (f && fclose(f))
        bad = 1;
    if (bad)
        fprintf(stderr, "net_time: cannot write %s\n", path);
    return bad;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const struct session *s, double *ms, int n, double build_ms)
{
    struct rusage usage = {0};
    qsort(ms, (size_t)n, sizeof *ms, by_value);
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"median_ms\": %.4f, \"min_ms\": %.4f, \"p90_ms\": %.4f, \"runs\": %d, "
           "\"build_ms\": %.2f, \"weight_bytes\": %llu, \"arena_bytes\": %llu, "
           "\"peak_rss_bytes\": %llu}\n",
           (ms[(n - 1) / 2] + ms[n / 2]) / 2, ms[0], ms[(n - 1) * 9 / 10], n, build_ms,
           (unsigned long long)strata_engine_weight_bytes(s->engine),
           (unsigned long long)strata_engine_arena_bytes(s->engine),
           (unsigned long long)usage.ru_maxrss * 1024);
}

static int time_runs(const struct session *s, const struct arguments *a, double *ms,
                     strata_error *err)
{
    int st = STRATA_OK;
    for (int i = -a->warmup; i < a->runs && !st; i++) {
        double begin = now_ms();
        st = strata_context_run(s->context, err);
        if (i >= 0)
            ms[i] = now_ms() - begin;
    }
    return st;
}

int main(int argc, char **argv)
{
    static strata_error err;
    struct arguments a;
    struct session s = {0};
    if (parse(&a, argc, argv))
        return usage();
    double begin = now_ms();
    double *ms = calloc((size_t)a.runs, sizeof *ms);
    int st = ms ? session_open(&s, &a, &err) : STRATA_ENOMEM;
    double build_ms = now_ms() - begin;
    if (!st)
        st = read_input(&s, a.input, &err);
    if (!st)
        st = time_runs(&s, &a, ms, &err);
    if (!st && a.output)
        st = write_output(&s, a.output, &err);
    if (!st)
        print_times(&s, ms, a.runs, build_ms);
    else if (err.length)
        fprintf(stderr, "%s\n", err.message);
    session_close(&s);
    free(ms);
    return st ? 1 : 0;
}
