/* SPDX-License-Identifier: Apache-2.0
 *
 * What the reformat kernels share: loops around a block's work, and the choice of a
 * typed instance.
 */
#ifndef KERNELS_REFORMAT_COMMON_CUH
#define KERNELS_REFORMAT_COMMON_CUH

#include "kernels/element.cuh"
#include "kernels/reformat_job.h"

struct place {
    int64_t dst, src;
};

/* Where the index-th of all the loops' steps starts. The slowest loop needs no division,
 * so a plain batch of images costs none. */
static __device__ inline place loops_at(const reformat_loops &l, uint64_t index)
{
    place at = {0, 0};
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

/* A thread's place in rows of `length` steps: 64-bit arithmetic once a block, 32-bit
 * after that. `start` is the block's first step, `i` counts from there. */
struct row_walk {
    uint64_t row;
    uint32_t rest, length;
};

static __device__ inline row_walk walk_from(uint64_t start, uint32_t length)
{
    row_walk w;
    w.row = start >> 32 ? start / length : (uint32_t)start / length;
    w.rest = (uint32_t)(start - w.row * length);
    w.length = length;
    return w;
}

static __device__ inline uint64_t walk_to(const row_walk &w, uint32_t i, uint32_t *within)
{
    const uint32_t at = w.rest + i, rows = at / w.length;
    *within = at - rows * w.length;
    return w.row + rows;
}

/* The pairs of dtypes with kernels of their own: X(to, its type, from, its type). */
#define REFORMAT_TYPED(X)                              \
    X(STRATA_FP32, float, STRATA_FP32, float)          \
    X(STRATA_FP16, __half, STRATA_FP16, __half)        \
    X(STRATA_FP32, float, STRATA_FP16, __half)         \
    X(STRATA_FP16, __half, STRATA_FP32, float)         \
    X(STRATA_INT8, int8_t, STRATA_INT8, int8_t)        \
    X(STRATA_FP32, float, STRATA_INT8, int8_t)         \
    X(STRATA_FP16, __half, STRATA_INT8, int8_t)        \
    X(STRATA_FP32, float, STRATA_UINT8, uint8_t)       \
    X(STRATA_FP16, __half, STRATA_UINT8, uint8_t)      \
    X(STRATA_INT8, int8_t, STRATA_FP32, float)         \
    X(STRATA_INT8, int8_t, STRATA_FP16, __half)        \
    X(STRATA_UINT8, uint8_t, STRATA_FP32, float)       \
    X(STRATA_UINT8, uint8_t, STRATA_FP16, __half)

#endif /* KERNELS_REFORMAT_COMMON_CUH */
