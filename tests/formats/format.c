/* SPDX-License-Identifier: Apache-2.0
 *
 * The format table, its names, the exact place of every element of every format, and
 * binary16.
 */
#include "formats/format.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <strata/half.h>
#include <string.h>

TestSuite(format, .timeout = 600);

static const int64_t channels[] = {1,  2,  3,  4,  7,  8,  9,  15,
                                   16, 17, 31, 32, 33, 63, 64, 65};
static const int64_t sides[] = {1, 2, 3, 5, 7};

/* ---- table and names -------------------------------------------------------------- */

Test(format, table_follows_the_bits_of_the_abi)
{
    static const struct {
        uint64_t mask;
        const char *rank4, *rank5, *rank3;
    } rows[] = {
        {STRATA_F32_NCHW, "fp32:nchw", "fp32:ncdhw", "fp32:bmn"},
        {STRATA_F16_NCHW, "fp16:nchw", "fp16:ncdhw", "fp16:bmn"},
        {STRATA_F16_NC2HW2, "fp16:nc/2hw2", "fp16:nc/2dhw2", "fp16:bm/2n2"},
        {STRATA_F16_NHWC8, "fp16:nhwc8", "fp16:ndhwc8", "fp16:bnm8"},
        {STRATA_F32_NHWC, "fp32:nhwc", "fp32:ndhwc", "fp32:bnm"},
        {STRATA_F16_NHWC, "fp16:nhwc", "fp16:ndhwc", "fp16:bnm"},
        {STRATA_F32_NC8HW8, "fp32:nc/8hw8", "fp32:nc/8dhw8", "fp32:bm/8n8"},
        {STRATA_F32_NC16HW16, "fp32:nc/16hw16", "fp32:nc/16dhw16", "fp32:bm/16n16"},
        {STRATA_I8_NC4HW4, "int8:nc/4hw4", "int8:nc/4dhw4", "int8:bm/4n4"},
        {STRATA_I8_NC32HW32, "int8:nc/32hw32", "int8:nc/32dhw32", "int8:bm/32n32"},
        {STRATA_U8_NHWC, "u8:nhwc", "u8:ndhwc", "u8:bnm"},
        {STRATA_I32_NCHW, "i32:nchw", "i32:ncdhw", "i32:bmn"},
        {STRATA_I8_NCHW, "int8:nchw", "int8:ncdhw", "int8:bmn"},
        {STRATA_U8_NCHW, "u8:nchw", "u8:ncdhw", "u8:bmn"},
        {STRATA_F32_CHWN, "fp32:chwn", "fp32:cdhwn", "fp32:mnb"},
        {STRATA_F16_CHWN, "fp16:chwn", "fp16:cdhwn", "fp16:mnb"},
        {STRATA_I8_NHWC, "int8:nhwc", "int8:ndhwc", "int8:bnm"},
        {STRATA_I64_NCHW, "i64:nchw", "i64:ncdhw", "i64:bmn"},
        {STRATA_BOOL_NCHW, "bool:nchw", "bool:ncdhw", "bool:bmn"},
        {STRATA_BF16_NCHW, "bf16:nchw", "bf16:ncdhw", "bf16:bmn"},
        {STRATA_BF16_NHWC, "bf16:nhwc", "bf16:ndhwc", "bf16:bnm"},
        {STRATA_BF16_NHWC8, "bf16:nhwc8", "bf16:ndhwc8", "bf16:bnm8"},
        {STRATA_U8_NC4HW4, "u8:nc/4hw4", "u8:nc/4dhw4", "u8:bm/4n4"},
        {STRATA_U8_NC32HW32, "u8:nc/32hw32", "u8:nc/32dhw32", "u8:bm/32n32"},
        {STRATA_I8_NHWC16, "int8:nhwc16", "int8:ndhwc16", "int8:bnm16"},
        {STRATA_E4M3_NCHW, "e4m3:nchw", "e4m3:ncdhw", "e4m3:bmn"},
        {STRATA_E4M3_NHWC16, "e4m3:nhwc16", "e4m3:ndhwc16", "e4m3:bnm16"},
        {STRATA_E5M2_NCHW, "e5m2:nchw", "e5m2:ncdhw", "e5m2:bmn"},
        {STRATA_E5M2_NHWC16, "e5m2:nhwc16", "e5m2:ndhwc16", "e5m2:bnm16"},
        {STRATA_F64_NCHW, "fp64:nchw", "fp64:ncdhw", "fp64:bmn"},
    };
    cr_assert_eq(ARRAY_LENGTH(rows), STRATA_FORMAT_COUNT);
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        const struct format *f = format_at((int)i);
        cr_assert_not_null(f);
        cr_expect_eq(format_mask(*f), rows[i].mask, "row %zu", i);
        cr_expect_eq(format_index(*f), (int)i);
        const char *const names[] = {rows[i].rank4, rows[i].rank5, rows[i].rank3};
        static const int ranks[] = {4, 5, 3};
        for (int r = 0; r < 3; r++) {
            char name[FORMAT_NAME_SIZE];
            struct format parsed;
            format_name(name, *f, ranks[r]);
            cr_expect_str_eq(name, names[r]);
            cr_expect_str_eq(format_mask_name(rows[i].mask, ranks[r]), names[r]);
            cr_assert_eq(format_parse(&parsed, names[r], NULL), STRATA_OK, "%s",
                         names[r]);
            cr_expect_eq(format_index(parsed), (int)i, "%s", names[r]);
        }
    }
    cr_expect_null(format_at(-1));
    cr_expect_null(format_at(STRATA_FORMAT_COUNT));
    cr_expect_str_eq(format_mask_name(0, 4), "?");
    cr_expect_str_eq(format_mask_name(STRATA_F32_NCHW | STRATA_F16_NCHW, 4), "?");
    cr_expect_str_eq(format_mask_name(STRATA_SAME, 4), "?");
}

Test(format, names_of_any_width_parse_back)
{
    for (int32_t x = 2; x <= 1030; x++)
        for (int32_t order = ORDER_LINEAR; order <= ORDER_LAST; order++)
            for (int rank = 3; rank <= 5; rank++) {
                const struct format f = {STRATA_INT8, order, x};
                struct format parsed;
                char name[FORMAT_NAME_SIZE];
                format_name(name, f, rank);
                cr_assert_eq(format_parse(&parsed, name, NULL), STRATA_OK, "%s", name);
                cr_assert(parsed.dtype == f.dtype && parsed.order == f.order &&
                              parsed.vector == x,
                          "%s", name);
            }
    struct format parsed;
    cr_assert_eq(format_parse(&parsed, "fp32:nc/1hw1", NULL), STRATA_OK);
    cr_expect_eq(format_mask(parsed), STRATA_F32_NCHW);
    const struct format odd = {STRATA_INT8, ORDER_LINEAR, 5};
    cr_expect_eq(format_mask(odd), 0);
    cr_expect_eq(format_index(odd), -1);
}

Test(format, parse_errors_name_what_was_found_and_what_is_near)
{
    static const struct {
        const char *text, *found, *remedy;
    } cases[] = {
        {"nchw", "nchw", "DTYPE:LAYOUT"},
        {"", "''", "DTYPE:LAYOUT"},
        {"fp17:nchw", "'fp17'", "did you mean 'fp16'"},
        {"float:nchw", "'float'", "fp32, fp16, bf16, fp64, e4m3, e5m2, int8"},
        {":nchw", "dtype ''", "fp32"},
        {"fp32:", "layout ''", "nchw"},
        {"fp32:nchv", "'nchv'", "did you mean 'nchw'"},
        {"fp32:nc/2hw4", "'nc/2hw4'", "did you mean"},
        {"fp32:nc/0hw0", "'nc/0hw0'", "x of 2 to"},
        {"fp32:nc/02hw02", "'nc/02hw02'", "nc/xHWx"},
        {"fp32:nc/-2hw-2", "'nc/-2hw-2'", "nc/xHWx"},
        {"fp32:nc/hw", "'nc/hw'", "nc/xHWx"},
        {"fp32:nc/99999999999hw99999999999", "99999999999", "65536"},
        {"fp32:nhwc08", "'nhwc08'", "nhwc8"},
        {"fp32:nhwc8x", "'nhwc8x'", "nhwc8"},
        {"fp32:nchw ", "'nchw '", "'nchw'"},
        {"FP32:NCHW", "'FP32'", "fp32"},
        {"fp32:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "'aaaaaaaa", "known"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct format f = {7, 7, 7};
        strata_error err = {0};
        cr_expect_eq(format_parse(&f, cases[i].text, &err), STRATA_EPARSE, "%s",
                     cases[i].text);
        cr_expect_not_null(strstr(err.message, cases[i].found), "%s", err.message);
        cr_expect_not_null(strstr(err.message, cases[i].remedy), "%s", err.message);
        cr_expect_eq(f.dtype, 7, "%s was written", cases[i].text);
    }
}

Test(format, a_look_up_takes_the_formats_of_the_table_alone)
{
    static const char *const absent[] = {"fp32:nhwc8", "int8:chwn", "fp32:nc/2hw2",
                                         "i32:nhwc", "fp16:ndhwc4"};
    char name[FORMAT_NAME_SIZE];
    struct format f;
    for (int i = 0; i < STRATA_FORMAT_COUNT; i++)
        for (int rank = 3; rank <= 5; rank++) {
            format_name(name, *format_at(i), rank);
            cr_assert_eq(format_lookup(&f, name, NULL), STRATA_OK, "%s", name);
            cr_expect_eq(format_index(f), i, "%s", name);
        }
    for (size_t i = 0; i < ARRAY_LENGTH(absent); i++) {
        strata_error err = {0};
        f.dtype = 7;
        cr_assert_eq(format_parse(&(struct format){0}, absent[i], NULL), STRATA_OK);
        cr_expect_eq(format_lookup(&f, absent[i], &err), STRATA_EPARSE, "%s", absent[i]);
        cr_expect_eq(f.dtype, 7, "%s was written", absent[i]);
        for (int k = 0; k < STRATA_FORMAT_COUNT; k++) {
            format_name(name, *format_at(k), 4);
            cr_expect_not_null(strstr(err.message, name), "no %s in: %s", name,
                               err.message);
        }
        cr_expect_not_null(strstr(err.message, "did you mean"), "%s", err.message);
    }
}

Test(format, precision_and_exactness_follow_the_dtypes)
{
    /* fp32 fp16 int8 u8 i32 i64 bool bf16 e4m3 e5m2 fp64 */
    static const bool exact[STRATA_DTYPE_COUNT][STRATA_DTYPE_COUNT] = {
        [STRATA_FP32] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
        [STRATA_FP16] = {1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1},
        [STRATA_INT8] = {1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1},
        [STRATA_UINT8] = {1, 1, 0, 1, 1, 1, 0, 1, 0, 0, 1},
        [STRATA_INT32] = {0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1},
        [STRATA_INT64] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0},
        [STRATA_BOOL8] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        [STRATA_BF16] = {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1},
        [STRATA_E4M3] = {1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1},
        [STRATA_E5M2] = {1, 1, 0, 0, 0, 0, 0, 1, 0, 1, 1},
        [STRATA_FP64] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
    };
    static const int bits[STRATA_DTYPE_COUNT] = {24, 11, 8, 8, 32, 64, 1, 8, 4, 3, 53};
    static const int range[STRATA_DTYPE_COUNT] = {8, 5, 0, 0, 0, 0, 0, 8, 4, 5, 11};
    for (int i = 0; i < STRATA_DTYPE_COUNT; i++) {
        cr_expect_eq(dtype_precision(i), bits[i]);
        cr_expect_eq(dtype_range(i), range[i]);
        for (int j = 0; j < STRATA_DTYPE_COUNT; j++)
            cr_expect_eq(dtype_exact(i, j), exact[i][j], "%d to %d", i, j);
    }
    cr_expect_not(dtype_exact(-1, 0));
    cr_expect_not(dtype_exact(0, STRATA_DTYPE_COUNT));
}

/* ---- offsets ------------------------------------------------------------------------
 */

/* The formulas of the documentation, with H and W the last two dims of four. */
static int64_t formula(struct format f, const int64_t *dims, const int64_t *i)
{
    const int64_t v = f.vector, blocks = (dims[1] + v - 1) / v;
    const int64_t h = dims[2], w = dims[3];
    if (f.order == ORDER_LAST)
        return ((i[0] * h + i[2]) * w + i[3]) * blocks * v + i[1];
    if (f.order == ORDER_BATCH)
        return ((i[1] * h + i[2]) * w + i[3]) * dims[0] + i[0];
    return (((i[0] * blocks + i[1] / v) * h + i[2]) * w + i[3]) * v + i[1] % v;
}

/* Every element in range and in a place of its own, and what is left is the pads. */
static void check_places(struct format f, const int64_t *dims)
{
    char name[FORMAT_NAME_SIZE];
    strata_desc d;
    format_name(name, f, 4);
    cr_assert_eq(format_desc(&d, f, dims, 4, NULL), STRATA_OK);
    const int64_t size = strata_desc_size(&d), v = f.vector;
    const int64_t padded = (dims[1] + v - 1) / v * v;
    cr_assert_eq(size, dims[0] * padded * dims[2] * dims[3], "%s", name);
    char *taken = calloc((size_t)size, 1);
    cr_assert_not_null(taken);
    strata_tensor view;
    tensor_view(&view, &d, format_mask(f), STRATA_PAD_ZERO, NULL);
    cr_assert(view.size == size && view.count == strata_desc_count(&d));
    for (int64_t n = 0; n < dims[0] * padded * dims[2] * dims[3]; n++) {
        const int64_t i[] = {n / (padded * dims[2] * dims[3]),
                             n / (dims[2] * dims[3]) % padded, n / dims[3] % dims[2],
                             n % dims[3]};
        const int64_t at = strata_desc_offset(&d, i);
        cr_assert_eq(at, formula(f, dims, i), "%s", name);
        cr_assert(at >= 0 && at < size && !taken[at], "%s", name);
        cr_assert_eq(at, strata_offset(&view, i), "%s", name);
        cr_assert_eq(at, strata_offset4(&view, i[0], i[1], i[2], i[3]), "%s", name);
        taken[at] = i[1] < dims[1] ? 1 : 2; /* an element, or a pad lane by the formula */
    }
    int64_t pads = 0;
    for (int64_t i = 0; i < size; i++) {
        cr_assert_neq(taken[i], 0, "%s: place %lld is nothing's", name, (long long)i);
        pads += taken[i] == 2;
    }
    cr_expect_eq(pads, size - strata_desc_count(&d));
    cr_expect_eq(format_has_pads(f, dims[1]), pads > 0);
    cr_expect(strata_desc_fully_packed(&d) && !strata_desc_overlapping(&d));
    free(taken);
}

Test(format, offsets_are_injective_in_range_and_leave_exactly_the_pads)
{
    struct format more[] = {{STRATA_FP32, ORDER_LINEAR, 3},
                            {STRATA_INT8, ORDER_LINEAR, 5},
                            {STRATA_FP16, ORDER_LINEAR, 33},
                            {STRATA_FP16, ORDER_LAST, 16}};
    for (int f = 0; f < STRATA_FORMAT_COUNT + (int)ARRAY_LENGTH(more); f++)
        for (size_t c = 0; c < ARRAY_LENGTH(channels); c++)
            for (size_t h = 0; h < ARRAY_LENGTH(sides); h++)
                for (size_t w = 0; w < ARRAY_LENGTH(sides); w++)
                    for (int64_t n = 1; n <= 3; n++) {
                        const int64_t dims[] = {n, channels[c], sides[h], sides[w]};
                        check_places(f < STRATA_FORMAT_COUNT
                                         ? *format_at(f)
                                         : more[f - STRATA_FORMAT_COUNT],
                                     dims);
                    }
}

/* Merging the spatial dims into one changes no place. */
Test(format, other_ranks_follow_the_same_rule)
{
    const int64_t n = 2, c = 11;
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++) {
        const int64_t d5[] = {n, c, 2, 3, 5}, d4[] = {n, c, 6, 5}, d3[] = {n, c, 30};
        const int64_t d2[] = {n, c}, flat[] = {n, c, 1, 1};
        strata_desc a, b, e, g, h;
        cr_assert_eq(format_desc(&a, *format_at(f), d5, 5, NULL), STRATA_OK);
        cr_assert_eq(format_desc(&b, *format_at(f), d4, 4, NULL), STRATA_OK);
        cr_assert_eq(format_desc(&e, *format_at(f), d3, 3, NULL), STRATA_OK);
        cr_assert_eq(format_desc(&g, *format_at(f), d2, 2, NULL), STRATA_OK);
        cr_assert_eq(format_desc(&h, *format_at(f), flat, 4, NULL), STRATA_OK);
        cr_expect_eq(strata_desc_size(&a), strata_desc_size(&b));
        cr_expect_eq(strata_desc_size(&g), strata_desc_size(&h));
        for (int64_t i = 0; i < n * c * 30; i++) {
            const int64_t s = i % 30, k = i / 30 % c, m = i / 30 / c;
            const int64_t i5[] = {m, k, s / 15, s / 5 % 3, s % 5};
            const int64_t i4[] = {m, k, s / 5, s % 5}, i3[] = {m, k, s};
            const int64_t i0[] = {m, k, 0, 0};
            cr_assert_eq(strata_desc_offset(&a, i5), strata_desc_offset(&b, i4));
            cr_assert_eq(strata_desc_offset(&a, i5), strata_desc_offset(&e, i3));
            cr_assert_eq(strata_desc_offset(&g, i3), strata_desc_offset(&h, i0));
        }
    }
}

Test(format, descriptors_of_impossible_ranks_and_sizes_are_refused)
{
    const int64_t huge[] = {INT64_C(1) << 40, INT64_MAX - 3, 2, 2};
    const int64_t dims[] = {3, -1, 2, 2, 1, 1, 1, 1, 1};
    strata_desc d;
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++) {
        const struct format *row = format_at(f);
        const bool linear = row->order == ORDER_LINEAR && row->vector == 1;
        strata_error err = {0};
        cr_expect_eq(format_desc(&d, *row, huge, 4, &err), STRATA_EOVERFLOW, "%s",
                     err.message);
        cr_expect_not_null(strstr(err.message, strata_dtype_name(row->dtype)));
        cr_expect_eq(format_desc(&d, *row, dims, 1, NULL),
                     linear ? STRATA_OK : STRATA_EINVAL);
        cr_expect_eq(format_desc(&d, *row, dims, 9, NULL), STRATA_EINVAL);
        cr_expect_eq(format_desc(&d, *row, dims, 0, NULL), STRATA_EINVAL);
        err = (strata_error){0};
        cr_expect_eq(format_desc(&d, *row, dims, 4, &err), STRATA_EINVAL);
        cr_expect_not_null(strstr(err.message, "dim 1 is -1"), "%s", err.message);
    }
    cr_expect_eq(strata_desc_format(&d, NULL, dims, 4, NULL), STRATA_EINVAL);
    cr_expect_eq(strata_desc_format(&d, "fp32:nchw", NULL, 4, NULL), STRATA_EINVAL);
    cr_expect_eq(strata_desc_format(NULL, "fp32:nchw", dims, 4, NULL), STRATA_EINVAL);
}

Test(format, equal_places_are_found_across_formats)
{
    const int64_t plain[] = {2, 16, 1, 1}, full[] = {2, 16, 3, 3};
    strata_desc a, b;
    static const struct {
        const char *a, *b;
        bool plain, full; /* equal for H = W = 1, and for 3 x 3 */
    } cases[] = {
        {"fp32:nchw", "fp32:nhwc", true, false},
        {"fp32:nc/16hw16", "fp32:nhwc", true, true},
        {"fp32:nc/8hw8", "fp32:nc/16hw16", true, false},
        {"fp16:nhwc8", "fp16:nhwc", true, true},
        {"fp16:nhwc8", "fp16:nhwc16", true, true},
        {"fp32:nchw", "fp32:chwn", false, false},
        {"int8:nc/32hw32", "int8:nhwc", false, false},
        {"fp32:nchw", "i32:nchw", false, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        cr_assert_eq(strata_desc_format(&a, cases[i].a, plain, 4, NULL), 0);
        cr_assert_eq(strata_desc_format(&b, cases[i].b, plain, 4, NULL), 0);
        cr_expect_eq(strata_desc_equal(&a, &b), cases[i].plain, "case %zu", i);
        cr_assert_eq(strata_desc_format(&a, cases[i].a, full, 4, NULL), 0);
        cr_assert_eq(strata_desc_format(&b, cases[i].b, full, 4, NULL), 0);
        cr_expect_eq(strata_desc_equal(&a, &b), cases[i].full, "case %zu", i);
    }
}

/* ---- binary16 ------------------------------------------------------------------------
 */

/* By the definition of the encoding; not for NaN. */
static double half_value(unsigned h)
{
    const int exponent = (int)(h >> 10 & 0x1f);
    const double mantissa = h & 0x3ff, sign = h & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return sign * INFINITY;
    return sign *
           (exponent == 0 ? ldexp(mantissa, -24) : ldexp(mantissa + 1024, exponent - 25));
}

/* The library's own, and those that plugins have. */
static const struct binary16 {
    const char *who;
    float (*to_float)(uint16_t half);
    uint16_t (*of_float)(float x);
} binary16s[] = {
    {"formats/format.h", half_to_float, half_from_float},
    {"strata/half.h", strata_float_of_half, strata_half_of_float},
};

static void check_each_half(const struct binary16 *b)
{
    for (unsigned h = 0; h < 65536; h++) {
        const float x = b->to_float((uint16_t)h);
        if ((h & 0x7fff) > 0x7c00) {
            cr_assert(isnan(x), "%s: half %04x", b->who, h);
            cr_assert_eq(b->of_float(x), h | 0x200, "%s: half %04x", b->who, h);
            continue;
        }
        cr_assert_eq((double)x, half_value(h), "%s: half %04x", b->who, h);
        cr_assert_eq(signbit(x) != 0, h >> 15, "%s: half %04x", b->who, h);
        cr_assert_eq(b->of_float(x), h, "%s: half %04x", b->who, h);
    }
}

Test(format, every_half_has_its_value_and_comes_back)
{
    for (size_t i = 0; i < sizeof binary16s / sizeof binary16s[0]; i++)
        check_each_half(&binary16s[i]);
}

/* Just below, at and just above every midpoint of two neighbours. */
static void check_rounding(const struct binary16 *b)
{
    for (unsigned h = 0; h < 0x7c00; h++) {
        const double high = h == 0x7bff ? 65536 : half_value(h + 1);
        const float middle = (float)((half_value(h) + high) / 2);
        const unsigned even = h % 2 == 0 ? h : h + 1;
        cr_assert_eq(b->of_float(middle), even, "%s: half %04x", b->who, h);
        cr_assert_eq(b->of_float(nextafterf(middle, 0)), h, "%s: half %04x", b->who, h);
        cr_assert_eq(b->of_float(nextafterf(middle, INFINITY)), h + 1, "%s: half %04x",
                     b->who, h);
        cr_assert_eq(b->of_float(-middle), even | 0x8000, "%s: half %04x", b->who, h);
    }
    cr_expect_eq(b->of_float(3.4e38f), 0x7c00);
    cr_expect_eq(b->of_float(-INFINITY), 0xfc00);
    cr_expect_eq(b->of_float(1e-45f), 0);
}

Test(format, floats_round_to_the_nearest_even_half)
{
    for (size_t i = 0; i < sizeof binary16s / sizeof binary16s[0]; i++)
        check_rounding(&binary16s[i]);
}
