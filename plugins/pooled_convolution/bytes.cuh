/* SPDX-License-Identifier: Apache-2.0
 *
 * Maxima as bytes. A half's byte depends on nothing else, so that whether a short way
 * gives the definition's is asked of all halves when a layer is set up.
 */
#ifndef PLUGINS_POOLED_CONVOLUTION_BYTES_CUH
#define PLUGINS_POOLED_CONVOLUTION_BYTES_CUH

#include "plugins/common/quantized/round.cuh"

#define POOLED_WHOLE 0x1.8p23f /* a sum with it has no bits behind the point */
#define POOLED_INFINITE 0x7c00 /* bits of a half; NaNs have more */

/* One product and sum, whose low bits are the byte. */
struct pooled_brief {
    uint32_t least, most; /* halves, twice each: those beyond have the same bytes */
    float inverse, whole; /* of the scale; POOLED_WHOLE and what stands for 0 */
    int32_t is;           /* that is right for all halves but NaN */
};

/* Of halves a quotient by less than 2^-60 saturates and one by more than 2^60 is nearly
 * 0, as by these: nothing is called while products run. */
static __device__ inline quantized_rounding
pooled_rounding(const float *scale_out, int32_t zero_out, int32_t is_unsigned)
{
    quantized_rounding r(scale_out, zero_out, is_unsigned ? 128 : 0);
    r.scale = smaller(larger(r.scale, 0x1p-60f), 0x1p60f);
    r.inverse = __frcp_rn(r.scale);
    r.limit = r.scale * 1024;
    return r;
}

static __device__ inline uint32_t pooled_byte(const pooled_brief &brief, float x)
{
    return __float_as_uint(fmaf(x, brief.inverse, brief.whole));
}

/* Four bytes of a thread's halves, no NaN among them. */
static __device__ inline uint32_t pooled_word(const pooled_brief &brief, __half2 a,
                                              __half2 b)
{
    __half2 least, most;
    memcpy(&least, &brief.least, sizeof least);
    memcpy(&most, &brief.most, sizeof most);
    const float2 x = __half22float2(__hmin2(__hmax2(a, least), most));
    const float2 y = __half22float2(__hmin2(__hmax2(b, least), most));
    return __byte_perm(
        __byte_perm(pooled_byte(brief, x.x), pooled_byte(brief, x.y), 0x40),
        __byte_perm(pooled_byte(brief, y.x), pooled_byte(brief, y.y), 0x40), 0x5410);
}

/* ---- at the setup ------------------------------------------------------------------ */

/* Halves in the order of their values, from 0 on up and down. */
static __device__ inline uint32_t pooled_bits(int32_t place)
{
    return place < 0 ? 0x8000u | (uint32_t)-place : (uint32_t)place;
}

static __device__ inline float pooled_float(uint32_t bits)
{
    return __half2float(__ushort_as_half((unsigned short)bits));
}

/* One block. */
static __global__ void pooled_brief_kernel(const float *scale_out, int32_t zero_out,
                                           int32_t is_unsigned, pooled_brief *to)
{
    __shared__ int32_t least, most, wrong; /* places */
    const quantized_rounding r = pooled_rounding(scale_out, zero_out, is_unsigned);
    const uint32_t flip = is_unsigned ? 0x80 : 0;
    const int32_t end = POOLED_INFINITE, step = (int32_t)blockDim.x;
    const auto byte_of = [&](float x) {
        return min(max(r.whole(r.divide(x)), -128), 127);
    };
    if (threadIdx.x == 0) {
        least = -end;
        most = end;
        wrong = 0;
    }
    __syncthreads();
    for (int32_t p = (int32_t)threadIdx.x - end; p <= end; p += step) {
        const int32_t byte = byte_of(pooled_float(pooled_bits(p)));
        if (byte == -128)
            atomicMax(&least, p);
        if (byte == 127)
            atomicMin(&most, p);
    }
    __syncthreads();
    pooled_brief brief = {pooled_bits(least) * 0x10001u, pooled_bits(most) * 0x10001u,
                          r.inverse, POOLED_WHOLE + (float)zero_out, 0};
    for (int32_t p = (int32_t)threadIdx.x - end; p <= end; p += step) {
        const float x = pooled_float(pooled_bits(min(max(p, least), most)));
        const uint32_t byte = (uint32_t)byte_of(pooled_float(pooled_bits(p))) ^ flip;
        if ((pooled_byte(brief, x) ^ byte) & 0xff)
            atomicOr(&wrong, 1);
    }
    __syncthreads();
    brief.is = !wrong;
    if (threadIdx.x == 0)
        *to = brief;
}

#endif /* PLUGINS_POOLED_CONVOLUTION_BYTES_CUH */
