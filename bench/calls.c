/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call costs beside what it computes: a small network's run on the calling thread
 * against the same handed over to the stream's, the copies of its bindings, and the same
 * as a run of parts. Medians of rounds in turns, and their ratios.
 *
 *     calls NETWORK.ini|NETWORK.engine [CALLS [ROUNDS [DEVICE]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/parts.h>

#include "bench/samples.h"

enum { MAX_ROUNDS = 100, MAX_BINDINGS = 8 };

struct subject {
    strata_context *context;
    int n, n_in;
    void *data[MAX_BINDINGS];
    strata_memory memory[MAX_BINDINGS];
    strata_part part;
};

static int run_here(struct subject *s, strata_error *err)
{
    return strata_context_run(s->context, err);
}

static int run_handed_over(struct subject *s, strata_error *err)
{
    int st = strata_context_enqueue(s->context, NULL, err);
    return st ? st : strata_context_wait(s->context, err);
}

static int copy_and_run(struct subject *s, strata_error *err)
{
    int st = STRATA_OK;
    for (int i = 0; i < s->n_in && !st; i++)
        st = strata_copy_in(s->context, i, s->data[i], err);
    if (!st)
        st = strata_context_run(s->context, err);
    for (int i = s->n_in; i < s->n && !st; i++)
        st = strata_copy_out(s->context, i, s->data[i], err);
    return st;
}

static int run_part(struct subject *s, strata_error *err)
{
    return strata_context_run_parts(s->context, &s->part, 1, err);
}

static const struct {
    const char *name;
    int (*call)(struct subject *s, strata_error *err);
} ways[] = {{"run, handed over", run_handed_over},
            {"run, here", run_here},
            {"copy in, run, copy out", copy_and_run},
            {"run_parts of one part", run_part}};
enum { WAYS = sizeof ways / sizeof *ways };

static int time_ways(struct subject *s, int calls, int rounds, strata_error *err)
{
    double us[WAYS][MAX_ROUNDS];
    for (int r = 0; r < rounds; r++)
        for (int w = 0; w < WAYS; w++) {
            const double begin = now_ms();
            for (int i = 0; i < calls; i++) {
                int st = ways[w].call(s, err);
                if (st)
                    return st;
            }
            us[w][r] = (now_ms() - begin) * 1e3 / calls;
        }
    const double base = median(us[0], (size_t)rounds);
    for (int w = 0; w < WAYS; w++) {
        const double m = median(us[w], (size_t)rounds);
        printf("%-24s %8.2f us  %6.1f times as fast as handed over\n", ways[w].name, m,
               base / m);
    }
    return STRATA_OK;
}

static int open_subject(struct subject *s, const strata_engine *e, strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    s->n = strata_engine_bindings(e);
    if (s->n > MAX_BINDINGS)
        return 1;
    for (int i = 0; i < s->n; i++) {
        int st = strata_engine_binding(e, i, &b, err);
        if (st)
            return st;
        s->n_in += b.is_input;
        s->data[i] = calloc(1, (size_t)b.bytes + 1);
        s->memory[i] = (strata_memory){.data = s->data[i], .bytes = (uint64_t)b.bytes};
    }
    s->part = (strata_part){.struct_size = sizeof s->part,
                            .rows = strata_engine_batch(e),
                            .inputs = s->memory,
                            .outputs = s->memory + s->n_in};
    return STRATA_OK;
}

static int make_engine(strata_engine **engine, strata_network **network,
                       strata_handle *handle, strata_registry *registry, const char *path,
                       strata_error *err)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".engine") == 0)
        return strata_engine_load(engine, handle, registry, path, err);
    int st = strata_network_load(network, path, registry, NULL, err);
    return st ? st : strata_engine_build(engine, handle, *network, err);
}

int main(int argc, char **argv)
{
    static strata_error err;
    struct subject s = {0};
    const int calls = argc > 2 ? atoi(argv[2]) : 2000;
    const int rounds = argc > 3 ? atoi(argv[3]) : 15;
    strata_handle *handle = NULL;
    strata_registry *registry = NULL;
    strata_network *network = NULL;
    strata_engine *engine = NULL;
    int st = 2;
    if (argc < 2 || calls < 1 || rounds < 1 || rounds > MAX_ROUNDS)
        fputs("usage: calls NETWORK [CALLS [ROUNDS [DEVICE]]]\n", stderr);
    else if (!(st = strata_create(&handle, argc > 4 ? argv[4] : "host", &err)) &&
             !(st = strata_registry_create(&registry, NULL, &err)) &&
             !(st = make_engine(&engine, &network, handle, registry, argv[1], &err)) &&
             !(st = strata_context_create(&s.context, engine, handle, &err)) &&
             !(st = open_subject(&s, engine, &err)))
        st = time_ways(&s, calls, rounds, &err);
    if (err.length)
        fprintf(stderr, "%s\n", err.message);
    strata_context_destroy(s.context);
    strata_engine_destroy(engine);
    strata_network_destroy(network);
    strata_registry_destroy(registry);
    strata_destroy(handle);
    for (int i = 0; i < s.n && i < MAX_BINDINGS; i++)
        free(s.data[i]);
    return st;
}
