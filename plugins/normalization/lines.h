/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of FP32 in whole vectors, layer and rms: some rows at a time, as short ones are
 * bound by the chain of sum, quotient, sum, root and quotient. The last vector of a row
 * overlaps the one before; lanes that are in both count once. It is read before anything
 * is written, for y may be x.
 */
#ifndef PLUGINS_NORMALIZATION_LINES_H
#define PLUGINS_NORMALIZATION_LINES_H

#include <math.h>

#include "plugins/common/element.h"

/* n elements each, at most GATHER_STRETCH, for sums are of floats. */
struct norm_lines {
    const float *x, *scale, *bias; /* scale, bias: of a row, or NULL */
    float *y, *mean, *factor;      /* mean, factor: of each row, or NULL */
    int64_t n;
    double epsilon;
    int32_t centred;
};

struct norm_lines_code {
    int64_t least; /* elements of a row */
    /* rows <= NORM_ROWS */
    void (*run)(const struct norm_lines *l, int64_t begin, int64_t rows);
};

#define NORM_LOAD(v, p) memcpy(&(v), (p), sizeof(v))
#define NORM_STORE(p, v) memcpy((p), &(v), sizeof(v))
#define NORM_SUMS 4
#define NORM_ROWS 8        /* at once, whose chains run beside each other */
#define NORM_ELEMENTS 8192 /* of them, that the first cache holds meanwhile */
#define NORM_INLINE(target) target static inline __attribute__((always_inline))

#define NORM_LINES(name, target, LANES)                                                  \
    typedef float norm_##name __attribute__((vector_size(LANES * 4)));                   \
    typedef int32_t norm_bits_##name __attribute__((vector_size(LANES * 4)));            \
                                                                                         \
    NORM_INLINE(target) float norm_fold_##name(const norm_##name *sum)                   \
    {                                                                                    \
        const norm_##name all = (sum[0] + sum[1]) + (sum[2] + sum[3]);                   \
        float lane[LANES];                                                               \
        NORM_STORE(lane, all);                                                           \
        for (int half = LANES / 2; half > 0; half /= 2)                                  \
            for (int i = 0; i < half; i++)                                               \
                lane[i] += lane[i + half];                                               \
        return lane[0];                                                                  \
    }                                                                                    \
                                                                                         \
    /* Of x, or of the squares of x - mean. */                                           \
    NORM_INLINE(target)                                                                  \
    float norm_sum_##name(const float *x, int64_t n, norm_bits_##name count, float mean, \
                          const int squares)                                             \
    {                                                                                    \
        norm_##name sum[NORM_SUMS] = {{0}}, v;                                           \
        int64_t at = 0;                                                                  \
        for (; at + NORM_SUMS * LANES < n; at += NORM_SUMS * LANES)                      \
            for (int k = 0; k < NORM_SUMS; k++) {                                        \
                NORM_LOAD(v, x + at + k * LANES);                                        \
                v -= mean;                                                               \
                sum[k] += squares ? v * v : v;                                           \
            }                                                                            \
        for (; at + LANES < n; at += LANES) {                                            \
            NORM_LOAD(v, x + at);                                                        \
            v -= mean;                                                                   \
            sum[0] += squares ? v * v : v;                                               \
        }                                                                                \
        NORM_LOAD(v, x + n - LANES);                                                     \
        v -= mean;                                                                       \
        v = squares ? v * v : v;                                                         \
        sum[1] += (norm_##name)((norm_bits_##name)v & count);                            \
        return norm_fold_##name(sum);                                                    \
    }                                                                                    \
                                                                                         \
    NORM_INLINE(target)                                                                  \
    void norm_vector_##name(const struct norm_lines *l, float *y, int64_t j,             \
                            norm_##name v, float mean, float factor)                     \
    {                                                                                    \
        norm_##name w;                                                                   \
        v = (v - mean) * factor;                                                         \
        if (l->scale) {                                                                  \
            NORM_LOAD(w, l->scale + j);                                                  \
            v *= w;                                                                      \
        }                                                                                \
        if (l->bias) {                                                                   \
            NORM_LOAD(w, l->bias + j);                                                   \
            v += w;                                                                      \
        }                                                                                \
        NORM_STORE(y + j, v);                                                            \
    }                                                                                    \
                                                                                         \
    NORM_INLINE(target)                                                                  \
    void norm_adjust_##name(const struct norm_lines *l, int64_t row, float mean,         \
                            float factor)                                                \
    {                                                                                    \
        const float *x = l->x + row * l->n;                                              \
        float *y = l->y + row * l->n;                                                    \
        norm_##name last, v;                                                             \
        NORM_LOAD(last, x + l->n - LANES);                                               \
        for (int64_t j = 0; j + LANES < l->n; j += LANES) {                              \
            NORM_LOAD(v, x + j);                                                         \
            norm_vector_##name(l, y, j, v, mean, factor);                                \
        }                                                                                \
        norm_vector_##name(l, y, l->n - LANES, last, mean, factor);                      \
        if (l->mean) {                                                                   \
            l->mean[row] = mean;                                                         \
            l->factor[row] = factor;                                                     \
        }                                                                                \
    }                                                                                    \
                                                                                         \
    target static void norm_run_##name(const struct norm_lines *l, int64_t begin,        \
                                       int64_t rows)                                     \
    {                                                                                    \
        const int64_t n = l->n, tail = n - (n - 1) / LANES * LANES;                      \
        const float *x = l->x + begin * n;                                               \
        float mean[NORM_ROWS] = {0}, factor[NORM_ROWS] = {0};                            \
        norm_bits_##name count;                                                          \
        for (int64_t i = 0; i < LANES; i++)                                              \
            count[i] = i >= LANES - tail ? -1 : 0;                                       \
        for (int64_t i = 0; i < rows && l->centred; i++)                                 \
            mean[i] = norm_sum_##name(x + i * n, n, count, 0, 0);                        \
        for (int i = 0; i < NORM_ROWS; i++)                                              \
            mean[i] = (float)((double)mean[i] / (double)n);                              \
        for (int64_t i = 0; i < rows; i++)                                               \
            factor[i] = norm_sum_##name(x + i * n, n, count, mean[i], 1);                \
        for (int i = 0; i < NORM_ROWS; i++)                                              \
            factor[i] = (float)(1 / sqrt((double)factor[i] / (double)n + l->epsilon));   \
        for (int64_t i = 0; i < rows; i++)                                               \
            norm_adjust_##name(l, begin + i, mean[i], factor[i]);                        \
    }                                                                                    \
    static const struct norm_lines_code norm_lines_##name = {LANES, norm_run_##name};

NORM_LINES(plain, , 4)
#ifdef ELEMENT_X86
NORM_LINES(avx2, __attribute__((target("avx2,fma"))), 8)
NORM_LINES(avx512, __attribute__((target("avx512f,fma"))), 16)
#endif

/* Shorter rows take shorter vectors; NULL: too short for any. */
static inline const struct norm_lines_code *norm_lines_choose(int64_t n)
{
#ifdef ELEMENT_X86
    if (n >= norm_lines_avx512.least && __builtin_cpu_supports("avx512f"))
        return &norm_lines_avx512;
    if (n >= norm_lines_avx2.least && element_has_f16c())
        return &norm_lines_avx2;
#endif
    return n >= norm_lines_plain.least ? &norm_lines_plain : NULL;
}

#endif /* PLUGINS_NORMALIZATION_LINES_H */
