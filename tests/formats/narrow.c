/* SPDX-License-Identifier: Apache-2.0
 *
 * strata/narrow.h: every BF16 and every FP8, what lies between two of them, and values of
 * FP64 and INT64 that rounding twice would round wrong.
 */
#include <strata/narrow.h>

#include "core/status.h"
#include "tests/formats/reference.h"

#include <criterion/criterion.h>

TestSuite(narrow, .timeout = 600);

static uint32_t bfloat_of(float x)
{
    return strata_bfloat_of_float(x);
}
static float of_bfloat(uint32_t bits)
{
    return strata_float_of_bfloat((uint16_t)bits);
}
static uint32_t e4m3_of(float x)
{
    return strata_e4m3_of_float(x, 1);
}
static uint32_t e4m3_strict_of(float x)
{
    return strata_e4m3_of_float(x, 0);
}
static float of_e4m3(uint32_t bits)
{
    return strata_float_of_e4m3((uint8_t)bits);
}
static uint32_t e5m2_of(float x)
{
    return strata_e5m2_of_float(x, 1);
}
static uint32_t e5m2_strict_of(float x)
{
    return strata_e5m2_of_float(x, 0);
}
static float of_e5m2(uint32_t bits)
{
    return strata_float_of_e5m2((uint8_t)bits);
}

static const struct narrow {
    const char *name;
    int dtype;
    float (*to_float)(uint32_t bits);
    uint32_t (*of_float)(float x);
    uint32_t most, sign;     /* bits of the largest value and of the sign */
    uint32_t over, infinite; /* what is past the largest, and infinities, become */
    float end;               /* halfway from the largest to what would follow it */
    uint32_t at_end;
} narrows[] = {
    {"bf16", STRATA_BF16, of_bfloat, bfloat_of, 0x7f7f, 0x8000, 0x7f80, 0x7f80,
     0x1.ffp127f, 0x7f80},
    {"e4m3", STRATA_E4M3, of_e4m3, e4m3_of, 0x7e, 0x80, 0x7e, 0x7e, 464, 0x7e},
    {"e4m3, strict", STRATA_E4M3, of_e4m3, e4m3_strict_of, 0x7e, 0x80, 0x7f, 0x7f, 464,
     0x7e},
    {"e5m2", STRATA_E5M2, of_e5m2, e5m2_of, 0x7b, 0x80, 0x7b, 0x7b, 61440, 0x7b},
    {"e5m2, strict", STRATA_E5M2, of_e5m2, e5m2_strict_of, 0x7b, 0x80, 0x7c, 0x7c, 61440,
     0x7c},
};

static long double value_of(const struct narrow *t, uint32_t bits)
{
    uint64_t nan;
    return float_value(bits, float_kind(t->dtype), strata_dtype_size(t->dtype), &nan);
}

Test(narrow, every_value_is_that_of_its_fields_and_comes_back)
{
    for (const struct narrow *t = narrows; t < narrows + ARRAY_LENGTH(narrows); t++)
        for (uint32_t bits = 0; bits < 2 * t->sign; bits++) {
            uint64_t nan;
            const float x = t->to_float(bits);
            const long double wanted = float_value(bits, float_kind(t->dtype),
                                                   strata_dtype_size(t->dtype), &nan);
            cr_assert_eq(signbit(x) != 0, bits / t->sign, "%s %x", t->name, bits);
            cr_assert_eq(isnan(x) != 0, nan != 0, "%s %x", t->name, bits);
            if (nan != 0) {
                const uint32_t quiet = t->dtype == STRATA_BF16   ? 0x40
                                       : t->dtype == STRATA_E5M2 ? 2
                                                                 : 0;
                cr_assert_eq(t->of_float(x), bits | quiet, "%s %x", t->name, bits);
                continue;
            }
            cr_assert((long double)x == wanted, "%s %x", t->name, bits);
            cr_assert_eq(t->of_float(x), isinf(x) ? t->infinite | (bits & t->sign) : bits,
                         "%s %x", t->name, bits);
        }
}

/* Just below, at and just above every midpoint of two neighbours. */
Test(narrow, floats_round_to_the_nearest_even)
{
    for (const struct narrow *t = narrows; t < narrows + ARRAY_LENGTH(narrows); t++)
        for (uint32_t bits = 0; bits < t->most; bits++) {
            const float middle = (float)((value_of(t, bits) + value_of(t, bits + 1)) / 2);
            const uint32_t even = bits + bits % 2;
            cr_assert_eq(t->of_float(middle), even, "%s %x", t->name, bits);
            cr_assert_eq(t->of_float(-middle), even | t->sign, "%s %x", t->name, bits);
            cr_assert_eq(t->of_float(nextafterf(middle, 0)), bits, "%s %x", t->name,
                         bits);
            cr_assert_eq(t->of_float(nextafterf(middle, INFINITY)), bits + 1, "%s %x",
                         t->name, bits);
        }
}

Test(narrow, what_is_past_the_largest_goes_where_it_should)
{
    for (const struct narrow *t = narrows; t < narrows + ARRAY_LENGTH(narrows); t++) {
        cr_expect_eq(t->of_float(nextafterf(t->end, 0)), t->most, "%s", t->name);
        cr_expect_eq(t->of_float(t->end), t->at_end, "%s", t->name);
        cr_expect_eq(t->of_float(nextafterf(t->end, INFINITY)), t->over, "%s", t->name);
        cr_expect_eq(t->of_float(-0x1.fffffep127f), t->over | t->sign, "%s", t->name);
        cr_expect_eq(t->of_float(INFINITY), t->infinite, "%s", t->name);
        cr_expect_eq(t->of_float(-INFINITY), t->infinite | t->sign, "%s", t->name);
        cr_expect_eq(t->of_float(0x1p-149f), 0, "%s", t->name);
        cr_expect_eq(t->of_float(-0.0f), t->sign, "%s", t->name);
    }
}

/* ---- wider values -------------------------------------------------------------------
 */

/* Every half's midpoint, plus or minus what FP32 cannot hold. */
Test(narrow, doubles_round_once_on_their_way_into_a_half)
{
    for (uint32_t bits = 0; bits < 0x7bff; bits++) {
        const double low = (double)strata_float_of_half((uint16_t)bits);
        const double middle =
            (low + (double)strata_float_of_half((uint16_t)(bits + 1))) / 2;
        const double values[] = {nextafter(middle, 0), middle, nextafter(middle, 1e9)};
        const uint32_t wanted[] = {bits, bits + bits % 2, bits + 1};
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(strata_half_of_float(strata_odd_of_double(values[i])), wanted[i],
                         "%a", values[i]);
            cr_assert_eq(strata_half_of_float(strata_odd_of_double(-values[i])),
                         wanted[i] | 0x8000, "%a", -values[i]);
        }
    }
    cr_expect_eq(strata_bits_of_float(strata_odd_of_double(1e300)), 0x7f7fffff);
    cr_expect_eq(strata_bits_of_float(strata_odd_of_double((double)INFINITY)),
                 0x7f800000);
    cr_expect_eq(strata_bits_of_float(strata_odd_of_double(-1e-300)), 0x80000001);
    cr_expect_eq(strata_bits_of_float(strata_odd_of_double(-0.0)), 0x80000000);
    cr_expect(isnan(strata_odd_of_double((double)NAN)));
}

Test(narrow, whole_numbers_round_once_on_their_way_into_a_float)
{
    for (int width = 40; width < 64; width++)
        for (int64_t odd = 0; odd < 512; odd++) {
            const int64_t middle = ((odd | 256) << 1 | 1) << (width - 10);
            for (int64_t off = -1; off <= 1; off++) {
                const int64_t x = middle + off;
                const struct float_kind *k = float_kind(STRATA_BF16);
                const uint64_t bits = signed_bits((long double)x, 0, k, 2);
                const double via = strata_odd_of_int64(x);
                cr_assert_eq(strata_bfloat_of_float(strata_odd_of_double(via)), bits,
                             "%lld", (long long)x);
                cr_assert_eq((float)via, (float)x, "%lld", (long long)x);
                cr_assert_eq(strata_odd_of_int64(-x), -via, "%lld", (long long)x);
            }
        }
    cr_expect_eq(strata_odd_of_int64(INT64_MIN), -0x1p63);
    cr_expect_eq(strata_odd_of_int64((INT64_C(1) << 53) - 1), 0x1p53 - 1);
    cr_expect_eq(strata_odd_of_int64(0), 0);
}
