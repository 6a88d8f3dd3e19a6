/* SPDX-License-Identifier: Apache-2.0
 *
 * Every claim of every built-in layer's CUDA impls, with the cases of the host's: all
 * formats, both math modes, epilogues, guard bands and pads, against the FP64 reference.
 *
 *   HARNESS_SEED=N             repeat a run
 *   STRATA_TEST_LAYER=Pooling  only one layer; STRATA_TEST_IMPL=cuda only one impl
 *   STRATA_TEST_QUICK=1        few sizes, and blocks that compute-sanitizer can tell
 * apart
 */
#include "tests/cuda_device.h"

#include <stdio.h>
#include <time.h>

#include "tests/layer_cases.h"
#include "check/mirror.h"

#define MANY_IMPLS 64

static const char *setting(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
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

/* Failures of the cases of one layer in a list; ends early when the device is lost. */
static int check_list(const struct harness_target *target,
                      const struct registry_layer *layer, const struct layer_case *list,
                      size_t n, uint64_t seed)
{
    int failures = 0;
    strata_error lost = {0};
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].layer, layer->layer.name) != 0 || list[i].refused)
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

static void print_tally(const struct registry_layer *layer,
                        const struct harness_tally *tally)
{
    for (size_t i = 0; i < layer->n_impls; i++)
        if (layer->impls[i].impl.device == STRATA_CUDA)
            fprintf(stderr, "# %-16s %-24s %7d runs %7d vetoed %5d failures\n",
                    layer->layer.name, layer->impls[i].impl.name, tally[i].runs,
                    tally[i].vetoed, tally[i].failures);
}

static void check_layer(const char *name)
{
    const char *only = setting("STRATA_TEST_LAYER");
    if (only && strcmp(only, name) != 0)
        cr_skip_test("STRATA_TEST_LAYER names another layer");
    strata_handle *h = need_cuda();
    strata_error err = {0};
    strata_registry *registry = harness_registry(&err);
    const struct registry_layer *layer;
    struct mirror mirror;
    struct harness_tally tally[MANY_IMPLS] = {0};
    bool quick = setting("STRATA_TEST_QUICK");
    uint64_t seed = make_seed();
    char full[80];
    snprintf(full, sizeof full, "core::%s", name);
    cr_assert(registry, "%s", err.message);
    cr_assert(registry_find(registry, full, &layer, &err) == STRATA_OK, "%s",
              err.message);
    cr_assert_leq(layer->n_impls, (size_t)MANY_IMPLS);
    cr_assert(mirror_open(&mirror, h, quick, &err) == STRATA_OK, "%s", err.message);
    struct harness_target target = {.mirror = &mirror,
                                    .impl = setting("STRATA_TEST_IMPL"),
                                    .wide = !quick,
                                    .quick = quick,
                                    .tally = tally};
    int failures = check_list(&target, layer, layer_cases_w, layer_cases_w_count, seed);
    failures += check_list(&target, layer, layer_cases_f, layer_cases_f_count, seed);
    if (!quick)
        failures += check_list(&target, layer, layer_cases_large, layer_cases_large_count,
                               seed + 1000);
    print_tally(layer, tally);
    cr_expect_eq(failures, 0, "%s: %d failures, seed %llu", name, failures,
                 (unsigned long long)seed);
    mirror_close(&mirror);
    strata_registry_destroy(registry);
    strata_destroy(h);
}

TestSuite(cuda_layers, .timeout = 600);

/* A test a layer: a lost device ends one process, not the others. */
#define LAYERS(_)                                                                        \
    _(Activation)                                                                        \
    _(Concatenation)                                                                     \
    _(Constant)                                                                          \
    _(Convolution)                                                                       \
    _(ElementWise)                                                                       \
    _(FullyConnected)                                                                    \
    _(Identity)                                                                          \
    _(Padding)                                                                           \
    _(Pooling)                                                                           \
    _(Resize)                                                                            \
    _(Scale)                                                                             \
    _(Shuffle)                                                                           \
    _(Slice)                                                                             \
    _(Softmax)

static const char *const tested[] = {
#define NAME(layer) #layer,
    LAYERS(NAME)};

#define TEST(layer)                                                                      \
    Test(cuda_layers, layer##_is_right_on_cuda)                                          \
    {                                                                                    \
        check_layer(#layer);                                                             \
    }
LAYERS(TEST)

/* An impl that no test names would pass by being forgotten. Needs no device. */
Test(cuda_layers, every_layer_with_cuda_impls_is_tested)
{
    strata_error err = {0};
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    cr_assert(registry_load_all(registry, &err) == STRATA_OK, "%s", err.message);
    for (size_t l = 0; l < registry_layers(registry); l++) {
        const struct registry_layer *layer = registry_layer_at(registry, l);
        bool cuda = false, found = false;
        for (size_t i = 0; i < layer->n_impls; i++)
            cuda |= layer->impls[i].impl.device == STRATA_CUDA;
        for (size_t i = 0; i < ARRAY_LENGTH(tested); i++)
            found |= strcmp(tested[i], layer->layer.name) == 0;
        cr_expect(cuda == found, "layer %s %s", layer->full_name,
                  cuda ? "has CUDA impls but no test" : "is tested but has no CUDA impl");
    }
    strata_registry_destroy(registry);
}
