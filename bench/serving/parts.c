/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run of parts takes from memory as a server has it, beside the same from memory
 * that copies fastest: contexts that each run a batch again and again, as instances of a
 * model do, in turns with the other kind of memory; on the first device, on the first
 * two, and so on. Medians of ms a run, and rows a second.
 *
 *   bench/serving/parts NET.engine DEVICE,... [ROWS [PARTS [CONTEXTS [SECONDS [PAUSE]]]]]
 *
 * The engine's outputs and inputs have the batch as their first dim; a batch is of PARTS
 * parts of ROWS rows. CONTEXTS are a device's. Between runs a context sleeps PAUSE us, as
 * it does where one client waits for each answer; that is no part of a run's time.
 */
#include <strata/parts.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    MOST_PARTS = 64,
    MOST_BINDINGS = 8,
    MOST_DEVICES = 8,
    MOST_CONTEXTS = 8, /* of a device */
    MOST_LANES = MOST_DEVICES * MOST_CONTEXTS,
    MOST_RUNS = 100000
};

struct site {
    const char *device;
    strata_handle *handle;
    strata_engine *engine;
};

struct lane {
    pthread_t thread;
    strata_handle *handle;
    strata_context *context;
    strata_part parts[MOST_PARTS];
    strata_memory memory[MOST_PARTS][2 * MOST_BINDINGS];
    int n;
    double seconds, *ms; /* of each run */
    long pause_us;
    size_t runs;
    strata_error err;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* As a region that a client shares with the server, or pinned. */
static void *take_memory(const struct lane *l, size_t bytes, bool pinned)
{
    if (pinned)
        return strata_host_alloc(l->handle, bytes, NULL);
    void *data =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static int fill_parts(struct lane *l, const strata_engine *e, int64_t rows, bool pinned)
{
    const int64_t batch = strata_engine_batch(e);
    const int most = strata_engine_bindings(e);
    for (int k = 0; k < l->n; k++) {
        strata_memory *m = l->memory[k];
        int in = 0, out = 0;
        for (int i = 0; i < most; i++) {
            strata_binding b = {.struct_size = sizeof b};
            int status = strata_engine_binding(e, i, &b, &l->err);
            const size_t bytes = (size_t)b.bytes / (size_t)batch * (size_t)rows;
            void *data = status == STRATA_OK ? take_memory(l, bytes, pinned) : NULL;
            if (!data || in == MOST_BINDINGS || out == MOST_BINDINGS)
                return STRATA_ENOMEM;
            memset(data, 0, bytes);
            m[b.is_input ? in++ : MOST_BINDINGS + out++] =
                (strata_memory){data, bytes, STRATA_MEMORY_HOST, 0};
        }
        l->parts[k] = (strata_part){.struct_size = sizeof(strata_part),
                                    .rows = rows,
                                    .inputs = m,
                                    .outputs = m + MOST_BINDINGS};
    }
    return STRATA_OK;
}

static void *run_lane(void *arg)
{
    struct lane *l = arg;
    const double begin = now();
    const struct timespec pause = {.tv_sec = l->pause_us / 1000000,
                                   .tv_nsec = l->pause_us % 1000000 * 1000};
    double last = begin;
    while (last - begin < l->seconds && l->runs < MOST_RUNS) {
        if (strata_context_run_parts(l->context, l->parts, (size_t)l->n, &l->err) !=
            STRATA_OK)
            break;
        const double end = now();
        l->ms[l->runs++] = (end - last) * 1e3;
        last = end;
        if (l->pause_us > 0) {
            nanosleep(&pause, NULL);
            last = now();
        }
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the first n lanes, as many on each device. */
static int measure(struct lane *const *lanes, int n, int devices, int64_t rows,
                   const char *name)
{
    size_t runs = 0;
    const double begin = now();
    for (int i = 0; i < n; i++)
        lanes[i]->runs = 0;
    for (int i = 1; i < n; i++)
        if (pthread_create(&lanes[i]->thread, NULL, run_lane, lanes[i]) != 0)
            return 1;
    run_lane(lanes[0]);
    for (int i = 1; i < n; i++)
        pthread_join(lanes[i]->thread, NULL);
    const double took = now() - begin;
    for (int i = 0; i < n; i++) {
        runs += lanes[i]->runs;
        if (lanes[i]->err.status != STRATA_OK || lanes[i]->runs == 0) {
            fprintf(stderr, "parts: %s\n", lanes[i]->err.message);
            return 1;
        }
    }
    qsort(lanes[0]->ms, lanes[0]->runs, sizeof(double), compare);
    printf(
        "%d devices, %d contexts each, %d parts of %lld rows, %s memory: %.3f ms a run, "
        "%.0f rows/s\n",
        devices, n / devices, lanes[0]->n, (long long)rows, name,
        lanes[0]->ms[lanes[0]->runs / 2],
        (double)runs * (double)(rows * lanes[0]->n) / took);
    return 0;
}

static int open_lane(struct lane *l, const struct site *s, strata_error *err)
{
    l->ms = calloc(MOST_RUNS, sizeof *l->ms);
    int status = l->ms ? strata_create(&l->handle, s->device, err) : STRATA_ENOMEM;
    return status == STRATA_OK
               ? strata_context_create(&l->context, s->engine, l->handle, err)
               : status;
}

static int open_sites(struct site *sites, int *n, const char *path, char *devices,
                      strata_error *err)
{
    strata_registry *registry = NULL;
    char *rest = devices;
    int status = strata_registry_create(&registry, NULL, err);
    for (char *one;
         status == STRATA_OK && *n < MOST_DEVICES && (one = strtok_r(rest, ",", &rest));
         ++*n) {
        struct site *s = &sites[*n];
        s->device = one;
        status = strata_create(&s->handle, one, err);
        if (status == STRATA_OK)
            status = strata_engine_load(&s->engine, s->handle, registry, path, err);
    }
    return status;
}

/* On the first device, the first two and so on; lanes are those of all devices' first
 * contexts, then of their second. */
static int measure_all(struct lane *lanes, const struct site *sites, int devices,
                       int contexts, int64_t rows, bool pinned, strata_error *err)
{
    struct lane *used[MOST_LANES];
    int status = STRATA_OK;
    for (int i = 0; i < devices * contexts && status == STRATA_OK; i++)
        if ((status = fill_parts(&lanes[i], sites[i % devices].engine, rows, pinned)))
            *err = lanes[i].err;
    for (int d = 1; d <= devices && status == STRATA_OK; d++)
        for (int c = 1; c <= contexts && status == STRATA_OK; c++) {
            for (int i = 0; i < d * c; i++)
                used[i] = &lanes[i / d * devices + i % d];
            status = measure(used, d * c, d, rows, pinned ? "pinned" : "shared");
        }
    return status;
}

int main(int argc, char **argv)
{
    static struct lane lanes[MOST_LANES];
    struct site sites[MOST_DEVICES] = {{0}};
    strata_error err = {0};
    const int64_t rows = argc > 3 ? atoll(argv[3]) : 4;
    const int n = argc > 4 ? atoi(argv[4]) : 8;
    const int contexts = argc > 5 ? atoi(argv[5]) : 2;
    const double seconds = argc > 6 ? atof(argv[6]) : 2;
    const long pause_us = argc > 7 ? atol(argv[7]) : 0;
    int devices = 0;
    if (argc < 3 || rows < 1 || n < 1 || n > MOST_PARTS || contexts < 1 ||
        contexts > MOST_CONTEXTS || seconds <= 0 || pause_us < 0) {
        fputs("usage: parts NET.engine DEVICE,... [ROWS [PARTS [CONTEXTS [SECONDS "
              "[PAUSE]]]]]\n",
              stderr);
        return 2;
    }
    int status = open_sites(sites, &devices, argv[1], argv[2], &err);
    for (int i = 0; i < contexts * devices && status == STRATA_OK; i++) {
        lanes[i] = (struct lane){.n = n, .seconds = seconds, .pause_us = pause_us};
        status = open_lane(&lanes[i], &sites[i % devices], &err);
    }
    for (int kind = 0; kind < 2 && status == STRATA_OK; kind++)
        status = measure_all(lanes, sites, devices, contexts, rows, kind == 0, &err);
    if (status != STRATA_OK)
        fprintf(stderr, "parts: %s\n", err.message);
    return status != STRATA_OK; /* the process's end gives all memory back */
}
