/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/common/cast.h: every pair of dtypes, on special values and on random bits,
 * against the rule in long double.
 */
#include "plugins/common/cast.h"

#include "core/status.h"
#include "tests/formats/reference.h"

#include <criterion/criterion.h>

enum { N = 4096 };

TestSuite(cast, .timeout = 600);

static uint64_t state = 9;

static uint64_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state ^ state >> 29;
}

static const struct whole {
    long double low, high;
} wholes[STRATA_DTYPE_COUNT] = {
    [STRATA_INT8] = {INT8_MIN, INT8_MAX},
    [STRATA_UINT8] = {0, UINT8_MAX},
    [STRATA_INT32] = {INT32_MIN, INT32_MAX},
    [STRATA_INT64] = {INT64_MIN, INT64_MAX},
};

static void fill(char *data, int dtype)
{
    static const long double edges[] = {
        0,           -0.0L,    0.5L,      -0.5L,      0.999L,  -0.999L,  1.5L,
        127.9L,      128,      -128.9L,   -129,       200,     255.9L,   256,
        -1,          0x1p31L,  -0x1p31,   0x1p32L,    0x1p63L, -0x1p63L, 0x1p64L,
        1e30L,       -1e30L,   448,       464,        465,     57344,    61440,
        65504,       65520,    1e-300L,   0x1p-149L,  3,       -3,       1.0e10L,
        0x1p53L + 1, INFINITY, -INFINITY, 0x1.01p40L, 300};
    const size_t size = strata_dtype_size(dtype);
    const struct float_kind *k = float_kind(dtype);
    for (size_t i = 0; i < N; i++) {
        uint64_t bits = draw();
        if (dtype == STRATA_BOOL8)
            bits &= bits & 2 ? 0xff : 1;
        else if (k != NULL && i % 4 == 0)
            bits = signed_bits(edges[i / 4 % ARRAY_LENGTH(edges)], 0, k, size);
        else if (k != NULL && i % 4 == 1) /* small numbers and fractions */
            bits = signed_bits((long double)((int)(bits % 4000) - 2000) / 8, 0, k, size);
        else if (i % 4 == 2)
            bits = (uint64_t)((int64_t)bits >> draw() % 64);
        memcpy(data + i * size, &bits, size);
    }
}

static uint64_t to_float8(long double x, int dtype, int saturate)
{
    const struct float_kind *k = float_kind(dtype);
    const uint64_t bits = signed_bits(x, 0, k, 1);
    const long double ulp = dtype == STRATA_E4M3 ? 32 : 8192,
                      over = fabsl(x) - k->largest;
    const bool past = over > ulp / 2 || (over == ulp / 2 && dtype == STRATA_E5M2);
    return saturate || !past ? bits
                             : (bits & 0x80) | (dtype == STRATA_E4M3 ? 0x7f : 0x7c);
}

/* The bits of x, out of dtype `from`, in dtype `to`. */
static uint64_t cast_bits(long double x, uint64_t nan, int to, int from, int saturate)
{
    const struct float_kind *k = float_kind(to);
    const size_t size = strata_dtype_size(to);
    const uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size) - 1;
    if (to == STRATA_BOOL8)
        return nan != 0 || x != 0;
    if (nan != 0)
        return k != NULL ? signed_bits(x, nan, k, size) : 0;
    if (to == STRATA_E4M3 || to == STRATA_E5M2)
        return to_float8(x, to, saturate);
    if (k != NULL)
        return signed_bits(x, 0, k, size);
    if (float_kind(from) == NULL)
        return (uint64_t)(int64_t)x & mask;
    const long double low = wholes[to].low, high = wholes[to].high;
    return (uint64_t)(int64_t)(x < low ? low : x > high ? high : truncl(x)) & mask;
}

static void check_pair(int to, int from, int saturate)
{
    static _Alignas(64) char src[N * 8], dst[N * 8];
    const size_t size = strata_dtype_size(to);
    fill(src, from);
    cast_of(to, from)(dst, src, N, saturate);
    for (int64_t i = 0; i < N; i++) {
        uint64_t nan;
        const long double x = reference_get(src, from, i, &nan);
        const uint64_t found = load_bits(dst + i * (int64_t)size, size);
        const uint64_t wanted = cast_bits(x, nan, to, from, saturate);
        const bool kept = to == STRATA_FP32 && (from == to || from == STRATA_BF16);
        if (nan != 0 && (kept || (from == to && to == STRATA_FP64)))
            continue; /* its bits stay, quiet or not */
        cr_assert_eq(found, wanted, "%s of %s %Lg: %llx, not %llx", strata_dtype_name(to),
                     strata_dtype_name(from), x, (unsigned long long)found,
                     (unsigned long long)wanted);
    }
}

Test(cast, every_pair_follows_the_rule)
{
    for (int to = 0; to < STRATA_DTYPE_COUNT; to++)
        for (int from = 0; from < STRATA_DTYPE_COUNT; from++)
            for (int saturate = 0; saturate < 2; saturate++)
                if (to != from)
                    check_pair(to, from, saturate);
    cr_expect_null(cast_of(-1, 0));
    cr_expect_null(cast_of(0, STRATA_DTYPE_COUNT));
}

/* Of integers all bits stay, of other dtypes all values. */
Test(cast, to_the_same_dtype_values_stay)
{
    for (int dtype = 0; dtype < STRATA_DTYPE_COUNT; dtype++)
        check_pair(dtype, dtype, 1);
}
