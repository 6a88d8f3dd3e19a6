/* SPDX-License-Identifier: Apache-2.0
 *
 * RotaryEmbedding on CUDA: a block has a token, whose cosines and sines it takes once
 * into shared memory, and turns its heads a pair of vectors a thread. Bound by memory.
 */
#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"

#include "plugins/rotary_embedding/rotary_embedding.h"

static __device__ float cached(const void *data, int32_t dtype, int64_t i)
{
    switch (dtype) {
    case STRATA_FP16:
        return __half2float(((const __half *)data)[i]);
    case STRATA_BF16:
        return __bfloat162float(((const __nv_bfloat16 *)data)[i]);
    default:
        return ((const float *)data)[i];
    }
}

static __device__ double frequency(const rotary_plan &r, int64_t k)
{
    return pow(r.base, -(double)k / (double)r.half);
}

/* Cosines and sines of the token, side by side. The angle is FP64: positions are large.
 * own: the frequency of the thread's first pair. */
static __device__ void find_angles(const rotary_plan &r, int64_t b, int64_t i, double own,
                                   float2 *to)
{
    const double position = (double)rotary_position(&r, b, i);
    const int64_t row = r.cos ? rotary_cache_row(&r, b, i) : -1;
    for (int64_t k = threadIdx.x; k < r.half; k += blockDim.x) {
        float2 turn = make_float2(0, 0);
        if (!r.cos) {
            double s, c;
            sincos(position * (k < blockDim.x ? own : frequency(r, k)), &s, &c);
            turn = make_float2((float)c, (float)s);
        } else if (row >= 0) {
            turn.x = cached(r.cos, r.cos_dtype, row * r.cos_row + k);
            turn.y = cached(r.sin, r.sin_dtype, row * r.sin_row + k);
        }
        to[k] = turn;
    }
    __syncthreads();
}

/* N pairs from pair k on: of either half, N elements each, or 2*N neighbours. */
template <typename T, int N, bool PAIRS>
static __device__ void turn(T *y, const T *x, const float2 *angle, int64_t k,
                            int64_t half)
{
    typedef pack<T, N> part;
    part a = *(const part *)(x + (PAIRS ? 2 * k : k)),
         b = *(const part *)(x + (PAIRS ? 2 * k + N : k + half));
#pragma unroll
    for (int e = 0; e < N; e++) {
        T *first =
            PAIRS ? (e < N / 2 || N == 1 ? &a.v[2 * e % N] : &b.v[2 * e % N]) : &a.v[e];
        T *second = PAIRS ? (N == 1      ? &b.v[0]
                             : e < N / 2 ? &a.v[(2 * e + 1) % N]
                                         : &b.v[(2 * e + 1) % N])
                          : &b.v[e];
        const float u = (float)*first, v = (float)*second;
        const float2 t = angle[k + e];
        *first = (T)(u * t.x - v * t.y);
        *second = (T)(u * t.y + v * t.x);
    }
    *(part *)(y + (PAIRS ? 2 * k : k)) = a;
    *(part *)(y + (PAIRS ? 2 * k + N : k + half)) = b;
}

template <typename T>
static __device__ void keep(T *y, const T *x, const rotary_plan &r, int64_t head,
                            int64_t d)
{
    y[head * r.y_head + d] = x[head * r.x_head + d];
}

template <typename T, int N, bool PAIRS>
static __global__ void rotary_kernel(const rotary_plan r, const T *x, T *y)
{
    extern __shared__ float2 angle[];
    const int64_t packs = r.half / N, rest = r.dim - 2 * r.half;
    const double own = r.cos ? 0 : frequency(r, threadIdx.x);
    launch_next();
    wait_for_previous();
    for (int64_t token = blockIdx.x; token < r.batch * r.length; token += gridDim.x) {
        const int64_t b = token / r.length, i = token % r.length;
        const T *from = x + b * r.x_batch + i * r.x_row;
        T *to = y + b * r.y_batch + i * r.y_row;
        find_angles(r, b, i, own, angle);
        for (int64_t n = threadIdx.x; n < r.turned * packs; n += blockDim.x) {
            const int64_t h = n / packs, k = n % packs * N;
            turn<T, N, PAIRS>(to + h * r.y_head, from + h * r.x_head, angle, k, r.half);
        }
        for (int64_t n = threadIdx.x; n < r.turned * rest; n += blockDim.x)
            keep(to, from, r, n / rest, 2 * r.half + n % rest);
        for (int64_t n = threadIdx.x; n < (r.heads - r.turned) * r.dim; n += blockDim.x)
            keep(to, from, r, r.turned + n / r.dim, n % r.dim);
        __syncthreads(); /* the angles are this token's until all have read them */
    }
}

template <typename T, int N>
static void launch(const strata_run *run, const rotary_plan &r)
{
    const T *x = (const T *)run->in[ROTARY_X].data;
    T *y = (T *)run->out[0].data;
    const unsigned blocks = layer_blocks(r.batch * r.length, 1);
    const size_t shared = (size_t)r.half * sizeof(float2);
    const auto kernel =
        r.step == 2 ? rotary_kernel<T, N, true> : rotary_kernel<T, N, false>;
    launch_overlapped(kernel, blocks, CUDA_BLOCK, shared, layer_stream(run), r, x, y);
}

/* Whether every access of N elements is aligned. */
static bool aligned(const rotary_plan &r, int n)
{
    const int64_t all =
        r.half | r.x_batch | r.x_head | r.x_row | r.y_batch | r.y_head | r.y_row;
    return all % n == 0;
}

static int rotary_run(const strata_run *run)
{
    const rotary_plan r = rotary_plan_of(run);
    layer_float(run->out[0].dtype, [&](auto t) {
        typedef decltype(t) T;
        const int most = 16 / (int)sizeof(T);
        if (aligned(r, most))
            launch<T, most>(run, r);
        else
            launch<T, 1>(run, r);
    });
    return layer_launched(run, "rotary");
}

static int rotary_accept(const strata_node *n)
{
    const strata_rotary_embedding *p = (const strata_rotary_embedding *)n->params;
    const int64_t dim = rotary_dim(p, &n->in[ROTARY_X]), most = 48 * 1024 / 8 * 2;
    return (p->dims ? p->dims : dim) <= most
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "a head has %lld elements; it turns at most %lld",
                             (long long)dim, (long long)most);
}

#define POSITIONS (STRATA_I32_NCHW | STRATA_I64_NCHW)
#define ROW(format, caches)                                                              \
    {                                                                                    \
        {(format), POSITIONS, (caches), (caches)},                                       \
        {                                                                                \
            STRATA_SAME                                                                  \
        }                                                                                \
    }

static const strata_row rows[] = {
    ROW(STRATA_F32_NCHW, STRATA_F32_NCHW),
    ROW(STRATA_F16_NCHW, STRATA_F32_NCHW | STRATA_F16_NCHW),
    ROW(STRATA_BF16_NCHW, STRATA_F32_NCHW | STRATA_BF16_NCHW),
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = rotary_accept,
     .run = rotary_run,
     .bandwidth = 0.7},
};

static const strata_extends rotary_embedding = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::RotaryEmbedding",
    .params_size = sizeof(strata_rotary_embedding),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&rotary_embedding};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::RotaryEmbedding", extends)
