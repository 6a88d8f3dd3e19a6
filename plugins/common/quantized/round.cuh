/* SPDX-License-Identifier: Apache-2.0
 *
 * From values to bytes, as on the host: a true division, ties to even.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_ROUND_CUH
#define PLUGINS_COMMON_QUANTIZED_ROUND_CUH

#include "kernels/activate.cuh"

/* Where it stands: as a value that is kept, it would take a register of the sums'. */
static __device__ inline float load_here(const float *from)
{
    float x;
    asm volatile("ld.global.nc.f32 %0, [%1];\n" : "=f"(x) : "l"(from));
    return x;
}

/* Division by a scale to bytes. Within 2^-60 to 2^60 a product with the inverse is
 * mended twice by what is left over, which rounds as a division does (P. Markstein, IBM
 * Journal of Research and Development 34, 1990). */
struct quantized_rounding {
    float scale, inverse, limit; /* limit: of y, beyond which bytes saturate */
    int32_t zero;
    bool regular;

    __device__ inline quantized_rounding(const float *divisor, int32_t zero_)
    {
        scale = divisor ? load_here(divisor) : 1;
        zero = zero_;
        regular = scale > 0x1p-60f && scale < 0x1p60f;
        inverse = __frcp_rn(scale);
        limit = scale * 1024;
    }
    __device__ inline float divide(float y) const
    {
        if (!regular)
            return smaller(larger(__fdiv_rn(y, scale), -1024), 1024);
        y = smaller(larger(y, -limit), limit);
        float q = __fmul_rn(y, inverse);
        q = fmaf(fmaf(-q, scale, y), inverse, q);
        return fmaf(fmaf(-q, scale, y), inverse, q);
    }
    /* Ties to even; a NaN is 0. Not yet saturated. */
    __device__ inline int32_t round(float y) const
    {
        const float q = divide(y), whole = __fadd_rn(q, 0x1.8p23f);
        const int32_t integer = __float_as_int(whole) - __float_as_int(0x1.8p23f) + zero;
        return isnan(q) ? 0 : integer;
    }
};

/* Four integers, saturated, as a word of bytes, the first lowest. */
static __device__ inline uint32_t saturate_four(const int32_t (&x)[4], bool to_unsigned)
{
    uint32_t high, word;
    if (to_unsigned) {
        asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(x[3]), "r"(x[2]));
        asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;"
            : "=r"(word)
            : "r"(x[1]), "r"(x[0]), "r"(high));
    } else {
        asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(x[3]), "r"(x[2]));
        asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;"
            : "=r"(word)
            : "r"(x[1]), "r"(x[0]), "r"(high));
    }
    return word;
}

#endif /* PLUGINS_COMMON_QUANTIZED_ROUND_CUH */
