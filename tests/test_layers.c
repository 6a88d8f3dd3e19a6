/* SPDX-License-Identifier: Apache-2.0
 *
 * Every claim of every built-in layer: cases here for Convolution, FullyConnected and
 * Pooling, in layer_cases_f.c for the others.
 */
#include "tests/layer_harness.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const struct layer_case layer_cases_f[];
extern const size_t layer_cases_f_count;

#define S2(...) { 2, { __VA_ARGS__ } }
#define S3(...) { 3, { __VA_ARGS__ } }
#define S4(...) { 4, { __VA_ARGS__ } }
#define S5(...) { 5, { __VA_ARGS__ } }

static const struct layer_case cases[] = {
    /* Convolution over all channel counts and sizes. */
    { "Convolution", "filters = 5; kernel = 3; pad = 1", .sweep = 4 },
    { "Convolution", "filters = 17; kernel = 1", .sweep = 4 },
    { "Convolution", "filters = 2; kernel = 3x2; stride = 2; pad = 1x0x0x1", .sweep = 4 },
    { "Convolution", "filters = $C; groups = $C; kernel = 3; pad = 1", .sweep = 4 },
    { "Convolution", "filters = 9; kernel = 5; pad = 2; stride = 3", .sweep = 3 },
    { "Convolution", "filters = 4; kernel = 2", .sweep = 5 },
    /* Each way to write each attribute. */
    { "Convolution", "filters = 8; kernel = 3x3", .in = { S4(1, 3, 9, 11) },
      .absent = 2 },
    { "Convolution", "", .in = { S4(2, 3, 9, 11) },
      .weight = { S4(7, 3, 2, 3), { 1, { 7 } } } },
    { "Convolution", "filters = 6; kernel = 3; stride = 2x3; dilation = 2x1",
      .in = { S4(2, 4, 17, 20) } },
    { "Convolution", "filters = 6; kernel = 4x3; pad = 1, 2", .in = { S4(2, 4, 6, 5) } },
    { "Convolution", "filters = 6; kernel = 4x3; pad = 0, 1, 3, 2",
      .in = { S4(1, 4, 6, 5) } },
    { "Convolution", "filters = 6; kernel = 4x3; pad_mode = same_upper; stride = 2",
      .in = { S4(1, 4, 7, 10) } },
    { "Convolution", "filters = 6; kernel = 4x3; pad_mode = same_lower; stride = 3",
      .in = { S4(1, 4, 7, 10) } },
    { "Convolution", "filters = 6; kernel = 4x3; pad_mode = valid",
      .in = { S4(1, 4, 7, 10) } },
    { "Convolution", "filters = 12; kernel = 3; groups = 3; pad = 1",
      .in = { S4(2, 6, 9, 9) } },
    { "Convolution", "filters = 18; kernel = 3; groups = 9; pad = 1; stride = 2",
      .in = { S4(2, 9, 12, 13) } },
    { "Convolution",
      "filters = 4; kernel = 2; groups = 2; dilation = 3; pad = 3x2x1x0x2x1",
      .in = { S5(1, 4, 5, 4, 6) } },
    { "Convolution", "filters = 3; kernel = 3; stride = 2x1x3; pad = 1",
      .in = { S5(2, 2, 5, 4, 7) } },
    { "Convolution", "filters = 4; kernel = 5; pad = 3, 1; dilation = 2",
      .in = { S3(3, 5, 12) } },
    { "Convolution", "filters = 2; kernel = 7; pad = 9", .in = { S4(1, 2, 3, 2) } },
    { "Convolution", "filters = 6; kernel = 7; pad = 9", .in = { S4(1, 2, 3, 2) } },
    /* Sizes that real networks use: several k blocks, panels, and filter tails. */
    { "Convolution", "filters = 70; kernel = 3; pad = 1", .in = { S4(1, 61, 19, 23) } },
    { "Convolution", "filters = 53; kernel = 1", .in = { S4(2, 300, 13, 13) } },
    { "Convolution", "filters = 64; kernel = 3; stride = 2", .in = { S4(1, 3, 57, 59) } },
    { "Convolution", "filters = 30; kernel = 5; groups = 30; pad = 2; stride = 2",
      .in = { S4(1, 30, 40, 41) } },
    /* Large enough to be worked on in bands. */
    { "Convolution", "filters = 24; kernel = 3; pad = 1", .in = { S4(2, 16, 97, 50) } },
    { "Convolution", "filters = 40; kernel = 3x2; stride = 2; dilation = 3x1; pad = 4, 1",
      .in = { S4(2, 9, 130, 61) } },
    { "Convolution", "filters = 90; kernel = 1", .in = { S4(3, 70, 37, 29) } },
    { "Convolution", "filters = 26; kernel = 3; pad = 1; groups = 2; stride = 1x2x1",
      .in = { S5(2, 6, 20, 18, 17) } },
    { "Convolution", "filters = 31; kernel = 5; dilation = 2; pad = 3",
      .in = { S3(2, 29, 2500) } },
    /* What must be refused. */
    { "Convolution", "kernel = 3", .in = { S4(1, 3, 9, 9) }, .refused = true },
    { "Convolution", "filters = 4", .in = { S4(1, 3, 9, 9) }, .refused = true },
    { "Convolution", "filters = 4; kernel = 3", .in = { S4(1, 3, 2, 9) },
      .refused = true },
    { "Convolution", "filters = 4; kernel = 3x3x3", .in = { S4(1, 3, 9, 9) },
      .refused = true },
    { "Convolution", "filters = 4; kernel = 3; groups = 2", .in = { S4(1, 3, 9, 9) },
      .refused = true },
    { "Convolution", "filters = 3; kernel = 3; groups = 2", .in = { S4(1, 4, 9, 9) },
      .refused = true },
    { "Convolution", "filters = 4; kernel = 3; stride = 0", .in = { S4(1, 3, 9, 9) },
      .refused = true },
    { "Convolution", "filters = 4; kernel = 3; pad = 1, 1, 1", .in = { S4(1, 3, 9, 9) },
      .refused = true },
    { "Convolution", "filters = 4; kernel = 3; pad = -1", .in = { S4(1, 3, 9, 9) },
      .refused = true },
    { "Convolution", "filters = 4; kernel = 3; pad = 1; pad_mode = same_upper",
      .in = { S4(1, 3, 9, 9) }, .refused = true },
    { "Convolution", "filters = 4; kernel = 3", .in = { S2(1, 3) }, .refused = true },
    { "Convolution", "filters = 4; kernel = 3", .in = { S4(1, 3, 9, 9) },
      .weight = { S4(4, 2, 3, 3) }, .refused = true },
    { "Convolution", "filters = 4; kernel = 2147483647; dilation = 2147483647",
      .in = { S4(1, 3, 9, 9) }, .refused = true },

    { "FullyConnected", "units = 10", .sweep = 4 },
    { "FullyConnected", "units = 70; transposed = true", .sweep = 4 },
    { "FullyConnected", "units = 3", .sweep = 3 },
    { "FullyConnected", "units = 4", .sweep = 5 },
    { "FullyConnected", "units = 5", .in = { S2(3, 37) } },
    { "FullyConnected", "units = 129; transposed = true", .in = { S2(5, 300) },
      .absent = 2 },
    { "FullyConnected", "", .in = { S2(2, 300) }, .weight = { S2(203, 300) } },
    { "FullyConnected", "transposed = true", .in = { S4(2, 3, 4, 5) },
      .weight = { S2(60, 7) } },
    { "FullyConnected", "units = 200", .in = { S4(4, 40, 6, 6) } },
    { "FullyConnected", "", .in = { S2(2, 300) }, .refused = true },
    { "FullyConnected", "units = 4", .in = { S2(2, 300) }, .weight = { S2(4, 299) },
      .refused = true },
    { "FullyConnected", "units = 4", .in = { { 1, { 300 } } }, .refused = true },

    { "Pooling", "kernel = 3; stride = 2", .sweep = 4 },
    { "Pooling", "kernel = 2; stride = 2; kind = average; ceil_mode = true", .sweep = 4 },
    { "Pooling", "global = true; kind = average", .sweep = 4 },
    { "Pooling", "global = true", .sweep = 5 },
    { "Pooling", "kernel = 3; pad = 1; kind = average", .sweep = 3 },
    { "Pooling", "kernel = 2; pad = 1; stride = 2", .sweep = 5 },
    { "Pooling", "kernel = 3; stride = 2; ceil_mode = true", .in = { S4(2, 9, 14, 13) } },
    { "Pooling", "kernel = 3; stride = 3; ceil_mode = true; pad = 1",
      .in = { S4(2, 9, 8, 7) } },
    { "Pooling", "kernel = 3x2; stride = 2x3; pad = 1, 0, 2, 1",
      .in = { S4(2, 9, 14, 13) } },
    { "Pooling",
      "kernel = 3; stride = 2; pad = 1; kind = average; ceil_mode = true; "
      "count_include_pad = true",
      .in = { S4(2, 9, 14, 13) } },
    { "Pooling", "kernel = 3; stride = 2; pad = 1; kind = average; ceil_mode = true",
      .in = { S4(2, 9, 14, 13) } },
    { "Pooling", "kernel = 3; pad = 1, 2, 0, 3; kind = average; count_include_pad = true",
      .in = { S4(2, 9, 6, 7) } },
    { "Pooling", "kernel = 3; dilation = 2x3; pad = 1", .in = { S4(2, 9, 14, 13) } },
    { "Pooling", "kernel = 2; dilation = 2; pad = 2; kind = average",
      .in = { S4(1, 3, 6, 5) } },
    { "Pooling", "kernel = 3x5; pad_mode = same_upper; stride = 2",
      .in = { S4(1, 3, 6, 9) } },
    { "Pooling",
      "kernel = 4x2; pad_mode = same_lower; kind = average; "
      "count_include_pad = true",
      .in = { S4(1, 3, 6, 9) } },
    { "Pooling", "kernel = 2; pad_mode = valid", .in = { S4(1, 3, 6, 9) } },
    { "Pooling", "kernel = 2; dilation = 4; pad = 2", .in = { S4(1, 2, 1, 1) } },
    { "Pooling", "kernel = 2; dilation = 4; pad = 2; kind = average",
      .in = { S4(1, 2, 1, 1) } },
    { "Pooling", "kernel = 2x3x2; stride = 1x2x2; pad = 1, 1, 0, 0, 1, 1; kind = average",
      .in = { S5(2, 3, 4, 5, 6) } },
    { "Pooling", "kernel = 3; stride = 2; ceil_mode = true",
      .in = { S4(1, 64, 56, 57) } },
    { "Pooling", "global = true; kind = average", .in = { S4(1, 70, 23, 29) } },
    { "Pooling", "", .in = { S4(1, 3, 9, 9) }, .refused = true },
    { "Pooling", "global = true; kernel = 3", .in = { S4(1, 3, 9, 9) }, .refused = true },
    { "Pooling", "kernel = 10", .in = { S4(1, 3, 9, 9) }, .refused = true },
    { "Pooling", "kernel = 3; stride = 1, 1, 1", .in = { S4(1, 3, 9, 9) },
      .refused = true },
    { "Pooling", "kernel = 3", .in = { S2(3, 9) }, .refused = true },
};

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

static void check_cases(const struct layer_case *list, size_t n, const char *only)
{
    strata_error err = { 0 };
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    int runs = 0;
    for (size_t i = 0; i < n; i++) {
        const struct registry_layer *layer;
        char name[80];
        if (only && strcmp(only, list[i].layer) != 0)
            continue;
        snprintf(name, sizeof name, "core::%s", list[i].layer);
        cr_assert(registry_find(registry, name, &layer, &err) == STRATA_OK, "%s",
                  err.message);
        struct harness_result r = harness_check(layer, &list[i], seed() + i, report);
        cr_expect(r.failures == 0, "%s {%s}: %d failures in %d runs", list[i].layer,
                  list[i].attrs, r.failures, r.runs);
        runs += r.runs;
    }
    cr_log_info("%d runs", runs);
    strata_registry_destroy(registry);
}

TestSuite(layers, .timeout = 300);

Test(layers, convolution_is_right_in_every_format)
{
    check_cases(cases, sizeof cases / sizeof cases[0], "Convolution");
}

Test(layers, fully_connected_is_right_in_every_format)
{
    check_cases(cases, sizeof cases / sizeof cases[0], "FullyConnected");
}

Test(layers, pooling_is_right_in_every_format)
{
    check_cases(cases, sizeof cases / sizeof cases[0], "Pooling");
}

Test(layers, elementwise_and_moving_layers_are_right_in_every_format)
{
    check_cases(layer_cases_f, layer_cases_f_count, NULL);
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
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            found |= strcmp(cases[i].layer, layer->layer.name) == 0;
        for (size_t i = 0; i < layer_cases_f_count; i++)
            found |= strcmp(layer_cases_f[i].layer, layer->layer.name) == 0;
        cr_expect(found, "layer %s has no case", layer->full_name);
    }
    strata_registry_destroy(registry);
}
