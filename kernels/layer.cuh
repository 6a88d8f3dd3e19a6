/* SPDX-License-Identifier: Apache-2.0
 *
 * What the layers' CUDA impls share: launches, division by a constant, the channel of an
 * element as it lies in memory, activations and epilogues. Accumulation is FP32.
 */
#ifndef KERNELS_LAYER_CUH
#define KERNELS_LAYER_CUH

#include "kernels/element.cuh"

#include <strata/layers.h>

/* The formats of the built-in CUDA impls. */
#define CUDA_BFLOATS (STRATA_BF16_NCHW | STRATA_BF16_NHWC | STRATA_BF16_NHWC8)
#define CUDA_FLOATS (STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC | CUDA_BFLOATS)

/* Call f with a value of the float type of `dtype`, which is there for its type:
 *   layer_float(y->dtype, [&](auto t) { launch<decltype(t)>(r); }); */
template <typename F>
static inline void layer_float(int32_t dtype, const F &f)
{
    switch (dtype) {
    case STRATA_FP16:
        f(__half());
        break;
    case STRATA_BF16:
        f(__nv_bfloat16());
        break;
    default:
        f(float());
    }
}

/* ---- launching ----------------------------------------------------------------------
 */

#define CUDA_BLOCK 256 /* threads */

static inline cudaStream_t layer_stream(const strata_run *r)
{
    return (cudaStream_t)r->stream;
}

/* To be returned right after a launch: a refused one is not seen anywhere else. */
static inline int layer_launched(const strata_run *r, const char *kernel)
{
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(r, STRATA_EDEVICE, "kernel %s: %s (%s)", kernel,
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

/* Blocks for n threads. A grid has at most 2^31 - 1 of them in x: kernels over more
 * elements than that walk with a stride. */
static inline unsigned layer_blocks(int64_t n, int threads)
{
    const int64_t blocks = (n + threads - 1) / threads;
    return (unsigned)(blocks < 0x7fffffff ? blocks : 0x7fffffff);
}

/* ---- division -----------------------------------------------------------------------
 */

/* x / d and x % d as a multiplication, for x below 2^31 (Granlund and Montgomery 1994,
 * "Division by invariant integers using multiplication", figure 4.1). */
struct divisor {
    uint32_t d, magic, shift;
};

static inline divisor divisor_of(int64_t d)
{
    divisor by = {(uint32_t)d, 0, 0};
    while ((UINT64_C(1) << by.shift) < (uint64_t)d)
        by.shift++;
    by.magic =
        (uint32_t)(((UINT64_C(1) << 32) * ((UINT64_C(1) << by.shift) - by.d)) / by.d + 1);
    return by;
}

static __device__ inline uint32_t divide_by(uint32_t x, const divisor &by)
{
    return (__umulhi(x, by.magic) + x) >> by.shift;
}

static __device__ inline uint32_t remainder_by(uint32_t x, const divisor &by)
{
    return x - divide_by(x, by) * by.d;
}

/* ---- channels -----------------------------------------------------------------------
 */

/* Where channels lie in a dense tensor of any format, for kernels that walk over memory
 * as it lies: element i has channel (i / step % blocks) * vector + i % vector; from
 * `channels` on these are pad lanes. */
struct channel_map {
    int64_t step;
    uint32_t blocks, vector, channels;
};

static inline channel_map channel_map_of(const strata_tensor *t)
{
    const uint32_t vector = t->vector_dim == 1 ? (uint32_t)t->vector : 1;
    const uint32_t channels = t->rank > 1 ? (uint32_t)t->dims[1] : 1;
    channel_map m = {t->rank > 1 ? t->strides[1] : 1, (channels + vector - 1) / vector,
                     vector, channels};
    if (m.step < 1)
        m.step = 1;
    return m;
}

static __device__ inline uint32_t channel_of(int64_t i, const channel_map &m)
{
    const uint64_t row = i >> 32 ? (uint64_t)i / (uint64_t)m.step
                                 : (m.step >> 32 ? 0 : (uint32_t)i / (uint32_t)m.step);
    const uint32_t block =
        row >> 32 ? (uint32_t)(row % m.blocks) : (uint32_t)row % m.blocks;
    return block * m.vector + (uint32_t)(i % m.vector);
}

/* ---- activations --------------------------------------------------------------------
 */

/* Called, not inlined: it is long, and a pack would hold several copies. */
static __device__ __noinline__ float power(float x, float y)
{
    return powf(x, y);
}

struct activation_args {
    int32_t kind; /* STRATA_RELU ..., or -1: none */
    float alpha, beta;
};

/* Of the hardware, within 2 ulps; results below 2^-126 are 0. */
static __device__ inline float exp2_near(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
static __device__ inline float reciprocal_near(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#define LOG2_E 1.44269504f

static __device__ inline float sigmoid(float x)
{
    return reciprocal_near(1 + exp2_near(-LOG2_E * x));
}

/* log(1 + e) is 2*atanh(e / (2 + e)), whose series is short for e up to 1. */
static __device__ inline float softplus(float x)
{
    const float e = exp2_near(-LOG2_E * fabsf(x)), s = e * reciprocal_near(2 + e);
    const float z = s * s;
    float y = fmaf(0.14087337f, z, 0.13980717f);
    y = fmaf(y, z, 0.20012425f);
    y = fmaf(y, z, 0.33333158f);
    return fmaf(s + s, fmaf(y, z, 1), fmaxf(x, 0.0f));
}

/* x times the normal distribution, its tail within 1e-7 (Abramowitz and Stegun 7.1.26). */
static __device__ inline float gelu(float x)
{
    const float a = fabsf(x), t = reciprocal_near(fmaf(a, 0.23164189f, 1));
    float tail = fmaf(0.530702715f, t, -0.726576013f);
    tail = fmaf(tail, t, 0.71070687f);
    tail = fmaf(tail, t, -0.142248368f);
    tail = fmaf(tail, t, 0.127414796f);
    tail *= t * exp2_near(-0.5f * LOG2_E * a * a);
    return x * (x > 0 ? 1 - tail : tail);
}

/* x*tanh(log(1 + e^x)): with n = e^x*(e^x + 2) that is x*n / (n + 2). */
static __device__ inline float mish(float x)
{
    const float e = exp2_near(LOG2_E * fminf(x, 20)), n = e * (e + 2);
    return x == x ? x * (n * reciprocal_near(n + 2)) : x;
}

/* Comparisons are written so that a NaN stays one. */
static __device__ inline float clamp(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static __device__ inline float activate(float x, const activation_args &p)
{
    switch (p.kind) {
    case STRATA_RELU:
        return x < 0 ? 0 : x;
    case STRATA_LEAKY_RELU:
        return x > 0 ? x : p.alpha * x;
    case STRATA_RELU6:
        return clamp(x, 0, 6);
    case STRATA_CLIP:
        return clamp(x, p.alpha, p.beta);
    case STRATA_SIGMOID:
        return sigmoid(x);
    case STRATA_TANH:
        return tanhf(x);
    case STRATA_ELU:
        return x > 0 ? x : p.alpha * expm1f(x);
    case STRATA_SELU:
        return p.beta * (x > 0 ? x : p.alpha * expm1f(x));
    case STRATA_SOFTPLUS:
        return softplus(x);
    case STRATA_SOFTSIGN:
        return x / (1 + fabsf(x));
    case STRATA_GELU:
        return gelu(x);
    case STRATA_SILU:
        return x * sigmoid(x);
    case STRATA_HARD_SIGMOID:
        return clamp(p.alpha * x + p.beta, 0, 1);
    case STRATA_HARD_SWISH:
        return x * clamp(fmaf(x, 1 / 6.0f, 0.5f), 0, 1);
    case STRATA_MISH:
        return mish(x);
    case STRATA_GELU_TANH:
        /* 1 + tanh(u) is twice the sigmoid of 2u */
        return x * sigmoid(x * (1.59576912f + 0.071354816f * x * x));
    case STRATA_SWISH:
        return x * sigmoid(p.alpha * x);
    case STRATA_CELU:
        return x < 0 ? p.alpha * expm1f(x / p.alpha) : x;
    case STRATA_THRESHOLDED_RELU:
        return x <= p.alpha ? 0 : x;
    case STRATA_SHRINK:
        return x < -p.alpha ? x + p.beta : x <= p.alpha ? 0 : x - p.beta;
    case STRATA_SCALED_TANH:
        return p.alpha * tanhf(p.beta * x);
    default:
        return x;
    }
}

#define CUDA_ALL_ACTIVATIONS ((UINT64_C(1) << STRATA_ACTIVATION_COUNT) - 1)

/* ---- epilogues ----------------------------------------------------------------------
 */

/* y = activation(scale[c]*x + bias[c] + residual), by value into a kernel. Parts that are
 * absent are NULL; residual is of the output's format and dtype. */
struct epilogue_args {
    const float *scale, *bias;
    const void *residual;
    activation_args activation;
};

static inline epilogue_args epilogue_of(const strata_run *r)
{
    const strata_epilogue *e = r->epilogue;
    epilogue_args a = {};
    a.scale = e->flags & STRATA_EPILOGUE_SCALE ? e->scale : NULL;
    a.bias = e->flags & STRATA_EPILOGUE_BIAS ? e->bias : NULL;
    a.residual = e->flags & STRATA_EPILOGUE_RESIDUAL ? e->residual->data : NULL;
    a.activation.kind = e->flags & STRATA_EPILOGUE_ACTIVATION ? e->activation : -1;
    a.activation.alpha = (float)e->alpha;
    a.activation.beta = (float)e->beta;
    return a;
}

/* c: channel; residual: the element to add, 0 without one. */
static __device__ inline float finish(float x, uint32_t c, float residual,
                                      const epilogue_args &e)
{
    if (e.scale)
        x *= e.scale[c];
    if (e.bias)
        x += e.bias[c];
    return activate(x + residual, e.activation);
}

#endif /* KERNELS_LAYER_CUH */
