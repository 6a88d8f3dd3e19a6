/* SPDX-License-Identifier: Apache-2.0
 *
 * What all CUDA kernels of Normalization share: the job, moments that are joined in a
 * fixed order, and a pack of results. Variances are of centred values: each thread keeps
 * mean and squared distances of what it has seen, and joins two of them without a
 * difference of moments (Chan, Golub and LeVeque 1983).
 */
#ifndef PLUGINS_NORMALIZATION_JOB_CUH
#define PLUGINS_NORMALIZATION_JOB_CUH

#include "kernels/layer.cuh"
#include "plugins/normalization/normalization.h"

/* What is measured: distances from the mean, squares, or powers of magnitudes. */
enum { NORM_CENTRED, NORM_SQUARES, NORM_POWERS };

struct norm_job {
    void *y, *sum; /* sum: NULL where nobody wants it */
    const void *x, *residual;
    const float *scale, *bias;      /* NULL: none */
    const float *means, *variances; /* batch: weights, of the channels */
    float *mean, *inverse;          /* statistics of rows; NULL: not wanted */
    int64_t rows, cols;             /* of a linear tensor */
    float elements;                 /* cols */
    int32_t measure, power;
    float epsilon;
    bool by_channel, batch;
    uint32_t *counters; /* of the context, zeros between launches; NULL: none */
    /* by_channel: row r begins at channel r % groups * each, with `plane` elements each.
     */
    int64_t groups, each, plane;
    activation_args activation;
};

/* Of n elements: their mean, or 0, and the sum of squares about it. */
struct moments {
    float n, mean, square;
};

static __device__ inline moments moments_join(const moments &a, const moments &b)
{
    const float n = a.n + b.n;
    if (a.n == 0 || b.n == 0)
        return a.n == 0 ? b : a;
    const float d = b.mean - a.mean;
    return {n, a.mean + d * (b.n / n), a.square + b.square + d * d * (a.n * b.n / n)};
}

static __device__ inline float norm_measured(const norm_job &job, float x)
{
    if (job.measure == NORM_SQUARES || job.power == 2)
        return x * x;
    return job.power == 1 ? fabsf(x) : power(fabsf(x), (float)job.power);
}

/* One more element, the n-th with its inverse. */
static __device__ inline void moments_add(const norm_job &job, float &mean, float &square,
                                          float x, float inverse_n)
{
    if (job.measure == NORM_CENTRED) {
        const float d = x - mean;
        mean += d * inverse_n;
        square += d * (x - mean);
    } else {
        square += norm_measured(job, x);
    }
}

/* 1/deviation, 1/root mean square or 1/norm of n elements. */
static __device__ inline float norm_factor(const norm_job &job, float square, float n)
{
    if (job.measure != NORM_POWERS)
        return 1 / sqrtf(square / n + job.epsilon);
    if (square == 0)
        return 0;
    return job.power == 1   ? 1 / square
           : job.power == 2 ? 1 / sqrtf(square)
                            : power(square, -1 / (float)job.power);
}

static __device__ __noinline__ float activate_other(float x, const activation_args a)
{
    return activate(x, a);
}

template <int N>
static __device__ inline void norm_activate(float v[N], const activation_args &a)
{
    if (a.kind < 0)
        return;
#pragma unroll
    for (int k = 0; k < N; k++)
        v[k] = a.kind == STRATA_RELU   ? (v[k] < 0 ? 0 : v[k])
               : a.kind == STRATA_SILU ? v[k] / (1 + __expf(-v[k]))
                                       : activate_other(v[k], a);
}

/* N elements of what is normalized, from element `at` on. */
template <typename T, int N>
static __device__ inline void norm_load(float v[N], const norm_job &job, int64_t at)
{
    const pack<T, N> x = *(const pack<T, N> *)((const T *)job.x + at);
#pragma unroll
    for (int k = 0; k < N; k++)
        v[k] = to_float(x.v[k]);
    if (job.residual) {
        const pack<T, N> residual = *(const pack<T, N> *)((const T *)job.residual + at);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] += to_float(residual.v[k]);
    }
}

/* Two elements, halves by one instruction. */
static __device__ inline void norm_round(float *y, float a, float b)
{
    y[0] = a;
    y[1] = b;
}
static __device__ inline void norm_round(__half *y, float a, float b)
{
    const __half2 both = __floats2half2_rn(a, b);
    y[0] = __low2half(both);
    y[1] = __high2half(both);
}
static __device__ inline void norm_round(__nv_bfloat16 *y, float a, float b)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
    y[0] = __low2bfloat16(both);
    y[1] = __high2bfloat16(both);
}

template <typename T, int N>
static __device__ inline void norm_store(void *y, int64_t at, const float v[N])
{
    pack<T, N> p;
#pragma unroll
    for (int k = 0; k + 1 < N; k += 2)
        norm_round(&p.v[k], v[k], v[k + 1]);
    if (N % 2)
        from_float(&p.v[N - 1], v[N - 1]);
    *(pack<T, N> *)((T *)y + at) = p;
}

template <int N>
static __device__ inline void norm_read_weight(float w[N], const float *from)
{
    const int M = N < 4 ? N : 4;
#pragma unroll
    for (int i = 0; i < N; i += M) {
        const pack<float, M> p = *(const pack<float, M> *)(from + i);
#pragma unroll
        for (int k = 0; k < M; k++)
            w[i + k] = p.v[k];
    }
}

/* Factors and addends of N elements from column j of a row on. */
template <int N>
static __device__ inline void norm_weights(float scale[N], float bias[N],
                                           const norm_job &job, int64_t row, int64_t j)
{
#pragma unroll
    for (int k = 0; k < N; k++) {
        scale[k] = 1;
        bias[k] = 0;
    }
    if (!job.by_channel) {
        if (job.scale)
            norm_read_weight<N>(scale, job.scale + j);
        if (job.bias)
            norm_read_weight<N>(bias, job.bias + j);
        return;
    }
    const int64_t first = row % job.groups * job.each;
    const uint32_t plane = (uint32_t)min(job.plane, (int64_t)0xffffffff);
#pragma unroll
    for (int k = 0; k < N; k++) {
        const int64_t c =
            first + (job.each == 1   ? 0
                     : (j + k) >> 32 ? (j + k) / job.plane
                                     : (int64_t)((uint32_t)(j + k) / plane));
        scale[k] = job.scale ? job.scale[c] : 1;
        bias[k] = job.bias ? job.bias[c] : 0;
    }
}

/* A row is for a block, for several, or for a block that has others beside it. */
enum norm_way { NORM_BLOCK, NORM_CLUSTERS, NORM_BESIDE };

/* Rows by kernels that load the next ones while they compute,
 * plugins/normalization/ring.cu; false where rows do not fit them. */
bool norm_ring(const norm_job &job, int32_t dtype, norm_way way, cudaStream_t stream);

/* How many rows of a length NORM_BESIDE takes at least, on this device, plugins/
 * normalization/long.cu; 0: it does not take the length. centred: layer, else rms. */
int64_t norm_beside_rows(int32_t dtype, bool centred, int64_t cols);

/* Groups of channels that lie side by side, without pads, held in shared memory,
 * plugins/normalization/slab.cu; false where they do not fit it. */
bool norm_slab_run(const norm_job &job, int32_t dtype, int64_t images, int64_t channels,
                   cudaStream_t stream);

#endif /* PLUGINS_NORMALIZATION_JOB_CUH */
