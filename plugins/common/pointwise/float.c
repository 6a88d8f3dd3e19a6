/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of float: FP32, FP16 and BF16 tensors. One loop an operation, compiled for each
 * kind of vectors.
 */
#include "plugins/common/pointwise/functions.h"
#include "plugins/common/pointwise/row.h"

#include <strata/narrow.h>

/* ---- memory --------------------------------------------------------------------------- */

ROW_INLINE void float_load_row(float *row, const void *data, int32_t dtype, int64_t step,
                               int64_t n)
{
    switch (dtype) {
    case STRATA_FP16:
        if (step == 1)
            element_from_half_row(row, data, n);
        else
            EACH(uint16_t, strata_float_of_half(x))
        break;
    case STRATA_BF16: EACH(uint16_t, strata_float_of_bfloat(x)) break;
    case STRATA_BOOL8:
    case STRATA_UINT8: EACH(uint8_t, (float)x) break;
    case STRATA_INT8: EACH(int8_t, (float)x) break;
    case STRATA_INT32: EACH(int32_t, (float)x) break;
    case STRATA_E4M3: EACH(uint8_t, strata_float_of_e4m3(x)) break;
    case STRATA_E5M2: EACH(uint8_t, strata_float_of_e5m2(x)) break;
    default: EACH(float, x) break;
    }
}

/* To the nearest integer in [low, high], ties to the even one; of NaN 0. Past the range
 * of a short its last bits are those of a sum with 2^23*1.5. */
ROW_INLINE uint8_t nearest(float x, float low, float high)
{
    const float limited = x < low ? low : x > high ? high : x == x ? x : 0;
    return (uint8_t)bits_of_float(limited + 0x1.8p23f);
}

ROW_INLINE void float_store_row(void *data, int32_t dtype, int64_t step, const float *row,
                                int64_t n)
{
    switch (dtype) {
    case STRATA_FP16:
        if (step == 1)
            element_to_half_row(data, row, n);
        else
            STORE_EACH(uint16_t, strata_half_of_float(row[i]))
        break;
    case STRATA_BF16: STORE_EACH(uint16_t, strata_bfloat_of_float(row[i])) break;
    case STRATA_BOOL8: STORE_EACH(uint8_t, row[i] != 0) break;
    case STRATA_UINT8: STORE_EACH(uint8_t, nearest(row[i], 0, 255)) break;
    case STRATA_INT8: STORE_EACH(uint8_t, nearest(row[i], -128, 127)) break;
    case STRATA_E4M3: STORE_EACH(uint8_t, strata_e4m3_of_float(row[i], 0)) break;
    case STRATA_E5M2: STORE_EACH(uint8_t, strata_e5m2_of_float(row[i], 0)) break;
    default: STORE_EACH(float, row[i]) break;
    }
}

/* ---- operations ------------------------------------------------------------------------ */

/* Into [0, 1]; a NaN stays one. */
ROW_INLINE float unit(float x)
{
    return within(x, 0, 1);
}

/* Past the range in which the quarters of a circle are counted exactly. */
typedef float libm_function(float);
static void far_from_zero(float *y, const float *a, libm_function *exact, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(a[i]) <= POINTWISE_TURNS))
            y[i] = exact(a[i]);
}

/* Sine, cosine and tangent of some; y may be a, so the arguments that are far are kept. */
ROW_INLINE void some_turns(int op, float *y, const float *a, int64_t n)
{
    float kept[POINTWISE_ROW];
    int any = 0;
    for (int64_t i = 0; i < n; i++)
        any |= !(fabsf(a[i]) <= POINTWISE_TURNS);
    if (any)
        memcpy(kept, a, (size_t)n * sizeof *kept);
    switch (op) {
    case STRATA_UNARY_SIN: LOOP(sin_float(a[i])); break;
    case STRATA_UNARY_COS: LOOP(cos_float(a[i])); break;
    default: LOOP(tan_float(a[i])); break;
    }
    if (any)
        far_from_zero(y, kept,
                      op == STRATA_UNARY_SIN   ? sinf
                      : op == STRATA_UNARY_COS ? cosf
                                               : tanf,
                      n);
}

ROW_INLINE void row_turns(int op, float *y, const float *a, int64_t n)
{
    for (int64_t i = 0; i < n; i += POINTWISE_ROW)
        some_turns(op, y + i, a + i, n - i < POINTWISE_ROW ? n - i : POINTWISE_ROW);
}

/* Where all powers are normal numbers, one factor is enough for each. Of NaN and infinity
 * the bits are above all numbers'. */
ROW_INLINE void row_exp(float *y, const float *a, int64_t n)
{
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t bits = (int32_t)(bits_of_float(a[i]) & 0x7fffffff);
        most = bits > most ? bits : most;
    }
    if (most > (int32_t)bits_of_float(87))
        LOOP(exp_float(a[i]));
    else
        LOOP(exp_inside(a[i]));
}

ROW_INLINE void row_unary(int op, const struct pointwise_constants *k, float *y,
                          const float *a, int64_t n)
{
    const int minus = k->alpha != 0, plus = k->beta != 0;
    const struct bounds in_erf = ERF_BOUNDS, in_tanh = TANH_BOUNDS,
                        in_unit = UNIT_BOUNDS;
    switch (op) {
    case STRATA_UNARY_ABS: LOOP(fabsf(a[i])); break;
    case STRATA_UNARY_NEG: LOOP(-a[i]); break;
    case STRATA_UNARY_EXP: row_exp(y, a, n); break;
    case STRATA_UNARY_LOG: LOOP(log_float(a[i])); break;
    case STRATA_UNARY_SQRT: LOOP(sqrtf(a[i])); break;
    case STRATA_UNARY_RECIPROCAL: LOOP(1 / a[i]); break;
    case STRATA_UNARY_SIGN: LOOP(a[i] > 0 ? 1 : a[i] < 0 ? -1 : a[i]); break;
    case STRATA_UNARY_FLOOR: LOOP(floorf(a[i])); break;
    case STRATA_UNARY_CEIL: LOOP(ceilf(a[i])); break;
    case STRATA_UNARY_ROUND: LOOP(rintf(a[i])); break;
    case STRATA_UNARY_SIN:
    case STRATA_UNARY_COS:
    case STRATA_UNARY_TAN: row_turns(op, y, a, n); break;
    case STRATA_UNARY_ASIN: LOOP(asin_float(a[i])); break;
    case STRATA_UNARY_ACOS: LOOP(acos_float(a[i])); break;
    case STRATA_UNARY_ATAN: LOOP(atan_float(a[i])); break;
    case STRATA_UNARY_SINH: LOOP(sinh_float(a[i])); break;
    case STRATA_UNARY_COSH: LOOP(cosh_float(a[i])); break;
    case STRATA_UNARY_TANH: LOOP(tanh_float(a[i], in_tanh)); break;
    case STRATA_UNARY_ASINH: LOOP(asinh_float(a[i])); break;
    case STRATA_UNARY_ACOSH: LOOP(acosh_float(a[i])); break;
    case STRATA_UNARY_ATANH: LOOP(atanh_float(a[i])); break;
    case STRATA_UNARY_ERF: LOOP(erf_float(a[i], in_erf, in_unit)); break;
    case STRATA_UNARY_NOT: LOOP(a[i] == 0); break;
    case STRATA_UNARY_IS_NAN: LOOP(a[i] != a[i]); break;
    case STRATA_UNARY_IS_INF:
        LOOP((minus & (a[i] == -INFINITY)) | (plus & (a[i] == INFINITY)));
        break;
    default: LOOP(a[i]); break;
    }
}

/* The powers that networks write most are products. */
ROW_INLINE void row_pow(float *y, const float *a, const float *b, int64_t n)
{
    int two = 1, three = 1;
    for (int64_t i = 0; i < n; i++) {
        two &= b[i] == 2;
        three &= b[i] == 3;
    }
    if (two)
        LOOP(a[i] * a[i]);
    else if (three)
        LOOP(a[i] * a[i] * a[i]);
    else
        LOOP(pow_float(a[i], b[i]));
}

static void row_fmod(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = fmodf(a[i], b[i]);
}

/* The sign of the divisor. */
static void row_mod(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float divisor = b[i], rest = fmodf(a[i], divisor);
        y[i] = rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor
               : rest == 0                              ? with_sign(0, divisor)
                                                        : rest;
    }
}

/* Both are read: a slope that is read where it is needed alone is a masked load. */
ROW_INLINE float parametric(float x, float slope)
{
    return x < 0 ? x * slope : x;
}

ROW_INLINE void row_binary(int op, float *y, const float *a, const float *b, int64_t n)
{
    switch (op) {
    case POINTWISE_ELEMENTWISE + STRATA_SUM: LOOP(a[i] + b[i]); break;
    case POINTWISE_ELEMENTWISE + STRATA_SUB: LOOP(a[i] - b[i]); break;
    case POINTWISE_ELEMENTWISE + STRATA_PRODUCT: LOOP(a[i] * b[i]); break;
    case POINTWISE_ELEMENTWISE + STRATA_DIV: LOOP(a[i] / b[i]); break;
    case POINTWISE_ELEMENTWISE + STRATA_MAX:
        LOOP((a[i] > b[i]) | (a[i] != a[i]) ? a[i] : b[i]);
        break;
    case POINTWISE_ELEMENTWISE + STRATA_MIN:
        LOOP((a[i] < b[i]) | (a[i] != a[i]) ? a[i] : b[i]);
        break;
    case POINTWISE_ELEMENTWISE + STRATA_POW: row_pow(y, a, b, n); break;
    case POINTWISE_ELEMENTWISE + STRATA_MOD: row_mod(y, a, b, n); break;
    case POINTWISE_ELEMENTWISE + STRATA_AND: LOOP((a[i] != 0) & (b[i] != 0)); break;
    case POINTWISE_ELEMENTWISE + STRATA_OR: LOOP((a[i] != 0) | (b[i] != 0)); break;
    case POINTWISE_ELEMENTWISE + STRATA_XOR: LOOP((a[i] != 0) ^ (b[i] != 0)); break;
    case POINTWISE_FMOD: row_fmod(y, a, b, n); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_EQUAL: LOOP(a[i] == b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_NOT_EQUAL: LOOP(a[i] != b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS: LOOP(a[i] < b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS_EQUAL: LOOP(a[i] <= b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER: LOOP(a[i] > b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER_EQUAL: LOOP(a[i] >= b[i]); break;
    case POINTWISE_PRELU: LOOP(parametric(a[i], b[i])); break;
    default: break;
    }
}

/* With one b for all, which need not be laid out. */
ROW_INLINE void row_with_one(int op, float *y, const float *a, float b, int64_t n)
{
    switch (op) {
    case POINTWISE_ELEMENTWISE + STRATA_SUM: LOOP(a[i] + b); break;
    case POINTWISE_ELEMENTWISE + STRATA_SUB: LOOP(a[i] - b); break;
    case POINTWISE_ELEMENTWISE + STRATA_PRODUCT: LOOP(a[i] * b); break;
    case POINTWISE_ELEMENTWISE + STRATA_DIV: LOOP(a[i] / b); break;
    case POINTWISE_ELEMENTWISE + STRATA_MAX:
        LOOP((a[i] > b) | (a[i] != a[i]) ? a[i] : b);
        break;
    case POINTWISE_ELEMENTWISE + STRATA_MIN:
        LOOP((a[i] < b) | (a[i] != a[i]) ? a[i] : b);
        break;
    case POINTWISE_PRELU: LOOP(parametric(a[i], b)); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_EQUAL: LOOP(a[i] == b); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_NOT_EQUAL: LOOP(a[i] != b); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS: LOOP(a[i] < b); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS_EQUAL: LOOP(a[i] <= b); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER: LOOP(a[i] > b); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER_EQUAL: LOOP(a[i] >= b); break;
    default: break;
    }
}

ROW_INLINE void row_activation(int kind, const struct pointwise_constants *k, float *y,
                               const float *x, int64_t n)
{
    const float a = (float)k->alpha, b = (float)k->beta;
    const struct bounds in_exp = EXP_BOUNDS, in_tanh = TANH_BOUNDS,
                        in_erf = ERF_BOUNDS, in_unit = UNIT_BOUNDS,
                        in_part = bounds_of(0, 1);
    switch (kind) {
    case STRATA_RELU: LOOP(x[i] < 0 ? 0 : x[i]); break;
    case STRATA_LEAKY_RELU: LOOP(x[i] > 0 ? x[i] : a * x[i]); break;
    case STRATA_RELU6: LOOP(within(x[i], 0, 6)); break;
    case STRATA_CLIP: LOOP(within(x[i], a, b)); break;
    case STRATA_SIGMOID: LOOP(sigmoid_float(x[i], in_exp)); break;
    case STRATA_TANH: LOOP(tanh_float(x[i], in_tanh)); break;
    case STRATA_ELU: LOOP(x[i] >= 0 ? x[i] : a * expm1_falling(x[i], in_exp)); break;
    case STRATA_SELU:
        LOOP(b * (x[i] >= 0 ? x[i] : a * expm1_falling(x[i], in_exp)));
        break;
    case STRATA_SOFTPLUS: LOOP(softplus_float(x[i], in_exp)); break;
    case STRATA_SOFTSIGN: LOOP(x[i] / (1 + fabsf(x[i]))); break;
    case STRATA_GELU:
        LOOP(x[i] / 2 * (1 + erf_float(x[i] * 0.70710678f, in_erf, in_unit)));
        break;
    case STRATA_SILU: LOOP(x[i] / (1 + exp_float(-x[i]))); break;
    case STRATA_HARD_SIGMOID: LOOP(unit(a * x[i] + b)); break;
    case STRATA_HARD_SWISH:
        LOOP(x[i] * between(x[i] * (1 / 6.f) + 0.5f, in_part));
        break;
    case STRATA_MISH:
        LOOP(mish_float(x[i]));
        break;
    case STRATA_GELU_TANH: LOOP(gelu_tanh_float(x[i], in_exp)); break;
    case STRATA_SWISH: LOOP(x[i] / (1 + exp_float(-a * x[i]))); break;
    case STRATA_CELU: LOOP(x[i] > 0 ? x[i] : a * expm1_float(x[i] / a)); break;
    case STRATA_THRESHOLDED_RELU: LOOP(x[i] <= a ? 0 : x[i]); break;
    case STRATA_SHRINK:
        LOOP(x[i] < -a ? x[i] + b : x[i] > a ? x[i] - b : x[i] - x[i]);
        break;
    case STRATA_SCALED_TANH: LOOP(a * tanh_float(b * x[i], in_tanh)); break;
    default: LOOP(x[i]); break;
    }
}

ROW_INLINE void float_rows(int op, const struct pointwise_constants *k, float *y,
                           const float *a, const float *b, const float *c, int64_t n)
{
    const float alpha = (float)k->alpha, beta = (float)k->beta;
    if (op & POINTWISE_ONE) {
        row_with_one(op ^ POINTWISE_ONE, y, a, *b, n);
        return;
    }
    if (op < POINTWISE_ELEMENTWISE) {
        row_unary(op, k, y, a, n);
        return;
    }
    if (op >= POINTWISE_ACTIVATION) {
        row_activation(op - POINTWISE_ACTIVATION, k, y, a, n);
        return;
    }
    switch (op) {
    case POINTWISE_SELECT: LOOP(a[i] != 0 ? b[i] : c[i]); break;
    case POINTWISE_AFFINE: LOOP(a[i] * alpha + beta); break;
    case POINTWISE_COPY: LOOP(a[i]); break;
    case POINTWISE_QUANTIZE: LOOP(rintf(a[i] / b[i]) + c[i]); break;
    case POINTWISE_DEQUANTIZE: LOOP((a[i] - b[i]) * c[i]); break;
    case POINTWISE_ROUND + STRATA_FP16:
        LOOP(strata_float_of_half(strata_half_of_float(a[i])));
        break;
    case POINTWISE_ROUND + STRATA_BF16:
        LOOP(strata_float_of_bfloat(strata_bfloat_of_float(a[i])));
        break;
    default: row_binary(op, y, a, b, n); break;
    }
}

ROW_FUNCTIONS(float)

/* ---- truths --------------------------------------------------------------------------
 * Straight to bytes: a row of floats in between would be four times as many. */

#define TRUTHS(right)                                                                    \
    switch (op ^ POINTWISE_COMPARE) {                                                    \
    case STRATA_COMPARE_EQUAL: LOOP(a[i] == (right) ? 1 : 0); break;                     \
    case STRATA_COMPARE_NOT_EQUAL: LOOP(a[i] != (right) ? 1 : 0); break;                 \
    case STRATA_COMPARE_LESS: LOOP(a[i] < (right) ? 1 : 0); break;                       \
    case STRATA_COMPARE_LESS_EQUAL: LOOP(a[i] <= (right) ? 1 : 0); break;                \
    case STRATA_COMPARE_GREATER: LOOP(a[i] > (right) ? 1 : 0); break;                    \
    default: LOOP(a[i] >= (right) ? 1 : 0); break;                                       \
    }

ROW_INLINE void truth_rows(int op, uint8_t *y, const float *a, const float *b, int64_t n)
{
    if (op & POINTWISE_ONE) {
        const float one = *b;
        op ^= POINTWISE_ONE;
        TRUTHS(one)
    } else {
        TRUTHS(b[i])
    }
}

#define TRUTH_TARGET(kind, target)                                                       \
    target static void float_truths_##kind(int op, uint8_t *y, const void *a,            \
                                           const void *b, int64_t n)                     \
    {                                                                                    \
        truth_rows(op, y, a, b, n);                                                      \
    }

TRUTH_TARGET(plain, )
#ifdef ELEMENT_X86
TRUTH_TARGET(avx512, ROW_AVX512)
TRUTH_TARGET(avx2, __attribute__((target("avx2,fma"))))
static void float_truths(int op, uint8_t *y, const void *a, const void *b, int64_t n)
    ROW_CHOOSE(float, truths_avx512, truths_avx2, truths_plain, op, y, a, b, n)
#else
#define float_truths float_truths_plain
#endif

const struct pointwise_class pointwise_float = {
    .size = sizeof(float),
    .load = float_load,
    .store = float_store,
    .apply = float_apply,
    .truths = float_truths,
    .native = 1 << STRATA_FP32,
    .has_one = 1,
};
