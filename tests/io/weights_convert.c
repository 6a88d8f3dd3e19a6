/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversion from every element type of files to every one of the core, and random
 * weights. The reference for FP16 is a search for the nearest of all its values.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/weights/weights.h"

TestSuite(weights_convert, .timeout = 600);

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t seed_now(void)
{
    state = (uint64_t)time(NULL) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    return state;
}

/* Value of a finite half, 65536 for the place of infinity. */
static double half(uint32_t bits)
{
    uint32_t e = bits >> 10 & 0x1f, f = bits & 0x3ff;
    double x = e ? ldexp(1024.0 + f, (int)e - 25) : ldexp(f, -24);
    return bits & 0x8000 ? -x : x;
}

/* Nearest by bisection over the ordered non-negative halves, ties to the even one; all
 * differences are exact in long double. */
static uint16_t nearest_half(long double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    uint32_t low = 0, high = 0x7c00;
    x = fabsl(x);
    if (x >= (long double)half(high))
        return (uint16_t)(sign | 0x7c00);
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        *(x < (long double)half(middle) ? &high : &low) = middle;
    }
    long double down = x - (long double)half(low), up = (long double)half(high) - x;
    uint32_t pick = down < up || (down == up && low % 2 == 0) ? low : high;
    return (uint16_t)(sign | pick);
}

static uint16_t to_half(const void *x, enum weight_dtype from)
{
    uint16_t h = 0xdead;
    cr_assert_eq(weights_convert(&h, STRATA_FP16, x, from, 1, NULL), STRATA_OK);
    return h;
}

static float to_float(const void *x, enum weight_dtype from)
{
    float f = 0;
    cr_assert_eq(weights_convert(&f, STRATA_FP32, x, from, 1, NULL), STRATA_OK);
    return f;
}

Test(weights_convert, every_half_survives_a_way_through_floats)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t h = (uint16_t)bits;
        float f = to_float(&h, WEIGHT_F16);
        double d = (double)f;
        if ((bits & 0x7fff) > 0x7c00) {
            cr_expect(isnan(f), "%04x", bits);
            uint16_t back = to_half(&f, WEIGHT_F32);
            cr_expect((back & 0x7fff) > 0x7c00, "NaN %04x became %04x", bits, back);
            continue;
        }
        if ((bits & 0x7fff) < 0x7c00)
            cr_expect(d == half(bits), "%04x is %g", bits, d);
        else
            cr_expect(isinf(f), "%04x", bits);
        cr_expect_eq(!!signbit(f), bits >> 15, "%04x lost its sign", bits);
        cr_expect_eq(to_half(&f, WEIGHT_F32), h, "%04x through FP32", bits);
        cr_expect_eq(to_half(&d, WEIGHT_F64), h, "%04x through FP64", bits);
    }
}

/* Half-way points, their neighbours in double, and random values of all magnitudes. */
Test(weights_convert, double_to_half_rounds_once_to_nearest_even)
{
    uint64_t seed = seed_now();
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        double tie = (half(bits) + half(bits + 1)) / 2;
        double near[] = {tie,
                         nextafter(tie, 0),
                         nextafter(tie, INFINITY),
                         tie + ldexp(tie, -30),
                         tie - ldexp(tie, -30),
                         -tie};
        for (size_t i = 0; i < LENGTH(near); i++) {
            uint16_t got = to_half(&near[i], WEIGHT_F64);
            cr_expect_eq(got, nearest_half(near[i]), "%a gives %04x, not %04x", near[i],
                         got, nearest_half(near[i]));
        }
    }
    for (int i = 0; i < 200000; i++) {
        double x = ldexp((double)(int64_t)draw(), (int)(draw() % 64) - 63 - 35);
        uint16_t got = to_half(&x, WEIGHT_F64);
        float f = (float)x;
        cr_expect_eq(got, nearest_half(x), "%a gives %04x; seed %" PRIu64, x, got, seed);
        got = to_half(&f, WEIGHT_F32);
        cr_expect_eq(got, nearest_half(f), "%a gives %04x; seed %" PRIu64, (double)f, got,
                     seed);
    }
    static const double extremes[] = {0.0,   -0.0,    0x1p-1074, -0x1p-1074, 0x1p-25,
                                      65504, 65519.9, 65520,     1e300,      INFINITY};
    for (size_t i = 0; i < LENGTH(extremes); i++)
        cr_expect_eq(to_half(&extremes[i], WEIGHT_F64), nearest_half(extremes[i]), "%a",
                     extremes[i]);
}

Test(weights_convert, every_bfloat16_is_the_float_with_its_high_half)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t b = (uint16_t)bits;
        uint32_t high = bits << 16;
        float expected, got = to_float(&b, WEIGHT_BF16);
        memcpy(&expected, &high, sizeof expected);
        cr_expect(isnan(expected) ? isnan(got) : memcmp(&got, &expected, 4) == 0, "%04x",
                  bits);
        if (!isnan(expected))
            cr_expect_eq(to_half(&b, WEIGHT_BF16), nearest_half(expected), "%04x", bits);
    }
}

/* The C conversion from a 64-bit integer is correctly rounded in one step. */
Test(weights_convert, wide_integers_round_once)
{
    uint64_t seed = seed_now();
    for (int i = 0; i < 200000; i++) {
        uint64_t u = draw() >> draw() % 64;
        /* Every other one just beside a tie of FP32, which a double cannot tell. */
        if (i % 2 && u >> 40)
            u = (u & ~UINT64_C(0) << (40 - __builtin_clzll(u))) +
                (UINT64_C(1) << (39 - __builtin_clzll(u))) + (draw() % 3 - 1);
        int64_t s = (int64_t)u;
        cr_expect(to_float(&u, WEIGHT_U64) == (float)u, "%" PRIu64 "; seed %" PRIu64, u,
                  seed);
        cr_expect(to_float(&s, WEIGHT_I64) == (float)s, "%" PRId64 "; seed %" PRIu64, s,
                  seed);
        cr_expect_eq(to_half(&u, WEIGHT_U64), nearest_half((long double)u), "%" PRIu64,
                     u);
        cr_expect_eq(to_half(&s, WEIGHT_I64), nearest_half((long double)s), "%" PRId64,
                     s);
    }
}

static const struct float_case {
    double from;
    int32_t i8, u8, i32;
} floats[] = {
    {0, 0, 0, 0},
    {-0.0, 0, 0, 0},
    {0.5, 0, 0, 0},
    {1.5, 2, 2, 2},
    {2.5, 2, 2, 2},
    {-0.5, 0, 0, 0},
    {-1.5, -2, 0, -2},
    {126.5, 126, 126, 126},
    {127.5, 127, 128, 128},
    {-128.5, -128, 0, -128},
    {-129, -128, 0, -129},
    {254.5, 127, 254, 254},
    {255.5, 127, 255, 256},
    {2147483646.5, 127, 255, 2147483646},
    {2147483647.5, 127, 255, INT32_MAX},
    {-2147483648.5, -128, 0, INT32_MIN},
    {1e300, 127, 255, INT32_MAX},
    {-1e300, -128, 0, INT32_MIN},
    {INFINITY, 127, 255, INT32_MAX},
    {-INFINITY, -128, 0, INT32_MIN},
    {NAN, 0, 0, 0},
};

Test(weights_convert, floats_to_integers_saturate_and_nan_is_zero)
{
    for (size_t i = 0; i < LENGTH(floats); i++) {
        const struct float_case *c = &floats[i];
        int8_t i8 = 55;
        uint8_t u8 = 55;
        int32_t i32 = 55;
        cr_assert_eq(weights_convert(&i8, STRATA_INT8, &c->from, WEIGHT_F64, 1, NULL), 0);
        cr_assert_eq(weights_convert(&u8, STRATA_UINT8, &c->from, WEIGHT_F64, 1, NULL),
                     0);
        cr_assert_eq(weights_convert(&i32, STRATA_INT32, &c->from, WEIGHT_F64, 1, NULL),
                     0);
        cr_expect(i8 == c->i8 && u8 == c->u8 && i32 == c->i32, "%g gives %d, %d, %d",
                  c->from, i8, u8, i32);
    }
}

#define INTEGER(ctype, file_type, ...)                                                   \
    do {                                                                                 \
        static const ctype x[] = {__VA_ARGS__};                                          \
        for (size_t i = 0; i < LENGTH(x); i++)                                           \
            expect_integer(&x[i], file_type, (__int128)x[i]);                            \
    } while (0)

static int32_t clamp(__int128 x, int32_t min, int32_t max)
{
    return (int32_t)(x < min ? min : x > max ? max : x);
}

static void expect_wide(const void *x, enum weight_dtype from, __int128 value)
{
    const __int128 most = INT64_MAX;
    const int64_t wanted = (int64_t)(value > most ? most : value);
    int64_t i64 = 55;
    double d = 55;
    uint8_t truth = 55;
    cr_assert_eq(weights_convert(&i64, STRATA_INT64, x, from, 1, NULL), STRATA_OK);
    cr_assert_eq(weights_convert(&d, STRATA_FP64, x, from, 1, NULL), STRATA_OK);
    cr_assert_eq(weights_convert(&truth, STRATA_BOOL8, x, from, 1, NULL), STRATA_OK);
    cr_expect(i64 == wanted && d == (double)value && truth == (value != 0),
              "%s %lld gives %lld, %g, %d", weight_dtype_name(from), (long long)value,
              (long long)i64, d, truth);
}

static void expect_integer(const void *x, enum weight_dtype from, __int128 value)
{
    expect_wide(x, from, value);
    int8_t i8 = 55;
    uint8_t u8 = 55;
    int32_t i32 = 55;
    cr_assert_eq(weights_convert(&i8, STRATA_INT8, x, from, 1, NULL), STRATA_OK);
    cr_assert_eq(weights_convert(&u8, STRATA_UINT8, x, from, 1, NULL), STRATA_OK);
    cr_assert_eq(weights_convert(&i32, STRATA_INT32, x, from, 1, NULL), STRATA_OK);
    cr_expect(i8 == clamp(value, -128, 127) && u8 == clamp(value, 0, 255) &&
                  i32 == clamp(value, INT32_MIN, INT32_MAX),
              "%s %lld gives %d, %d, %d", weight_dtype_name(from), (long long)value, i8,
              u8, i32);
    cr_expect(to_float(x, from) == (float)value, "%s %lld to FP32",
              weight_dtype_name(from), (long long)value);
    cr_expect_eq(to_half(x, from), nearest_half((long double)value), "%s %lld to FP16",
                 weight_dtype_name(from), (long long)value);
}

Test(weights_convert, integers_saturate)
{
    INTEGER(int8_t, WEIGHT_I8, 0, 1, -1, 127, -128);
    INTEGER(uint8_t, WEIGHT_U8, 0, 1, 127, 128, 255);
    INTEGER(int16_t, WEIGHT_I16, 0, 127, 128, 255, 256, -128, -129, INT16_MAX, INT16_MIN);
    INTEGER(uint16_t, WEIGHT_U16, 0, 255, 256, 2049, 65504, 65519, 65520, 65535);
    INTEGER(int32_t, WEIGHT_I32, 0, -1, 16777217, 16777219, INT32_MAX, INT32_MIN);
    INTEGER(uint32_t, WEIGHT_U32, 0, 16777217, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX);
    INTEGER(int64_t, WEIGHT_I64, 0, -1, INT32_MAX, INT64_C(1) << 31, INT32_MIN,
            INT32_MIN - INT64_C(1), (INT64_C(1) << 53) + 1, INT64_MAX, INT64_MIN);
    INTEGER(uint64_t, WEIGHT_U64, 0, INT32_MAX, UINT64_C(1) << 31,
            (UINT64_C(1) << 53) + 1, UINT64_C(1) << 63, UINT64_MAX);
    INTEGER(uint8_t, WEIGHT_BOOL, 0, 1);
    uint8_t truth = 7;
    cr_expect(to_float(&truth, WEIGHT_BOOL) == 1.0f, "any non-zero byte is true");
    cr_assert_eq(weights_convert(&truth, STRATA_BOOL8, &truth, WEIGHT_BOOL, 1, NULL), 0);
    cr_expect_eq(truth, 1, "and becomes 1");
}

/* More elements than a block, at an odd address: the same as one at a time. */
Test(weights_convert, long_runs_equal_single_elements_at_any_alignment)
{
    enum { N = 1500 };
    uint64_t seed = seed_now();
    unsigned char *memory = malloc(8 * N + 1), *src = memory + 1;
    unsigned char *dst = malloc(8 * N);
    _Alignas(8) unsigned char one[8];
    cr_assert(memory && dst);
    for (size_t i = 0; i < 8 * N; i++)
        src[i] = (unsigned char)(draw() >> 32);
    for (int from = 0; from < WEIGHT_DTYPE_COUNT; from++)
        for (int to = 0; to < STRATA_DTYPE_COUNT; to++) {
            size_t in = weight_dtype_size((enum weight_dtype)from),
                   out = strata_dtype_size(to);
            cr_assert_eq(weights_convert(dst, to, src, (enum weight_dtype)from, N, NULL),
                         0);
            for (size_t i = 0; i < N; i++) {
                weights_convert(one, to, src + i * in, (enum weight_dtype)from, 1, NULL);
                cr_expect_eq(memcmp(one, dst + i * out, out), 0,
                             "%s to %d, element %zu, seed %" PRIu64,
                             weight_dtype_name((enum weight_dtype)from), to, i, seed);
            }
        }
    free(memory);
    free(dst);
}

Test(weights_convert, the_first_nan_is_found_and_infinity_is_none)
{
    static const struct {
        enum weight_dtype dtype;
        uint64_t infinity; /* or the largest; NaNs follow */
        uint64_t nans;
    } types[] = {{WEIGHT_F64, UINT64_C(0xfff0000000000000), 8},
                 {WEIGHT_F32, 0xff800000, 8},
                 {WEIGHT_F16, 0xfc00, 8},
                 {WEIGHT_BF16, 0xff80, 8},
                 {WEIGHT_F8_E4M3, 0xfe, 1},
                 {WEIGHT_F8_E5M2, 0xfc, 3}};
    enum { COUNT = 1500 };
    uint64_t seed = seed_now();
    char *bytes = malloc(COUNT * 8 + 1);
    for (size_t t = 0; t < LENGTH(types); t++) {
        const size_t size = weight_dtype_size(types[t].dtype);
        struct weight_view v = {
            .dtype = types[t].dtype, .data = bytes + 1, .bytes = COUNT * size};
        const uint64_t nan = types[t].infinity + 1 + draw() % types[t].nans;
        size_t at = draw() % COUNT, second = at + draw() % (COUNT - at);
        for (size_t i = 0; i < COUNT; i++)
            memcpy(bytes + 1 + i * size, &types[t].infinity, size);
        cr_expect_eq(weights_first_nan(&v), -1);
        memcpy(bytes + 1 + second * size, &nan, size);
        memcpy(bytes + 1 + at * size, &nan, size);
        cr_expect_eq(weights_first_nan(&v), (int64_t)at, "type %zu, seed %" PRIu64, t,
                     seed);
        v.dtype = WEIGHT_U8;
        cr_expect_eq(weights_first_nan(&v), -1);
        v.bytes = 0;
        v.dtype = types[t].dtype;
        cr_expect_eq(weights_first_nan(&v), -1);
    }
    free(bytes);
}

Test(weights_convert, what_a_type_does_not_hold_is_counted)
{
    static const double x[] = {-3, 300, 0.5, 255, 65519, -65520, NAN, INFINITY, 1e300};
    static const struct {
        int dtype;
        int64_t beyond, rounded, nans;
    } cases[] = {{STRATA_UINT8, 6, 1, 1}, {STRATA_INT8, 6, 1, 1}, {STRATA_INT32, 2, 1, 1},
                 {STRATA_FP16, 2, 0, 0},  {STRATA_FP32, 1, 0, 0}, {STRATA_BF16, 1, 0, 0},
                 {STRATA_E4M3, 3, 0, 0},  {STRATA_E5M2, 3, 0, 0}, {STRATA_INT64, 2, 1, 1},
                 {STRATA_BOOL8, 9, 0, 0}, {STRATA_FP64, 0, 0, 0}};
    struct weight_view v = {.dtype = WEIGHT_F64, .data = x, .bytes = sizeof x};
    struct weight_loss l;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        cr_assert_eq(weights_loss(&l, cases[i].dtype, &v, NULL), STRATA_OK);
        cr_expect(l.beyond == cases[i].beyond && l.rounded == cases[i].rounded &&
                      l.nans == cases[i].nans,
                  "dtype %d: %" PRId64 ", %" PRId64 ", %" PRId64, cases[i].dtype,
                  l.beyond, l.rounded, l.nans);
        cr_expect(l.low == -65520 && l.high == (double)INFINITY);
    }
    cr_expect_eq(weights_loss(&l, 77, &v, NULL), STRATA_EINVAL);
}

Test(weights_convert, unknown_types_are_refused)
{
    strata_error err = {0};
    float x = 0;
    cr_expect_eq(weights_convert(&x, 99, &x, WEIGHT_F32, 1, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "dtype 99"), "%s", err.message);
    cr_expect_eq(weights_convert(&x, STRATA_FP32, &x, WEIGHT_DTYPE_COUNT, 1, NULL),
                 STRATA_EINVAL);
    cr_expect_eq(weights_convert(&x, STRATA_FP32, &x, WEIGHT_F32, -1, NULL),
                 STRATA_EINVAL);
    cr_expect_eq(weights_convert(NULL, STRATA_FP32, NULL, WEIGHT_F32, 0, NULL),
                 STRATA_OK);
    cr_expect_null(weight_dtype_name(WEIGHT_DTYPE_COUNT));
    cr_expect_eq(weight_dtype_size(WEIGHT_DTYPE_COUNT), 0u);
}

/* ---- random weights ---- */

/* Worked out with another program from the definition in io/weights/random.c. */
static const struct {
    uint64_t seed;
    const char *name;
    int64_t fan_in, element;
    uint32_t bits;
} known[] = {
    {0, "", 1, 0, 0x3fd8a29f},
    {0, "", 1, 1, 0x3e98f5fc},
    {1, "conv1.weight", 27, 0, 0x3e184345},
    {1, "conv1.weight", 27, 1000, 0xbeb58ae6},
    {UINT64_MAX, "fc.weight", 4096, 7, 0xbc1a6bf0},
    {1, "conv2.weight", 27, 0, 0xbe281a7b},
};

Test(weights_convert, random_values_are_the_same_on_every_machine)
{
    for (size_t i = 0; i < LENGTH(known); i++) {
        float values[1001];
        uint32_t bits;
        weights_random(values, known[i].element + 1, known[i].fan_in, known[i].seed,
                       known[i].name);
        memcpy(&bits, &values[known[i].element], sizeof bits);
        cr_expect_eq(bits, known[i].bits, "case %zu gives %08" PRIx32, i, bits);
    }
}

/* Deviations of the estimates are 1/sqrt(N), 1.4/sqrt(N) and so on; six are allowed. The
 * fourth moment of the sum of twelve uniforms is 2.9. */
Test(weights_convert, random_values_are_he_normal)
{
    enum { N = 1 << 18 };
    float *x = malloc(N * sizeof *x);
    cr_assert_not_null(x);
    for (int64_t fan_in = 1; fan_in <= 4608; fan_in = fan_in * 6 + 3) {
        double sums[5] = {0}, scale = sqrt(2.0 / (double)fan_in), beside = 0;
        weights_random(x, N, fan_in, 42 + (uint64_t)fan_in, "layer.weight");
        for (int i = 0; i < N; i++) {
            double v = (double)x[i] / scale, power = 1;
            for (int k = 0; k < 5; k++, power *= v)
                sums[k] += power / N;
            beside += i ? v * (double)x[i - 1] / scale / N : 0;
        }
        const double unit = 6 / sqrt(N);
        cr_expect(fabs(sums[1]) < unit, "mean %g", sums[1]);
        cr_expect(fabs(sums[2] - 1) < 1.4 * unit, "variance %g", sums[2]);
        cr_expect(fabs(sums[3]) < 4 * unit, "third moment %g", sums[3]);
        cr_expect(fabs(sums[4] - 2.9) < 10 * unit, "fourth moment %g", sums[4]);
        cr_expect(fabs(beside) < unit, "neighbours correlate by %g", beside);
    }
    weights_random(x, 1, 0, 1, "fan-in of 0 counts as 1");
    cr_expect(isfinite(x[0]));
    free(x);
}
