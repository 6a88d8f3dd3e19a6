/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of E4M3 on Hopper's tensor cores: common/product's kernel, and what the layer
 * makes of a sum.
 *
 * The chip keeps 14 bits of a sum. A kind may leave it there for a part of the depth
 * alone, to be added to the total in FP32: that takes registers for two, and a part's end
 * waits for its products.
 */
#ifndef PLUGINS_QUANTIZED_PRODUCT_FLOAT8_CUH
#define PLUGINS_QUANTIZED_PRODUCT_FLOAT8_CUH

#include "plugins/common/product/fours.cuh"
#include "plugins/common/product/hopper.cuh"

#define FLOAT8_COLUMNS                                                                   \
    256 /* of a tile at most: factors and biases are padded to them                      \
         */

/* scale and bias are set, for whole tiles of columns. */
struct float8_job : product_job {
    const float *scale_out; /* of E4M3 */
    float slope, low, high; /* y > 0 ? y : slope*y, cut: in place of `activation` */
};

/* ---- what becomes of a sum ------------------------------------------------------ */

/* Four neighbours as they are stored. */
static __device__ inline void float8_words(__nv_fp8_e4m3, const float *v,
                                           uint32_t (&words)[1])
{
    words[0] = (uint32_t)__nv_cvt_float2_to_fp8x2(make_float2(v[0], v[1]), __NV_SATFINITE,
                                                  __NV_E4M3) |
               (uint32_t)__nv_cvt_float2_to_fp8x2(make_float2(v[2], v[3]), __NV_SATFINITE,
                                                  __NV_E4M3)
                   << 16;
}

template <typename T>
static __device__ inline void float8_words(T, const float *v, uint32_t (&words)[2])
{
    words[0] = pack_two(T(), v[0], v[1]);
    words[1] = pack_two(T(), v[2], v[3]);
}

static __device__ inline void float8_words(float, const float *v, uint32_t (&words)[4])
{
#pragma unroll
    for (int e = 0; e < 4; e++)
        words[e] = __float_as_uint(v[e]);
}

/* y/scale, by the inverse where that neither over- nor underflows. */
template <int N>
static __device__ inline void float8_divide(float (&v)[N], float scale)
{
    if (scale > 0x1p-100f && scale < 0x1p100f) {
        const float inverse = __frcp_rn(scale);
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] *= inverse;
    } else {
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = __fdiv_rn(v[e], scale);
    }
}

/* Sums of columns, four neighbours from column_of(e) on, to words. */
template <typename T, int N, class Column>
static __device__ inline void float8_finish(const float8_job &job, float (&v)[N],
                                            const Column &column_of,
                                            uint32_t (&words)[N / 4][sizeof(T)])
{
#pragma unroll
    for (int e = 0; e < N; e += 4) {
        const float4 f = __ldg((const float4 *)(job.scale + column_of(e)));
        const float4 b = __ldg((const float4 *)(job.bias + column_of(e)));
        v[e] = fmaf(v[e], f.x, b.x);
        v[e + 1] = fmaf(v[e + 1], f.y, b.y);
        v[e + 2] = fmaf(v[e + 2], f.z, b.z);
        v[e + 3] = fmaf(v[e + 3], f.w, b.w);
    }
    if (job.slope != 1)
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = v[e] > 0 ? v[e] : job.slope * v[e];
#pragma unroll
    for (int e = 0; e < N; e++)
        v[e] = smaller(larger(v[e], job.low), job.high);
    if (sizeof(T) == 1)
        float8_divide(v, __ldg(job.scale_out));
#pragma unroll
    for (int e = 0; e < N; e += 4)
        float8_words(T(), v + e, words[e / 4]);
}

/* ---- storing -------------------------------------------------------------------- */

/* A warpgroup's, as product_store. */
template <class C>
struct float8_panels {
    typedef typename C::Result T;
    enum { CHUNKS = C::Columns / PRODUCT_CHUNK, Joined = PRODUCT_LANES };
    const float8_job &job;
    const product_memory<C> &memory;
    const int group;
    const int thread; /* of the warpgroup */
    const product_fours<C> fours;

    __device__ inline float8_panels(const float8_job &job,
                                    const product_memory<C> &memory, int group)
        : job(job), memory(memory), group(group), thread(threadIdx.x % 128),
          fours(memory, group)
    {
    }

    __device__ inline void fetch(int32_t) const
    {
    }

    /* Chunk i of the sums, which a thread's registers hold by constant indices only. */
    __device__ inline void begin_chunk(const float (&sum)[C::Parts][C::Columns / 8][4],
                                       int i, float (&v)[16]) const
    {
#pragma unroll
        for (int k = 0; k < C::Parts * CHUNKS; k++)
            if (i == k)
#pragma unroll
                for (int e = 0; e < 16; e++)
                    v[e] = product_begin(1, product_sum<CHUNKS>(sum, k, e), 0);
    }

    template <class Send>
    __device__ inline void run(const float (&sum)[C::Parts][C::Columns / 8][4],
                               int32_t column, uint32_t, const Send &send) const
    {
        named_sync(PRODUCT_STORE + group, 128); /* the last tile has left the panels */
#pragma unroll 1
        for (int i = 0; i < C::Parts * CHUNKS; i++) {
            const int32_t c = column + i % CHUNKS * PRODUCT_CHUNK + thread % 4 * 4;
            float v[16];
            uint32_t words[4][C::Size];
            begin_chunk(sum, i, v);
            float8_finish<T>(
                job, v, [&](int e) { return c + e / 4 % 2 * PRODUCT_LANES; }, words);
#pragma unroll
            for (int w = 0; w < 4; w++)
                store_words(fours.place(i, w), words[w]);
            if (i % CHUNKS == CHUNKS - 1)
                product_send(group, i / CHUNKS, send);
        }
        product_sent(job, memory, group);
    }

    typedef product_nothing early;

    /* Sixteen neighbours, whose sums by the ranks are `step` apart, to memory. */
    static __device__ inline void join(const float8_job &job, const early &,
                                       const float *sums, int32_t step, int32_t,
                                       int32_t row, int32_t column)
    {
        float total[PRODUCT_LANES] = {}, v[PRODUCT_LANES];
        uint32_t words[4][C::Size];
        product_total<float4>(total, sums, step, job.split);
#pragma unroll
        for (int e = 0; e < PRODUCT_LANES; e++)
            v[product_column(e)] = total[e];
        float8_finish<T>(
            job, v, [&](int e) { return column + e; }, words);
        product_put<T>(job, words, row, column);
    }
};

/* The kind of a tile. Steps: of 128 bytes, that a sum stays in the tensor cores; 0: all.
 */
template <typename Result_, int Steps>
struct product_float8 {
    typedef __nv_fp8_e4m3 Element;
    typedef Result_ Result;
    typedef float Sum;
    typedef float8_job Job;
    static const int Row = PRODUCT_ROW;
    static const bool Bias = false;
    static const int Buffers = 1;
    template <class C>
    using store = float8_panels<C>;

    template <class Consumer, class Sums>
    static __device__ inline void multiply(Consumer &consumer, Sums &sum, int32_t steps)
    {
        if constexpr (Steps == 0)
            consumer.template multiply<Element>(sum, steps);
        else
            add_parts(consumer, sum, steps);
    }

    template <class Consumer, int P, int N>
    static __device__ inline void add_parts(Consumer &consumer, float (&sum)[P][N][4],
                                            int32_t steps)
    {
#pragma unroll
        for (int i = 0; i < P * N * 4; i++)
            sum[i / 4 / N][i / 4 % N][i % 4] = 0;
        for (int32_t done = 0; done < steps; done += Steps) {
            float part[P][N][4];
            consumer.template multiply<Element>(part, min(Steps, steps - done));
#pragma unroll
            for (int i = 0; i < P * N * 4; i++)
                sum[i / 4 / N][i / 4 % N][i % 4] += part[i / 4 / N][i / 4 % N][i % 4];
        }
    }
};

#endif /* PLUGINS_QUANTIZED_PRODUCT_FLOAT8_CUH */
