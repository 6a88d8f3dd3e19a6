/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a bottleneck's sums where pixels are many: halves in shared memory that
 * are the next stage's factor; and results, of which a thread has eight neighbours of a
 * pixel, so that it adds what lies in memory and stores what comes of it without a way
 * through shared memory.
 */
#ifndef PLUGINS_BOTTLENECK_STRIP_TAIL_CUH
#define PLUGINS_BOTTLENECK_STRIP_TAIL_CUH

#include "plugins/bottleneck/block.cuh"

/* The result that is column n of a part's matrix: of four columns that follow each other
 * by eights a thread has two each, and they shall be neighbours. */
static inline __host__ __device__ int strip_result(int n)
{
    return n / 32 * 32 + n % 8 / 2 * 8 + n / 8 % 4 * 2 + n % 2;
}

#if __CUDA_ARCH__ >= 900
/* A place in the ring, and the parity of its round. */
struct strip_slot {
    int32_t at = 0;
    uint32_t parity = 0;

    __device__ inline void advance(int32_t slots)
    {
        if (++at == slots) {
            at = 0;
            parity ^= 1;
        }
    }
};

/* A number of which nothing is computed before it is asked for: registers are few. */
static __device__ inline uint32_t strip_late(uint32_t x)
{
    asm volatile("" : "+r"(x)::"memory");
    return x;
}

/* Sums that begin: their registers are nobody's before. */
template <int N>
static __device__ inline void strip_begin(float (&sum)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++)
        sum[n][0] = sum[n][1] = sum[n][2] = sum[n][3] = 0;
    hold(sum);
}

/* Pixels in registers times 64 results, whose depth is along their rows. */
static __device__ inline void strip_product(float (&d)[8][4], const uint32_t (&x)[4],
                                            uint64_t y, int32_t add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" N_32
                 "}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}\n"
                 : O_32("+f", d)
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y), "r"(add));
}

/* ---- sums that become a factor ----------------------------------------------------- */

/* Of two eights of pixels from n on, at once. mask(n): ones for what is inside of an
 * eight's pixels; place(n): where this lane's row of 8 channels of them goes. */
template <bool Curve, int N, class Mask, class Place>
static __device__ inline void strip_keep_all(const float (&sum)[N][4], float low,
                                             float high, const stage_tail &f,
                                             const Mask &mask, const Place &place)
{
#pragma unroll
    for (int n = 0; n < N; n += 2) {
        uint32_t words[4];
#pragma unroll
        for (int k = 0; k < (n + 1 < N ? 4 : 2); k++) {
            const float *two = &sum[n + k / 2][k % 2 * 2];
            const float bias = k % 2 ? high : low;
            float a = two[0] + bias, b = two[1] + bias;
            if (Curve)
                a = bottleneck_curve(a, f), b = bottleneck_curve(b, f);
            words[k] = bottleneck_bounded(bottleneck_halves(a, b), f) & mask(n + k / 2);
        }
        const uint32_t one[2] = {words[0], words[1]};
        if (n + 1 < N)
            store_turned(place(n), words);
        else
            store_turned(place(n), one);
    }
}

template <int N, class Mask, class Place>
static __device__ inline void strip_keep(const float (&sum)[N][4], const float *bias,
                                         const stage_tail &f, const Mask &mask,
                                         const Place &place)
{
    const uint32_t row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    if (f.kind == STAGE_BOUNDS)
        strip_keep_all<false>(sum, bias[row], bias[row + 8], f, mask, place);
    else
        strip_keep_all<true>(sum, bias[row], bias[row + 8], f, mask, place);
}

/* Of four matrices of 8 x 8 that a warp stores at once: the eight of the pixels, and
 * eight of its sixteen channels. */
static __device__ inline uint32_t strip_lane_eight(void)
{
    return threadIdx.x % 32 / 16;
}

static __device__ inline uint32_t strip_lane_channels(void)
{
    return threadIdx.x / 32 % 4 * 2 + threadIdx.x / 8 % 2;
}

/* ---- results ---------------------------------------------------------------------- */

enum { STRIP_EACH = 2 }; /* pixels of a thread, one below the other */

/* Whether a thread has its eights of channels of a half of a part. */
template <class Job>
static __device__ inline bool strip_has(const Job &job, int32_t half)
{
    return half * 32 + (int32_t)threadIdx.x % 4 * 8 < job.results;
}

/* What is added to a part: of each half its pixels. */
template <class Job>
static __device__ inline void strip_fetch(uint4 (&to)[2][STRIP_EACH], const Job &job,
                                          const int64_t (&at)[STRIP_EACH], int32_t part)
{
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int k = 0; k < STRIP_EACH; k++)
            to[half][k] =
                job.addend && at[k] >= 0 && strip_has(job, part * 2 + half)
                    ? *(const uint4 *)(job.addend + at[k] + part * 64 + half * 32)
                    : make_uint4(0, 0, 0, 0);
}

/* Biases, addend and activation of a part, and the results to memory. */
template <class Job>
static __device__ inline void strip_finish(const Job &job, const float *bias,
                                           const float (&sum)[8][4],
                                           const uint4 (&added)[2][STRIP_EACH],
                                           const int64_t (&at)[STRIP_EACH], int32_t part)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float4 *from =
            (const float4 *)(bias + part * 64 + half * 32 + threadIdx.x % 4 * 8);
        const float4 first = from[0], second = from[1];
        const float shift[8] = {first.x,  first.y,  first.z,  first.w,
                                second.x, second.y, second.z, second.w};
#pragma unroll
        for (int k = 0; k < STRIP_EACH; k++) {
            const uint4 &four = added[half][k];
            const uint32_t two[4] = {four.x, four.y, four.z, four.w};
            float v[8];
            uint32_t words[4];
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const float2 add = bottleneck_floats(two[c]);
                v[2 * c] = sum[half * 4 + c][k * 2] + shift[2 * c] + add.x;
                v[2 * c + 1] = sum[half * 4 + c][k * 2 + 1] + shift[2 * c + 1] + add.y;
            }
            bottleneck_activate(words, v, job.projected);
            if (at[k] >= 0 && strip_has(job, part * 2 + half))
                *(uint4 *)(job.y + at[k] + part * 64 + half * 32) =
                    make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}
#endif

#endif /* PLUGINS_BOTTLENECK_STRIP_TAIL_CUH */
