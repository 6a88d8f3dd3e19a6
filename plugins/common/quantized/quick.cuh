/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes from sums in a third of the definition's operations, wherever that gives its very
 * integers. All that happens to a sum is one multiplication and addition into units of
 * the byte's steps; what rounds otherwise on the way is less than an error that is known
 * beforehand. A value nearer than that to the middle of two steps is in doubt, and is
 * computed as the definition says: some in ten thousand.
 *
 * Steps are counted from the lowest byte that the activation leaves, as parts of the
 * range, so that what saturates is cut to [0, 1] by the multiplication itself.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_QUICK_CUH
#define PLUGINS_COMMON_QUANTIZED_QUICK_CUH

#include "plugins/common/quantized/round.cuh"

#define QUICK_WHOLE 0x1.8p23f       /* a sum with it has no bits behind the point */
#define QUICK_BYTE 1280             /* steps to byte 0, of a whole half's low byte */
#define QUICK_UNITS 8192            /* of a step, that floats from 1024 to 2048 count */
#define QUICK_FRACTIONS 0x1fff1fffu /* of two such floats' lower halves */
#define QUICK_HALVES 0x64646464u /* of two halves of 1024, whose low bytes count ones */
#define QUICK_MOST_ERROR 0.0625f /* of a step; beyond, all is in doubt */

/* A rounding to bytes, on the way. */
struct quick_level {
    float range; /* steps from the lowest byte to the highest */
    float byte;  /* QUICK_WHOLE and the lowest byte, by its low bits */
    float sure;  /* steps from a whole number within which it is that one */
};

struct quantized_quick {
    float range; /* steps from the lowest byte to the highest */
    /* With which a part of it is the byte and a fraction: QUICK_BYTE, the lowest byte,
     * half a step, and what errors may take off; and units below which a fraction is in
     * doubt. */
    float start;
    uint32_t doubt;
    /* The addend's part of the range for each step of its own, that of a step of
     * `between`, and what both leave of 0. */
    float addend, carried, base;
    quick_level between;
};

/* For one value in doubt as the definition says (single.cuh): scales, and inverses that
 * they are divided by. `regular`: that is right for all of the layer. */
struct quantized_alone {
    float out, out_inverse, addend, between, between_inverse;
    uint32_t regular;
};

/* ---- of a layer, at its setup ------------------------------------------------------ */

struct quick_job {
    quantized_quick *quick;
    quantized_alone *alone;
    float *scale, *bias; /* of columns, in parts of the first level's range */
    const float *factor, *bias_in;
    const int32_t *offset;               /* of sums, where they come without; or NULL */
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

/* Steps of the lowest and the highest byte. */
static __device__ inline quick_bounds quick_bytes(int32_t zero, int32_t is_unsigned)
{
    const double least = (is_unsigned ? 0 : -128) - zero;
    return {least, least + 255};
}

/* The last rounding adds up to half a unit to `error`. A value that errors may carry past
 * the middle of two steps then has a fraction of fewer units than `doubt`. */
static __device__ inline void quick_start(quantized_quick *q, const quick_bounds &b,
                                          int32_t zero, float error)
{
    const double units = (double)error * QUICK_UNITS + 0.5, off = floor(units);
    q->range = (float)(b.high - b.low);
    q->start = (float)(QUICK_BYTE + b.low + zero + 0.5 + off / QUICK_UNITS);
    q->doubt = (uint32_t)(floor(off + units) + 1);
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

/* What an addend may add, in steps; what its byte does, less its lowest; what 1024 of its
 * steps are; what the lowest leaves of 0. */
struct quick_addend {
    double most, byte, halves, base;
};

/* A thread's columns of one level; returns the greatest error. Rounded are the
 * definition's product, sum and quotient, and of an addend product and sum; here scale,
 * bias and part, and of an addend its step and the sum with the bias. Of a sum without
 * its offset, too: the offset in scale, bias and sum, and both floats that are made of
 * sums, which were one. */
static __device__ inline float quick_columns(const quick_job &j, const quick_bounds &b,
                                             double step, const quick_addend &a)
{
    const double range = b.high - b.low;
    const double most = quick_most(b), low = fabs(b.low);
    const double fixed =
        a.most > 0 ? 5 * most + 2 * low + 5 * a.most + a.byte + a.halves + fabs(a.base)
                   : 4 * most + low;
    float worst = 0;
    for (int32_t k = (int32_t)threadIdx.x; k < j.columns; k += (int32_t)blockDim.x) {
        const double bias = j.bias_in[k] / step;
        const double offset = j.offset ? (double)j.offset[k] * j.factor[k] / step : 0;
        const double apart = j.offset ? 3 * fabs(offset) + 2 * (most + fabs(bias)) : 0;
        const float error = quick_error(fixed + 4 * fabs(bias) + range / 2 + apart);
        const float scale = (float)(j.factor[k] / (step * range));
        j.scale[k] = scale;
        j.bias[k] = (float)((bias + offset + a.base - a.halves - b.low) / range);
        worst = fmaxf(worst, isfinite(scale) ? error : 1);
    }
    return worst;
}

static __device__ inline bool quick_regular(float scale)
{
    return scale > 0x1p-60f && scale < 0x1p60f;
}

/* `q`: in which not all is in doubt, as it is with a slope or numbers that are none. */
static __device__ inline quantized_alone quick_alone(const quick_job &j,
                                                     const quantized_quick &q)
{
    quantized_alone a;
    a.out = *j.out;
    a.addend = j.addend ? *j.addend : 1;
    a.between = j.between ? *j.between : 1;
    a.out_inverse = __frcp_rn(a.out);
    a.between_inverse = __frcp_rn(a.between);
    a.regular = q.doubt < QUICK_UNITS && quick_regular(a.out) &&
                quick_regular(a.addend) && quick_regular(a.between);
    return a;
}

/* One block. */
static __global__ void quick_kernel(quick_job j)
{
    __shared__ int32_t worst; /* of an error, which is not negative */
    quantized_quick q = {};
    const double out = *j.out, addend = j.addend ? *j.addend : 0;
    const double between = j.between ? *j.between : 0;
    const double lowest_addend = (j.addend_unsigned ? 0 : -128) - j.zero_addend;
    const quick_bounds bytes = quick_bytes(j.zero_out, j.to_unsigned);
    const quick_bounds b = {
        quick_bound(j.activate.low, (float)out, bytes.low, bytes.high),
        quick_bound(j.activate.high, (float)out, bytes.low, bytes.high)};
    const quick_bounds inner = quick_bytes(j.zero_between, j.between_unsigned);
    const double range = b.high - b.low;
    const bool fit = out > 0 && range >= 1 && j.activate.slope == 1 &&
                     (!j.addend || addend > 0) && (!j.between || between > 0);
    /* What the addend's bytes as halves are more; by its steps as they are rounded. */
    q.addend = (float)(addend / (out * range));
    const quick_addend none = {};
    const quick_addend a = {fmax(fabs(lowest_addend), fabs(lowest_addend + 255)) *
                                addend / out,
                            255 * addend / out, 1024 * (double)q.addend * range,
                            lowest_addend * addend / out};
    if (threadIdx.x == 0)
        worst = 0;
    __syncthreads();
    float error =
        j.between ? quick_columns(j, inner, between, none) : quick_columns(j, b, out, a);
    atomicMax(&worst, __float_as_int(fit ? error : 1));
    __syncthreads();
    error = __int_as_float(worst);
    if (j.between) {
        const double base = inner.low * between / out + a.base - b.low;
        q.between.range = 255;
        q.between.byte = QUICK_WHOLE;
        q.between.sure = 0.5f - error;
        q.carried = (float)(between / (out * range));
        q.base = (float)((base - a.halves) / range);
        error = fmaxf(error, quick_error(4 * quick_most(b) + 5 * (a.most + a.byte) +
                                         a.halves + 5 * 256 * between / out + range / 2));
    }
    quick_start(&q, b, j.zero_out, error);
    if (!(error < QUICK_MOST_ERROR)) { /* all is in doubt, whatever numbers there are */
        q = {};
        q.doubt = QUICK_UNITS;
    }
    if (threadIdx.x == 0) {
        *j.quick = q;
        *j.alone = quick_alone(j, q);
    }
}

/* ---- of a sum ---------------------------------------------------------------------- */

static __device__ inline float multiply_add_cut(float a, float b, float c)
{
    float d;
    asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
    return d;
}

/* Bytes 2p and 2p + 1 of a word, each with 1024, where the word's sign bits are flipped.
 * `halves`: QUICK_HALVES, in a register. */
static __device__ inline float2 quick_bytes_of(uint32_t word, int p, uint32_t halves)
{
    const uint32_t two = __byte_perm(word, halves, p ? 0x4342 : 0x4140);
    return __half22float2(*(const __half2 *)&two);
}

/* Two values from 1024 to 2048 as halves, cut to whole numbers. */
static __device__ inline uint32_t quick_whole(float x, float y)
{
    uint32_t two;
    asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(y), "f"(x));
    return two;
}

/* Their fractions. */
static __device__ inline uint32_t quick_fractions(float x, float y)
{
    return __byte_perm(__float_as_uint(x), __float_as_uint(y), 0x5410) & QUICK_FRACTIONS;
}

/* From which two fractions are taken: bits 15 and 31 are of those in doubt. */
static __host__ __device__ inline uint32_t quick_most(const quantized_quick &q)
{
    return 0x80008000u + (q.doubt - 1) * 0x10001u;
}

/* Bits 15 - p and 31 - p are of pair p's fractions, the first lower: those in doubt. */
template <int N>
static __device__ inline uint32_t quick_doubts(uint32_t most,
                                               const uint32_t (&fractions)[N])
{
    uint32_t mask = 0;
#pragma unroll
    for (int p = N - 1; p >= 0; p--)
        mask = mask >> 1 | ((most - fractions[p]) & 0x80008000u);
    return mask;
}

/* Whether one of the fractions is in doubt. */
static __device__ inline bool quick_doubt(const quantized_quick &q, uint32_t least)
{
    return min(least & 0xffff, least >> 16) < q.doubt;
}

/* The whole steps of a part of a level's range. */
static __device__ inline float quick_steps(const quick_level &level, float part,
                                           bool &doubt)
{
    const float byte = fmaf(part, level.range, level.byte);
    const float steps = __fadd_rn(byte, -level.byte);
    doubt |= fabsf(fmaf(part, level.range, -steps)) > level.sure;
    return steps;
}

/* Four sums of neighbouring columns to a word; `addend`: theirs, sign bits flipped.
 * take(first, second, doubt): the fractions of two pairs, and whether all are in doubt,
 * whatever these are. */
template <bool Joined, bool Between, class Take>
static __device__ inline uint32_t
quick_word(const quantized_quick &q, const float *v, const float4 &scale,
           const float4 &bias, uint32_t addend, uint32_t halves, const Take &take)
{
    const float f[4] = {scale.x, scale.y, scale.z, scale.w};
    const float b[4] = {bias.x, bias.y, bias.z, bias.w};
    const float2 low = quick_bytes_of(addend, 0, halves);
    const float2 high = quick_bytes_of(addend, 1, halves);
    const float a[4] = {low.x, low.y, high.x, high.y};
    bool doubt = false;
    float z[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float x = v[e], factor = f[e], from = b[e];
        if (Between) {
            x = quick_steps(q.between, multiply_add_cut(x, factor, from), doubt);
            factor = q.carried;
            from = q.base;
        }
        if (Joined)
            from = fmaf(a[e], q.addend, from);
        z[e] = fmaf(multiply_add_cut(x, factor, from), q.range, q.start);
    }
    take(quick_fractions(z[0], z[1]), quick_fractions(z[2], z[3]), Between && doubt);
    return __byte_perm(quick_whole(z[0], z[1]), quick_whole(z[2], z[3]), 0x6420);
}

/* The same, and the least of the fractions. */
template <bool Joined, bool Between>
static __device__ inline uint32_t
quick_four(const quantized_quick &q, const float *v, const float4 &scale,
           const float4 &bias, uint32_t addend, uint32_t halves, uint32_t &least)
{
    return quick_word<Joined, Between>(q, v, scale, bias, addend, halves,
                                       [&](uint32_t first, uint32_t second, bool doubt) {
                                           least = __vminu2(first, second);
                                           if (doubt)
                                               least = 0;
                                       });
}

#endif /* PLUGINS_COMMON_QUANTIZED_QUICK_CUH */
