/* SPDX-License-Identifier: Apache-2.0
 *
 * Interpolation of a row whose taps lie close together, as they do in an enlarged image:
 * those of 16 neighbouring outputs are all within 16 inputs, which one load brings and a
 * permutation hands out.
 */
#ifndef PLUGINS_RESIZE_WINDOWS_H
#define PLUGINS_RESIZE_WINDOWS_H

#include <stdint.h>

#include "plugins/common/pointwise/row.h"

enum { WINDOWS_BLOCK = 16, WINDOWS_ROWS = 16 };

/* Tap k of output i is element base[i/16] + lane[k*pitch + i] of the row. */
struct windows {
    int32_t *base, *lane;
    int64_t count, pitch; /* of taps; of their tables */
};

/* Rows that are added up first. */
struct windows_rows {
    int64_t n;
    const float *row[WINDOWS_ROWS];
    float weight[WINDOWS_ROWS];
};

/* From the taps' places in a row, `count` of each of n outputs. 0: some are too far
 * apart, or this processor does not permute so. */
static inline int windows_make(struct windows *w, const int64_t *at, int64_t count,
                               int64_t pitch, int64_t n)
{
    w->count = count;
    w->pitch = pitch;
#ifdef ELEMENT_X86
    for (int64_t i = 0; i < n; i += WINDOWS_BLOCK) {
        const int64_t end = n - i < WINDOWS_BLOCK ? n : i + WINDOWS_BLOCK;
        int64_t least = at[i], most = at[i];
        for (int64_t k = 0; k < count * pitch; k += pitch)
            for (int64_t j = i; j < end; j++) {
                least = at[k + j] < least ? at[k + j] : least;
                most = at[k + j] > most ? at[k + j] : most;
            }
        if (most - least >= WINDOWS_BLOCK || most > INT32_MAX)
            return 0;
        w->base[i / WINDOWS_BLOCK] = (int32_t)least;
        for (int64_t k = 0; k < count * pitch; k += pitch)
            for (int64_t j = i; j < end; j++)
                w->lane[k + j] = (int32_t)(at[k + j] - least);
    }
    return row_has_avx512();
#else
    (void)w, (void)at, (void)count, (void)pitch, (void)n;
    return 0;
#endif
}

#ifdef ELEMENT_X86
#include <immintrin.h>

static inline __mmask16 windows_mask(int64_t n)
{
    return (__mmask16)(n >= WINDOWS_BLOCK ? 0xffff : (1U << n) - 1);
}

/* The rows from element `from` on. */
ROW_AVX512 static inline __m512 windows_load(const struct windows_rows *rows,
                                             int64_t from, int64_t in)
{
    const __mmask16 some = windows_mask(in - from);
    __m512 sum = _mm512_setzero_ps();
    for (int64_t r = 0; r < rows->n; r++)
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(some, rows->row[r] + from),
                              _mm512_set1_ps(rows->weight[r]), sum);
    return sum;
}

/* n outputs of rows of `in` elements. What has no weight does not count, even if it is no
 * number. */
ROW_AVX512 static inline void windows_sum(float *y, const struct windows *w,
                                          const float *weight,
                                          const struct windows_rows *rows, int64_t in,
                                          int64_t n)
{
    const __m512 zero = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += WINDOWS_BLOCK) {
        const __mmask16 some = windows_mask(n - i);
        const __m512 row = windows_load(rows, w->base[i / WINDOWS_BLOCK], in);
        __m512 sum = zero;
        for (int64_t k = i; k < w->count * w->pitch; k += w->pitch) {
            const __m512 by = _mm512_maskz_loadu_ps(some, weight + k);
            const __m512i lane = _mm512_maskz_loadu_epi32(some, w->lane + k);
            const __mmask16 counts = _mm512_cmp_ps_mask(by, zero, _CMP_NEQ_UQ);
            sum =
                _mm512_mask3_fmadd_ps(_mm512_permutexvar_ps(lane, row), by, sum, counts);
        }
        _mm512_mask_storeu_ps(y + i, some, sum);
    }
}
#else
static inline void windows_sum(float *y, const struct windows *w, const float *weight,
                               const struct windows_rows *rows, int64_t in, int64_t n)
{
    (void)y, (void)w, (void)weight, (void)rows, (void)in, (void)n;
}
#endif

#endif /* PLUGINS_RESIZE_WINDOWS_H */
