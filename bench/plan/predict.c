/* SPDX-License-Identifier: Apache-2.0
 *
 * How well a plan's cost predicts a run: measure the costs, plan, run the plan whole,
 * and print predicted over measured time. Each round does all of it anew, so that both
 * sides see the same state of the machine. One JSON object a round.
 *
 *     predict [-n RUNS] [-r ROUNDS] [-t THREADS] [-k PLANS [-p PERCENT]] NETWORK.ini
 *
 * -k: the PLANS fastest plans within PERCENT (2) of the best, from costs all of which are
 * measured; an engine of each, run in turns. One object a plan, then one that says which
 * was faster than the chosen one, run by run, by more than three standard errors and
 * 0.5 %.
 */
#include "engine/engine.h"
#include "planner/cost/progress.h"
#include "planner/planner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RUNS = 100000, MAX_PLANS = 64, WARMUP = 10 };

struct arguments {
    const char *path;
    int runs, rounds, threads, plans, percent;
};

static int parse(struct arguments *a, int argc, char **argv)
{
    static const char letters[] = "nrtkp";
    int *const values[] = {&a->runs, &a->rounds, &a->threads, &a->plans, &a->percent};
    int c;
    *a = (struct arguments){.runs = 100, .rounds = 3, .percent = 2};
    while ((c = getopt(argc, argv, "n:r:t:k:p:")) != -1) {
        int value = c == '?' ? 0 : atoi(optarg);
        if (value < 1 || value > MAX_RUNS || (c == 'k' && value > MAX_PLANS))
            return -1;
        *values[strchr(letters, c) - letters] = value;
    }
    a->path = argv[optind];
    return optind == argc - 1 ? 0 : -1;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int time_run(strata_context *c, double *ms, strata_error *err)
{
    double begin = progress_now();
    int status = strata_context_run(c, err);
    *ms = (progress_now() - begin) * 1e3;
    return status;
}

static double predicted_ms(const struct plan *plan)
{
    return (double)plan->cost / PLAN_UNIT_PER_NS / 1e6;
}

/* ---- one plan ------------------------------------------------------------------------
 */

static void print_round(const strata_engine *e, const double *ms, int n, double build)
{
    double median = ms[n / 2], predicted = predicted_ms(e->planner->plan);
    printf("{\"predicted_ms\": %.3f, \"median_ms\": %.3f, \"min_ms\": %.3f, "
           "\"predicted_over_median\": %.3f, \"predicted_over_min\": %.3f, \"costs\": "
           "%zu, \"measured\": %zu, "
           "\"plans\": %zu, \"measuring_s\": %.2f, \"build_s\": %.2f}\n",
           predicted, median, ms[0], predicted / median, predicted / ms[0],
           e->planner->costs.queries, e->planner->costs.measured,
           e->planner->costs.solved, e->planner->costs.seconds, build);
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
    for (int i = -WARMUP; i < runs && status == STRATA_OK; i++)
        status = time_run(context, &ms[i < 0 ? 0 : i], err);
    if (status == STRATA_OK) {
        qsort(ms, (size_t)runs, sizeof *ms, ascending);
        print_round(engine, ms, runs, build);
    }
    strata_context_destroy(context);
    strata_engine_destroy(engine);
    return status;
}

/* ---- the best plans in turns ---------------------------------------------------------
 */

struct rival {
    struct plan *plan;
    strata_engine *engine;
    strata_context *context;
    double *ms, *behind; /* of each run; and after the chosen plan's in the same turn */
};

static void rival_close(struct rival *r)
{
    strata_context_destroy(r->context);
    strata_engine_destroy(r->engine);
    plan_free(r->plan);
    free(r->ms);
    free(r->behind);
}

static int rival_open(struct rival *r, strata_handle *handle, const strata_network *net,
                      struct plan *plan, int runs, strata_error *err)
{
    *r = (struct rival){.plan = plan};
    r->ms = zalloc((size_t)runs, sizeof *r->ms, "times", err);
    r->behind = zalloc((size_t)runs, sizeof *r->behind, "times", err);
    if (!r->ms || !r->behind)
        return STRATA_ENOMEM;
    int status = engine_build_plan(&r->engine, handle, net, plan, err);
    return status == STRATA_OK
               ? strata_context_create(&r->context, r->engine, handle, err)
               : status;
}

/* Each turn begins with another plan, so that none always follows the same one. */
static int run_turns(struct rival *r, size_t n, int runs, strata_error *err)
{
    int status = STRATA_OK;
    for (int turn = -WARMUP; turn < runs && status == STRATA_OK; turn++)
        for (size_t i = 0; i < n && status == STRATA_OK; i++) {
            struct rival *next = &r[(i + (size_t)(turn + WARMUP)) % n];
            status = time_run(next->context, &next->ms[turn < 0 ? 0 : turn], err);
        }
    for (size_t i = 0; i < n; i++)
        for (int turn = 0; turn < runs; turn++)
            r[i].behind[turn] = r[i].ms[turn] - r[0].ms[turn];
    return status;
}

/* Standard error of the median of n sorted values, as of a normal distribution. */
static double median_error(const double *values, int n)
{
    double sigma = (values[n * 3 / 4] - values[n / 4]) / 1.349;
    return 1.2533 * sigma / sqrt(n);
}

/* Whether it is faster than the chosen one by more than noise. */
static int print_rival(const struct rival *r, size_t rank, double chosen_ms, int runs)
{
    double behind = r->behind[runs / 2], noise = median_error(r->behind, runs);
    double median = r->ms[runs / 2], predicted = predicted_ms(r->plan);
    int faster = rank > 0 && behind < -3 * noise && behind < -chosen_ms / 200;
    printf("{\"plan\": %zu, \"predicted_ms\": %.4f, \"median_ms\": %.4f, \"min_ms\": "
           "%.4f, \"predicted_over_median\": %.3f, \"behind_ms\": %.4f, \"noise_ms\": "
           "%.4f, \"reformats\": %zu, \"faster\": %s}\n",
           rank, predicted, median, r->ms[0], predicted / median, behind, noise,
           r->plan->n_reformats, faster ? "true" : "false");
    return faster;
}

static void print_rivals(struct rival *r, size_t n, int runs)
{
    int faster = 0;
    for (size_t i = 0; i < n; i++) {
        qsort(r[i].ms, (size_t)runs, sizeof *r->ms, ascending);
        qsort(r[i].behind, (size_t)runs, sizeof *r->behind, ascending);
    }
    for (size_t i = 0; i < n; i++)
        faster += print_rival(&r[i], i, r[0].ms[runs / 2], runs);
    printf("{\"plans\": %zu, \"faster_than_chosen\": %d}\n", n, faster);
}

static int run_rivals(strata_handle *handle, const strata_network *net,
                      const struct arguments *a, strata_error *err)
{
    strata_engine *chosen = NULL;
    struct rival rivals[MAX_PLANS] = {{0}};
    struct plan *plans[MAX_PLANS];
    size_t n = 0, opened = 0;
    int status = strata_engine_build(&chosen, handle, net, err);
    if (status == STRATA_OK)
        status = plan_solve_best(plans, (size_t)a->plans, &n, a->percent,
                                 &chosen->planner->model->problem,
                                 &chosen->planner->plan_options, err);
    for (; opened < n && status == STRATA_OK; opened++)
        status = rival_open(&rivals[opened], handle, net, plans[opened], a->runs, err);
    if (status == STRATA_OK)
        status = run_turns(rivals, n, a->runs, err);
    if (status == STRATA_OK)
        print_rivals(rivals, n, a->runs);
    for (size_t i = 0; i < opened; i++)
        rival_close(&rivals[i]);
    for (size_t i = opened; i < n; i++)
        plan_free(plans[i]);
    strata_engine_destroy(chosen);
    return status;
}

/* ---- the program ---------------------------------------------------------------------
 */

static int run_rounds(strata_handle *handle, strata_network *net,
                      const struct arguments *a, strata_error *err)
{
    static double ms[MAX_RUNS];
    int status = STRATA_OK;
    net->build.costs.kind = COSTS_MEASURE;
    net->build.costs.everything = a->plans > 0;
    if (a->threads)
        net->runtime.threads = a->threads;
    for (int i = 0; i < a->rounds && status == STRATA_OK; i++)
        status = a->plans ? run_rivals(handle, net, a, err)
                          : run_round(handle, net, a->runs, ms, err);
    return status;
}

int main(int argc, char **argv)
{
    static strata_error err;
    struct arguments a;
    strata_registry *registry = NULL;
    strata_handle *handle = NULL;
    strata_network *net = NULL;
    if (parse(&a, argc, argv)) {
        fputs("usage: predict [-n RUNS] [-r ROUNDS] [-t THREADS] [-k PLANS [-p PERCENT]] "
              "NETWORK.ini\n",
              stderr);
        return 2;
    }
    int status = strata_registry_create(&registry, NULL, &err);
    if (status == STRATA_OK)
        status = strata_create(&handle, "host", &err);
    if (status == STRATA_OK)
        status = strata_network_load(&net, a.path, registry, NULL, &err);
    if (status == STRATA_OK)
        status = run_rounds(handle, net, &a, &err);
    if (status != STRATA_OK)
        fprintf(stderr, "predict: %s\n", err.message);
    strata_network_destroy(net);
    strata_destroy(handle);
    strata_registry_destroy(registry);
    return status != STRATA_OK;
}
