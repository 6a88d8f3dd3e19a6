/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes from sums in a third of the definition's operations, wherever that gives its very
 * integers. All that happens to a sum is one multiplication and addition into units of
 * the byte's steps; what rounds otherwise on the way is less than an error that is known
 * beforehand. A value nearer than that to the middle of two steps is in doubt, and is
 * computed as the definition says: about one in ten thousand.
 *
 * Steps are counted from the lowest byte that the activation leaves, as parts of the
 * range, so that what saturates is cut to [0, 1] by the multiplication itself.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_QUICK_CUH
#define PLUGINS_COMMON_QUANTIZED_QUICK_CUH

#include "plugins/common/quantized/round.cuh"

#define QUICK_WHOLE 0x1.8p23f    /* a sum with it has no bits behind the point */
#define QUICK_BYTE 0x4b000000u   /* 2^23, whose lowest byte counts ones */
#define QUICK_MOST_ERROR 0.0625f /* of a step; beyond, all is in doubt */

/* A rounding to bytes. */
struct quick_level {
    float range; /* steps from the lowest byte to the highest */
    float byte;  /* QUICK_WHOLE and the lowest byte, by its low bits */
    float sure;  /* steps from a whole number within which it is that one */
};

struct quantized_quick {
    quick_level out;
    /* The addend's part of the range for each step of its own, that of a step of
     * `between`, and what both leave of 0. */
    float addend, carried, base;
    quick_level between;
};

/* ---- of a layer, at its setup ------------------------------------------------------ */

struct quick_job {
    quantized_quick *quick;
    float *scale, *bias; /* of columns, in parts of the first level's range */
    const float *factor, *bias_in;
    const float *out, *addend, *between; /* scales; NULL: none */
    quantized_activation activate;
    int32_t columns, zero_out, to_unsigned;
    int32_t zero_addend, addend_unsigned, zero_between, between_unsigned;
};

/* Steps of the bounds of bytes, and of a bound of y. */
struct quick_bounds {
    double low, high;
};

static __device__ inline double quick_bound(float y, float scale, double least,
                                            double most)
{
    const double steps = (double)rintf(__fdiv_rn(y, scale));
    return steps < least ? least : steps > most ? most : steps;
}

static __device__ inline quick_bounds
quick_level_set(quick_level *level, int32_t zero, int32_t is_unsigned, float scale,
                const quantized_activation *activate)
{
    const double least = (is_unsigned ? 0 : -128) - zero, most = least + 255;
    quick_bounds b = {least, most};
    if (activate) {
        b.low = quick_bound(activate->low, scale, least, most);
        b.high = quick_bound(activate->high, scale, least, most);
    }
    level->range = (float)(b.high - b.low);
    level->byte = QUICK_WHOLE + (float)(b.low + zero);
    return b;
}

/* `rounded`: what all roundings on the way are of, in steps, each to 2^-24 of it. */
static __device__ inline float quick_error(double rounded)
{
    const double error = 0x1p-24 * rounded;
    return error < QUICK_MOST_ERROR ? (float)error : 1;
}

static __device__ inline double quick_most(const quick_bounds &b)
{
    return fmax(fabs(b.low), fabs(b.high)) + 1;
}

/* A thread's columns of one level; returns the greatest error. `addend`: what an addend
 * may add, in steps; `base`: what it leaves of 0. Rounded are the definition's product,
 * sum and quotient, and of an addend product and sum; here scale, bias and part, and of
 * an addend its own and the sum with the bias. */
static __device__ inline float quick_columns(const quick_job &j, const quick_level &level,
                                             const quick_bounds &b, double step,
                                             double addend, double base)
{
    const double most = quick_most(b), from = fabs(b.low) + fabs(base);
    const double fixed = addend > 0 ? 5 * most + 6 * addend + 2 * from : 4 * most + from;
    float worst = 0;
    for (int32_t k = (int32_t)threadIdx.x; k < j.columns; k += (int32_t)blockDim.x) {
        const double bias = j.bias_in[k] / step;
        const float error = quick_error(fixed + 4 * fabs(bias) + level.range / 2);
        const float scale = (float)(j.factor[k] / (step * level.range));
        j.scale[k] = scale;
        j.bias[k] = (float)((bias + base - b.low) / level.range);
        worst = fmaxf(worst, isfinite(scale) ? error : 1);
    }
    return worst;
}

/* One block. */
static __global__ void quick_kernel(quick_job j)
{
    __shared__ int32_t worst; /* of an error, which is not negative */
    quantized_quick q = {};
    const double out = *j.out, addend = j.addend ? *j.addend : 0;
    const double between = j.between ? *j.between : 0;
    const double lowest_addend = (j.addend_unsigned ? 0 : -128) - j.zero_addend;
    const double most_addend = (fabs(lowest_addend) + 255) * addend / out;
    const quick_bounds b =
        quick_level_set(&q.out, j.zero_out, j.to_unsigned, (float)out, &j.activate);
    const quick_bounds inner =
        quick_level_set(&q.between, j.zero_between, j.between_unsigned, 1, NULL);
    const bool fit = out > 0 && q.out.range >= 1 && j.activate.slope == 1 &&
                     (!j.addend || addend > 0) && (!j.between || between > 0);
    if (threadIdx.x == 0)
        worst = 0;
    __syncthreads();
    const float error = j.between ? quick_columns(j, q.between, inner, between, 0, 0)
                                  : quick_columns(j, q.out, b, out, most_addend,
                                                  lowest_addend * addend / out);
    atomicMax(&worst, __float_as_int(fit ? error : 1));
    __syncthreads();
    q.addend = (float)(addend / (out * q.out.range));
    q.out.sure = 0.5f - __int_as_float(worst);
    if (j.between) {
        q.between.sure = q.out.sure;
        q.carried = (float)(between / (out * q.out.range));
        q.base = (float)(((inner.low * between + lowest_addend * addend) / out - b.low) /
                         q.out.range);
        q.out.sure = 0.5f - quick_error(4 * quick_most(b) + 5 * most_addend +
                                        5 * 256 * between / out + q.out.range / 2);
    }
    if (!(q.out.sure > 0)) { /* all is in doubt, whatever numbers there are */
        q = {};
        q.out.sure = -1;
    }
    if (threadIdx.x == 0)
        *j.quick = q;
}

/* ---- of a sum ---------------------------------------------------------------------- */

static __device__ inline float multiply_add_cut(float a, float b, float c)
{
    float d;
    asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
    return d;
}

/* Byte e of a word, as if unsigned, where the word's sign bits are flipped. `exponent`:
 * QUICK_BYTE, in a register. */
static __device__ inline float quick_byte(uint32_t word, int e, uint32_t exponent)
{
    return __fadd_rn(__uint_as_float(__byte_perm(word, exponent, 0x7650 + e)),
                     -__uint_as_float(QUICK_BYTE));
}

/* The whole steps of a part of the range, and QUICK_WHOLE with the byte. */
static __device__ inline float quick_steps(const quick_level &level, float part,
                                           float *byte, bool &doubt)
{
    *byte = fmaf(part, level.range, level.byte);
    const float steps = __fadd_rn(*byte, -level.byte);
    doubt |= fabsf(fmaf(part, level.range, -steps)) > level.sure;
    return steps;
}

/* Four sums of neighbouring columns to a word; `addend`: theirs, sign bits flipped. */
template <bool Joined, bool Between>
static __device__ inline uint32_t
quick_four(const quantized_quick &q, const float *v, const float4 &scale,
           const float4 &bias, uint32_t addend, uint32_t exponent, bool &doubt)
{
    const float f[4] = {scale.x, scale.y, scale.z, scale.w};
    const float b[4] = {bias.x, bias.y, bias.z, bias.w};
    float byte[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float x = v[e], factor = f[e], from = b[e];
        if (Between) {
            x = quick_steps(q.between, multiply_add_cut(x, factor, from), &byte[e],
                            doubt);
            factor = q.carried;
            from = q.base;
        }
        if (Joined)
            from = fmaf(quick_byte(addend, e, exponent), q.addend, from);
        quick_steps(q.out, multiply_add_cut(x, factor, from), &byte[e], doubt);
    }
    return __byte_perm(
        __byte_perm(__float_as_uint(byte[0]), __float_as_uint(byte[1]), 0x0040),
        __byte_perm(__float_as_uint(byte[2]), __float_as_uint(byte[3]), 0x0040), 0x5410);
}

#endif /* PLUGINS_COMMON_QUANTIZED_QUICK_CUH */
