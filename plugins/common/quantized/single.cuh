/* SPDX-License-Identifier: Apache-2.0
 *
 * Values in doubt one by one, in line, of tiles that have registers for it: some 60
 * operations of which nothing but the sum and its column has to be found, where words.cuh
 * calls a function that no launch before it left near.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_SINGLE_CUH
#define PLUGINS_COMMON_QUANTIZED_SINGLE_CUH

#include "plugins/common/quantized/words.cuh"

/* y/scale to a whole number, ties to even, of a regular scale (round.cuh). */
static __device__ inline int32_t quantized_whole(float y, float scale, float inverse)
{
    const float limit = scale * 1024;
    y = smaller(larger(y, -limit), limit);
    float q = __fmul_rn(y, inverse);
    q = fmaf(fmaf(-q, scale, y), inverse, q);
    q = fmaf(fmaf(-q, scale, y), inverse, q);
    return __float_as_int(__fadd_rn(q, 0x1.8p23f)) - 0x4b400000;
}

/* One sum without its offset to a byte, as the definition says; `addend`: its byte, the
 * lowest. */
template <class Way>
static __device__ inline uint32_t quantized_one(const quantized_few_job &job, int32_t sum,
                                                int32_t column, uint32_t addend)
{
    const quantized_alone &alone = job.alone;
    float v = __int2float_rn(sum + (job.offset ? __ldg(job.offset + column) : 0));
    v = __fadd_rn(__fmul_rn(v, __ldg(job.scale + column)), __ldg(job.bias + column));
    if (Way::Between) {
        const int32_t zero = job.zero_between, low = job.between == 2 ? 0 : -128;
        const int32_t x = quantized_whole(v, alone.between, alone.between_inverse) + zero;
        v = __fmul_rn((float)(min(max(x, low), low + 255) - zero), alone.between);
    }
    if (Way::Joined) {
        const int32_t x =
            job.addend_unsigned ? (int32_t)(addend & 0xff) : (int32_t)(int8_t)addend;
        v = __fadd_rn(v, __fmul_rn((float)(x - job.zero_addend), alone.addend));
    }
    v = smaller(larger(v, job.activate.low), job.activate.high);
    const int32_t low = job.to_unsigned ? 0 : -128;
    const int32_t x = quantized_whole(v, alone.out, alone.out_inverse) + job.zero_out;
    return (uint32_t)min(max(x, low), low + 255);
}

/* Bits of `doubts` as quick_doubts() has them: those sums once more. */
template <class Way, int N, class Sums, class Column, class Addend>
static __device__ inline void
quantized_settle(const quantized_few_job &job, const Sums &sums, const Column &column_of,
                 const Addend &addend_of, uint32_t doubts, uint32_t (&words)[N / 4][1])
{
#pragma unroll 1
    while (doubts) {
        const int bit = __ffs((int)doubts) - 1;
        const int e = (15 - (bit & 15)) * 2 + bit / 16, place = e % 4 * 4;
        const uint32_t addend = Way::Joined ? addend_of(e / 4) >> e % 4 * 8 : 0;
        const uint32_t byte =
            quantized_one<Way>(job, sums.one(e), column_of(e & ~3) + e % 4, addend);
        const uint32_t order = (0x3210 & ~(0xf << place)) | 4 << place;
        doubts &= doubts - 1;
#pragma unroll
        for (int w = 0; w < N / 4; w++)
            words[w][0] = __byte_perm(words[w][0], byte, e / 4 == w ? order : 0x3210);
    }
}

/* quantized_words() of words.cuh. */
template <class Way, int N, class Sums, class Column, class Addend, class Steps>
static __device__ inline void
quantized_words(const quantized_few_job &job, const float (&v)[N], const Sums &sums,
                const Column &column_of, const Addend &addend_of, const Steps &steps_of,
                uint32_t halves, uint32_t (&words)[N / 4][1])
{
    const uint32_t flip = job.addend_unsigned ? 0 : QUANTIZED_FLIP;
    uint32_t addend[N / 4], fractions[N / 2], least = 0xffffffff;
#pragma unroll
    for (int w = 0; w < N / 4; w++)
        addend[w] = addend_of(w);
#pragma unroll
    for (int w = 0; w < N / 4; w++) {
        const quantized_steps steps = steps_of(w);
        words[w][0] = quick_word<Way::Joined, Way::Between>(
            job.quick, v + w * 4, steps.scale, steps.bias, addend[w] ^ flip, halves,
            [&](uint32_t first, uint32_t second, bool doubt) {
                fractions[w * 2] = doubt ? 0 : first;
                fractions[w * 2 + 1] = doubt ? 0 : second;
            });
        least = __vimin3_u16x2(least, fractions[w * 2], fractions[w * 2 + 1]);
    }
    if (quick_doubt(job.quick, least))
        quantized_settle<Way, N>(job, sums, column_of, addend_of,
                                 quick_doubts(quick_most(job.quick), fractions), words);
    if (job.real < job.n)
#pragma unroll
        for (int w = 0; w < N / 4; w++)
            words[w][0] &= first_bytes(job.real - column_of(w * 4));
}

#endif /* PLUGINS_COMMON_QUANTIZED_SINGLE_CUH */
