/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise arithmetic on the device: the operations of pointwise/operations.h over packs
 * of values in registers, one switch a pack. Values are float for FP32, FP16 and BF16,
 * int32_t for INT32, INT8, UINT8 and BOOL8, int64_t for INT64. pointwise.h is the same for
 * the host; pointwise_walk.cuh has the kernels around.
 */
#ifndef PLUGINS_COMMON_POINTWISE_CUH
#define PLUGINS_COMMON_POINTWISE_CUH

#include "kernels/layer.cuh"

#include <cuda_bf16.h>

#include "plugins/common/pointwise/operations.h"

struct pointwise_args {
    float alpha, beta;
    int32_t bits;
};

static inline pointwise_args pointwise_args_of(double alpha, double beta, int32_t bits)
{
    pointwise_args k = {(float)alpha, (float)beta, bits};
    return k;
}

/* Operations in groups of like cost: a kernel has the registers of the dearest in it.
 * With a layer added, a kernel holds that layer's operations alone. */
enum {
    POINTWISE_SIMPLE = 0,
    POINTWISE_CURVES,
    POINTWISE_RARE,
    POINTWISE_KINDS,
    POINTWISE_OF_UNARY = 8,
    POINTWISE_OF_ELEMENTWISE = 16,
    POINTWISE_OF_COMPARE = 24
};

template <int Group> struct pointwise_bounds {
    static const int layer = Group / POINTWISE_OF_UNARY * POINTWISE_OF_UNARY;
    static const int first = layer == POINTWISE_OF_COMPARE       ? POINTWISE_COMPARE
                             : layer == POINTWISE_OF_ELEMENTWISE ? POINTWISE_ELEMENTWISE
                                                                 : POINTWISE_UNARY;
    static const int end = layer == POINTWISE_OF_COMPARE       ? POINTWISE_SELECT
                           : layer == POINTWISE_OF_ELEMENTWISE ? POINTWISE_COMPARE
                           : layer == POINTWISE_OF_UNARY       ? POINTWISE_ELEMENTWISE
                                                               : POINTWISE_END;
};

/* Leaves out the cases of other layers' operations. */
template <int Group> static __device__ inline void pointwise_limit(int op)
{
    typedef pointwise_bounds<Group> bounds;
    if (op < bounds::first || op >= bounds::end)
        __builtin_unreachable();
}

static inline int pointwise_group(int op)
{
    switch (op) {
    case STRATA_UNARY_EXP:
    case STRATA_UNARY_LOG:
    case STRATA_UNARY_TANH:
    case STRATA_UNARY_ERF:
    case POINTWISE_ELEMENTWISE + STRATA_DIV:
        return POINTWISE_CURVES;
    case POINTWISE_ELEMENTWISE + STRATA_POW:
    case POINTWISE_ELEMENTWISE + STRATA_MOD:
    case POINTWISE_FMOD:
        return POINTWISE_RARE;
    default:
        return op >= POINTWISE_ACTIVATION ? POINTWISE_KINDS
               : op >= STRATA_UNARY_SIN && op <= STRATA_UNARY_ATANH
                   ? POINTWISE_RARE
                   : POINTWISE_SIMPLE;
    }
}

/* ---- functions that are long: called, not inlined, by one call for all ------------- */

/* The sign of the divisor. */
static __device__ inline float point_mod(float x, float y)
{
    const float rest = fmodf(x, y);
    return rest == 0 ? copysignf(0, y) : (rest < 0) != (y < 0) ? rest + y : rest;
}

template <int Group>
static __device__ __noinline__ float point_rare(int op, float x, float y)
{
    pointwise_limit<Group>(op);
    switch (op) {
    case STRATA_UNARY_SIN:
        return sinf(x);
    case STRATA_UNARY_COS:
        return cosf(x);
    case STRATA_UNARY_TAN:
        return tanf(x);
    case STRATA_UNARY_ASIN:
        return asinf(x);
    case STRATA_UNARY_ACOS:
        return acosf(x);
    case STRATA_UNARY_ATAN:
        return atanf(x);
    case STRATA_UNARY_SINH:
        return sinhf(x);
    case STRATA_UNARY_COSH:
        return coshf(x);
    case STRATA_UNARY_ASINH:
        return asinhf(x);
    case STRATA_UNARY_ACOSH:
        return acoshf(x);
    case STRATA_UNARY_ATANH:
        return atanhf(x);
    case POINTWISE_ELEMENTWISE + STRATA_POW:
        return y == 2 ? x * x : powf(x, y);
    case POINTWISE_ELEMENTWISE + STRATA_MOD:
        return point_mod(x, y);
    default:
        return fmodf(x, y);
    }
}

/* ---- packs of float ------------------------------------------------------------------ */

#define POINT_EACH(expression)                                                           \
    {                                                                                    \
        _Pragma("unroll") for (int i = 0; i < N; i++) y[i] = (expression);               \
        break;                                                                           \
    }

/* Of one operand. */
template <int N>
static __device__ inline void point_simple_one(int op, const pointwise_args &k, float *y,
                                               const float *a)
{
    const bool minus = k.alpha != 0, plus = k.beta != 0;
    switch (op) {
    case STRATA_UNARY_ABS: POINT_EACH(fabsf(a[i]))
    case STRATA_UNARY_NEG: POINT_EACH(-a[i])
    case STRATA_UNARY_SQRT: POINT_EACH(sqrtf(a[i]))
    case STRATA_UNARY_RECIPROCAL: POINT_EACH(1 / a[i])
    case STRATA_UNARY_SIGN: POINT_EACH(a[i] > 0 ? 1 : a[i] < 0 ? -1 : a[i])
    case STRATA_UNARY_FLOOR: POINT_EACH(floorf(a[i]))
    case STRATA_UNARY_CEIL: POINT_EACH(ceilf(a[i]))
    case STRATA_UNARY_ROUND: POINT_EACH(rintf(a[i]))
    case STRATA_UNARY_NOT: POINT_EACH(a[i] == 0)
    case STRATA_UNARY_IS_NAN: POINT_EACH(a[i] != a[i])
    case STRATA_UNARY_IS_INF:
        POINT_EACH((minus && a[i] == -INFINITY) || (plus && a[i] == INFINITY))
    case POINTWISE_AFFINE: POINT_EACH(a[i] * k.alpha + k.beta)
    case POINTWISE_ROUND + STRATA_FP16:
        POINT_EACH(__half2float(__float2half_rn(a[i])))
    case POINTWISE_ROUND + STRATA_BF16:
        POINT_EACH(__bfloat162float(__float2bfloat16_rn(a[i])))
    case POINTWISE_COPY: POINT_EACH(a[i])
    default: __builtin_unreachable();
    }
}

/* Of two. */
template <int N>
static __device__ inline void point_simple_two(int op, float *y, const float *a,
                                               const float *b)
{
    switch (op) {
    case POINTWISE_ELEMENTWISE + STRATA_SUM: POINT_EACH(a[i] + b[i])
    case POINTWISE_ELEMENTWISE + STRATA_SUB: POINT_EACH(a[i] - b[i])
    case POINTWISE_ELEMENTWISE + STRATA_PRODUCT: POINT_EACH(a[i] * b[i])
    case POINTWISE_ELEMENTWISE + STRATA_MAX:
        POINT_EACH(a[i] > b[i] || a[i] != a[i] ? a[i] : b[i])
    case POINTWISE_ELEMENTWISE + STRATA_MIN:
        POINT_EACH(a[i] < b[i] || a[i] != a[i] ? a[i] : b[i])
    case POINTWISE_ELEMENTWISE + STRATA_AND: POINT_EACH(a[i] != 0 && b[i] != 0)
    case POINTWISE_ELEMENTWISE + STRATA_OR: POINT_EACH(a[i] != 0 || b[i] != 0)
    case POINTWISE_ELEMENTWISE + STRATA_XOR: POINT_EACH((a[i] != 0) != (b[i] != 0))
    case POINTWISE_COMPARE + STRATA_COMPARE_EQUAL: POINT_EACH(a[i] == b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_NOT_EQUAL: POINT_EACH(a[i] != b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS: POINT_EACH(a[i] < b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS_EQUAL: POINT_EACH(a[i] <= b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER: POINT_EACH(a[i] > b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER_EQUAL: POINT_EACH(a[i] >= b[i])
    default: __builtin_unreachable();
    }
}

template <int N>
static __device__ inline void point_simple(int op, const pointwise_args &k, float *y,
                                           const float *a, const float *b, const float *c)
{
    switch (op) {
    case POINTWISE_SELECT: POINT_EACH(a[i] != 0 ? b[i] : c[i])
    case POINTWISE_PRELU: POINT_EACH(a[i] < 0 ? a[i] * b[i] : a[i])
    case POINTWISE_QUANTIZE: POINT_EACH(rintf(a[i] / b[i]) + c[i])
    case POINTWISE_DEQUANTIZE: POINT_EACH((a[i] - b[i]) * c[i])
    default:
        if (op >= POINTWISE_ELEMENTWISE && op < POINTWISE_SELECT)
            point_simple_two<N>(op, y, a, b);
        else
            point_simple_one<N>(op, k, y, a);
    }
}

template <int N>
static __device__ inline void point_curves(int op, float *y, const float *a,
                                           const float *b)
{
    switch (op) {
    case STRATA_UNARY_EXP: POINT_EACH(expf(a[i]))
    case STRATA_UNARY_LOG: POINT_EACH(logf(a[i]))
    case STRATA_UNARY_TANH: POINT_EACH(tanhf(a[i]))
    case STRATA_UNARY_ERF: POINT_EACH(erff(a[i]))
    case POINTWISE_ELEMENTWISE + STRATA_DIV: POINT_EACH(a[i] / b[i])
    default: __builtin_unreachable();
    }
}

/* The kind is known inside of the loop over a pack: its switch is gone there. */
#define POINT_KIND(kind)                                                                 \
    case POINTWISE_ACTIVATION + kind: {                                                  \
        const activation_args f = {kind, k.alpha, k.beta};                               \
        POINT_EACH(activate(a[i], f))                                                    \
    }

template <int N>
static __device__ inline void point_kinds(int op, const pointwise_args &k, float *y,
                                          const float *a)
{
    switch (op) {
    POINT_KIND(STRATA_RELU)
    POINT_KIND(STRATA_LEAKY_RELU)
    POINT_KIND(STRATA_RELU6)
    POINT_KIND(STRATA_CLIP)
    POINT_KIND(STRATA_SIGMOID)
    POINT_KIND(STRATA_TANH)
    POINT_KIND(STRATA_ELU)
    POINT_KIND(STRATA_SELU)
    POINT_KIND(STRATA_SOFTPLUS)
    POINT_KIND(STRATA_SOFTSIGN)
    POINT_KIND(STRATA_GELU)
    POINT_KIND(STRATA_SILU)
    POINT_KIND(STRATA_HARD_SIGMOID)
    POINT_KIND(STRATA_HARD_SWISH)
    POINT_KIND(STRATA_MISH)
    POINT_KIND(STRATA_GELU_TANH)
    POINT_KIND(STRATA_SWISH)
    POINT_KIND(STRATA_CELU)
    POINT_KIND(STRATA_THRESHOLDED_RELU)
    POINT_KIND(STRATA_SHRINK)
    POINT_KIND(STRATA_SCALED_TANH)
    default: __builtin_unreachable();
    }
}

/* y may be a, b or c; b and c are looked at where op takes them. */
template <int Group, int N>
static __device__ inline void pointwise_apply(int op, const pointwise_args &k, float *y,
                                              const float *a, const float *b,
                                              const float *c)
{
    const int kind = Group % POINTWISE_OF_UNARY;
    pointwise_limit<Group>(op);
    if (kind == POINTWISE_SIMPLE)
        point_simple<N>(op, k, y, a, b, c);
    else if (kind == POINTWISE_CURVES)
        point_curves<N>(op, y, a, b);
    else if (kind == POINTWISE_KINDS)
        point_kinds<N>(op, k, y, a);
    else
#pragma unroll
        for (int i = 0; i < N; i++)
            y[i] = point_rare<Group>(op, a[i], b[i]);
}

/* ---- packs of integers --------------------------------------------------------------- */

template <typename I> struct unsigned_of;
template <> struct unsigned_of<int32_t> {
    typedef uint32_t type;
};
template <> struct unsigned_of<int64_t> {
    typedef uint64_t type;
};

/* Truncated; 0 where b is 0. The least one divided by -1 is itself. */
template <typename I>
static __device__ __noinline__ I point_divide(I a, I b)
{
    typedef typename unsigned_of<I>::type W;
    return b == 0 ? 0 : b == -1 ? (I)(0 - (W)a) : a / b;
}

template <typename I>
static __device__ __noinline__ I point_remainder(I a, I b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

template <typename I>
static __device__ inline I point_modulo(I a, I b)
{
    const I rest = point_remainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <typename I>
static __device__ __noinline__ I point_whole_power(I a, I b)
{
    typedef typename unsigned_of<I>::type W;
    W y = 1, square = (W)a;
    if (b < 0) /* 1/a^-b, truncated */
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    for (; b > 0; b >>= 1, square *= square)
        if (b & 1)
            y *= square;
    return (I)y;
}

template <int Group, int N, typename I>
static __device__ inline void pointwise_apply(int op, const pointwise_args &k, I *y,
                                              const I *a, const I *b, const I *c)
{
    typedef typename unsigned_of<I>::type W;
    pointwise_limit<Group>(op);
    switch (op) {
    case STRATA_UNARY_ABS: POINT_EACH(a[i] < 0 ? (I)(0 - (W)a[i]) : a[i])
    case STRATA_UNARY_NEG: POINT_EACH((I)(0 - (W)a[i]))
    case STRATA_UNARY_SIGN: POINT_EACH((I)((a[i] > 0) - (a[i] < 0)))
    case STRATA_UNARY_NOT: POINT_EACH(a[i] == 0)
    case STRATA_UNARY_BIT_NOT: POINT_EACH(~a[i])
    case STRATA_UNARY_IS_NAN:
    case STRATA_UNARY_IS_INF: POINT_EACH(0)
    case POINTWISE_ELEMENTWISE + STRATA_SUM: POINT_EACH((I)((W)a[i] + (W)b[i]))
    case POINTWISE_ELEMENTWISE + STRATA_SUB: POINT_EACH((I)((W)a[i] - (W)b[i]))
    case POINTWISE_ELEMENTWISE + STRATA_PRODUCT: POINT_EACH((I)((W)a[i] * (W)b[i]))
    case POINTWISE_ELEMENTWISE + STRATA_DIV: POINT_EACH(point_divide(a[i], b[i]))
    case POINTWISE_ELEMENTWISE + STRATA_MAX: POINT_EACH(a[i] > b[i] ? a[i] : b[i])
    case POINTWISE_ELEMENTWISE + STRATA_MIN: POINT_EACH(a[i] < b[i] ? a[i] : b[i])
    case POINTWISE_ELEMENTWISE + STRATA_POW: POINT_EACH(point_whole_power(a[i], b[i]))
    case POINTWISE_ELEMENTWISE + STRATA_MOD: POINT_EACH(point_modulo(a[i], b[i]))
    case POINTWISE_FMOD: POINT_EACH(point_remainder(a[i], b[i]))
    case POINTWISE_ELEMENTWISE + STRATA_AND:
    case POINTWISE_ELEMENTWISE + STRATA_BIT_AND: POINT_EACH(a[i] & b[i])
    case POINTWISE_ELEMENTWISE + STRATA_OR:
    case POINTWISE_ELEMENTWISE + STRATA_BIT_OR: POINT_EACH(a[i] | b[i])
    case POINTWISE_ELEMENTWISE + STRATA_XOR:
    case POINTWISE_ELEMENTWISE + STRATA_BIT_XOR: POINT_EACH(a[i] ^ b[i])
    case POINTWISE_ELEMENTWISE + STRATA_SHIFT_LEFT:
        POINT_EACH(b[i] < 0 || b[i] >= k.bits ? 0 : (I)((W)a[i] << b[i]))
    case POINTWISE_ELEMENTWISE + STRATA_SHIFT_RIGHT:
        POINT_EACH(b[i] < 0 || b[i] >= k.bits ? 0 : a[i] >> b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_EQUAL: POINT_EACH(a[i] == b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_NOT_EQUAL: POINT_EACH(a[i] != b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS: POINT_EACH(a[i] < b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS_EQUAL: POINT_EACH(a[i] <= b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER: POINT_EACH(a[i] > b[i])
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER_EQUAL: POINT_EACH(a[i] >= b[i])
    case POINTWISE_SELECT: POINT_EACH(a[i] != 0 ? b[i] : c[i])
    default: POINT_EACH(a[i])
    }
}

#endif /* PLUGINS_COMMON_POINTWISE_CUH */
