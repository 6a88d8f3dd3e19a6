/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathering rows and columns of FP32 on the host: sums and extremes, in an order
 * that depends on sizes alone. A row is gathered in 64 lanes, which are then
 * folded; columns each for themselves, row after row. Memory is taken in stretches that
 * lie in one piece.
 */
#ifndef PLUGINS_COMMON_REDUCE_REDUCE_H
#define PLUGINS_COMMON_REDUCE_REDUCE_H

#include <stdbool.h>

#include "plugins/common/element.h"

enum gather {
    GATHER_SUM,
    GATHER_ABS,     /* of magnitudes */
    GATHER_SQUARE,  /* of squares */
    GATHER_CENTRED, /* of squares of x - shift */
    GATHER_EXP,     /* of exp(x - shift) */
    GATHER_PRODUCT, /* of integers; floats' leave the range on their way */
    GATHER_MAX,     /* a NaN is the largest, and the smallest */
    GATHER_MIN,
    GATHERS
};

#define GATHER_LANES 64
#define GATHER_PART 16      /* elements of the widest vector */
#define GATHER_STRETCH 4096 /* elements that are converted at once */

static inline float gather_start(enum gather g)
{
    return g == GATHER_MAX ? -INFINITY : g == GATHER_MIN ? INFINITY : 0;
}

#define GATHER_INLINE static inline __attribute__((always_inline))

/* exp(x) as a part of a sum whose largest is exp(0), in arithmetic that becomes vector
 * code and whose steps wait for few others; 0 below about -87.7, where 2^-127 has the
 * bits of 0. log 2 as one float is off by 2^-29, which counts where n is large: not in
 * such a sum. */
GATHER_INLINE float gather_exp(float x)
{
    const float magic = 0x1.8000fep23f;          /* rounds, with the exponent's bias */
    const float least = x < -88.0f ? -88.0f : x; /* a NaN stays one */
    const float whole = least * 1.44269504f + magic, n = whole - magic;
    const float r = least - n * 0.693147181f, z = r * r;
    const float low = 0x1.555492p-3f * r + 0x1.fffffcp-2f;
    const float high = 0x1.123a2p-7f * r + 0x1.5558f2p-5f + 0x1.6a23cep-10f * z;
    const float y = (high * z + low) * z + (r + 1);
    const float power = strata_float_of_bits(strata_bits_of_float(whole) << 23);
    return x > 88.0f ? INFINITY : y * power;
}

/* a with one more element; `g` is a constant where this is inlined. */
GATHER_INLINE float gather_step(enum gather g, float a, float x, float shift)
{
    switch (g) {
    case GATHER_ABS:
        return a + fabsf(x);
    case GATHER_SQUARE:
        return a + x * x;
    case GATHER_CENTRED:
        return a + (x - shift) * (x - shift);
    case GATHER_EXP:
        return a + gather_exp(x - shift);
    case GATHER_MAX:
        return x > a || x != x ? x : a;
    case GATHER_MIN:
        return x < a || x != x ? x : a;
    default:
        return a + x;
    }
}

/* Two parts of one result. */
static inline float gather_join(enum gather g, float a, float b)
{
    return gather_step(g >= GATHER_MAX ? g : GATHER_SUM, a, b, 0);
}

/* Four rows at once, so that a is read and written once for them. */
GATHER_INLINE void gather_columns_of(enum gather g, float *a, const float *x,
                                     const float *shift, int64_t width, int64_t rows)
{
    const bool shifted = g == GATHER_CENTRED || g == GATHER_EXP;
    for (; rows >= 4; rows -= 4, x += 4 * width)
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            const float by = shifted ? shift[i] : 0;
            float sum = gather_step(g, a[i], x[i], by);
            sum = gather_step(g, sum, x[i + width], by);
            sum = gather_step(g, sum, x[i + 2 * width], by);
            a[i] = gather_step(g, sum, x[i + 3 * width], by);
        }
    for (; rows > 0; rows--, x += width)
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            a[i] = gather_step(g, a[i], x[i], shifted ? shift[i] : 0);
}

/* The first k lanes take the k behind them. */
#define GATHER_FOLD(k, join)                                                             \
    _Pragma("omp simd") for (int i = 0; i < (k); i++) lane[i] =                          \
        join(g, lane[i], lane[i + (k)]);

#define GATHER_FOLD_ALL(join)                                                            \
    GATHER_FOLD(32, join)                                                                \
    GATHER_FOLD(16, join)                                                                \
    GATHER_FOLD(8, join) GATHER_FOLD(4, join) GATHER_FOLD(2, join) GATHER_FOLD(1, join)

GATHER_INLINE float gather_short_row(enum gather g, const float *x, int64_t n,
                                     float shift)
{
    float a = gather_start(g);
    for (int64_t i = 0; i < n; i++)
        a = gather_step(g, a, x[i], shift);
    return a;
}

/* Of numbers, which is one instruction. */
GATHER_INLINE float gather_extreme_join(enum gather g, float a, float x)
{
    return g == GATHER_MAX ? (x > a ? x : a) : (x < a ? x : a);
}

GATHER_INLINE bool gather_any_nan(const float *x, int64_t n)
{
    int32_t any = 0;
#pragma omp simd reduction(| : any)
    for (int64_t i = 0; i < n; i++)
        any |= isnan(x[i]) ? -1 : 0;
    return any != 0;
}

/* Of four vectors of `part` elements a round, in memory's order. Their sum tells of a
 * NaN: it is one wherever there is one, and else where infinities met. Sums take other
 * units of a processor than extremes do, comparisons the same ones. */
GATHER_INLINE float gather_extreme_of(enum gather g, const float *x, int64_t n,
                                      const int part)
{
    float one[GATHER_PART], other[GATHER_PART], sum[GATHER_PART];
    const int64_t whole = n / (4 * part) * (4 * part);
    for (int i = 0; i < part; i++) {
        one[i] = other[i] = gather_start(g);
        sum[i] = 0;
    }
    for (int64_t at = 0; at < whole; at += 4 * part)
#pragma omp simd
        for (int i = 0; i < part; i++) {
            const float *v = x + at + i;
            const float a = v[0], b = v[part], c = v[2 * part], d = v[3 * part];
            one[i] = gather_extreme_join(g, one[i], gather_extreme_join(g, a, b));
            other[i] = gather_extreme_join(g, other[i], gather_extreme_join(g, c, d));
            sum[i] += (a + b) + (c + d);
        }
    for (int64_t i = whole; i < n; i++) {
        const int k = (int)((i - whole) % part);
        one[k] = gather_extreme_join(g, one[k], x[i]);
        sum[k] += x[i];
    }
#pragma omp simd
    for (int i = 0; i < part; i++)
        one[i] = gather_extreme_join(g, one[i], other[i]);
    for (int k = part / 2; k > 0; k /= 2)
#pragma omp simd
        for (int i = 0; i < k; i++) {
            one[i] = gather_extreme_join(g, one[i], one[i + k]);
            sum[i] += sum[i + k];
        }
    return isnan(sum[0]) && gather_any_nan(x, n) ? NAN : one[0];
}

GATHER_INLINE float gather_row_of(enum gather g, const float *x, int64_t n, float shift,
                                  const int part)
{
    float lane[GATHER_LANES];
    if (n < GATHER_LANES / 4)
        return gather_short_row(g, x, n, shift);
    if (g == GATHER_MAX || g == GATHER_MIN)
        return gather_extreme_of(g, x, n, part);
    int64_t whole = n / GATHER_LANES * GATHER_LANES;
    for (int i = 0; i < GATHER_LANES; i++)
        lane[i] = gather_start(g);
    for (int64_t at = 0; at < whole; at += GATHER_LANES)
#pragma omp simd
        for (int i = 0; i < GATHER_LANES; i++)
            lane[i] = gather_step(g, lane[i], x[at + i], shift);
    for (int64_t i = whole; i < n; i++)
        lane[i - whole] = gather_step(g, lane[i - whole], x[i], shift);
    GATHER_FOLD_ALL(gather_join)
    return lane[0];
}

/* y = (x - shift)*factor + addend: of a row whose elements have factors and addends of
 * their own, of a line, and of columns. y may be x. */
GATHER_INLINE void adjust_row_of(float *y, const float *x, float shift, float factor,
                                 const float *scale, const float *bias, int64_t n)
{
    if (scale && bias)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - shift) * factor * scale[i] + bias[i];
    else if (scale)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - shift) * factor * scale[i];
    else if (bias)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - shift) * factor + bias[i];
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - shift) * factor;
}

GATHER_INLINE void adjust_line_of(float *y, const float *x, float shift, float factor,
                                  float addend, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - shift) * factor + addend;
}

GATHER_INLINE void adjust_columns_of(float *y, const float *x, const float *shift,
                                     const float *factor, const float *addend,
                                     int64_t width, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++, x += width, y += width)
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            y[i] = (x[i] - shift[i]) * factor[i] + addend[i];
}

/* The functions in the best of this processor's instruction sets. */
struct gather_code {
    /* a[i] with x[i + r*width] for all r < rows; shift: of GATHER_CENTRED */
    void (*columns)(enum gather g, float *a, const float *x, const float *shift,
                    int64_t width, int64_t rows);
    float (*row)(enum gather g, const float *x, int64_t n, float shift);
    void (*adjust_row)(float *y, const float *x, float shift, float factor,
                       const float *scale, const float *bias, int64_t n);
    void (*adjust_line)(float *y, const float *x, float shift, float factor, float addend,
                        int64_t n);
    void (*adjust_columns)(float *y, const float *x, const float *shift,
                           const float *factor, const float *addend, int64_t width,
                           int64_t rows);
};

#define GATHER_EACH(call)                                                                \
    switch (g) {                                                                         \
    case GATHER_ABS:                                                                     \
        call(GATHER_ABS);                                                                \
        break;                                                                           \
    case GATHER_SQUARE:                                                                  \
        call(GATHER_SQUARE);                                                             \
        break;                                                                           \
    case GATHER_CENTRED:                                                                 \
        call(GATHER_CENTRED);                                                            \
        break;                                                                           \
    case GATHER_EXP:                                                                     \
        call(GATHER_EXP);                                                                \
        break;                                                                           \
    case GATHER_MAX:                                                                     \
        call(GATHER_MAX);                                                                \
        break;                                                                           \
    case GATHER_MIN:                                                                     \
        call(GATHER_MIN);                                                                \
        break;                                                                           \
    default:                                                                             \
        call(GATHER_SUM);                                                                \
        break;                                                                           \
    }
#define GATHER_COLUMNS(g) gather_columns_of(g, a, x, shift, width, rows)
#define GATHER_ROW(g) result = gather_row_of(g, x, n, shift, PART)

#define GATHER_CODE(name, target, part)                                                  \
    target static void gather_columns_##name(enum gather g, float *a, const float *x,    \
                                             const float *shift, int64_t width,          \
                                             int64_t rows){GATHER_EACH(                  \
        GATHER_COLUMNS)} target static float gather_row_##name(enum gather g,            \
                                                               const float *x,           \
                                                               int64_t n, float shift)   \
    {                                                                                    \
        enum { PART = part };                                                            \
        float result = 0;                                                                \
        GATHER_EACH(GATHER_ROW)                                                          \
        return result;                                                                   \
    }                                                                                    \
    target static void adjust_row_##name(float *y, const float *x, float shift,          \
                                         float factor, const float *scale,               \
                                         const float *bias, int64_t n)                   \
    {                                                                                    \
        adjust_row_of(y, x, shift, factor, scale, bias, n);                              \
    }                                                                                    \
    target static void adjust_line_##name(float *y, const float *x, float shift,         \
                                          float factor, float addend, int64_t n)         \
    {                                                                                    \
        adjust_line_of(y, x, shift, factor, addend, n);                                  \
    }                                                                                    \
    target static void adjust_columns_##name(                                            \
        float *y, const float *x, const float *shift, const float *factor,               \
        const float *addend, int64_t width, int64_t rows)                                \
    {                                                                                    \
        adjust_columns_of(y, x, shift, factor, addend, width, rows);                     \
    }                                                                                    \
    static const struct gather_code gather_code_##name = {                               \
        gather_columns_##name, gather_row_##name, adjust_row_##name, adjust_line_##name, \
        adjust_columns_##name};

GATHER_CODE(plain, , 8)
#ifdef ELEMENT_X86
GATHER_CODE(avx2, __attribute__((target("avx2,fma"))), 8)
GATHER_CODE(avx512, __attribute__((target("avx512f"))), 16)
#endif

static inline const struct gather_code *gather_choose(void)
{
#ifdef ELEMENT_X86
    return __builtin_cpu_supports("avx512f") ? &gather_code_avx512
           : element_has_f16c()              ? &gather_code_avx2
                                             : &gather_code_plain;
#else
    return &gather_code_plain;
#endif
}

/* Few lanes are laid side by side until they are as wide as vectors are worth it. */
static inline int64_t gather_spread(float *to, const float *from, int64_t lanes)
{
    const int64_t copies = GATHER_LANES / lanes;
    for (int64_t i = 0; i < copies && from; i++)
        memcpy(to + i * lanes, from, (size_t)lanes * sizeof *to);
    return copies * lanes;
}

/* Gather n elements, whole rows of `lanes`, each into its lane of a; shift may be NULL.
 */
static inline void gather_lanes(const struct gather_code *code, enum gather g, float *a,
                                const float *x, const float *shift, int64_t lanes,
                                int64_t n)
{
    float wide[GATHER_LANES], shifts[GATHER_LANES];
    if (lanes == 1) {
        a[0] = gather_join(g, a[0], code->row(g, x, n, shift ? shift[0] : 0));
        return;
    }
    if (lanes > GATHER_LANES / 2 || n < GATHER_LANES) {
        code->columns(g, a, x, shift, lanes, n / lanes);
        return;
    }
    const int64_t width = gather_spread(shifts, shift, lanes), done = n / width * width;
    for (int64_t i = 0; i < width; i++)
        wide[i] = gather_start(g);
    code->columns(g, wide, x, shifts, width, n / width);
    code->columns(g, wide, x + done, shifts, n - done, 1);
    for (int64_t i = 0; i < width; i++)
        a[i % lanes] = gather_join(g, a[i % lanes], wide[i]);
}

/* n elements, whole rows of `lanes`; y may be x. */
static inline void adjust_lanes(const struct gather_code *code, float *y, const float *x,
                                const float *shift, const float *factor,
                                const float *addend, int64_t lanes, int64_t n)
{
    float wide[3][GATHER_LANES];
    if (lanes == 1) {
        code->adjust_line(y, x, shift[0], factor[0], addend[0], n);
        return;
    }
    if (lanes > GATHER_LANES / 2 || n < GATHER_LANES) {
        code->adjust_columns(y, x, shift, factor, addend, lanes, n / lanes);
        return;
    }
    const int64_t width = gather_spread(wide[0], shift, lanes), done = n / width * width;
    gather_spread(wide[1], factor, lanes);
    gather_spread(wide[2], addend, lanes);
    code->adjust_columns(y, x, wide[0], wide[1], wide[2], width, n / width);
    code->adjust_columns(y + done, x + done, wide[0], wide[1], wide[2], n - done, 1);
}

/* n <= GATHER_STRETCH elements from `at` as FP32: the tensor's own memory, or `buffer`.
 */
static inline const float *gather_load(const strata_tensor *t, int64_t at, int64_t n,
                                       float *buffer)
{
    if (t->dtype == STRATA_FP32)
        return (const float *)t->data + at;
    element_load_row(buffer, t->data, t->dtype, at, 1, n);
    return buffer;
}

#endif /* PLUGINS_COMMON_REDUCE_REDUCE_H */
