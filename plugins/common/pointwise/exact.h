/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of every operation on one value, in double and in int64_t: what the
 * references say, and how FP64 tensors are computed.
 */
#ifndef PLUGINS_COMMON_POINTWISE_EXACT_H
#define PLUGINS_COMMON_POINTWISE_EXACT_H

#include <math.h>

#include "plugins/common/element.h"
#include "plugins/common/pointwise.h"

static inline double exact_unary(int op, const struct pointwise_constants *k, double x)
{
    switch (op) {
    case STRATA_UNARY_ABS: return fabs(x);
    case STRATA_UNARY_NEG: return -x;
    case STRATA_UNARY_EXP: return exp(x);
    case STRATA_UNARY_LOG: return log(x);
    case STRATA_UNARY_SQRT: return sqrt(x);
    case STRATA_UNARY_RECIPROCAL: return 1 / x;
    case STRATA_UNARY_SIGN: return x > 0 ? 1 : x < 0 ? -1 : x;
    case STRATA_UNARY_FLOOR: return floor(x);
    case STRATA_UNARY_CEIL: return ceil(x);
    case STRATA_UNARY_ROUND: return nearbyint(x);
    case STRATA_UNARY_SIN: return sin(x);
    case STRATA_UNARY_COS: return cos(x);
    case STRATA_UNARY_TAN: return tan(x);
    case STRATA_UNARY_ASIN: return asin(x);
    case STRATA_UNARY_ACOS: return acos(x);
    case STRATA_UNARY_ATAN: return atan(x);
    case STRATA_UNARY_SINH: return sinh(x);
    case STRATA_UNARY_COSH: return cosh(x);
    case STRATA_UNARY_TANH: return tanh(x);
    case STRATA_UNARY_ASINH: return asinh(x);
    case STRATA_UNARY_ACOSH: return acosh(x);
    case STRATA_UNARY_ATANH: return atanh(x);
    case STRATA_UNARY_ERF: return erf(x);
    case STRATA_UNARY_NOT: return x == 0;
    case STRATA_UNARY_IS_NAN: return isnan(x);
    case STRATA_UNARY_IS_INF:
        return isinf(x) && (x < 0 ? k->alpha != 0 : k->beta != 0);
    default: return x;
    }
}

static inline double exact_mod(double a, double b)
{
    const double rest = fmod(a, b);
    return rest == 0 ? copysign(0, b) : (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline double exact_binary(int op, double a, double b)
{
    switch (op) {
    case POINTWISE_ELEMENTWISE + STRATA_SUM: return a + b;
    case POINTWISE_ELEMENTWISE + STRATA_SUB: return a - b;
    case POINTWISE_ELEMENTWISE + STRATA_PRODUCT: return a * b;
    case POINTWISE_ELEMENTWISE + STRATA_DIV: return a / b;
    case POINTWISE_ELEMENTWISE + STRATA_MAX: return a > b || isnan(a) ? a : b;
    case POINTWISE_ELEMENTWISE + STRATA_MIN: return a < b || isnan(a) ? a : b;
    case POINTWISE_ELEMENTWISE + STRATA_POW: return pow(a, b);
    case POINTWISE_ELEMENTWISE + STRATA_MOD: return exact_mod(a, b);
    case POINTWISE_ELEMENTWISE + STRATA_AND: return a != 0 && b != 0;
    case POINTWISE_ELEMENTWISE + STRATA_OR: return a != 0 || b != 0;
    case POINTWISE_ELEMENTWISE + STRATA_XOR: return (a != 0) != (b != 0);
    case POINTWISE_FMOD: return fmod(a, b);
    case POINTWISE_COMPARE + STRATA_COMPARE_EQUAL: return a == b;
    case POINTWISE_COMPARE + STRATA_COMPARE_NOT_EQUAL: return a != b;
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS: return a < b;
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS_EQUAL: return a <= b;
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER: return a > b;
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER_EQUAL: return a >= b;
    case POINTWISE_PRELU: return a < 0 ? a * b : a;
    default: return a;
    }
}

static inline double exact_double(int op, const struct pointwise_constants *k, double a,
                                  double b, double c)
{
    if (op < POINTWISE_ELEMENTWISE)
        return exact_unary(op, k, a);
    if (op >= POINTWISE_ACTIVATION)
        return element_activate_exact(op - POINTWISE_ACTIVATION, a, k->alpha, k->beta);
    switch (op) {
    case POINTWISE_SELECT: return a != 0 ? b : c;
    case POINTWISE_AFFINE: return a * k->alpha + k->beta;
    case POINTWISE_QUANTIZE: return nearbyint(a / b) + c;
    case POINTWISE_DEQUANTIZE: return (a - b) * c;
    default: return exact_binary(op, a, b);
    }
}

/* Truncated and saturated to INT32 or INT64; of NaN 0. */
static inline int64_t exact_truncated(double x, int32_t dtype)
{
    const double most = dtype == STRATA_INT32 ? 0x1p31 : 0x1p63;
    const int64_t largest = dtype == STRATA_INT32 ? INT32_MAX : INT64_MAX;
    return x != x ? 0 : x >= most ? largest : x < -most ? -largest - 1 : (int64_t)x;
}

static inline int64_t exact_divide(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static inline int64_t exact_power(int64_t a, int64_t b)
{
    uint64_t y = 1;
    if (b < 0) /* 1/a truncated; 0 for a division by 0 */
        return a == 1 || (a == -1 && b % 2 == 0) ? 1 : a == -1 ? -1 : 0;
    for (uint64_t square = (uint64_t)a; b > 0; b /= 2, square *= square)
        y *= b % 2 ? square : 1;
    return (int64_t)y;
}

static inline int64_t exact_shift(int op, int64_t a, int64_t b, int bits)
{
    if (b < 0 || b >= bits)
        return 0;
    return op == POINTWISE_ELEMENTWISE + STRATA_SHIFT_LEFT ? (int64_t)((uint64_t)a << b)
                                                           : a >> b;
}

static inline int64_t exact_integer(int op, const struct pointwise_constants *k,
                                    int64_t a, int64_t b, int64_t c)
{
    const int64_t rest = b == 0 || b == -1 ? 0 : a % b;
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (op) {
    case STRATA_UNARY_ABS: return a < 0 ? (int64_t)(0 - x) : a;
    case STRATA_UNARY_NEG: return (int64_t)(0 - x);
    case STRATA_UNARY_SIGN: return (a > 0) - (a < 0);
    case STRATA_UNARY_NOT: return a == 0;
    case STRATA_UNARY_BIT_NOT: return ~a;
    case STRATA_UNARY_IS_NAN:
    case STRATA_UNARY_IS_INF: return 0;
    case POINTWISE_ELEMENTWISE + STRATA_SUM: return (int64_t)(x + y);
    case POINTWISE_ELEMENTWISE + STRATA_SUB: return (int64_t)(x - y);
    case POINTWISE_ELEMENTWISE + STRATA_PRODUCT: return (int64_t)(x * y);
    case POINTWISE_ELEMENTWISE + STRATA_DIV: return exact_divide(a, b);
    case POINTWISE_ELEMENTWISE + STRATA_MAX: return a > b ? a : b;
    case POINTWISE_ELEMENTWISE + STRATA_MIN: return a < b ? a : b;
    case POINTWISE_ELEMENTWISE + STRATA_POW: return exact_power(a, b);
    case POINTWISE_ELEMENTWISE + STRATA_MOD:
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    case POINTWISE_FMOD: return rest;
    case POINTWISE_ELEMENTWISE + STRATA_AND:
    case POINTWISE_ELEMENTWISE + STRATA_BIT_AND: return a & b;
    case POINTWISE_ELEMENTWISE + STRATA_OR:
    case POINTWISE_ELEMENTWISE + STRATA_BIT_OR: return a | b;
    case POINTWISE_ELEMENTWISE + STRATA_XOR:
    case POINTWISE_ELEMENTWISE + STRATA_BIT_XOR: return a ^ b;
    case POINTWISE_ELEMENTWISE + STRATA_SHIFT_LEFT:
    case POINTWISE_ELEMENTWISE + STRATA_SHIFT_RIGHT:
        return exact_shift(op, a, b, k->bits);
    case POINTWISE_COMPARE + STRATA_COMPARE_EQUAL: return a == b;
    case POINTWISE_COMPARE + STRATA_COMPARE_NOT_EQUAL: return a != b;
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS: return a < b;
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS_EQUAL: return a <= b;
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER: return a > b;
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER_EQUAL: return a >= b;
    case POINTWISE_SELECT: return a ? b : c;
    default: return a;
    }
}

#endif /* PLUGINS_COMMON_POINTWISE_EXACT_H */
