/* SPDX-License-Identifier: Apache-2.0
 *
 * Every claim of every built-in layer's CUDA impls, with the cases of the host's: all
 * formats, both math modes, epilogues, guard bands and pads, against the FP64 reference.
 *
 *   HARNESS_SEED=N             repeat a run
 *   STRATA_TEST_LAYER="A B"    only these layers; STRATA_TEST_IMPL=cuda only one impl
 *   STRATA_TEST_SAMPLE=N       a_sample_of_every_layer_is_right takes one run in N
 *   STRATA_TEST_WITHOUT=A,B    and leaves out impls whose names begin with A or B
 *   STRATA_TEST_QUICK=1        few sizes
 *   STRATA_TEST_LARGE=1        only large cases; 0: only the others
 *   STRATA_TEST_SHARD=I/N      one case in N, from the I-th (0 to N - 1) on, of a layer
 *                              or of the sample: N processes make a whole. A large case
 *                              counts as several, of some impls each
 *   STRATA_TEST_RUNS_TO=FILE   "run ID IMPL" is written there before each run
 *   STRATA_TEST_RUNS_FROM=FILE and only runs of these IDs, a line each, are the sample
 */
#include <config.h>

#include "tests/cuda/device.h"
#include "tests/cuda/sample.h"

#include <stdio.h>
#include <time.h>

#include "tests/layers/cases.h"
#include "check/harness/mirror.h"
#include "check/harness/trial.h"

#define MANY_IMPLS 96
#define LARGE_PARTS 16 /* of a large case */

static const char *setting(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static bool is_named(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = list; p && *p;) {
        const size_t length = strcspn(p, " ,");
        if (length == n && strncmp(p, name, n) == 0)
            return true;
        p += length + (p[length] != '\0');
    }
    return false;
}

static void report(const char *line)
{
    cr_log_error("%s", line);
}

static uint64_t make_seed(void)
{
    const char *text = setting("HARNESS_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return text ? strtoull(text, NULL, 10)
                : (uint64_t)now.tv_sec * 1000003 + (uint64_t)now.tv_nsec;
}

/* FP64 is computed on the host, where a layer has no impl for it here. */
static bool is_for_host(const struct registry_layer *layer, const struct layer_case *c)
{
    bool wide = false, taken = false;
    for (size_t i = 0; i < sizeof c->in_dtype / sizeof *c->in_dtype; i++)
        wide |= c->in_dtype[i] == STRATA_FP64;
    for (size_t i = 0; i < layer->n_impls; i++)
        for (uint32_t r = 0; r < layer->impls[i].impl.rows.n; r++)
            for (int p = 0; p < REGISTRY_PORTS; p++)
                taken |= layer->impls[i].impl.device == STRATA_CUDA &&
                         layer->impls[i].rows[r].in[p] & STRATA_F64_NCHW;
    return wide && !taken;
}

/* Failures of the cases in a list; ends early when the device is lost. */
static int check_list(const struct harness_target *target,
                      const struct registry_layer *layer, const struct layer_case *list,
                      size_t n, struct sample *sample, uint64_t seed)
{
    int failures = 0;
    strata_error lost = {0};
    for (size_t i = 0; i < n; i++) {
        cr_assert_str_eq(list[i].layer, layer->layer.name);
        if (list[i].refused || is_for_host(layer, &list[i]) || !sample_has_case(sample))
            continue;
        struct harness_result r =
            harness_check_on(target, layer, &list[i], seed + i, report);
        failures += r.failures;
        cr_assert(strata_device_ok(target->mirror->handle, &lost) == STRATA_OK,
                  "%s {%s}, seed %llu: %s", list[i].layer, list[i].attrs,
                  (unsigned long long)(seed + i), lost.message);
    }
    return failures;
}

/* What decides of runs: the sample; of large cases a part's impls, every n_parts-th. */
struct taker {
    struct sample *sample;
    const struct registry_layer *layer;
    size_t part, n_parts;
};

static bool is_of_part(const struct registry_impl *impl, void *user)
{
    const struct taker *t = user;
    return (size_t)(impl - t->layer->impls) % t->n_parts == t->part;
}

/* Others would compute what is expected, and run nothing. */
static bool part_has(const struct taker *t, const char *name)
{
    bool has = !name;
    for (size_t i = t->part; i < t->layer->n_impls && !has; i += t->n_parts)
        has = strcmp(t->layer->impls[i].impl.name, name) == 0;
    return has;
}

static bool is_of_sample(const struct trial *t, int row, void *user)
{
    return sample_takes(t, row, ((struct taker *)user)->sample);
}

/* The same of large ones, which would take one process too long. Where none has all of a
 * case, the runs of all must be added up to see that some impl ran. */
static int check_large(const struct harness_target *target,
                       const struct registry_layer *layer, const struct layer_cases *set,
                       struct sample *sample, uint64_t seed)
{
    struct taker taker = {sample, layer, 0,
                          layer->n_impls < LARGE_PARTS ? layer->n_impls : LARGE_PARTS};
    struct harness_target some = *target;
    int failures = 0;
    some.wants = is_of_part;
    some.part = true;
    some.user = &taker;
    for (size_t i = 0; i < set->n_large; i++) {
        size_t parts = 0;
        int runs = 0;
        for (taker.part = 0; taker.part < taker.n_parts; taker.part++)
            if (part_has(&taker, target->impl) && sample_has_case(sample)) {
                const struct harness_result r =
                    harness_check_on(&some, layer, &set->large[i], seed + i, report);
                failures += r.failures;
                runs += r.runs;
                parts++;
            }
        fprintf(stderr, "# %-16s large case %-2zu %7d runs, %zu of %zu parts%s\n",
                set->layer, i, runs, parts, taker.n_parts,
                set->large[i].may_refuse ? ", may be refused" : "");
        if (parts == taker.n_parts && !target->impl && !target->takes &&
            !set->large[i].may_refuse)
            cr_expect_gt(runs, 0, "%s {%s}: no impl ran", set->layer,
                         set->large[i].attrs);
    }
    return failures;
}

static void print_tally(const struct registry_layer *layer,
                        const struct harness_tally *tally)
{
    for (size_t i = 0; i < layer->n_impls; i++)
        if (layer->impls[i].impl.device == STRATA_CUDA)
            fprintf(stderr, "# %-16s %-24s %7d runs %7d vetoed %5d failures\n",
                    layer->layer.name, layer->impls[i].impl.name, tally[i].runs,
                    tally[i].vetoed, tally[i].failures);
}

/* A registry, a device and its mirror, and what is asked for. */
struct bench {
    struct sample *sample;
    strata_handle *handle;
    strata_registry *registry;
    struct mirror mirror;
};

static void open_bench(struct bench *b, bool quick)
{
    strata_error err = {0};
    b->handle = need_cuda();
    b->sample = sample_open(make_seed());
    cr_assert(b->sample,
              "STRATA_TEST_SAMPLE, _SHARD, _RUNS_TO or _RUNS_FROM cannot be used");
    b->registry = harness_registry(&err);
    cr_assert(b->registry, "%s", err.message);
    cr_assert(mirror_open(&b->mirror, b->handle, quick, &err) == STRATA_OK, "%s",
              err.message);
}

static void close_bench(struct bench *b)
{
    mirror_close(&b->mirror);
    strata_registry_destroy(b->registry);
    strata_destroy(b->handle);
    sample_close(b->sample);
}

static void check_set(struct bench *b, const struct layer_cases *set,
                      struct harness_target *target)
{
    strata_error err = {0};
    const struct registry_layer *layer;
    struct harness_tally tally[MANY_IMPLS] = {0};
    uint64_t seed = make_seed();
    char full[80];
    snprintf(full, sizeof full, "core::%s", set->layer);
    cr_assert(registry_find(b->registry, full, &layer, &err) == STRATA_OK, "%s",
              err.message);
    cr_assert_leq(layer->n_impls, (size_t)MANY_IMPLS);
    target->mirror = &b->mirror;
    target->tally = tally;
    const char *large = setting("STRATA_TEST_LARGE");
    int failures = 0;
    if (!large || strcmp(large, "0") == 0)
        failures += check_list(target, layer, set->cases, set->n_cases, b->sample, seed);
    if (!target->quick && (!large || strcmp(large, "0") != 0))
        failures += check_large(target, layer, set, b->sample, seed + 1000);
    print_tally(layer, tally);
    cr_expect_eq(failures, 0, "%s: %d failures, seed %llu", set->layer, failures,
                 (unsigned long long)seed);
}

/* Layers of the host alone: on a GPU plans keep what they are made of. */
static const char *const host_alone[] = {"QuantizedPointwise"};

static bool is_host_alone(const char *layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(host_alone); i++)
        if (!strcmp(host_alone[i], layer))
            return true;
    return false;
}

/* A test a layer: a lost device ends one process, not the others. */
void check_layer_cases(const struct layer_cases *set)
{
    const char *only = setting("STRATA_TEST_LAYER");
    const bool quick = setting("STRATA_TEST_QUICK");
    struct harness_target target = {
        .impl = setting("STRATA_TEST_IMPL"),
        .wide = !quick,
        .quick = quick,
        .most = 1 << 24}; /* of cases that only many blocks do as they should */
    struct bench b;
    if (only && !is_named(only, set->layer))
        cr_skip_test("STRATA_TEST_LAYER names other layers");
    if (is_host_alone(set->layer))
        cr_skip_test("%s is of the host alone", set->layer);
    open_bench(&b, quick);
    check_set(&b, set, &target);
    close_bench(&b);
}

TestSuite(layers, .timeout = 600);
TestSuite(cuda_layers, .timeout = 600);

/* For compute-sanitizer, which slows every launch. */
Test(cuda_layers, a_sample_of_every_layer_is_right)
{
    struct bench b;
    if (!sample_is_asked_for())
        cr_skip_test("STRATA_TEST_SAMPLE is not set");
    open_bench(&b, true);
    struct taker taker = {.sample = b.sample};
    struct harness_target target = {.quick = setting("STRATA_TEST_QUICK"),
                                    .takes = is_of_sample,
                                    .steady = true,
                                    .user = &taker};
    const char *only = setting("STRATA_TEST_LAYER");
    for (layer_cases_entry *set = __start_layer_cases; set != __stop_layer_cases; set++)
        if (!only || is_named(only, (*set)->layer))
            check_set(&b, *set, &target);
    close_bench(&b);
}

/* Whether a layer has CUDA impls, and a test here. */
struct coverage {
    bool impls, test;
};

static struct coverage coverage_of(const struct registry_layer *layer)
{
    struct coverage c = {0};
    for (size_t i = 0; i < layer->n_impls; i++)
        c.impls |= layer->impls[i].impl.device == STRATA_CUDA;
    for (layer_cases_entry *set = __start_layer_cases; set != __stop_layer_cases; set++)
        c.test |= strcmp((*set)->layer, layer->layer.name) == 0;
    return c;
}

static strata_registry *every_module(void)
{
    strata_error err = {0};
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    cr_assert(registry_load_all(registry, &err) == STRATA_OK, "%s", err.message);
    return registry;
}

/* An impl that no test names would pass by being forgotten. Needs no device. */
Test(cuda_layers, every_layer_with_cuda_impls_is_tested)
{
    strata_registry *registry = every_module();
    for (size_t i = 0; i < registry_layers(registry); i++) {
        const struct registry_layer *layer = registry_layer_at(registry, i);
        const struct coverage c = coverage_of(layer);
        cr_expect(c.test || !c.impls, "layer %s has CUDA impls but no test",
                  layer->full_name);
    }
    strata_registry_destroy(registry);
}

/* The other way round: a test of nothing passes too. Needs no device. */
Test(cuda_layers, every_tested_layer_has_cuda_impls)
{
#ifndef HAVE_CUDA
    cr_skip_test("CUDA was not built");
#endif
    strata_registry *registry = every_module();
    for (size_t i = 0; i < registry_layers(registry); i++) {
        const struct registry_layer *layer = registry_layer_at(registry, i);
        const struct coverage c = coverage_of(layer);
        cr_expect(c.impls == !is_host_alone(layer->layer.name) || !c.test,
                  "layer %s is tested and has %s CUDA impl", layer->full_name,
                  c.impls ? "a" : "no");
    }
    strata_registry_destroy(registry);
}
