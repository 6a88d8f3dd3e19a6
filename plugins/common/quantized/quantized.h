/* SPDX-License-Identifier: Apache-2.0
 *
 * What layers that compute in 8 bits share: attributes, weights, and what becomes of a
 * sum. Compiled without contraction: each operation rounds, so that every impl and the
 * definition give the same integers.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_QUANTIZED_H
#define PLUGINS_COMMON_QUANTIZED_QUANTIZED_H

#include <math.h>

#include <strata/layers.h>

/* clang-format off */
#define QUANTIZED_ATTRS(params) QUANTIZED_ATTRS_TO(params, "fp32|int8|u8")
#define QUANTIZED_ATTRS_TO(params, dtypes)                                               \
    {.name = "zero_in", .type = STRATA_I64,                                              \
     .offset = offsetof(params, quantized.zero_in), .min = -128, .max = 255,             \
     .doc = "what stands for 0 in the input"},                                           \
    {.name = "zero_out", .type = STRATA_I64,                                             \
     .offset = offsetof(params, quantized.zero_out), .min = -128, .max = 255,            \
     .doc = "what stands for 0 in the output, where that is an integer"},                \
    {.name = "to", .type = STRATA_ENUM, .offset = offsetof(params, quantized.to),        \
     .choices = dtypes, .doc = "dtype of the output"},                                   \
    {.name = "activation", .type = STRATA_ENUM,                                          \
     .offset = offsetof(params, quantized.activation),                                   \
     .choices = "none|relu|leaky_relu|relu6|clip", .doc = "before the output's scale"},  \
    {.name = "alpha", .type = STRATA_F64, .offset = offsetof(params, quantized.alpha),   \
     .doc = "slope of leaky_relu, lower bound of clip"},                                 \
    {.name = "beta", .type = STRATA_F64, .offset = offsetof(params, quantized.beta),     \
     .doc = "upper bound of clip"}
#define QUANTIZED_WEIGHTS(weight_doc, per)                                               \
    QUANTIZED_WEIGHTS_OF(UINT64_C(1) << STRATA_INT8, weight_doc, per)
#define QUANTIZED_WEIGHTS_OF(types, weight_doc, per)                                     \
    [STRATA_QUANTIZED_WEIGHT] =                                                          \
        {.name = "weight", .flags = STRATA_REQUIRED, .rank = -1,                         \
         .dtypes = types, .doc = weight_doc},                                            \
    [STRATA_QUANTIZED_BIAS] = {.name = "bias", .rank = 1, .doc = "one for each " per},   \
    [STRATA_QUANTIZED_FACTORS] =                                                         \
        {.name = "weight_scale", .flags = STRATA_REQUIRED, .rank = -1,                   \
         .doc = "factors of the weight: one, or one for each " per},                     \
    [STRATA_QUANTIZED_SCALE_IN] =                                                        \
        {.name = "scale_in", .flags = STRATA_REQUIRED, .rank = -1,                       \
         .doc = "factor of the input"},                                                  \
    [STRATA_QUANTIZED_SCALE_OUT] =                                                       \
        {.name = "scale_out", .rank = -1,                                                \
         .doc = "divisor of the output, where that has 8 bits"}
/* clang-format on */

enum {
    QUANTIZED_DEPTH = 65536 /* products of a sum: with fewer 32 bits hold it */
};

static inline int32_t quantized_dtype(const strata_quantized *q)
{
    static const int32_t dtypes[] = {STRATA_FP32, STRATA_INT8, STRATA_UINT8, STRATA_E4M3};
    return dtypes[q->to];
}

static inline int quantized_check_byte(const strata_node *n, const strata_tensor *in,
                                       int64_t zero)
{
    const int low = in->dtype == STRATA_INT8 ? -128 : 0, high = low + 255;
    if (in->dtype != STRATA_INT8 && in->dtype != STRATA_UINT8)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "an input has dtype number %d; needed is int8 or u8: put a "
                           "Quantize before the layer",
                           (int)in->dtype);
    if (zero < low || zero > high)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "what stands for 0 in an input is %lld; its dtype has %d to "
                           "%d",
                           (long long)zero, low, high);
    return STRATA_OK;
}

/* The dtype of the output, and what its scale and zero must be. */
static inline int quantized_check_output(const strata_node *n, const strata_quantized *q,
                                         const strata_tensor *scale_out)
{
    static const struct {
        int low, high;
    } zero[] = {{0, 0}, {-128, 127}, {0, 255}, {0, 0}};
    n->out[0].dtype = quantized_dtype(q);
    if (q->to == 0)
        return STRATA_OK;
    if (scale_out->rank == 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the output has 8 bits and no scale_out; give one");
    if (q->zero_out < zero[q->to].low || q->zero_out > zero[q->to].high)
        return STRATA_FAIL(n, STRATA_EINVAL, "zero_out is %lld; the output has %d to %d",
                           (long long)q->zero_out, zero[q->to].low, zero[q->to].high);
    return STRATA_OK;
}

static inline void quantized_expect(strata_tensor *expected, int32_t dtype, int64_t count)
{
    expected->dtype = dtype;
    expected->rank = 1;
    expected->dims[0] = count;
}

/* Of all weights but the first. */
static inline void quantized_weight_shape(const strata_node *n, strata_tensor *expected,
                                          int64_t channels)
{
    const strata_tensor *given = &n->weight[STRATA_QUANTIZED_FACTORS];
    int64_t factors = 1;
    for (int d = 0; d < given->rank; d++)
        factors *= given->dims[d];
    if (factors != 1 || given->rank == 0)
        factors = channels;
    quantized_expect(&expected[STRATA_QUANTIZED_BIAS], STRATA_FP32, channels);
    quantized_expect(&expected[STRATA_QUANTIZED_FACTORS], STRATA_FP32, factors);
    quantized_expect(&expected[STRATA_QUANTIZED_SCALE_IN], STRATA_FP32, 1);
    quantized_expect(&expected[STRATA_QUANTIZED_SCALE_OUT], STRATA_FP32, 1);
}

/* ---- setup ---------------------------------------------------------------------------
 */

static inline int quantized_accept(const strata_node *n, const strata_quantized *q)
{
    const int32_t out = n->out[0].dtype;
    return (q->to == 0 ? out == STRATA_FP32 || out == STRATA_FP16 || out == STRATA_BF16
                       : out == quantized_dtype(q))
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the output has another dtype");
}

/* Whether 32 bits hold every sum of a x b products. */
static inline int quantized_check_depth(const strata_node *n, int64_t a, int64_t b)
{
    int64_t depth;
    return !__builtin_mul_overflow(a, b, &depth) && depth < QUANTIZED_DEPTH
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "an output sums %d products or more, which may not fit in "
                             "32 bits",
                             QUANTIZED_DEPTH);
}

static inline int quantized_pack(const strata_node *n, size_t bytes, void **out)
{
    const strata_pack *pack = (const strata_pack *)n->host->extension(STRATA_PACK_V1);
    return pack ? pack->alloc(n, bytes, out)
                : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                              "the host has no " STRATA_PACK_V1 " for packed weights");
}

/* scale_in*weight_scale of each channel, in memory of strata.pack. */
static inline int quantized_factors(const strata_node *n, int64_t channels, void **out)
{
    const strata_tensor *f = &n->weight[STRATA_QUANTIZED_FACTORS];
    const float *scale = (const float *)f->data;
    const float in = *(const float *)n->weight[STRATA_QUANTIZED_SCALE_IN].data;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)channels, sizeof(float), &bytes))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "the factors do not fit in memory");
    int status = quantized_pack(n, bytes, out);
    for (int64_t k = 0; k < channels && status == STRATA_OK; k++)
        ((float *)*out)[k] = in * scale[f->count > 1 ? k : 0];
    return status;
}

/* The same of one channel, in a definition. */
static inline float quantized_factor(const strata_node *n, const void *const *weight,
                                     int64_t k)
{
    const double *scale = (const double *)weight[STRATA_QUANTIZED_FACTORS];
    const double *in = (const double *)weight[STRATA_QUANTIZED_SCALE_IN];
    const int64_t count = n->weight[STRATA_QUANTIZED_FACTORS].dims[0];
    return (float)*in * (float)scale[count > 1 ? k : 0];
}

static inline float quantized_scale_out(const strata_run *r)
{
    const strata_tensor *t = &r->weight[STRATA_QUANTIZED_SCALE_OUT];
    return t->rank > 0 ? *(const float *)t->data : 1;
}

/* ---- what becomes of a sum --------------------------------------------------------- */

static inline float quantized_activate(const strata_quantized *q, float y)
{
    const float a = (float)q->alpha, b = (float)q->beta;
    switch (q->activation - 1) {
    case STRATA_RELU:
        return y > 0 ? y : isnan(y) ? y : 0;
    case STRATA_LEAKY_RELU:
        return y > 0 ? y : a * y;
    case STRATA_RELU6:
        return y < 0 ? 0 : y > 6 ? 6 : y;
    case STRATA_CLIP:
        y = y < a ? a : y;
        return y > b ? b : y;
    default:
        return y;
    }
}

static inline float quantized_value(const strata_quantized *q, int32_t sum, float factor,
                                    float bias)
{
    return quantized_activate(q, (float)sum * factor + bias);
}

static inline int32_t quantized_round(const strata_quantized *q, float y, float scale_out)
{
    const int32_t low = q->to == 2 ? 0 : -128, high = low + 255;
    const float whole = rintf(y / scale_out) + (float)q->zero_out;
    return isnan(whole)          ? 0
           : whole < (float)low  ? low
           : whole > (float)high ? high
                                 : (int32_t)whole;
}

/* Element `at` of an output. */
static inline void quantized_store(const strata_quantized *q, const strata_tensor *out,
                                   int64_t at, float y, float scale_out)
{
    if (q->to == 0)
        ((float *)out->data)[at] = y;
    else
        ((uint8_t *)out->data)[at] = (uint8_t)quantized_round(q, y, scale_out);
}

/* The same in arrays of a definition. */
static inline void quantized_define(const strata_quantized *q, void *out, int64_t at,
                                    float y, const double *scale_out)
{
    if (q->to == 0)
        ((double *)out)[at] = (double)y;
    else
        ((int64_t *)out)[at] = quantized_round(q, y, (float)*scale_out);
}

/* sum of (x - zero)*w over n neighbours, modulo 2^32. */
static inline int32_t quantized_dot(const void *x, int32_t dtype, const int8_t *w,
                                    int64_t n, int32_t zero)
{
    const uint8_t *u = (const uint8_t *)x;
    const int8_t *s = (const int8_t *)x;
    int32_t sum = 0, weights = 0;
    for (int64_t i = 0; i < n; i++)
        weights += w[i];
    if (dtype == STRATA_INT8)
        for (int64_t i = 0; i < n; i++)
            sum += s[i] * w[i];
    else
        for (int64_t i = 0; i < n; i++)
            sum += u[i] * w[i];
    return sum - zero * weights;
}

#endif /* PLUGINS_COMMON_QUANTIZED_QUANTIZED_H */
