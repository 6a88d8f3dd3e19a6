/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor descriptors: constructors, refusals, and every predicate against enumeration.
 */
#include "core/status.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(tensor, .timeout = 600);

static uint64_t state = 1;

static int64_t below(int64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)n);
}

static int expect_message(const strata_error *err, const char *a, const char *b)
{
    return strstr(err->message, a) != NULL && strstr(err->message, b) != NULL;
}

/* ---- constructors ---------------------------------------------------------------- */

Test(tensor, layouts_have_cudnn_strides)
{
    static const struct {
        strata_layout layout;
        int rank;
        int64_t strides[5];
    } cases[] = {
        {STRATA_LAYOUT_NCHW, 4, {60, 20, 5, 1}},
        {STRATA_LAYOUT_NHWC, 4, {60, 1, 15, 3}},
        {STRATA_LAYOUT_CHWN, 4, {1, 40, 10, 2}},
        {STRATA_LAYOUT_NCDHW, 5, {360, 120, 30, 6, 1}},
        {STRATA_LAYOUT_NDHWC, 5, {360, 1, 90, 18, 3}},
        {STRATA_LAYOUT_CDHWN, 5, {1, 240, 60, 12, 2}},
        {STRATA_LAYOUT_BMN_ROW, 3, {12, 4, 1}},
        {STRATA_LAYOUT_BMN_COLUMN, 3, {12, 1, 3}},
    };
    static const int64_t dims[][5] = {
        [3] = {2, 3, 4}, [4] = {2, 3, 4, 5}, [5] = {2, 3, 4, 5, 6}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        strata_desc d;
        strata_error err = {0};
        const int rank = cases[i].rank;
        cr_assert_eq(
            strata_desc_layout(&d, cases[i].layout, STRATA_FP16, dims[rank], rank, &err),
            STRATA_OK, "%s", err.message);
        for (int k = 0; k < rank; k++)
            cr_expect_eq(d.strides[k], cases[i].strides[k], "layout %d, stride %d",
                         (int)cases[i].layout, k);
        cr_expect(strata_desc_fully_packed(&d));
        cr_expect_eq(strata_desc_check(&d, 1, NULL), STRATA_OK);
        cr_expect_eq(strata_desc_size(&d), strata_desc_count(&d));
        cr_expect_eq(strata_desc_bytes(&d), 2 * strata_desc_count(&d));
        cr_expect_eq(strata_desc_layout(&d, cases[i].layout, STRATA_FP16, dims[rank],
                                        rank - 1, NULL),
                     STRATA_EINVAL);
    }
}

Test(tensor, vectors_round_the_channels_up)
{
    const int64_t dims[] = {2, 17, 5, 5};
    static const struct {
        int x;
        int64_t size;
    } cases[] = {{1, 850}, {2, 900}, {4, 1000}, {16, 1600}, {17, 850}, {32, 1600}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        strata_desc d;
        cr_assert_eq(strata_desc_vector(&d, STRATA_INT8, dims, 4, cases[i].x, NULL), 0);
        cr_expect_eq(strata_desc_size(&d), cases[i].size, "x = %d", cases[i].x);
        cr_expect_eq(strata_desc_count(&d), 850);
        cr_expect(strata_desc_fully_packed(&d));
        const int64_t index[] = {1, 13, 2, 3};
        const int64_t x = cases[i].x, blocks = (17 + x - 1) / x;
        cr_expect_eq(strata_desc_offset(&d, index),
                     (((blocks + 13 / x) * 5 + 2) * 5 + 3) * x + 13 % x);
    }
}

/* ---- refusals --------------------------------------------------------------------- */

Test(tensor, bad_descriptors_are_refused_with_place_and_value)
{
    const int64_t dims[] = {2, 3, 4, 5}, strides[] = {60, 20, -5, 1};
    const int64_t negative[] = {2, -3, 4, 5};
    const int64_t huge[] = {INT64_C(1) << 31, INT64_C(1) << 31, 2, 2};
    const int64_t bytes[] = {INT64_C(1) << 31, INT64_C(1) << 30};
    strata_desc d;
    strata_error err = {0};
    cr_expect_eq(strata_desc_strided(&d, STRATA_FP32, dims, strides, 4, &err),
                 STRATA_EINVAL);
    cr_expect(expect_message(&err, "dim 2", "-5"), "%s", err.message);
    cr_expect_eq(strata_desc_check(&d, 0, NULL), STRATA_EINVAL);
    err = (strata_error){0};
    cr_expect_eq(strata_desc_vector(&d, STRATA_FP32, negative, 4, 1, &err),
                 STRATA_EINVAL);
    cr_expect(expect_message(&err, "dim 1", "-3"), "%s", err.message);
    err = (strata_error){0};
    cr_expect_eq(strata_desc_vector(&d, 17, dims, 4, 1, &err), STRATA_EINVAL);
    cr_expect(expect_message(&err, "dtype", "17"), "%s", err.message);
    err = (strata_error){0};
    cr_expect_eq(strata_desc_vector(&d, STRATA_FP32, dims, 9, 1, &err), STRATA_EINVAL);
    cr_expect(expect_message(&err, "rank 9", "1 to 8"), "%s", err.message);
    cr_expect_eq(strata_desc_vector(&d, STRATA_FP32, dims, 0, 1, NULL), STRATA_EINVAL);
    cr_expect_eq(strata_desc_vector(&d, STRATA_FP32, dims, 4, 0, NULL), STRATA_EINVAL);
    cr_expect_eq(strata_desc_vector(&d, STRATA_FP32, dims, 1, 2, NULL), STRATA_EINVAL);
    cr_expect_eq(strata_desc_vector(&d, STRATA_FP32, huge, 4, 1, NULL), STRATA_EOVERFLOW);
    cr_expect_eq(strata_desc_vector(&d, STRATA_FP32, bytes, 2, 1, NULL),
                 STRATA_EOVERFLOW);
    cr_expect_eq(strata_desc_vector(&d, STRATA_INT8, bytes, 2, 1, NULL), STRATA_OK);
    cr_expect_eq(strata_desc_layout(&d, (strata_layout)99, STRATA_FP32, dims, 4, NULL),
                 STRATA_EINVAL);
    cr_expect_eq(strata_desc_strided(&d, STRATA_FP32, dims, NULL, 4, NULL),
                 STRATA_EINVAL);
    cr_expect_eq(strata_desc_strided(NULL, STRATA_FP32, dims, dims, 4, NULL),
                 STRATA_EINVAL);
    cr_expect_eq(strata_desc_check(NULL, 0, NULL), STRATA_EINVAL);
}

/* What fills a struct by hand forgets a field; its check says which. */
static void nothing_is_computed(const strata_desc *d)
{
    const int64_t index[STRATA_MAX_RANK] = {0};
    cr_expect_eq(strata_desc_check(d, 0, NULL), STRATA_EINVAL);
    cr_expect_eq(strata_desc_size(d), -1);
    cr_expect_eq(strata_desc_bytes(d), -1);
    cr_expect_eq(strata_desc_count(d), -1);
    cr_expect_not(strata_desc_overlapping(d));
    cr_expect_not(strata_desc_fully_packed(d));
    cr_expect_not(strata_desc_packed(d, "N"));
    cr_expect_not(strata_desc_spatially_packed(d));
    cr_expect_not(strata_desc_equal(d, d));
    cr_expect_eq(strata_desc_offset(d, index), -1);
}

Test(tensor, nothing_is_computed_of_a_vector_or_rank_that_is_none)
{
    strata_desc d = {.rank = 2, .dims = {3, 4}, .strides = {4, 1}};
    nothing_is_computed(&d); /* vector_dim 0 in vectors of 0 */
    d.vector_dim = -1;
    d.vector = 1;
    cr_expect_eq(strata_desc_size(&d), 12);
    d.rank = STRATA_MAX_RANK + 1;
    nothing_is_computed(&d);
    d.rank = -1;
    nothing_is_computed(&d);
}

Test(tensor, a_vector_needs_a_dim_and_two_elements)
{
    const int64_t dims[] = {2, 3};
    strata_desc d;
    cr_assert_eq(strata_desc_vector(&d, STRATA_FP32, dims, 2, 2, NULL), STRATA_OK);
    d.vector = 1;
    cr_expect_eq(strata_desc_check(&d, 0, NULL), STRATA_EINVAL);
    d.vector = 2;
    d.vector_dim = 2;
    cr_expect_eq(strata_desc_check(&d, 0, NULL), STRATA_EINVAL);
    d.vector_dim = -1;
    cr_expect_eq(strata_desc_check(&d, 0, NULL), STRATA_EINVAL);
}

Test(tensor, overlapping_is_for_inputs_only)
{
    const int64_t dims[] = {4, 4}, window[] = {1, 1}, broadcast[] = {0, 1};
    strata_desc d;
    strata_error err = {0};
    cr_expect_eq(strata_desc_strided(&d, STRATA_FP32, dims, window, 2, NULL), STRATA_OK);
    cr_expect_eq(strata_desc_check(&d, 0, NULL), STRATA_OK);
    cr_expect_eq(strata_desc_check(&d, 1, &err), STRATA_EINVAL);
    cr_expect(expect_message(&err, "output", "address"), "%s", err.message);
    cr_expect_eq(strata_desc_size(&d), 7);
    cr_expect_eq(strata_desc_strided(&d, STRATA_FP32, dims, broadcast, 2, NULL),
                 STRATA_OK);
    cr_expect(strata_desc_overlapping(&d));
    cr_expect_eq(strata_desc_size(&d), 4);
}

Test(tensor, empty_tensors_have_size_zero_and_no_faults)
{
    const int64_t dims[] = {2, 0, 4, 5};
    strata_desc d;
    cr_assert_eq(strata_desc_layout(&d, STRATA_LAYOUT_NHWC, STRATA_FP32, dims, 4, NULL),
                 STRATA_OK);
    cr_expect_eq(strata_desc_size(&d), 0);
    cr_expect_eq(strata_desc_bytes(&d), 0);
    cr_expect_eq(strata_desc_count(&d), 0);
    cr_expect_not(strata_desc_overlapping(&d));
    cr_expect_eq(strata_desc_check(&d, 1, NULL), STRATA_OK);
}

/* ---- predicates -------------------------------------------------------------------- */

/* Times each position is the place of an element or a pad lane; `size` of them. */
static unsigned char *count_places(const strata_desc *d, int64_t size)
{
    unsigned char *counts = calloc((size_t)size, 1);
    int64_t extent[STRATA_MAX_RANK], index[STRATA_MAX_RANK] = {0}, total = 1;
    cr_assert_not_null(counts);
    for (int i = 0; i < d->rank; i++) {
        extent[i] = d->dims[i];
        if (i == d->vector_dim)
            extent[i] = (extent[i] + d->vector - 1) / d->vector * d->vector;
        total *= extent[i];
    }
    for (int64_t n = 0; n < total; n++) {
        const int64_t at = strata_desc_offset(d, index);
        cr_assert(at >= 0 && at < size, "offset %lld of %lld", (long long)at,
                  (long long)size);
        if (counts[at] < 2)
            counts[at]++;
        for (int i = d->rank - 1; i >= 0 && ++index[i] == extent[i]; i--)
            index[i] = 0;
    }
    return counts;
}

static void random_desc(strata_desc *d)
{
    *d = (strata_desc){.dtype = STRATA_FP32, .vector_dim = -1, .vector = 1};
    d->rank = 1 + (int32_t)below(5);
    const bool nested = below(2) == 0;
    int64_t next = 1;
    for (int i = d->rank - 1; i >= 0; i--) {
        d->dims[i] = 1 + below(5);
        d->strides[i] = nested ? next + below(5) / 4 : below(14);
        next = d->strides[i] * d->dims[i];
    }
    if (below(3) == 0) {
        d->vector_dim = (int32_t)below(d->rank);
        d->vector = 2 + (int32_t)below(3);
    }
}

Test(tensor, size_overlap_and_packing_agree_with_enumeration)
{
    int overlaps = 0, packed = 0;
    for (int n = 0; n < 40000; n++) {
        strata_desc d;
        random_desc(&d);
        const int64_t size = strata_desc_size(&d);
        unsigned char *counts = count_places(&d, size);
        bool twice = false, gap = false;
        for (int64_t i = 0; i < size; i++) {
            twice = twice || counts[i] > 1;
            gap = gap || counts[i] == 0;
        }
        cr_assert_neq(counts[size - 1], 0, "size %lld is too large", (long long)size);
        cr_assert_eq(!!strata_desc_overlapping(&d), twice, "case %d", n);
        cr_assert_eq(!!strata_desc_fully_packed(&d), !twice && !gap, "case %d", n);
        overlaps += twice;
        packed += !twice && !gap;
        free(counts);
    }
    cr_expect(overlaps > 1000 && overlaps < 39000 && packed > 1000);
}

Test(tensor, overlap_is_exact_where_strides_interleave)
{
    static const struct {
        int64_t dims[3], strides[3];
        int rank, overlaps;
    } cases[] = {
        {{2, 2}, {3, 2}, 2, 0},
        {{2, 3}, {3, 1}, 2, 0},
        {{2, 4}, {3, 1}, 2, 1},
        {{1000000, 7}, {7, 1000000}, 2, 0},
        {{1000001, 8}, {7, 1000000}, 2, 1},
        {{2, 2, 2}, {1, 2, 3}, 3, 1}, /* 1 + 2 = 3 */
        {{2, 2, 2}, {3, 5, 7}, 3, 0},
        {{3, 3, 3}, {3, 5, 7}, 3, 1}, /* 2*5 = 3 + 7 */
        {{1, 4, 1}, {0, 1, 0}, 3, 0}, /* strides of dims of 1 do not count */
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        strata_desc d;
        cr_assert_eq(strata_desc_strided(&d, STRATA_INT8, cases[i].dims, cases[i].strides,
                                         cases[i].rank, NULL),
                     STRATA_OK);
        cr_expect_eq(!!strata_desc_overlapping(&d), cases[i].overlaps, "case %zu", i);
    }
}

/* Many equal long dims with prime strides: an answer in this life, and never "free" if
 * wrong. */
Test(tensor, hard_overlap_questions_end)
{
    const int64_t dims[] = {1000, 1000, 1000, 1000, 1000, 1000};
    const int64_t strides[] = {1000000007, 999999937, 1000000009,
                               999999893,  998244353, 1000000021};
    strata_desc d;
    cr_assert_eq(strata_desc_strided(&d, STRATA_INT8, dims, strides, 6, NULL), STRATA_OK);
    cr_expect(strata_desc_overlapping(&d)); /* 1e18 elements in 6e12 places */
    const int64_t few[] = {40, 40, 40, 40, 40, 40};
    cr_assert_eq(strata_desc_strided(&d, STRATA_INT8, few, strides, 6, NULL), STRATA_OK);
    for (int n = 0; n < 20; n++)
        (void)strata_desc_overlapping(&d);
}

Test(tensor, packed_letters_name_a_packed_part)
{
    const int64_t dims[] = {2, 3, 4, 5};
    strata_desc d;
    cr_assert_eq(strata_desc_layout(&d, STRATA_LAYOUT_NCHW, STRATA_FP32, dims, 4, NULL),
                 0);
    cr_expect(strata_desc_packed(&d, "CHW") && strata_desc_packed(&d, "HW"));
    cr_expect(strata_desc_packed(&d, "W") && strata_desc_packed(&d, "NCHW"));
    cr_expect(strata_desc_packed(&d, "WH"), "letters are a set");
    cr_expect_not(strata_desc_packed(&d, "NHW"));
    cr_expect_not(strata_desc_packed(&d, "H"));
    cr_expect_not(strata_desc_packed(&d, "DHW"), "no D in rank 4");
    cr_expect_not(strata_desc_packed(&d, NULL));
    cr_expect(strata_desc_spatially_packed(&d));
    d.strides[0] = 100; /* room between images */
    cr_expect(strata_desc_packed(&d, "CHW") && strata_desc_spatially_packed(&d));
    cr_expect_not(strata_desc_fully_packed(&d));
    d.strides[2] = 6; /* room between rows */
    cr_expect_not(strata_desc_spatially_packed(&d));
    cr_expect_not(strata_desc_packed(&d, "CHW"));
    cr_assert_eq(strata_desc_layout(&d, STRATA_LAYOUT_NHWC, STRATA_FP32, dims, 4, NULL),
                 0);
    cr_expect(strata_desc_packed(&d, "CW") && strata_desc_packed(&d, "C"));
    cr_expect_not(strata_desc_spatially_packed(&d));
    cr_assert_eq(
        strata_desc_layout(&d, STRATA_LAYOUT_BMN_COLUMN, STRATA_FP32, dims, 3, NULL), 0);
    cr_expect(strata_desc_packed(&d, "MN") && strata_desc_packed(&d, "M"));
    cr_expect_not(strata_desc_packed(&d, "N"));
}

/* ---- equality -----------------------------------------------------------------------
 */

static void vector_desc(strata_desc *d, const int64_t *dims, int x)
{
    cr_assert_eq(strata_desc_vector(d, STRATA_FP16, dims, 4, x, NULL), STRATA_OK);
}

Test(tensor, vectors_of_one_are_nchw_and_of_all_channels_nhwc)
{
    for (int64_t c = 1; c <= 70; c++) {
        const int64_t dims[] = {2, c, 3, 5};
        strata_desc nchw, nhwc, x;
        cr_assert_eq(
            strata_desc_layout(&nchw, STRATA_LAYOUT_NCHW, STRATA_FP16, dims, 4, NULL), 0);
        cr_assert_eq(
            strata_desc_layout(&nhwc, STRATA_LAYOUT_NHWC, STRATA_FP16, dims, 4, NULL), 0);
        vector_desc(&x, dims, 1);
        cr_expect(strata_desc_equal(&x, &nchw), "C = %lld", (long long)c);
        vector_desc(&x, dims, (int)c);
        cr_expect(strata_desc_equal(&x, &nhwc), "C = %lld", (long long)c);
        cr_expect_eq(!!strata_desc_equal(&x, &nchw), c == 1);
        vector_desc(&x, dims, (int)c + 1); /* a pad lane: not the same memory */
        cr_expect_not(strata_desc_equal(&x, &nhwc), "C = %lld", (long long)c);
    }
}

/* Same size and the same offset for every index, pad lanes included. */
static bool same_places(const strata_desc *a, const strata_desc *b)
{
    int64_t extent[STRATA_MAX_RANK], index[STRATA_MAX_RANK] = {0}, total = 1;
    for (int i = 0; i < a->rank; i++) {
        const int64_t va = i == a->vector_dim ? a->vector : 1;
        const int64_t vb = i == b->vector_dim ? b->vector : 1;
        extent[i] = (a->dims[i] + va - 1) / va * va;
        if ((b->dims[i] + vb - 1) / vb * vb != extent[i])
            return false;
        total *= extent[i];
    }
    for (int64_t n = 0; n < total; n++) {
        if (strata_desc_offset(a, index) != strata_desc_offset(b, index))
            return false;
        for (int i = a->rank - 1; i >= 0 && ++index[i] == extent[i]; i--)
            index[i] = 0;
    }
    return true;
}

Test(tensor, equality_agrees_with_comparing_every_offset)
{
    int equal = 0;
    for (int n = 0; n < 60000; n++) {
        strata_desc a, b;
        random_desc(&a);
        b = a;
        if (below(2) == 0) { /* another way to vectorise the same dims */
            b.vector_dim = (int32_t)below(a.rank);
            b.vector = 2 + (int32_t)below(3);
            b.strides[b.vector_dim] = below(2) == 0 ? b.vector : 1 + below(4);
        }
        if (below(4) == 0)
            b.strides[below(a.rank)] = below(6);
        cr_assert_eq(!!strata_desc_equal(&a, &b), same_places(&a, &b), "case %d", n);
        equal += same_places(&a, &b);
        b.dtype = STRATA_FP16;
        cr_assert_not(strata_desc_equal(&a, &b));
    }
    cr_expect(equal > 1000 && equal < 59000);
}

Test(tensor, dtypes_have_names_and_sizes)
{
    static const struct {
        const char *name;
        size_t size;
    } wanted[] = {{"fp32", 4}, {"fp16", 2}, {"int8", 1}, {"u8", 1},
                  {"i32", 4},  {"i64", 8},  {"bool", 1}, {"bf16", 2},
                  {"e4m3", 1}, {"e5m2", 1}, {"fp64", 8}};
    cr_assert_eq(ARRAY_LENGTH(wanted), STRATA_DTYPE_COUNT);
    for (int i = 0; i < STRATA_DTYPE_COUNT; i++) {
        cr_expect_str_eq(strata_dtype_name(i), wanted[i].name);
        cr_expect_eq(strata_dtype_size(i), wanted[i].size);
    }
    cr_expect_null(strata_dtype_name(-1));
    cr_expect_null(strata_dtype_name(STRATA_DTYPE_COUNT));
    cr_expect_eq(strata_dtype_size(STRATA_DTYPE_COUNT), 0);
}
