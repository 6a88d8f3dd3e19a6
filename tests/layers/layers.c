/* SPDX-License-Identifier: Apache-2.0
 *
 * Every claim of every built-in layer's host impls, with the cases of tests/plugins/. Of
 * a sweep one shape of three is tried, and one combination of formats of a row's where
 * tensors are larger; all of them with STRATA_TEST_LONG.
 */
#include "tests/layers/cases.h"
#include "check/harness/mirror.h"

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
                     const struct layer_cases *set)
{
    strata_error err = {0};
    const struct registry_layer *layer;
    char name[80];
    int runs = 0;
    snprintf(name, sizeof name, "core::%s", set->layer);
    cr_assert(registry_find(registry, name, &layer, &err) == STRATA_OK, "%s",
              err.message);
    for (size_t i = 0; i < set->n_cases; i++) {
        const struct layer_case *c = &set->cases[i];
        cr_assert_str_eq(c->layer, set->layer);
        struct harness_result r = harness_check_on(target, layer, c, seed() + i, report);
        cr_expect(r.failures == 0, "%s {%s}: %d failures in %d runs", c->layer, c->attrs,
                  r.failures, r.runs);
        runs += r.runs;
    }
    cr_log_info("%d runs", runs);
}

#define EVERY 3

TestSuite(layers, .timeout = 600);

void check_layer_cases(const struct layer_cases *set)
{
    const struct harness_target host = {.quick = getenv("STRATA_TEST_QUICK") != NULL,
                                        .every = getenv("STRATA_TEST_LONG") ? 1 : EVERY};
    strata_error err = {0};
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    check_on(&host, registry, set);
    strata_registry_destroy(registry);
}

static const struct layer_cases *cases_of(const char *layer)
{
    for (layer_cases_entry *set = __start_layer_cases; set != __stop_layer_cases; set++)
        if (strcmp((*set)->layer, layer) == 0)
            return *set;
    return NULL;
}

#define MOST_CASES 128
#define SMALL 4096 /* elements of the first input */

static bool is_small(const struct layer_case *c)
{
    int64_t n = 1;
    for (int d = 0; d < c->in[0].rank; d++)
        n *= c->in[0].dims[d];
    return n <= SMALL;
}

/* What tests on devices rely on, with the host as the device: how cases are laid out, not
 * what layers make of large ones. */
static void check_small(const struct harness_target *target, strata_registry *registry,
                        const struct layer_cases *set)
{
    struct layer_case cases[MOST_CASES];
    struct layer_cases few = {.layer = set->layer, .cases = cases};
    cr_assert_leq(set->n_cases, MOST_CASES);
    for (size_t i = 0; i < set->n_cases; i++)
        if (is_small(&set->cases[i]))
            cases[few.n_cases++] = set->cases[i];
    check_on(target, registry, &few);
}

Test(layers, are_right_in_mirrored_blocks)
{
    strata_error err = {0};
    strata_handle *h = NULL;
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    cr_assert(strata_create(&h, "host", &err) == STRATA_OK, "%s", err.message);
    for (int exact = 0; exact < 2; exact++) {
        struct mirror mirror;
        struct harness_target target = {.mirror = &mirror, .quick = true, .every = EVERY};
        cr_assert(mirror_open(&mirror, h, exact, &err) == STRATA_OK, "%s", err.message);
        check_small(&target, registry, cases_of("Convolution"));
        check_small(&target, registry, cases_of("Concatenation"));
        mirror_close(&mirror);
    }
    strata_destroy(h);
    strata_registry_destroy(registry);
}

/* A layer that no case names would pass by being forgotten. */
Test(layers, every_built_in_layer_has_cases)
{
    strata_error err = {0};
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    cr_assert(registry_load_all(registry, &err) == STRATA_OK, "%s", err.message);
    for (size_t l = 0; l < registry_layers(registry); l++) {
        const struct registry_layer *layer = registry_layer_at(registry, l);
        const struct layer_cases *set = cases_of(layer->layer.name);
        const bool built_in = strcmp(module_info(layer->module).ns, "core") == 0;
        cr_expect(!built_in || (set && set->n_cases > 0), "layer %s has no case",
                  layer->full_name);
    }
    strata_registry_destroy(registry);
}
