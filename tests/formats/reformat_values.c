/* SPDX-License-Identifier: Apache-2.0
 *
 * What reformat does to values, in every row of its table, and what it refuses.
 */
#include "formats/reformat/reformat.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(reformat_values, .timeout = 600);

static const char *const names[] = {
    "fp32:nchw", "fp16:nchw",      "fp16:nc/2hw2", "fp16:nhwc8",     "fp32:nhwc",
    "fp16:nhwc", "fp32:nc/8hw8",   "i32:nchw",     "fp32:nc/16hw16", "int8:nc/4hw4",
    "u8:nhwc",   "int8:nc/32hw32", "int8:nchw",    "u8:nchw",        "fp32:chwn",
    "fp16:chwn", "int8:nhwc",      "i64:nchw",     "bool:nchw",      "bf16:nchw",
    "bf16:nhwc", "bf16:nhwc8",     "u8:nc/4hw4",   "u8:nc/32hw32",   "int8:nhwc16",
    "e4m3:nchw", "e4m3:nhwc16",    "e5m2:nchw",    "e5m2:nhwc16",    "fp64:nchw",
};

/* Element `at` of packed data becomes a whole number below 120, which the dtype holds. */
static void fill(char *data, int dtype, int64_t at, int number)
{
    static const int ends[STRATA_DTYPE_COUNT] = {
        [STRATA_BOOL8] = 2, [STRATA_E4M3] = 17, [STRATA_E5M2] = 9};
    const double x = ends[dtype] ? number % ends[dtype] : number;
    reformat_from_double(data + at * (int64_t)strata_dtype_size(dtype), dtype, &x, 1);
}

Test(reformat_values, equal_precision_comes_back_bit_exact)
{
    const int64_t dims[] = {2, 37, 6, 7};
    uint32_t n = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        for (size_t j = 0; j < ARRAY_LENGTH(names); j++) {
            strata_desc a, b;
            cr_assert_eq(strata_desc_format(&a, names[i], dims, 4, NULL), 0);
            cr_assert_eq(strata_desc_format(&b, names[j], dims, 4, NULL), 0);
            if (!dtype_exact(a.dtype, b.dtype))
                continue;
            const size_t bytes = (size_t)strata_desc_bytes(&a);
            const size_t size = (size_t)strata_desc_size(&a);
            char *first = calloc(1, bytes), *back = malloc(bytes);
            char *middle = malloc((size_t)strata_desc_bytes(&b));
            cr_assert(first != NULL && back != NULL && middle != NULL);
            for (size_t k = 0; k < size; k++)
                fill(first, a.dtype, (int64_t)k, (int)(n++ * 7 % 120));
            reformat_clear_pads(&a, first);
            cr_assert_eq(strata_reformat(&b, middle, &a, first, NULL), 0);
            cr_assert_eq(strata_reformat(&a, back, &b, middle, NULL), 0);
            cr_expect_eq(memcmp(first, back, bytes), 0, "%s -> %s -> %s", names[i],
                         names[j], names[i]);
            free(first);
            free(back);
            free(middle);
        }
}

Test(reformat_values, all_halves_pass_through_fp32_in_every_row)
{
    enum { N = 65536 };
    const int64_t dims[] = {N};
    static uint16_t halves[N], back[N];
    static float floats[N];
    strata_desc h, f;
    cr_assert_eq(strata_desc_format(&h, "fp16:nchw", dims, 1, NULL), 0);
    cr_assert_eq(strata_desc_format(&f, "fp32:nchw", dims, 1, NULL), 0);
    for (int i = 0; i < N; i++)
        halves[i] = (uint16_t)i;
    for (size_t row = 0; row < reformat_rows(); row++) {
        if (reformat_row(row, &f, floats, &h, halves, NULL) != STRATA_OK)
            continue;
        cr_assert_eq(reformat_row(row, &h, back, &f, floats, NULL), STRATA_OK);
        for (int i = 0; i < N; i++) {
            const bool nan = (i & 0x7fff) > 0x7c00;
            cr_assert_eq(back[i], nan ? i | 0x200 : i, "row %s: half %04x gave %04x",
                         reformat_row_name(row), i, back[i]);
        }
    }
}

Test(reformat_values, every_int64_passes_the_integers_alone)
{
    const int64_t dims[] = {6};
    const int64_t x[] = {INT64_MAX,      INT64_MIN, (INT64_C(1) << 53) + 1,
                         INT32_MAX + 1L, -129,      0};
    const int32_t i32[] = {INT32_MAX, INT32_MIN, INT32_MAX, INT32_MAX, -129, 0};
    const int8_t i8[] = {127, -128, 127, 127, -128, 0};
    const uint8_t truth[] = {1, 1, 1, 1, 1, 0};
    strata_desc from, to;
    char y[48];
    cr_assert_eq(strata_desc_format(&from, "i64:nchw", dims, 1, NULL), 0);
    to = from;
    for (size_t row = 0; row < reformat_rows(); row++) {
        if (reformat_row(row, &to, y, &from, x, NULL) != STRATA_OK)
            continue;
        cr_expect_arr_eq(y, x, sizeof x);
        to.dtype = STRATA_INT32;
        cr_assert_eq(reformat_row(row, &to, y, &from, x, NULL), 0);
        cr_expect_arr_eq(y, i32, sizeof i32);
        to.dtype = STRATA_INT8;
        cr_assert_eq(reformat_row(row, &to, y, &from, x, NULL), 0);
        cr_expect_arr_eq(y, i8, sizeof i8);
        to.dtype = STRATA_BOOL8;
        cr_assert_eq(reformat_row(row, &to, y, &from, x, NULL), 0);
        cr_expect_arr_eq(y, truth, sizeof truth);
        to = from;
    }
}

Test(reformat_values, integers_round_to_nearest_even_and_saturate)
{
    static const struct {
        float x;
        int8_t i8;
        uint8_t u8;
        int32_t i32;
    } cases[] = {
        {0.5f, 0, 0, 0},
        {1.5f, 2, 2, 2},
        {2.5f, 2, 2, 2},
        {-0.5f, 0, 0, 0},
        {-1.5f, -2, 0, -2},
        {126.5f, 126, 126, 126},
        {127.5f, 127, 128, 128},
        {-128.5f, -128, 0, -128},
        {254.5f, 127, 254, 254},
        {255.5f, 127, 255, 256},
        {8388609.0f, 127, 255, 8388609},
        {2147483520.0f, 127, 255, 2147483520},
        {2147483648.0f, 127, 255, INT32_MAX},
        {1e30f, 127, 255, INT32_MAX},
        {-2147483648.0f, -128, 0, INT32_MIN},
        {-1e30f, -128, 0, INT32_MIN},
        {INFINITY, 127, 255, INT32_MAX},
        {-INFINITY, -128, 0, INT32_MIN},
        {NAN, 0, 0, 0},
    };
    enum { REPEATS = 20 };
    const int64_t dims[] = {REPEATS};
    strata_desc f, d;
    cr_assert_eq(strata_desc_format(&f, "fp32:nchw", dims, 1, NULL), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        for (size_t row = 0; row < reformat_rows(); row++) {
            float x[REPEATS];
            int8_t i8[REPEATS];
            uint8_t u8[REPEATS];
            int32_t i32[REPEATS];
            for (int k = 0; k < REPEATS; k++)
                x[k] = cases[i].x;
            cr_assert_eq(strata_desc_format(&d, "int8:nchw", dims, 1, NULL), 0);
            if (reformat_row(row, &d, i8, &f, x, NULL) != STRATA_OK)
                continue;
            d.dtype = STRATA_UINT8;
            cr_assert_eq(reformat_row(row, &d, u8, &f, x, NULL), 0);
            d.dtype = STRATA_INT32;
            cr_assert_eq(reformat_row(row, &d, i32, &f, x, NULL), 0);
            for (int k = 0; k < REPEATS; k++)
                cr_expect(i8[k] == cases[i].i8 && u8[k] == cases[i].u8 &&
                              i32[k] == cases[i].i32,
                          "row %s, %g: %d %d %d", reformat_row_name(row),
                          (double)cases[i].x, i8[k], u8[k], i32[k]);
        }
}

/* ---- choice and refusals -------------------------------------------------------------
 */

Test(reformat_values, equal_layouts_are_one_run)
{
    const int64_t dims[] = {3, 16, 5, 7};
    static const char *const same[][2] = {
        {"fp32:nchw", "fp16:nchw"},      {"fp32:nhwc", "u8:nhwc"},
        {"fp32:nc/16hw16", "fp32:nhwc"}, {"fp16:nhwc8", "fp32:nhwc"},
        {"fp16:chwn", "fp32:chwn"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(same); i++) {
        strata_desc a, b;
        cr_assert_eq(strata_desc_format(&a, same[i][0], dims, 4, NULL), 0);
        cr_assert_eq(strata_desc_format(&b, same[i][1], dims, 4, NULL), 0);
        const char *name = reformat_row_name(reformat_choose(&a, &b));
        cr_expect_eq(strncmp(name, "runs", 4), 0, "%s from %s: %s", same[i][0],
                     same[i][1], name);
    }
}

Test(reformat_values, bad_arguments_are_refused_with_the_reason)
{
    const int64_t dims[] = {1, 3, 4, 4}, other[] = {1, 3, 4, 5};
    strata_desc a, b;
    strata_error err = {0};
    float x[2 * 3 * 4 * 5];
    cr_assert_eq(strata_desc_format(&a, "fp32:nchw", dims, 4, NULL), 0);
    cr_assert_eq(strata_desc_format(&b, "fp32:nhwc", other, 4, NULL), 0);
    cr_expect_eq(strata_reformat(&a, x, &b, x + 60, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "dim 3 is 5"), "%s", err.message);
    err = (strata_error){0};
    cr_assert_eq(strata_desc_format(&b, "fp32:nhwc", dims, 4, NULL), 0);
    cr_expect_eq(strata_reformat(&a, x, &b, x + 40, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "share memory"), "%s", err.message);
    err = (strata_error){0};
    cr_expect_eq(strata_reformat(&a, NULL, &b, x, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "NULL"), "%s", err.message);
    err = (strata_error){0};
    a.strides[3] = 0;
    cr_expect_eq(strata_reformat(&a, x, &b, x + 60, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "destination"), "%s", err.message);
    err = (strata_error){0};
    b.strides[2] = -4;
    cr_expect_eq(strata_reformat(&a, x, &b, x + 60, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "-4"), "%s", err.message);
}

Test(reformat_values, empty_tensors_need_no_memory)
{
    const int64_t dims[] = {2, 0, 4, 4};
    strata_desc a, b;
    cr_assert_eq(strata_desc_format(&a, "fp16:nhwc8", dims, 4, NULL), 0);
    cr_assert_eq(strata_desc_format(&b, "fp32:nchw", dims, 4, NULL), 0);
    cr_expect_eq(strata_desc_bytes(&a), 0);
    cr_expect_eq(strata_reformat(&a, NULL, &b, NULL, NULL), STRATA_OK);
}

/* Eight channels of 24 to eight others, in images of a batch. */
Test(reformat_values, parts_of_one_tensor_are_apart)
{
    static const char *const formats[] = {"fp32:nchw", "fp32:nhwc", "fp32:nc/8hw8"};
    const int64_t dims[] = {2, 8, 3, 5}, all[] = {2, 24, 3, 5};
    enum { COUNT = 2 * 24 * 3 * 5 };
    for (size_t i = 0; i < ARRAY_LENGTH(formats); i++) {
        strata_desc part, whole;
        strata_error err = {0};
        float x[COUNT];
        int64_t moved = 0;
        cr_assert_eq(strata_desc_format(&part, formats[i], dims, 4, NULL), 0);
        cr_assert_eq(strata_desc_format(&whole, formats[i], all, 4, NULL), 0);
        memcpy(part.strides, whole.strides, sizeof part.strides);
        const int64_t step = i == 1 ? 8 : 8 * 3 * 5; /* of eight channels */
        for (int k = 0; k < COUNT; k++)
            x[k] = (float)k;
        cr_expect_eq(strata_reformat(&part, x + step, &part, x, &err), STRATA_OK, "%s",
                     err.message);
        for (int k = 0; k < COUNT; k++) {
            const bool behind = x[k] != (float)k;
            cr_expect(!behind || x[k] == (float)(k - step), "%s", formats[i]);
            moved += behind;
        }
        cr_expect_eq(moved, 2 * 8 * 3 * 5, "%s", formats[i]);
        cr_expect_eq(strata_reformat(&part, x + step / 2, &part, x, &err), STRATA_EINVAL,
                     "%s", formats[i]);
    }
}
