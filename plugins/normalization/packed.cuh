/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's part of a row in registers, as it lies, and what kernels make of it:
 * packed.cu and long.cu.
 */
#ifndef PLUGINS_NORMALIZATION_PACKED_CUH
#define PLUGINS_NORMALIZATION_PACKED_CUH

#include "plugins/normalization/held.cuh"

/* Rows pass the first-level cache, which is left to scale and bias. */
static __device__ inline uint4 load_past(const uint4 *from)
{
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

static __device__ inline void store_past(uint4 *to, const uint4 &v)
{
    asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"l"(to),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

/* What a thread holds of a row; zeros past its packs. */
template <typename T, int P, bool Residual>
struct packed_part {
    static const int N = 16 / (int)sizeof(T), Packs = P;
    uint4 x[P], residual[Residual ? P : 1];

    __device__ inline void load(const norm_job &job, int64_t at, int step, int count)
    {
#pragma unroll
        for (int i = 0; i < P; i++) {
            x[i] = {};
            if (i < count)
                x[i] = load_past((const uint4 *)job.x + at + i * step);
        }
        if constexpr (Residual)
#pragma unroll
            for (int i = 0; i < P; i++) {
                residual[i] = {};
                if (i < count)
                    residual[i] = load_past((const uint4 *)job.residual + at + i * step);
            }
    }

    /* Opaque: or what one pass made FP32 would be kept for the next one. */
    __device__ inline void forget(void)
    {
#pragma unroll
        for (int i = 0; i < P; i++)
            asm volatile("" : "+r"(x[i].x), "+r"(x[i].y), "+r"(x[i].z), "+r"(x[i].w));
        if constexpr (Residual)
#pragma unroll
            for (int i = 0; i < P; i++)
                asm volatile(""
                             : "+r"(residual[i].x), "+r"(residual[i].y),
                               "+r"(residual[i].z), "+r"(residual[i].w));
    }

    /* The same where registers are short: the assembler sees through an opaque move.
     * zero: which it cannot know. */
    __device__ inline void forget_all(uint32_t zero)
    {
#pragma unroll
        for (int i = 0; i < P; i++)
            x[i] = {x[i].x ^ zero, x[i].y ^ zero, x[i].z ^ zero, x[i].w ^ zero};
    }

    __device__ inline void take(float (&v)[N], int i) const
    {
        const pack<T, N> p = *(const pack<T, N> *)&x[i];
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = to_float(p.v[k]);
        if constexpr (Residual) {
            const pack<T, N> q = *(const pack<T, N> *)&residual[i];
#pragma unroll
            for (int k = 0; k < N; k++)
                v[k] += to_float(q.v[k]);
        }
    }

    __device__ inline float sum(void) const
    {
        float sum[4] = {}; /* short chains */
#pragma unroll
        for (int i = 0; i < P; i++) {
            float v[N];
            take(v, i);
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k % 4] += v[k];
        }
        return sum[0] + sum[1] + (sum[2] + sum[3]);
    }

    __device__ inline float squares(float mean, int count) const
    {
        float square[4] = {};
#pragma unroll
        for (int i = 0; i < P; i++) {
            float v[N];
            take(v, i);
            if (i < count)
#pragma unroll
                for (int k = 0; k < N; k++)
                    square[k % 4] += (v[k] - mean) * (v[k] - mean);
        }
        return square[0] + square[1] + (square[2] + square[3]);
    }
};

/* Of a warp: mean, or 0 where none is taken, and squares about it. */
template <bool Centred, typename Part>
static __device__ inline row_part packed_warp(Part &part, int count)
{
    row_part t = {};
    if (Centred) {
        t.n = (float)(Part::N * __reduce_add_sync(0xffffffffu, (unsigned)count));
        t.sum = lanes_sum(part.sum(), 32);
        t.mean = held_mean(t.sum, t.n);
        part.forget();
    }
    t.square = lanes_sum(part.squares(t.mean, Centred ? count : Part::Packs), 32);
    return t;
}

/* Of the warps of a block, in their order. n: elements of the row. */
template <int Warps, bool Centred>
static __device__ inline row_part packed_join(const row_part *parts, float n)
{
    const int lane = (int)threadIdx.x % 32;
    row_part t = {0, 0, 0, n};
    if constexpr (Warps > 8) { /* a lane a warp */
        row_part mine = {};
        if (lane < Warps)
            mine = parts[lane];
        t.mean = Centred ? held_mean(lanes_sum(mine.sum, 32), n) : 0;
        const float d = mine.n > 0 ? mine.mean - t.mean : 0;
        t.square = lanes_sum(mine.square + mine.n * d * d, 32);
    } else {
#pragma unroll
        for (int i = 0; i < Warps && Centred; i++)
            t.sum += parts[i].sum;
        t.mean = Centred ? held_mean(t.sum, n) : 0;
#pragma unroll
        for (int i = 0; i < Warps; i++) {
            const float d = Centred && parts[i].n > 0 ? parts[i].mean - t.mean : 0;
            t.square += parts[i].square + (Centred ? parts[i].n * d * d : 0);
        }
    }
    return t;
}

/* value: where there are no weights. */
static __device__ inline float4 packed_weights(const float *weights, int column,
                                               float value)
{
    float4 w = {value, value, value, value};
    if (weights)
        w = __ldg((const float4 *)(weights + column));
    return w;
}

/* Four elements of the result. */
template <typename T>
static __device__ inline void packed_round(T *y, const float *v, float mean, float factor,
                                           float4 scale, float4 bias)
{
    norm_round(y, (v[0] - mean) * factor * scale.x + bias.x,
               (v[1] - mean) * factor * scale.y + bias.y);
    norm_round(y + 2, (v[2] - mean) * factor * scale.z + bias.z,
               (v[3] - mean) * factor * scale.w + bias.w);
}

#endif /* PLUGINS_NORMALIZATION_PACKED_CUH */
