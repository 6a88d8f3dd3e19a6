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

enum { STRIP_EACH = 2 }; /* pixels of a thread, eight below each other in a factor */

/* The result that is column n of a part's matrix: of four columns that follow each other
 * by eights a thread has two each, and they shall be neighbours. */
static inline __host__ __device__ int strip_result(int n)
{
    return n / 32 * 32 + n % 8 / 2 * 8 + n / 8 % 4 * 2 + n % 2;
}

/* The channel that is depth k of what comes from memory as it lies there, 16 bytes of two
 * halves of a pixel's 64 to each of four threads. */
static inline __host__ __device__ int strip_channel(int k)
{
    return k / 32 * 32 + k % 8 / 2 * 8 + k / 16 % 2 * 4 + k / 8 % 2 * 2 + k % 2;
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

/* Sums that begin with the biases of their rows, 64 results. */
template <int N>
static __device__ inline void strip_begin(float (&sum)[N][4], const float *bias)
{
    const uint32_t row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    const float low = bias[row], high = bias[row + 8];
#pragma unroll
    for (int n = 0; n < N; n++) {
        sum[n][0] = sum[n][1] = low;
        sum[n][2] = sum[n][3] = high;
    }
    hold(sum);
}

/* The same where results are columns, in a part's order. */
static __device__ inline void strip_begin_part(float (&sum)[8][4], const float *bias)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float4 *from = (const float4 *)(bias + half * 32 + threadIdx.x % 4 * 8);
        const float4 first = from[0], second = from[1];
        const float eight[8] = {first.x,  first.y,  first.z,  first.w,
                                second.x, second.y, second.z, second.w};
#pragma unroll
        for (int c = 0; c < 8; c++)
            sum[half * 4 + c / 2][c % 2] = sum[half * 4 + c / 2][c % 2 + 2] = eight[c];
    }
    hold(sum);
}

/* Pixels in registers times 64 results, whose depth is along their rows. */
static __device__ inline void strip_product(float (&d)[8][4], const uint32_t (&x)[4],
                                            uint64_t y)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" N_32
                 "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 0;\n"
                 : O_32("+f", d)
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y));
}

/* ---- sums that become a factor ----------------------------------------------------- */

/* Of two eights of pixels from n on, at once. mask(n): ones for what is inside of an
 * eight's pixels; place(n): where this lane's row of 8 channels of them goes. */
template <bool Curve, int N, class Mask, class Place>
static __device__ inline void strip_keep_all(const float (&sum)[N][4],
                                             const stage_tail &f, const Mask &mask,
                                             const Place &place)
{
#pragma unroll
    for (int n = 0; n < N; n += 2) {
        uint32_t words[4];
#pragma unroll
        for (int k = 0; k < (n + 1 < N ? 4 : 2); k++) {
            float a = sum[n + k / 2][k % 2 * 2], b = sum[n + k / 2][k % 2 * 2 + 1];
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
static __device__ inline void strip_keep(const float (&sum)[N][4], const stage_tail &f,
                                         const Mask &mask, const Place &place)
{
    if (f.kind == STAGE_BOUNDS)
        strip_keep_all<false>(sum, f, mask, place);
    else
        strip_keep_all<true>(sum, f, mask, place);
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

/* Of tensors for which L2 has no room, what is read again soon shall stay there, and what
 * is not shall go first. */
struct strip_cache {
    uint64_t once; /* addends, results */

    __device__ inline strip_cache(bool large)
    {
        if (large)
            asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
        else
            asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(once));
    }
};

static __device__ inline uint64_t strip_again(bool large)
{
    uint64_t policy;
    if (large)
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    else
        asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

static __device__ inline uint4 strip_read(const __half *from, uint64_t policy)
{
    uint4 v;
    asm volatile(
        "ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], "
        "%5;\n"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from), "l"(policy)
        : "memory");
    return v;
}

static __device__ inline void strip_write(__half *to, const uint32_t (&v)[4],
                                          uint64_t policy)
{
    asm volatile(
        "st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;\n" ::"l"(to),
        "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "l"(policy)
        : "memory");
}

/* Whether a thread has its eights of channels of a half of a part. */
template <class Job>
static __device__ inline bool strip_has(const Job &job, int32_t channel)
{
    return channel + (int32_t)threadIdx.x % 4 * 8 < job.results;
}

/* What is added to a part, of each half its pixels: `at`, where they lie, or less than
 * 0; `on`: elements from there. */
template <class Job>
static __device__ inline void strip_fetch(uint4 (&to)[2][STRIP_EACH], const Job &job,
                                          const int32_t (&at)[STRIP_EACH], int32_t part,
                                          int32_t on, const strip_cache &cache)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const bool has = job.addend && strip_has(job, part * 64 + half * 32);
#pragma unroll
        for (int k = 0; k < STRIP_EACH; k++) {
            to[half][k] = make_uint4(0, 0, 0, 0);
            if (has && at[k] >= 0)
                to[half][k] =
                    strip_read(job.addend + at[k] + (on + half * 32), cache.once);
        }
    }
}

/* Two, of which the lesser is 0 and there is no greater. */
static __device__ inline uint32_t strip_positive(float a, float b)
{
    uint32_t word;
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;\n" : "=r"(word) : "f"(b), "f"(a));
    return word;
}

enum strip_results { STRIP_BOUNDED, STRIP_POSITIVE, STRIP_CURVED };

template <int Results>
static __device__ inline uint32_t strip_result_of(float a, float b, const stage_tail &f)
{
    if (Results == STRIP_POSITIVE)
        return strip_positive(a, b);
    if (Results == STRIP_CURVED)
        a = bottleneck_curve(a, f), b = bottleneck_curve(b, f);
    return bottleneck_bounded(bottleneck_halves(a, b), f);
}

/* A pixel's eight results of a half, with their addend. */
template <int Results>
static __device__ inline void strip_eight(uint32_t (&words)[4], const float (&sum)[8][4],
                                          const uint4 &four, int half, int k,
                                          const stage_tail &f)
{
    const uint32_t two[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const float2 add = bottleneck_floats(two[c]);
        const float(&v)[4] = sum[half * 4 + c];
        words[c] = strip_result_of<Results>(v[k * 2] + add.x, v[k * 2 + 1] + add.y, f);
    }
}

template <int Results, class Job>
static __device__ inline void strip_finish_all(const Job &job, const float (&sum)[8][4],
                                               const uint4 (&added)[2][STRIP_EACH],
                                               const int32_t (&at)[STRIP_EACH],
                                               int32_t part, const strip_cache &cache)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const bool has = strip_has(job, part * 64 + half * 32);
#pragma unroll
        for (int k = 0; k < STRIP_EACH; k++) {
            uint32_t words[4];
            strip_eight<Results>(words, sum, added[half][k], half, k, job.projected);
            if (has && at[k] >= 0)
                strip_write(job.y + at[k] + half * 32, words, cache.once);
        }
    }
}

/* Whether bounds are 0 and what FP16 takes for infinite. */
static __device__ inline bool strip_is_positive(const stage_tail &f)
{
    return f.low == 0 && f.high >= 65520;
}

/* Addend and activation of a part, and the results to memory. */
template <class Job>
static __device__ inline void strip_finish(const Job &job, const float (&sum)[8][4],
                                           const uint4 (&added)[2][STRIP_EACH],
                                           const int32_t (&at)[STRIP_EACH], int32_t part,
                                           const strip_cache &cache)
{
    if (job.projected.kind != STAGE_BOUNDS)
        strip_finish_all<STRIP_CURVED>(job, sum, added, at, part, cache);
    else if (strip_is_positive(job.projected))
        strip_finish_all<STRIP_POSITIVE>(job, sum, added, at, part, cache);
    else
        strip_finish_all<STRIP_BOUNDED>(job, sum, added, at, part, cache);
}
#endif

#endif /* PLUGINS_BOTTLENECK_STRIP_TAIL_CUH */
