/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements for host impls: FP32, FP16 and BF16 values at an offset or along a row, and
 * the activation functions. Arithmetic is FP32; FP16 and BF16 are storage types. Integer
 * and FP64 tensors are the business of the layers that take them.
 */
#ifndef PLUGINS_COMMON_ELEMENT_H
#define PLUGINS_COMMON_ELEMENT_H

#include <strata/narrow.h>
#include <strata/plugin.h>

#include <math.h>
#include <string.h>

/* The formats of float arithmetic on the host. */
#define ELEMENT_FLOATS                                                                   \
    (STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_F32_NC8HW8 |               \
     STRATA_F32_NC16HW16 | STRATA_BF16_NCHW | STRATA_BF16_NHWC | STRATA_BF16_NHWC8)

#if defined(__x86_64__) || defined(__i386__)
#define ELEMENT_X86 1
#include <immintrin.h>
#endif

/* ---- FP16: IEEE 754 binary16, round to nearest even ---------------------------- */

static inline float element_from_half(uint16_t h)
{
    return strata_float_of_half(h);
}

static inline uint16_t element_to_half(float x)
{
    return strata_half_of_float(x);
}

#ifdef ELEMENT_X86
/* Every CPU with AVX2 and FMA has F16C; compilers do not all know the name "f16c". */
static inline int element_has_f16c(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

__attribute__((target("avx,f16c"))) static inline int64_t
element_from_half_f16c(float *dst, const uint16_t *src, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i half = _mm_loadu_si128((const __m128i *)(const void *)(src + i));
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(half));
    }
    return i;
}

__attribute__((target("avx,f16c"))) static inline int64_t
element_to_half_f16c(uint16_t *dst, const float *src, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(src + i), 0);
        _mm_storeu_si128((__m128i *)(void *)(dst + i), half);
    }
    return i;
}
#endif

/* Contiguous rows of n elements. */
static inline void element_from_half_row(float *dst, const uint16_t *src, int64_t n)
{
    int64_t i = 0;
#ifdef ELEMENT_X86
    if (n >= 8 && element_has_f16c())
        i = element_from_half_f16c(dst, src, n);
#endif
    for (; i < n; i++)
        dst[i] = element_from_half(src[i]);
}

static inline void element_to_half_row(uint16_t *dst, const float *src, int64_t n)
{
    int64_t i = 0;
#ifdef ELEMENT_X86
    if (n >= 8 && element_has_f16c())
        i = element_to_half_f16c(dst, src, n);
#endif
    for (; i < n; i++)
        dst[i] = element_to_half(src[i]);
}

/* ---- BF16 ----------------------------------------------------------------------- */

static inline void element_from_bfloat_row(float *dst, const uint16_t *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = strata_float_of_bfloat(src[i]);
}

static inline void element_to_bfloat_row(uint16_t *dst, const float *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = strata_bfloat_of_float(src[i]);
}

/* ---- elements of float tensors; offsets and strides in elements ---------------- */

/* Contiguous rows of FP16 or BF16. */
static inline void element_widen_row(float *dst, const uint16_t *src, int32_t dtype,
                                     int64_t n)
{
    if (dtype == STRATA_BF16)
        element_from_bfloat_row(dst, src, n);
    else
        element_from_half_row(dst, src, n);
}

static inline void element_narrow_row(uint16_t *dst, int32_t dtype, const float *src,
                                      int64_t n)
{
    if (dtype == STRATA_BF16)
        element_to_bfloat_row(dst, src, n);
    else
        element_to_half_row(dst, src, n);
}

static inline float element_load(const void *data, int32_t dtype, int64_t offset)
{
    switch (dtype) {
    case STRATA_FP16:
        return element_from_half(((const uint16_t *)data)[offset]);
    case STRATA_BF16:
        return strata_float_of_bfloat(((const uint16_t *)data)[offset]);
    default:
        return ((const float *)data)[offset];
    }
}

static inline void element_store(void *data, int32_t dtype, int64_t offset, float x)
{
    switch (dtype) {
    case STRATA_FP16:
        ((uint16_t *)data)[offset] = element_to_half(x);
        break;
    case STRATA_BF16:
        ((uint16_t *)data)[offset] = strata_bfloat_of_float(x);
        break;
    default:
        ((float *)data)[offset] = x;
    }
}

/* n elements from `offset`, `stride` apart, to or from a contiguous FP32 row. */
static inline void element_load_row(float *dst, const void *data, int32_t dtype,
                                    int64_t offset, int64_t stride, int64_t n)
{
    if (stride == 1 && (dtype == STRATA_FP16 || dtype == STRATA_BF16))
        element_widen_row(dst, (const uint16_t *)data + offset, dtype, n);
    else if (stride == 1)
        memcpy(dst, (const float *)data + offset, (size_t)n * sizeof *dst);
    else
        for (int64_t i = 0; i < n; i++)
            dst[i] = element_load(data, dtype, offset + i * stride);
}

static inline void element_store_row(void *data, int32_t dtype, int64_t offset,
                                     int64_t stride, const float *src, int64_t n)
{
    if (stride == 1 && (dtype == STRATA_FP16 || dtype == STRATA_BF16))
        element_narrow_row((uint16_t *)data + offset, dtype, src, n);
    else if (stride == 1)
        memcpy((float *)data + offset, src, (size_t)n * sizeof *src);
    else
        for (int64_t i = 0; i < n; i++)
            element_store(data, dtype, offset + i * stride, src[i]);
}

/* Offset of channel c of image n at the spatial origin. */
static inline int64_t element_channel(const strata_tensor *t, int64_t n, int64_t c)
{
    return n * t->strides[0] + (t->vector_dim == 1
                                    ? c / t->vector * t->strides[1] + c % t->vector
                                    : c * t->strides[1]);
}

/* ---- activations --------------------------------------------------------------- */

static inline double element_clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* The definition, in FP64. */
static inline double element_activate_exact(int32_t kind, double x, double alpha,
                                            double beta)
{
    double softplus = x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    switch (kind) {
    case STRATA_RELU: return x < 0 ? 0 : x;
    case STRATA_LEAKY_RELU: return x > 0 ? x : alpha * x;
    case STRATA_RELU6: return element_clamp(x, 0, 6);
    case STRATA_CLIP: return element_clamp(x, alpha, beta);
    case STRATA_SIGMOID: return 1 / (1 + exp(-x));
    case STRATA_TANH: return tanh(x);
    case STRATA_ELU: return x > 0 ? x : alpha * expm1(x);
    case STRATA_SELU: return beta * (x > 0 ? x : alpha * expm1(x));
    case STRATA_SOFTPLUS: return softplus;
    case STRATA_SOFTSIGN: return x / (1 + fabs(x));
    case STRATA_GELU: return x / 2 * (1 + erf(x / sqrt(2)));
    case STRATA_SILU: return x / (1 + exp(-x));
    case STRATA_HARD_SIGMOID: return element_clamp(alpha * x + beta, 0, 1);
    case STRATA_HARD_SWISH: return x * element_clamp(x / 6 + 0.5, 0, 1);
    case STRATA_MISH: return x * tanh(softplus);
    case STRATA_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case STRATA_SWISH: return x / (1 + exp(-alpha * x));
    case STRATA_CELU: return x < 0 ? alpha * expm1(x / alpha) : x;
    case STRATA_THRESHOLDED_RELU: return x <= alpha ? 0 : x;
    case STRATA_SHRINK: return x < -alpha ? x + beta : x <= alpha ? 0 : x - beta;
    case STRATA_SCALED_TANH: return alpha * tanh(beta * x);
    default: return x;
    }
}

static inline float element_softplus(float x)
{
    return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
}

/* Into [0, 1]; a NaN stays one, which fmaxf and fminf would not see to. */
static inline float element_unit(float x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* One loop per kind, so that the simple ones become vector code. */
#define ELEMENT_ROW(expression)        \
    for (int64_t i = 0; i < n; i++) {  \
        float x = row[i];              \
        row[i] = (expression);         \
    }                                  \
    break

/* The same in FP32, over n contiguous elements in place. */
static inline void element_activate_row(int32_t kind, double alpha, double beta,
                                        float *row, int64_t n)
{
    float a = (float)alpha, b = (float)beta;
    switch (kind) {
    case STRATA_RELU: ELEMENT_ROW(x < 0 ? 0 : x);
    case STRATA_LEAKY_RELU: ELEMENT_ROW(x > 0 ? x : a * x);
    case STRATA_RELU6: ELEMENT_ROW(x < 0 ? 0 : x > 6 ? 6 : x);
    case STRATA_CLIP: ELEMENT_ROW(x < a ? a : x > b ? b : x);
    case STRATA_SIGMOID: ELEMENT_ROW(1 / (1 + expf(-x)));
    case STRATA_TANH: ELEMENT_ROW(tanhf(x));
    case STRATA_ELU: ELEMENT_ROW(x > 0 ? x : a * expm1f(x));
    case STRATA_SELU: ELEMENT_ROW(b * (x > 0 ? x : a * expm1f(x)));
    case STRATA_SOFTPLUS: ELEMENT_ROW(element_softplus(x));
    case STRATA_SOFTSIGN: ELEMENT_ROW(x / (1 + fabsf(x)));
    case STRATA_GELU: ELEMENT_ROW(x / 2 * (1 + erff(x * 0.70710678f)));
    case STRATA_SILU: ELEMENT_ROW(x / (1 + expf(-x)));
    case STRATA_HARD_SIGMOID: ELEMENT_ROW(element_unit(a * x + b));
    case STRATA_HARD_SWISH: ELEMENT_ROW(x * element_unit(x / 6 + 0.5f));
    case STRATA_MISH: ELEMENT_ROW(x * tanhf(element_softplus(x)));
    case STRATA_GELU_TANH:
        ELEMENT_ROW(x / 2 * (1 + tanhf(x * (0.79788456f + 0.035677408f * x * x))));
    case STRATA_SWISH: ELEMENT_ROW(x / (1 + expf(-a * x)));
    case STRATA_CELU: ELEMENT_ROW(x < 0 ? a * expm1f(x / a) : x);
    case STRATA_THRESHOLDED_RELU: ELEMENT_ROW(x <= a ? 0 : x);
    case STRATA_SHRINK: ELEMENT_ROW(x < -a ? x + b : x <= a ? 0 : x - b);
    case STRATA_SCALED_TANH: ELEMENT_ROW(a * tanhf(b * x));
    default: break;
    }
}
#undef ELEMENT_ROW

#define ELEMENT_ALL_ACTIVATIONS ((UINT64_C(1) << STRATA_ACTIVATION_COUNT) - 1)

#endif /* PLUGINS_COMMON_ELEMENT_H */
