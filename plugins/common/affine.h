/* SPDX-License-Identifier: Apache-2.0
 *
 * Affine: y = f(x*factor + addend) in one pass over FP32, with one factor all along or
 * one a lane. In place or not; y may be x, but may not overlap it otherwise.
 */
#ifndef PLUGINS_COMMON_AFFINE_H
#define PLUGINS_COMMON_AFFINE_H

#include "plugins/common/activate.h"

/* lanes 1: factor[0] and addend[0] for all. Else element i takes those of lane i mod
 * lanes; a piece begins at lane 0. */
struct affine {
    const float *factor, *addend;
    int64_t lanes;
    int32_t kind;       /* STRATA_RELU ..., or -1: no activation */
    double alpha, beta; /* of the activation */
};

#define AFFINE_INLINE static inline __attribute__((always_inline))

/* The kinds that stay in the pass; a constant `kind` leaves one of the cases. */
AFFINE_INLINE float affine_value(int kind, float x, float a, float b)
{
    switch (kind) {
    case STRATA_RELU: return x < 0 ? 0 : x;
    case STRATA_LEAKY_RELU: return x > 0 ? x : a * x;
    case STRATA_CLIP: return x < a ? a : x > b ? b : x;
    default: return x;
    }
}

AFFINE_INLINE void affine_one(int kind, float a, float b, float *y, const float *x,
                              float factor, float addend, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = affine_value(kind, x[i] * factor + addend, a, b);
}

AFFINE_INLINE void affine_lanes(int kind, float a, float b, float *y, const float *x,
                                const float *factor, const float *addend, int64_t lanes,
                                int64_t rows)
{
    for (int64_t r = 0; r < rows; r++, x += lanes, y += lanes)
#pragma omp simd
        for (int64_t i = 0; i < lanes; i++)
            y[i] = affine_value(kind, x[i] * factor[i] + addend[i], a, b);
}

/* n elements of one kind; blocks of channels have constant widths. */
AFFINE_INLINE void affine_kind(int kind, float a, float b, const struct affine *f,
                               float *y, const float *x, int64_t n)
{
    switch (f->lanes) {
    case 1: affine_one(kind, a, b, y, x, f->factor[0], f->addend[0], n); break;
    case 8: affine_lanes(kind, a, b, y, x, f->factor, f->addend, 8, n / 8); break;
    case 16: affine_lanes(kind, a, b, y, x, f->factor, f->addend, 16, n / 16); break;
    default:
        affine_lanes(kind, a, b, y, x, f->factor, f->addend, f->lanes, n / f->lanes);
    }
}

AFFINE_INLINE void affine_all(const struct affine *f, float *y, const float *x, int64_t n)
{
    float a = (float)f->alpha, b = (float)f->beta;
    switch (f->kind) {
    case STRATA_RELU: affine_kind(STRATA_RELU, 0, 0, f, y, x, n); break;
    case STRATA_LEAKY_RELU: affine_kind(STRATA_LEAKY_RELU, a, 0, f, y, x, n); break;
    case STRATA_RELU6: affine_kind(STRATA_CLIP, 0, 6, f, y, x, n); break;
    case STRATA_CLIP: affine_kind(STRATA_CLIP, a, b, f, y, x, n); break;
    default:
        affine_kind(-1, 0, 0, f, y, x, n);
        if (f->kind >= 0)
            activate_row(f->kind, f->alpha, f->beta, y, n);
    }
}

typedef void affine_run(const struct affine *f, float *y, const float *x, int64_t n);

static void affine_plain(const struct affine *f, float *y, const float *x, int64_t n)
{
    affine_all(f, y, x, n);
}

#ifdef ELEMENT_X86
__attribute__((target("avx2,fma"))) static void affine_avx2(const struct affine *f,
                                                            float *y, const float *x,
                                                            int64_t n)
{
    affine_all(f, y, x, n);
}

__attribute__((target("avx512f"))) static void affine_avx512(const struct affine *f,
                                                             float *y, const float *x,
                                                             int64_t n)
{
    affine_all(f, y, x, n);
}
#endif

/* n is a multiple of the lanes. */
static inline affine_run *affine_choose(void)
{
#ifdef ELEMENT_X86
    return __builtin_cpu_supports("avx512f") ? affine_avx512
           : element_has_f16c()              ? affine_avx2
                                             : affine_plain;
#else
    return affine_plain;
#endif
}

#endif /* PLUGINS_COMMON_AFFINE_H */
