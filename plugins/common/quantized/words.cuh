/* SPDX-License-Identifier: Apache-2.0
 *
 * From sums of bytes to words of bytes or halves, as the definition says: sixteen sums of
 * a thread by the quick way (quick.cuh), and words that are in doubt once more. Every
 * operation rounds as on the host.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_WORDS_CUH
#define PLUGINS_COMMON_QUANTIZED_WORDS_CUH

#include <type_traits>

#include "plugins/common/product/hopper_tile.cuh"
#include "plugins/common/product/pair.cuh"
#include "plugins/common/quantized/quick.cuh"

#define QUANTIZED_COLUMNS 256 /* of a tile at most */

/* scale and bias are set, for whole tiles of columns. */
struct quantized_product_job : product_job {
    const int32_t *offset;  /* of each column: -zero_in*(sum of its weights); NULL: 0 */
    const float *scale_out; /* of bytes */
    quantized_activation activate; /* in place of `activation` */
    int32_t zero_out;
    int32_t is_unsigned, to_unsigned;
    /* Of the addend, where there is one; between: sums become bytes first, 1 signed. */
    const float *scale_addend, *scale_between;
    int32_t zero_addend, zero_between, addend_unsigned, between;
    quantized_quick quick;
    const float *quick_scale, *quick_bias; /* of columns */
};

/* Of a kernel for few blocks. */
struct quantized_few_job : quantized_product_job {
    quantized_alone alone; /* regular */
};

/* What is done to the sums of a run, so that loops over them need not ask. */
template <bool Offset_, bool Joined_, bool Between_>
struct quantized_way {
    static const bool Offset = Offset_, Joined = Joined_, Between = Between_;
};

template <bool Offset, bool MayJoin, class Body>
static __device__ inline void quantized_join_way(const quantized_product_job &job,
                                                 const Body &body)
{
    if constexpr (MayJoin) {
        if (job.addend && job.between)
            return body(quantized_way<Offset, true, true>());
        if (job.addend)
            return body(quantized_way<Offset, true, false>());
    }
    body(quantized_way<Offset, false, false>());
}

/* Bytes: the results are such, and offsets of sums lie in the quick biases. */
template <bool Bytes, class Body>
static __device__ inline void quantized_way_of(const quantized_product_job &job,
                                               const Body &body)
{
    if (!Bytes && job.offset)
        quantized_join_way<true, Bytes>(job, body);
    else
        quantized_join_way<false, Bytes>(job, body);
}

/* ---- what becomes of a sum ------------------------------------------------------ */

/* sum + offset as a float, where the compiler leaves it; see product_begin(). */
template <class Way>
static __device__ inline float quantized_begin(int32_t sum, int32_t offset)
{
    float v;
    if (!Way::Offset) {
        asm volatile("cvt.rn.f32.s32 %0, %1;\n" : "=f"(v) : "r"(sum));
        return v;
    }
    asm volatile("{\n.reg .s32 whole;\n"
                 "add.s32 whole, %1, %2;\n"
                 "cvt.rn.f32.s32 %0, whole;\n}\n"
                 : "=f"(v)
                 : "r"(sum), "r"(offset));
    return v;
}

/* Values that become bytes before an addend joins them: what these stand for. */
template <int N>
static __device__ inline void quantized_between(const quantized_product_job &job,
                                                float (&v)[N])
{
    const quantized_rounding r(job.scale_between, job.zero_between, 0);
    const int32_t low = job.between == 2 ? 0 : -128, high = low + 255;
    int32_t x[N];
    r.round(v, x);
#pragma unroll
    for (int e = 0; e < N; e++)
        v[e] = __fmul_rn((float)(min(max(x[e], low), high) - r.zero), r.scale);
}

/* Adds what the bytes of N / 4 words stand for. */
template <int N>
static __device__ inline void quantized_add(const quantized_product_job &job,
                                            float (&v)[N], const uint32_t (&words)[N / 4])
{
    const float scale = load_here(job.scale_addend);
    const uint32_t flip = job.addend_unsigned ? QUANTIZED_FLIP : 0;
    const int32_t zero = job.zero_addend - (job.addend_unsigned ? 128 : 0);
    if (job.between)
        quantized_between(job, v);
#pragma unroll
    for (int e = 0; e < N; e++)
        v[e] = __fadd_rn(
            v[e],
            __fmul_rn((float)(signed_byte(words[e / 4] ^ flip, e % 4) - zero), scale));
}

/* Sums of columns column_of(e), as floats, become values of the layer. */
template <int N, class Column>
static __device__ inline void quantized_scale(const quantized_product_job &job,
                                              float (&v)[N], const Column &column_of)
{
#pragma unroll
    for (int e = 0; e < N; e += 4) { /* four neighbours */
        const float4 f = __ldg((const float4 *)(job.scale + column_of(e)));
        const float4 b = __ldg((const float4 *)(job.bias + column_of(e)));
        v[e] = __fadd_rn(__fmul_rn(v[e], f.x), b.x);
        v[e + 1] = __fadd_rn(__fmul_rn(v[e + 1], f.y), b.y);
        v[e + 2] = __fadd_rn(__fmul_rn(v[e + 2], f.z), b.z);
        v[e + 3] = __fadd_rn(__fmul_rn(v[e + 3], f.w), b.w);
    }
}

/* ---- storing -------------------------------------------------------------------- */

/* Four sums without offsets to a word, as the definition says; `addend`: theirs. A
 * function of its own: it is seldom called, and would make the loops that do several
 * times as long. */
static __device__ __noinline__ uint32_t quantized_four(const quantized_product_job *of,
                                                       int4 sums, int32_t column,
                                                       uint32_t addend)
{
    const quantized_product_job &job = *of;
    int4 offset = {};
    if (job.offset)
        offset = __ldg((const int4 *)(job.offset + column));
    const quantized_rounding rounding(job.scale_out, job.zero_out,
                                      job.to_unsigned ? 128 : 0);
    float v[4] = {__int2float_rn(sums.x + offset.x), __int2float_rn(sums.y + offset.y),
                  __int2float_rn(sums.z + offset.z), __int2float_rn(sums.w + offset.w)};
    int32_t x[4];
    quantized_scale(job, v, [&](int) { return column; });
    if (job.addend) {
        const uint32_t word[1] = {addend};
        quantized_add(job, v, word);
    }
    quantized_activate_all(v, job.activate);
    rounding.round(v, x);
    return saturate_four(x[0], x[1], x[2], x[3]) ^ (job.to_unsigned ? QUANTIZED_FLIP : 0);
}

/* What four neighbouring sums are multiplied by, and what is added (quick.cuh). */
struct quantized_steps {
    float4 scale, bias;
};

static __device__ inline quantized_steps
quantized_load_steps(const quantized_product_job &job, int32_t column)
{
    return {__ldg((const float4 *)(job.quick_scale + column)),
            __ldg((const float4 *)(job.quick_bias + column))};
}

/* N sums, four neighbours of which begin at column_of(e), to words of bytes; what is in
 * doubt once more, as the definition says. addend_of(w): theirs, and sums.four(w), as
 * they were, are looked for again for that: kept, they would take registers. steps_of(w):
 * theirs. */
template <class Way, int N, class Sums, class Column, class Addend, class Steps>
static __device__ inline void
quantized_words(const quantized_product_job &job, const float (&v)[N], const Sums &sums,
                const Column &column_of, const Addend &addend_of, const Steps &steps_of,
                uint32_t halves, uint32_t (&words)[N / 4][1])
{
    const uint32_t flip = job.addend_unsigned ? 0 : QUANTIZED_FLIP;
    uint32_t addend[N / 4], least[N / 4], all = 0xffffffff;
#pragma unroll
    for (int w = 0; w < N / 4; w++)
        addend[w] = addend_of(w);
#pragma unroll
    for (int w = 0; w < N / 4; w++) {
        const quantized_steps steps = steps_of(w);
        words[w][0] = quick_four<Way::Joined, Way::Between>(
            job.quick, v + w * 4, steps.scale, steps.bias, addend[w] ^ flip, halves,
            least[w]);
    }
#pragma unroll
    for (int w = 0; w < N / 4; w += 2)
        all = __vimin3_u16x2(all, least[w], least[w + 1]);
    if (quick_doubt(job.quick, all))
#pragma unroll
        for (int w = 0; w < N / 4; w++)
            if (quick_doubt(job.quick, least[w]))
                words[w][0] =
                    quantized_four(&job, sums.four(w), column_of(w * 4), addend_of(w));
    if (job.real < job.n)
#pragma unroll
        for (int w = 0; w < N / 4; w++)
            words[w][0] &= first_bytes(job.real - column_of(w * 4));
}

/* To halves: nothing is rounded to bytes or added. */
template <class Way, int N, class Sums, class Column, class Addend, class Steps>
static __device__ inline void
quantized_words(const quantized_product_job &job, const float (&sums)[N], const Sums &,
                const Column &column_of, const Addend &, const Steps &, uint32_t,
                uint32_t (&words)[N / 4][2])
{
    float v[N];
#pragma unroll
    for (int e = 0; e < N; e++)
        v[e] = sums[e];
    quantized_scale(job, v, column_of);
    quantized_activate_all(v, job.activate);
#pragma unroll
    for (int e = 0; e < N; e += 2) {
        const int32_t column = column_of(e - e % 4) + e % 4;
        words[e / 4][e % 4 / 2] = pack_two(__half(), column < job.real ? v[e] : 0,
                                           column + 1 < job.real ? v[e + 1] : 0);
    }
}

#endif /* PLUGINS_COMMON_QUANTIZED_WORDS_CUH */
