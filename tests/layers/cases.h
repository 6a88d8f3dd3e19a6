/* SPDX-License-Identifier: Apache-2.0
 *
 * What the case file of a built-in layer, tests/plugins/LAYER.c, is written with. A file
 * registers its cases itself: tests of layers, on the host and on CUDA, know no list.
 */
#ifndef TESTS_LAYERS_CASES_H
#define TESTS_LAYERS_CASES_H

#include <criterion/criterion.h>

#include "check/harness/harness.h"
#include "core/status.h"

struct layer_cases {
    const char *layer; /* "Convolution" */
    const struct layer_case *cases, *large;
    size_t n_cases, n_large;
};
typedef const struct layer_cases *const layer_cases_entry;

/* Each program has its own: runs the cases of one layer. */
void check_layer_cases(const struct layer_cases *set);

/*
 * The cases of a layer, and a test of them: LAYER_CASES(Pooling, ORDINARY(cases),
 * LARGE(large)). Large ones are sizes from which on CUDA impls take another way, such as
 * several outputs to a thread, sliced planes or a line to a block: too large for a host
 * without OpenMP, so for devices alone. The section holds pointers, which lie side by
 * side whatever the compiler aligns structs to.
 */
#define LAYER_CASES(layer_, ...)                                                         \
    static const struct layer_cases layer_##_cases = {.layer = #layer_, __VA_ARGS__};    \
    static layer_cases_entry layer_##_entry IN_LAYER_CASES = &layer_##_cases;            \
    Test(layers, layer_##_is_right_in_every_format)                                      \
    {                                                                                    \
        check_layer_cases(&layer_##_cases);                                              \
    }
#define IN_LAYER_CASES __attribute__((section("layer_cases"), used))
#define ORDINARY(array) .cases = array, .n_cases = ARRAY_LENGTH(array)
#define LARGE(array) .large = array, .n_large = ARRAY_LENGTH(array)

/* The section from its start to its end, which the linker defines. */
extern layer_cases_entry __start_layer_cases[], __stop_layer_cases[];

/* Shapes. */
/* clang-format off */
#define S1(...) {1, {__VA_ARGS__}}
#define S2(...) {2, {__VA_ARGS__}}
#define S3(...) {3, {__VA_ARGS__}}
#define S4(...) {4, {__VA_ARGS__}}
#define S5(...) {5, {__VA_ARGS__}}
/* clang-format on */
/* Values that every integer type holds. */
#define INTEGERS .low = 0, .high = 100, .integers = true
/* Floats of 8 bits, which only move. */
#define NARROW .dtypes = UINT64_C(1) << STRATA_E4M3 | UINT64_C(1) << STRATA_E5M2
/* The types beside FP32 that are moved only, and those that FP8 and BOOL are added to. */
#define MOVED                                                                            \
    INTEGERS, .dtypes = UINT64_C(1) << STRATA_BOOL8 | UINT64_C(1) << STRATA_E4M3 |       \
                        UINT64_C(1) << STRATA_E5M2
/* Input 1 holds indices of a dim of n, from both ends, and some beyond. */
#define INDICES(n)                                                                       \
    .in_dtype = {[1] = STRATA_INT64}, .in_range = {[1] = {-(n) - 1, (n)}}

#endif /* TESTS_LAYERS_CASES_H */
