/* SPDX-License-Identifier: Apache-2.0
 *
 * One source of the rows, compiled for each kind of vectors.
 */
#include "plugins/attention/rows.h"

#include "plugins/common/pointwise/functions.h"
#include "plugins/common/pointwise/row.h"

ROW_INLINE float larger(float a, float x)
{
    return x > a ? x : a;
}

/* What exponentials are taken from: of no key at all any number will do. */
ROW_INLINE float base_of(float maximum)
{
    return maximum == -INFINITY ? 0 : maximum;
}

ROW_INLINE void cap(float *s, float softcap, int64_t n)
{
    const float inverse = 1 / softcap;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        s[i] = softcap * tanh_float(s[i] * inverse);
}

ROW_INLINE void close(const struct attention_score_tile *t, float *s, int32_t key)
{
    const int32_t *begin = t->begin, *end = t->end;
#pragma omp simd
    for (int64_t c = 0; c < t->columns; c++)
        s[c] = key >= begin[c] && key < end[c] ? s[c] : -INFINITY;
}

/* Scores of a key after cap, mask and bounds. */
ROW_INLINE void finish_scores(const struct attention_score_tile *t, float *s, int64_t j)
{
    const int64_t columns = t->columns;
    if (t->softcap > 0)
        cap(s, t->softcap, columns);
    if (t->mask) {
        const float *mask = t->mask + j * t->row;
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            s[c] += mask[c];
    }
    if (t->key_mask) {
        const float addend = t->key_mask[j];
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            s[c] += addend;
    }
    if (t->begin)
        close(t, s, (int32_t)j);
}

ROW_INLINE void tile_of(const struct attention_score_tile *t)
{
    float *maximum = t->maximum, *sum = t->sum, *factor = t->factor;
    const int64_t columns = t->columns;
#pragma omp simd
    for (int64_t c = 0; c < columns; c++)
        factor[c] = maximum[c];
    for (int64_t j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->row;
        finish_scores(t, s, j);
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            maximum[c] = larger(maximum[c], s[c]);
    }
#pragma omp simd
    for (int64_t c = 0; c < columns; c++) {
        factor[c] = exp_float(factor[c] - base_of(maximum[c]));
        sum[c] *= factor[c];
    }
    for (int64_t j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->row;
#pragma omp simd
        for (int64_t c = 0; c < columns; c++) {
            s[c] = exp_float(s[c] - base_of(maximum[c]));
            sum[c] += s[c];
        }
    }
}

ROW_INLINE void line_of(struct attention_score_line *l)
{
    float *s = l->s, maximum = l->maximum, lane[ATTENTION_LINE], sum = 0;
    if (l->softcap > 0)
        cap(s, l->softcap, ATTENTION_LINE);
    if (l->mask) {
        const float *mask = l->mask;
#pragma omp simd
        for (int i = 0; i < ATTENTION_LINE; i++)
            s[i] += mask[i];
    }
    memcpy(lane, s, sizeof lane);
    for (int half = ATTENTION_LINE / 2; half > 0; half /= 2)
#pragma omp simd
        for (int i = 0; i < half; i++)
            lane[i] = larger(lane[i], lane[i + half]);
    maximum = larger(maximum, lane[0]);
    const float base = base_of(maximum);
#pragma omp simd
    for (int i = 0; i < ATTENTION_LINE; i++)
        lane[i] = s[i] = exp_float(s[i] - base);
    for (int half = ATTENTION_LINE / 2; half > 0; half /= 2)
#pragma omp simd
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    sum = lane[0];
    l->factor = exp_float(l->maximum - base);
    l->maximum = maximum;
    l->sum = l->sum * l->factor + sum;
}

#define ROWS(name, target)                                                               \
    target static void tile_##name(const struct attention_score_tile *t)                 \
    {                                                                                    \
        tile_of(t);                                                                      \
    }                                                                                    \
    target static void line_##name(struct attention_score_line *l)                       \
    {                                                                                    \
        line_of(l);                                                                      \
    }                                                                                    \
    static const struct attention_row_set rows_##name = {tile_##name, line_##name};

ROWS(plain, )
#ifdef ELEMENT_X86
ROWS(avx2, __attribute__((target("avx2,fma"))))
ROWS(avx512, ROW_AVX512)
#endif

const struct attention_row_set *attention_rows_choose(void)
{
#ifdef ELEMENT_X86
    return row_has_avx512()     ? &rows_avx512
           : element_has_f16c() ? &rows_avx2
                                : &rows_plain;
#else
    return &rows_plain;
#endif
}
