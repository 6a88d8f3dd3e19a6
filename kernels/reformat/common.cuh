/* SPDX-License-Identifier: Apache-2.0
 *
 * What the reformat kernels share: loops around a block's work, and the choice of a
 * typed instance.
 */
#ifndef KERNELS_REFORMAT_COMMON_CUH
#define KERNELS_REFORMAT_COMMON_CUH

#include "kernels/element.cuh"
#include "kernels/reformat/job.h"

static __device__ inline uint32_t divide(uint32_t x, reformat_divisor d)
{
    return d.d == 1 ? x : __umulhi(x, d.magic);
}

struct place {
    int64_t dst, src;
};

/* Where the index-th of all the loops' steps starts. The slowest loop needs no division,
 * so a plain batch of images costs none. */
static __device__ inline place loops_at(const reformat_loops &l, uint64_t index)
{
    place at = {0, 0};
#pragma unroll 1 /* once a block, or once a step of few dims: long code is no faster */
    for (int i = l.n - 1; i >= 0; i--) {
        uint64_t step = index;
        if (i > 0) {
            index = index >> 32 ? index / l.extent[i] : (uint32_t)index / l.extent[i];
            step -= index * l.extent[i];
        }
        at.dst += (int64_t)step * l.dst[i];
        at.src += (int64_t)step * l.src[i];
    }
    return at;
}

/* A thread's place in rows of `length` steps each. 64-bit arithmetic is done once a block;
 * a thread counts the rows from there, of which a block of at most WALK steps crosses one
 * unless the rows are short. */
#define WALK 1024

struct row_walk {
    uint64_t row;
    place at;            /* of the row */
    uint32_t rest, last; /* steps before the block's first; the last one, from there */
};

static __device__ inline row_walk walk_from(const reformat_loops &l, uint64_t start,
                                            uint64_t rows, uint32_t length)
{
    row_walk w;
    w.row = start >> 32 ? start / length : (uint32_t)start / length;
    w.at = loops_at(l, w.row);
    w.rest = (uint32_t)(start - w.row * length);
    w.last = (uint32_t)min((uint64_t)WALK, rows * length - start) - 1;
    return w;
}

/* The place of step i, which lies `dst` and `src` elements after the one before. Within a
 * block, offsets from its first row fit 32 bits: the job's maker has checked that. */
static __device__ inline place walk_to(const row_walk &w, const reformat_loops &l,
                                       const reformat_divisor &by, uint32_t i,
                                       uint32_t dst, uint32_t src)
{
    const uint32_t at = w.rest + i;
    const uint32_t rows = by.d >= WALK ? at >= by.d : divide(at, by);
    const uint32_t step = at - rows * by.d;
    place p = w.at;
    if (l.n > 1 && rows > 0)
        p = loops_at(l, w.row + rows);
    const uint32_t whole = l.n == 1 ? rows : 0;
    p.dst += whole * (uint32_t)l.dst[0] + step * dst;
    p.src += whole * (uint32_t)l.src[0] + step * src;
    return p;
}

/* The pairs of dtypes with kernels of their own: X(to, its type, from, its type). */
#define REFORMAT_IMAGES(X)                                                               \
    X(STRATA_FP32, float, STRATA_FP32, float)                                            \
    X(STRATA_FP16, __half, STRATA_FP16, __half)                                          \
    X(STRATA_FP32, float, STRATA_FP16, __half)                                           \
    X(STRATA_FP16, __half, STRATA_FP32, float)                                           \
    X(STRATA_INT8, int8_t, STRATA_INT8, int8_t)                                          \
    X(STRATA_FP32, float, STRATA_UINT8, uint8_t)                                         \
    X(STRATA_FP16, __half, STRATA_UINT8, uint8_t)                                        \
    X(STRATA_FP32, float, STRATA_BF16, __nv_bfloat16)                                    \
    X(STRATA_BF16, __nv_bfloat16, STRATA_FP32, float)                                    \
    X(STRATA_BF16, __nv_bfloat16, STRATA_UINT8, uint8_t)
#define REFORMAT_TYPED(X)                                                                \
    REFORMAT_IMAGES(X)                                                                   \
    X(STRATA_FP32, float, STRATA_INT8, int8_t)                                           \
    X(STRATA_FP16, __half, STRATA_INT8, int8_t)                                          \
    X(STRATA_INT8, int8_t, STRATA_FP32, float)                                           \
    X(STRATA_INT8, int8_t, STRATA_FP16, __half)                                          \
    X(STRATA_UINT8, uint8_t, STRATA_FP32, float)                                         \
    X(STRATA_UINT8, uint8_t, STRATA_FP16, __half)                                        \
    X(STRATA_FP16, __half, STRATA_BF16, __nv_bfloat16)                                   \
    X(STRATA_BF16, __nv_bfloat16, STRATA_FP16, __half)                                   \
    X(STRATA_BF16, __nv_bfloat16, STRATA_INT8, int8_t)                                   \
    X(STRATA_INT8, int8_t, STRATA_BF16, __nv_bfloat16)                                   \
    X(STRATA_UINT8, uint8_t, STRATA_BF16, __nv_bfloat16)

#endif /* KERNELS_REFORMAT_COMMON_CUH */
