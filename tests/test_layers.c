/* SPDX-License-Identifier: Apache-2.0
 *
 * Every claim of every built-in layer's host impls; the cases are those of
 * layer_cases.h.
 */
#include "tests/layer_cases.h"
#include "check/mirror.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void report(const char *line)
{
    cr_log_error("%s", line);
}

/* Fresh data on each run; HARNESS_SEED repeats one. */
static uint64_t seed(void)
{
    const char *text = getenv("HARNESS_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return text ? strtoull(text, NULL, 10)
                : (uint64_t)now.tv_sec * 1000003 + (uint64_t)now.tv_nsec;
}

static void check_on(const struct harness_target *target, strata_registry *registry,
                     const struct layer_case *list, size_t n, const char *only)
{
    strata_error err = { 0 };
    int runs = 0;
    for (size_t i = 0; i < n; i++) {
        const struct registry_layer *layer;
        char name[80];
        if (only && strcmp(only, list[i].layer) != 0)
            continue;
        snprintf(name, sizeof name, "core::%s", list[i].layer);
        cr_assert(registry_find(registry, name, &layer, &err) == STRATA_OK, "%s",
                  err.message);
        struct harness_result r =
            harness_check_on(target, layer, &list[i], seed() + i, report);
        cr_expect(r.failures == 0, "%s {%s}: %d failures in %d runs", list[i].layer,
                  list[i].attrs, r.failures, r.runs);
        runs += r.runs;
    }
    cr_log_info("%d runs", runs);
}

static void check_cases(const struct layer_case *list, size_t n, const char *only)
{
    static const struct harness_target host = { 0 };
    strata_error err = { 0 };
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    check_on(&host, registry, list, n, only);
    strata_registry_destroy(registry);
}

TestSuite(layers, .timeout = 600);

Test(layers, convolution_is_right_in_every_format)
{
    check_cases(layer_cases_w, layer_cases_w_count, "Convolution");
}

Test(layers, fully_connected_is_right_in_every_format)
{
    check_cases(layer_cases_w, layer_cases_w_count, "FullyConnected");
}

Test(layers, pooling_is_right_in_every_format)
{
    check_cases(layer_cases_w, layer_cases_w_count, "Pooling");
}

Test(layers, elementwise_and_moving_layers_are_right_in_every_format)
{
    check_cases(layer_cases_f, layer_cases_f_count, NULL);
}

/* What tests on devices rely on, with the host as the device. */
Test(layers, are_right_in_mirrored_blocks)
{
    strata_error err = { 0 };
    strata_handle *h = NULL;
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    cr_assert(strata_create(&h, "host", &err) == STRATA_OK, "%s", err.message);
    for (int exact = 0; exact < 2; exact++) {
        struct mirror mirror;
        struct harness_target target = { .mirror = &mirror, .quick = true };
        cr_assert(mirror_open(&mirror, h, exact, &err) == STRATA_OK, "%s", err.message);
        check_on(&target, registry, layer_cases_w, layer_cases_w_count, "Convolution");
        check_on(&target, registry, layer_cases_f, layer_cases_f_count, "Concatenation");
        mirror_close(&mirror);
    }
    strata_destroy(h);
    strata_registry_destroy(registry);
}

/* A layer that no case names would pass by being forgotten. */
Test(layers, every_built_in_layer_has_cases)
{
    strata_error err = { 0 };
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    cr_assert(registry_load_all(registry, &err) == STRATA_OK, "%s", err.message);
    for (size_t l = 0; l < registry_layers(registry); l++) {
        const struct registry_layer *layer = registry_layer_at(registry, l);
        bool found = strcmp(module_info(layer->module).ns, "core") != 0;
        for (size_t i = 0; i < layer_cases_w_count; i++)
            found |= strcmp(layer_cases_w[i].layer, layer->layer.name) == 0;
        for (size_t i = 0; i < layer_cases_f_count; i++)
            found |= strcmp(layer_cases_f[i].layer, layer->layer.name) == 0;
        cr_expect(found, "layer %s has no case", layer->full_name);
    }
    strata_registry_destroy(registry);
}
