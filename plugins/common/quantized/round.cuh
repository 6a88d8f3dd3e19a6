/* SPDX-License-Identifier: Apache-2.0
 *
 * From sums that are scaled to bytes, as on the host: a true division, ties to even. All
 * values of a thread go one way, behind one branch for all: a branch for each would let
 * none of their long chains of operations overlap.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_ROUND_CUH
#define PLUGINS_COMMON_QUANTIZED_ROUND_CUH

#include "kernels/activate.cuh"
#include "plugins/common/quantized/quotient.h"

/* ---- activations ------------------------------------------------------------------- */

/* y > 0 ? y : slope*y, cut to bounds. */
struct quantized_activation {
    float slope, low, high;
};

static inline quantized_activation quantized_activation_of(const strata_quantized *q)
{
    quantized_activation a;
    quantized_bounds(q, &a.slope, &a.low, &a.high);
    return a;
}

template <int N>
static __device__ inline void quantized_activate_all(float (&v)[N],
                                                     const quantized_activation &a)
{
    if (a.slope != 1)
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = v[e] > 0 ? v[e] : __fmul_rn(a.slope, v[e]);
#pragma unroll
    for (int e = 0; e < N; e++)
        v[e] = smaller(larger(v[e], a.low), a.high);
}

/* ---- rounding ---------------------------------------------------------------------- */

/* Where it stands: as a value that is kept, it would take a register of the sums'. */
static __device__ inline float load_here(const float *from)
{
    float x;
    asm volatile("ld.global.nc.f32 %0, [%1];\n" : "=f"(x) : "l"(from));
    return x;
}

static __device__ __noinline__ float divide_called(float y, float scale)
{
    return smaller(larger(__fdiv_rn(y, scale), -1024), 1024);
}

/* y/scale + zero. Scales within 2^-60 to 2^60 are divided by as a product with the
 * inverse, mended twice by what is left over, which rounds as a division does
 * (P. Markstein, IBM Journal of Research and Development 34, 1990). */
struct quantized_rounding {
    float scale, inverse, limit; /* limit: of y, beyond which bytes saturate */
    int32_t zero, none;          /* none: for a NaN */
    bool regular;

    /* shift: is taken off, so that unsigned bytes saturate as signed ones do. */
    __device__ inline quantized_rounding(const float *divisor, int32_t zero_,
                                         int32_t shift)
    {
        scale = divisor ? load_here(divisor) : 1;
        zero = zero_ - shift;
        none = -shift;
        regular = scale > 0x1p-60f && scale < 0x1p60f;
        inverse = __frcp_rn(scale);
        limit = scale * 1024;
    }
    __device__ inline float divide(float y) const
    {
        y = smaller(larger(y, -limit), limit);
        float q = __fmul_rn(y, inverse);
        q = fmaf(fmaf(-q, scale, y), inverse, q);
        return fmaf(fmaf(-q, scale, y), inverse, q);
    }
    /* Ties to even: a sum with 1.5*2^23 has no bits behind the point. */
    __device__ inline int32_t whole(float q) const
    {
        const int32_t bits = __float_as_int(__fadd_rn(q, 0x1.8p23f));
        return q == q ? bits - 0x4b400000 + zero : none;
    }
    /* Not yet saturated. */
    template <int N>
    __device__ inline void round(const float (&v)[N], int32_t (&x)[N]) const
    {
        if (regular)
#pragma unroll
            for (int e = 0; e < N; e++)
                x[e] = whole(divide(v[e]));
        else
#pragma unroll
            for (int e = 0; e < N; e++)
                x[e] = whole(divide_called(v[e], scale));
    }
};

/* ---- words of bytes ---------------------------------------------------------------- */

#define QUANTIZED_FLIP 0x80808080u /* makes of signed bytes, less 128, unsigned ones */

/* Four integers, saturated as signed bytes, the first lowest. */
static __device__ inline uint32_t saturate_four(int32_t a, int32_t b, int32_t c,
                                                int32_t d)
{
    uint32_t high, word;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(d), "r"(c));
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;"
        : "=r"(word)
        : "r"(b), "r"(a), "r"(high));
    return word;
}

/* Bits of a word's first n bytes, of at most four. */
static __device__ inline uint32_t first_bytes(int32_t n)
{
    return n >= 4 ? 0xffffffffu : n <= 0 ? 0 : (1u << n * 8) - 1;
}

/* Byte e of a word, signed. */
static __device__ inline int32_t signed_byte(uint32_t word, int e)
{
    return (int32_t)(word << (24 - e * 8)) >> 24;
}

#endif /* PLUGINS_COMMON_QUANTIZED_ROUND_CUH */
