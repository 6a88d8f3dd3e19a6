/* SPDX-License-Identifier: Apache-2.0
 *
 * How long an engine file takes to its first result, step by step:
 *
 *   engine_load NET.engine [DEVICE] [REPEAT]
 *
 * The first row is the process's first load, with plugins and device still to be opened;
 * the others load it again. The last lines time what a load cannot do without: reading
 * and hashing the file, and copying the weights to the device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_stored.h"
#include "core/progress.h"

enum { STEPS = 6 };
static const char *const names[STEPS] = {"device ms", "plugins", "read, hash",
                                         "load",      "context", "first run"};

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
    case 0:
        return strata_create(&s->handle, device, err);
    case 1:
        return strata_registry_create(&s->registry, NULL, err);
    case 2:
        return engine_file_open(&s->file, path, err);
    case 3:
        return engine_load_file(&s->engine, s->handle, s->registry, &s->file, path, err);
    case 4:
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
    for (int i = 0; i < STEPS; i++)
        all += ms[i];
    return all;
}

static void print_row(const char *name, const double ms[STEPS])
{
    printf("%-8s", name);
    for (int i = 0; i < STEPS; i++)
        printf(" %11.2f", ms[i]);
    printf(" %11.2f\n", sum(ms));
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
        mib, copy, copy > 0 ? (double)bytes / copy / 1e6 : 0, 100 * copy / best[3],
        100 * copy / (sum(best) - best[0] - best[1]));
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
    for (int i = 0; i < STEPS; i++)
        printf(" %11s", names[i]);
    printf(" %11s\n", "sum");
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
    return 0;
}
