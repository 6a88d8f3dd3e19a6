/* SPDX-License-Identifier: Apache-2.0
 *
 * What one batcher serves over one device and over several: threads that submit full
 * requests as soon as one is done, from memory that copies fastest. Rows a second each,
 * and the ratio of the last to the first.
 *
 *   bench/serving/batcher NET.engine DEVICE,... [ROWS [IN_FLIGHT [SECONDS]]]
 *
 * IN_FLIGHT requests of ROWS rows wait or run for each device. First the first device
 * alone, then the first two, and so on.
 */
#include <strata/batcher.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_DEVICES = 16, MAX_BINDINGS = 16, MAX_FLIGHT = 64 };

struct site {
    strata_handle *handle;
    strata_engine *engine;
};

struct request {
    const void *in[MAX_BINDINGS];
    void *out[MAX_BINDINGS];
    strata_batcher *batcher;
    strata_request_options options;
};

static atomic_long done_rows;
static atomic_int failed, stopped, under_way;
static strata_error first_error;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* One that is done goes again. */
static void again(void *user, const strata_error *err)
{
    struct request *r = user;
    strata_error why;
    if (err->status != STRATA_OK && !atomic_exchange(&failed, 1))
        first_error = *err;
    atomic_fetch_add(&done_rows, r->options.rows);
    if (atomic_load(&stopped) || atomic_load(&failed) ||
        strata_batcher_submit(r->batcher, NULL, &r->options, &why) != STRATA_OK)
        atomic_fetch_sub(&under_way, 1);
}

static int open_request(struct request *r, strata_batcher *b, const struct site *s,
                        int64_t rows, strata_error *err)
{
    int n_in = 0, n_out = 0;
    *r = (struct request){.batcher = b};
    for (int i = 0; i < strata_engine_bindings(s->engine); i++) {
        strata_binding binding = {.struct_size = sizeof binding};
        int status = strata_engine_binding(s->engine, i, &binding, err);
        void *memory = status == STRATA_OK
                           ? strata_host_alloc(s->handle, (size_t)binding.bytes, err)
                           : NULL;
        if (!memory || n_in == MAX_BINDINGS || n_out == MAX_BINDINGS)
            return STRATA_ENOMEM;
        memset(memory, 0, (size_t)binding.bytes);
        if (binding.is_input)
            r->in[n_in++] = memory;
        else
            r->out[n_out++] = memory;
    }
    r->options = (strata_request_options){.struct_size = sizeof r->options,
                                          .rows = rows,
                                          .inputs = r->in,
                                          .outputs = r->out,
                                          .done = again,
                                          .user = r};
    return STRATA_OK;
}

static void pause_for(double seconds)
{
    const struct timespec t = {(time_t)seconds,
                               (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* Rows a second; negative: it failed. */
static double measure(struct site *sites, int n, int64_t rows, int flight, double seconds)
{
    static struct request requests[MAX_DEVICES * MAX_FLIGHT];
    const strata_engine *engines[MAX_DEVICES];
    strata_batcher *b = NULL;
    strata_error err = {0};
    for (int i = 0; i < n; i++)
        engines[i] = sites[i].engine;
    int status = strata_batcher_create_over(&b, engines, n, NULL, &err);
    for (int i = 0; i < n * flight && status == STRATA_OK; i++)
        status = open_request(&requests[i], b, &sites[i % n], rows, &err);
    atomic_store(&stopped, 0);
    for (int i = 0; i < n * flight && status == STRATA_OK; i++) {
        atomic_fetch_add(&under_way, 1);
        status = strata_batcher_submit(b, NULL, &requests[i].options, &err);
    }
    pause_for(1); /* warm */
    const long before = atomic_load(&done_rows);
    const double begin = now();
    pause_for(seconds);
    const double rate = (double)(atomic_load(&done_rows) - before) / (now() - begin);
    atomic_store(&stopped, 1);
    while (status == STRATA_OK && atomic_load(&under_way) > 0)
        pause_for(0.001);
    strata_batcher_destroy(b);
    if (status != STRATA_OK || atomic_load(&failed)) {
        fprintf(stderr, "batcher: %s\n",
                status != STRATA_OK ? err.message : first_error.message);
        return -1;
    }
    return rate;
}

static int open_sites(struct site *sites, strata_registry **registry, const char *path,
                      char *devices)
{
    strata_error err = {0};
    char *rest = devices;
    int n = 0, status = strata_registry_create(registry, NULL, &err);
    for (char *one;
         status == STRATA_OK && n < MAX_DEVICES && (one = strtok_r(rest, ",", &rest));
         n++) {
        status = strata_create(&sites[n].handle, one, &err);
        if (status == STRATA_OK)
            status = strata_engine_load(&sites[n].engine, sites[n].handle, *registry,
                                        path, &err);
    }
    if (status != STRATA_OK)
        fprintf(stderr, "batcher: %s\n", err.message);
    return status == STRATA_OK ? n : 0;
}

int main(int argc, char **argv)
{
    struct site sites[MAX_DEVICES] = {{0}};
    strata_registry *registry = NULL;
    const int flight = argc > 4 ? atoi(argv[4]) : 4;
    const double seconds = argc > 5 ? atof(argv[5]) : 5;
    double first = 0;
    if (argc < 3 || flight < 1 || flight > MAX_FLIGHT || seconds <= 0) {
        fputs("usage: batcher NET.engine DEVICE,... [ROWS [IN_FLIGHT [SECONDS]]]\n",
              stderr);
        return 2;
    }
    const int n = open_sites(sites, &registry, argv[1], argv[2]);
    int code = n > 0 ? 0 : 1;
    for (int i = 1; i <= n && code == 0; i++) {
        const int64_t rows =
            argc > 3 ? atoll(argv[3]) : strata_engine_batch(sites[0].engine);
        const double rate = measure(sites, i, rows, flight, seconds);
        first = i == 1 ? rate : first;
        code = rate < 0;
        if (code == 0)
            printf("%d devices: %.0f rows/s, %.3f times one\n", i, rate, rate / first);
    }
    return code; /* the process's end gives all memory back */
}
