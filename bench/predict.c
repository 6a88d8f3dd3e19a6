/* SPDX-License-Identifier: Apache-2.0
 *
 * How well a plan's cost predicts a run: measure the costs, plan, run the plan whole,
 * and print predicted over measured time. Each round does all of it anew, so that both
 * sides see the same state of the machine. One JSON object a round.
 *
 *     predict [-n RUNS] [-r ROUNDS] [-t THREADS] NETWORK.ini
 */
#include "core/engine.h"
#include "core/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RUNS = 100000 };

struct arguments {
    const char *path;
    int runs, rounds, threads;
};

static int parse(struct arguments *a, int argc, char **argv)
{
    int c;
    *a = (struct arguments){.runs = 100, .rounds = 3};
    while ((c = getopt(argc, argv, "n:r:t:")) != -1) {
        int value = c == '?' ? 0 : atoi(optarg);
        if (value < 1 || value > MAX_RUNS)
            return -1;
        *(c == 'n' ? &a->runs : c == 'r' ? &a->rounds : &a->threads) = value;
    }
    a->path = argv[optind];
    return optind == argc - 1 ? 0 : -1;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int time_runs(strata_context *c, int runs, double *ms, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = -10; i < runs && status == STRATA_OK; i++) {
        double begin = progress_now();
        status = strata_context_run(c, err);
        if (i >= 0)
            ms[i] = (progress_now() - begin) * 1e3;
    }
    return status;
}

static void print_round(const strata_engine *e, const double *ms, int n, double build)
{
    double median = ms[n / 2];
    double predicted = (double)e->plan->cost / PLAN_UNIT_PER_NS / 1e6;
    printf("{\"predicted_ms\": %.3f, \"median_ms\": %.3f, \"min_ms\": %.3f, "
           "\"predicted_over_median\": %.3f, \"predicted_over_min\": %.3f, \"costs\": "
           "%zu, \"measured\": %zu, "
           "\"plans\": %zu, \"measuring_s\": %.2f, \"build_s\": %.2f}\n",
           predicted, median, ms[0], predicted / median, predicted / ms[0],
           e->costs.queries, e->costs.measured, e->costs.solved, e->costs.seconds, build);
}

static int run_round(strata_handle *handle, const strata_network *net, int runs,
                     double *ms, strata_error *err)
{
    strata_engine *engine = NULL;
    strata_context *context = NULL;
    double begin = progress_now();
    int status = strata_engine_build(&engine, handle, net, err);
    double build = progress_now() - begin;
    if (status == STRATA_OK)
        status = strata_context_create(&context, engine, handle, err);
    if (status == STRATA_OK)
        status = time_runs(context, runs, ms, err);
    if (status == STRATA_OK) {
        qsort(ms, (size_t)runs, sizeof *ms, ascending);
        print_round(engine, ms, runs, build);
    }
    strata_context_destroy(context);
    strata_engine_destroy(engine);
    return status;
}

int main(int argc, char **argv)
{
    static strata_error err;
    static double ms[MAX_RUNS];
    struct arguments a;
    strata_registry *registry = NULL;
    strata_handle *handle = NULL;
    strata_network *net = NULL;
    if (parse(&a, argc, argv)) {
        fputs("usage: predict [-n RUNS] [-r ROUNDS] [-t THREADS] NETWORK.ini\n", stderr);
        return 2;
    }
    int status = strata_registry_create(&registry, NULL, &err);
    if (status == STRATA_OK)
        status = strata_create(&handle, "host", &err);
    if (status == STRATA_OK)
        status = strata_network_load(&net, a.path, registry, NULL, &err);
    if (status == STRATA_OK) {
        net->build.costs.kind = COSTS_MEASURE;
        if (a.threads)
            net->runtime.threads = a.threads;
    }
    for (int i = 0; i < a.rounds && status == STRATA_OK; i++)
        status = run_round(handle, net, a.runs, ms, &err);
    if (status != STRATA_OK)
        fprintf(stderr, "predict: %s\n", err.message);
    strata_network_destroy(net);
    strata_destroy(handle);
    strata_registry_destroy(registry);
    return status != STRATA_OK;
}
