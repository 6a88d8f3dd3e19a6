/* SPDX-License-Identifier: Apache-2.0
 *
 * What `strata bench` measures against the loop that anyone would write: the same network
 * on the same device, in turns, and the ratio of the medians of each turn.
 *
 *     bench_overhead STRATA NETWORK.ini [DEVICE [ROUNDS [SET...]]]
 *
 * STRATA is the command; each SET is a SECTION.KEY=VALUE that both builds get.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/strata.h>

#include "bench/samples.h"

enum { MAX_ROUNDS = 100, MAX_SETS = 16 };
static const double warmup_ms = 100, turn_ms = 500;

/* The loop: run, and look at the clock. */
static int by_hand(double *out, strata_context *c, strata_error *err)
{
    enum { MOST = 1 << 20 };
    static double ms[MOST];
    size_t n = 0;
    int st = STRATA_OK;
    for (double end = now_ms() + warmup_ms; now_ms() < end && !st;)
        st = strata_context_run(c, err);
    for (double end = now_ms() + turn_ms; (now_ms() < end || n < 3) && n < MOST && !st;) {
        const double begin = now_ms();
        st = strata_context_run(c, err);
        ms[n++] = now_ms() - begin;
    }
    *out = n ? median(ms, n) : 0;
    return st;
}

static int by_command(double *out, const char *command)
{
    json_error_t why;
    FILE *f = popen(command, "r");
    json_t *list = f ? json_loadf(f, 0, &why) : NULL;
    json_t *latency = json_object_get(json_array_get(list, 0), "latency");
    *out = json_number_value(json_object_get(latency, "median_ms"));
    json_decref(list);
    return f && pclose(f) == 0 && *out > 0 ? 0 : 1;
}

static int compare(strata_context *c, const char *command, int rounds, strata_error *err)
{
    double hand[MAX_ROUNDS], ours[MAX_ROUNDS], ratios[MAX_ROUNDS];
    for (int i = 0; i < rounds; i++) {
        int st = by_hand(&hand[i], c, err);
        if (st)
            return st;
        if (by_command(&ours[i], command)) {
            fprintf(stderr, "bench_overhead: failed: %s\n", command);
            return 1;
        }
        ratios[i] = ours[i] / hand[i];
        printf("round %d: by hand %.5f ms, strata bench %.5f ms, ratio %.4f\n", i + 1,
               hand[i], ours[i], ratios[i]);
        fflush(stdout);
    }
    const size_t n = (size_t)rounds;
    printf("median of %d rounds: by hand %.5f ms, strata bench %.5f ms, ratio %.4f\n",
           rounds, median(hand, n), median(ours, n), median(ratios, n));
    return 0;
}

static void fill_inputs(const strata_engine *e, strata_context *c)
{
    strata_binding b = {.struct_size = sizeof b};
    for (int i = 0; i < strata_engine_bindings(e); i++)
        if (!strata_engine_binding(e, i, &b, NULL) && b.is_input) {
            void *data = malloc((size_t)b.bytes);
            for (int64_t k = 0; data && k < b.bytes; k++) /* small normal floats */
                ((unsigned char *)data)[k] = (unsigned char)(0x20 + k * 2654435761u % 23);
            strata_copy_in(c, i, data, NULL);
            free(data);
        }
}

int main(int argc, char **argv)
{
    static strata_error err;
    char command[2048];
    const char *device = argc > 3 ? argv[3] : "host", *sets[MAX_SETS];
    const int rounds = argc > 4 ? atoi(argv[4]) : 7;
    strata_network_options options = {.struct_size = sizeof options, .set = sets};
    if (argc < 3 || rounds < 1 || rounds > MAX_ROUNDS || argc > 5 + MAX_SETS) {
        fputs("usage: bench_overhead STRATA NETWORK.ini [DEVICE [ROUNDS [SET...]]]\n",
              stderr);
        return 2;
    }
    int used = snprintf(command, sizeof command,
                        "%s bench '%s' --device=%s -o json --warmup=%gms "
                        "--duration=%gms --iterations=3",
                        argv[1], argv[2], device, warmup_ms, turn_ms);
    for (int i = 5; i < argc && used < (int)sizeof command; i++) {
        sets[options.n_set++] = argv[i];
        used += snprintf(command + used, sizeof command - (size_t)used, " --set '%s'",
                         argv[i]);
    }
    strata_handle *handle = NULL;
    strata_registry *registry = NULL;
    strata_network *network = NULL;
    strata_engine *engine = NULL;
    strata_context *context = NULL;
    int st;
    if (!(st = strata_create(&handle, device, &err)) &&
        !(st = strata_registry_create(&registry, NULL, &err)) &&
        !(st = strata_network_load(&network, argv[2], registry, &options, &err)) &&
        !(st = strata_engine_build(&engine, handle, network, &err)) &&
        !(st = strata_context_create(&context, engine, handle, &err))) {
        fill_inputs(engine, context);
        if (!(st = strata_context_prepare(context, &err)))
            st = compare(context, command, rounds, &err);
    }
    if (err.length)
        fprintf(stderr, "%s\n", err.message);
    strata_context_destroy(context);
    strata_engine_destroy(engine);
    strata_network_destroy(network);
    strata_registry_destroy(registry);
    strata_destroy(handle);
    return st ? 1 : 0;
}
