/* SPDX-License-Identifier: Apache-2.0
 *
 * How long an engine file takes to its first result, step by step:
 *
 *   engine_load NET.engine [DEVICE] [REPEAT]
 *
 * The first row is the process's first load, with plugins and device still to be opened;
 * the others load it again. The sum is up to the first result; the second run, behind it,
 * tells what the first one needs more than its work. Then a last load is watched: where
 * the host's time goes in it, and in another with its modules open. The last lines time
 * what a load cannot do without: copying the weights to the device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/device_times.h"
#include "engine/file/stored.h"
#include "planner/cost/progress.h"

enum { DEVICE, PLUGINS, READ, LOAD, CONTEXT, FIRST, SECOND, STEPS };
static const char *const names[STEPS] = {
    [DEVICE] = "device ms", [PLUGINS] = "plugins", [READ] = "read, hash",
    [LOAD] = "load",        [CONTEXT] = "context", [FIRST] = "first run",
    [SECOND] = "second run"};

struct state {
    strata_handle *handle;
    strata_registry *registry;
    struct engine_file file;
    strata_engine *engine;
    strata_context *context;
};

static void release(struct state *s)
{
    strata_context_destroy(s->context);
    strata_engine_destroy(s->engine);
    strata_registry_destroy(s->registry);
    strata_destroy(s->handle);
}

static int step(struct state *s, int i, const char *path, const char *device,
                strata_error *err)
{
    switch (i) {
    case DEVICE:
        return strata_create(&s->handle, device, err);
    case PLUGINS:
        return strata_registry_create(&s->registry, NULL, err);
    case READ:
        return engine_file_open(&s->file, path, err);
    case LOAD:
        return engine_load_file(&s->engine, s->handle, s->registry, &s->file, path, err);
    case CONTEXT:
        return strata_context_create(&s->context, s->engine, s->handle, err);
    default:
        return strata_context_run(s->context, err);
    }
}

/* Milliseconds of each step; the state is the caller's to release. */
static int load_once(struct state *s, const char *path, const char *device,
                     double ms[STEPS], strata_error *err)
{
    *s = (struct state){0};
    for (int i = 0; i < STEPS; i++) {
        double start = progress_now();
        int status = step(s, i, path, device, err);
        if (status != STRATA_OK)
            return status;
        ms[i] = (progress_now() - start) * 1e3;
    }
    return STRATA_OK;
}

static double sum(const double ms[STEPS])
{
    double all = 0;
    for (int i = 0; i <= FIRST; i++)
        all += ms[i];
    return all;
}

static void print_row(const char *name, const double ms[STEPS])
{
    printf("%-8s", name);
    for (int i = 0; i <= FIRST; i++)
        printf(" %11.2f", ms[i]);
    printf(" %11.2f %11.2f\n", sum(ms), ms[SECOND]);
}

/* As many bytes as the weights, from memory that copies fastest to the device; ms. */
static double time_copy(strata_handle *h, size_t bytes)
{
    const struct device_ops *ops = h->device->ops;
    void *host = strata_host_alloc(h, bytes, NULL);
    void *there = allocator_get(&h->allocator, bytes, "weights", NULL);
    double best = 0;
    for (int i = 0; i < 5 && host && there; i++) {
        double start = progress_now();
        if (ops->copy(h->stream, there, host, bytes, COPY_TO_DEVICE, NULL) != STRATA_OK ||
            ops->stream_synchronize(h->stream, NULL) != STRATA_OK)
            break;
        double ms = (progress_now() - start) * 1e3;
        best = i == 0 || ms < best ? ms : best;
    }
    allocator_put(&h->allocator, there, bytes);
    strata_host_free(h, host, bytes);
    return best;
}

static void print_floor(const struct state *s, const double best[STEPS])
{
    const uint64_t bytes = strata_engine_weight_bytes(s->engine);
    const double copy = time_copy(s->handle, (size_t)bytes);
    const double mib = (double)bytes / 1048576;
    printf(
        "weights %.1f MiB; copied to the device in %.2f ms (%.1f GB/s), %.0f %% of the "
        "load step, %.0f %% of all but device and plugins\n",
        mib, copy, copy > 0 ? (double)bytes / copy / 1e6 : 0, 100 * copy / best[LOAD],
        100 * copy / (sum(best) - best[DEVICE] - best[PLUGINS]));
}

static const char *node_name(const void *engine, size_t n)
{
    const strata_engine *e = engine;
    return n < e->execution->n_nodes ? e->execution->nodes[n].name : "end";
}

/* A run begins with a piece of work of its own. */
static const char *step_name(const void *engine, size_t n)
{
    const strata_engine *e = engine;
    for (size_t s = 0; s < e->execution->n_steps && n > 0; s++)
        if (e->execution->steps[s].kind == STEP_RUN && --n == 0)
            return e->execution->nodes[e->execution->steps[s].node].name;
    return "begin";
}

/* With modules and their libraries open, as a second engine of a process finds them. */
static int load_again(const struct state *s, const char *path, strata_error *err)
{
    struct engine_file file;
    strata_engine *e = NULL;
    int status = engine_file_open(&file, path, err);
    if (status != STRATA_OK)
        return status;
    device_times_reset();
    const double start = progress_now();
    status = engine_load_file(&e, s->handle, s->registry, &file, path, err);
    if (status == STRATA_OK)
        device_times_print("load, modules open", (progress_now() - start) * 1e3,
                           node_name, e);
    strata_engine_destroy(e);
    return status;
}

static int watch(const char *path, const char *device, strata_error *err)
{
    struct state s = {0};
    int status = STRATA_OK;
    for (int i = 0; i < STEPS && status == STRATA_OK; i++) {
        device_times_reset();
        double start = progress_now();
        status = step(&s, i, path, device, err);
        const double ms = (progress_now() - start) * 1e3;
        if (status == STRATA_OK && i == DEVICE)
            status = device_times_watch(s.handle, err);
        else if (status == STRATA_OK && i >= LOAD && i != CONTEXT)
            device_times_print(names[i], ms, i == LOAD ? node_name : step_name, s.engine);
    }
    if (status == STRATA_OK)
        status = load_again(&s, path, err);
    release(&s);
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : NULL;
    const char *device = argc > 2 ? argv[2] : "host";
    const int repeat = argc > 3 ? atoi(argv[3]) : 7;
    double ms[STEPS], best[STEPS] = {0};
    struct state s;
    strata_error err = {0};
    if (!path) {
        fprintf(stderr, "usage: engine_load NET.engine [DEVICE] [REPEAT]\n");
        return 2;
    }
    printf("%-8s", "");
    for (int i = 0; i <= FIRST; i++)
        printf(" %11s", names[i]);
    printf(" %11s %11s\n", "sum", names[SECOND]);
    for (int k = 0; k <= repeat; k++) {
        char name[16];
        int status = load_once(&s, path, device, ms, &err);
        if (status != STRATA_OK) {
            fprintf(stderr, "engine_load: %s\n", err.message);
            release(&s);
            return 1;
        }
        snprintf(name, sizeof name, k ? "%d" : "first", k);
        print_row(name, ms);
        if (k == 1 || (k > 1 && sum(ms) < sum(best)))
            memcpy(best, ms, sizeof best);
        if (k == repeat && k > 0)
            print_floor(&s, best);
        release(&s);
    }
    print_row("best", best);
    if (watch(path, device, &err) == STRATA_OK)
        return 0;
    fprintf(stderr, "engine_load: %s\n", err.message);
    return 1;
}
