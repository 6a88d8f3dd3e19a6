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

/* exp of what is not above 0; what adds nothing to a sum with a 1 in it is 0. */
ROW_INLINE float weight(float x)
{
    return x < -87 ? 0 : exp_inside(x);
}

ROW_INLINE void cap(float *s, float softcap, int64_t n)
{
    const float inverse = 1 / softcap;
    const struct bounds bounds = TANH_BOUNDS;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        s[i] = softcap * tanh_float(s[i] * inverse, bounds);
}

/* Scores of key j by `lanes` columns from c, after cap, mask and bounds. */
ROW_INLINE void finish_scores(const struct attention_score_tile *t, float *s, int64_t j,
                              int64_t c, const int lanes)
{
    if (t->softcap > 0)
        cap(s, t->softcap, lanes);
    if (t->mask) {
        const float *mask = t->mask + j * t->row + c;
#pragma omp simd
        for (int i = 0; i < lanes; i++)
            s[i] += mask[i];
    }
    if (t->key_mask) {
        const float addend = t->key_mask[j];
#pragma omp simd
        for (int i = 0; i < lanes; i++)
            s[i] += addend;
    }
    if (t->begin) {
        const int32_t *begin = t->begin + c, *end = t->end + c, key = (int32_t)j;
#pragma omp simd
        for (int i = 0; i < lanes; i++)
            s[i] = key >= begin[i] && key < end[i] ? s[i] : -INFINITY;
    }
}

/* A vector of columns through all keys: what runs along stays in registers. */
ROW_INLINE void tile_columns(const struct attention_score_tile *t, int64_t c,
                             const int lanes)
{
    float maximum[16], base[16], sum[16];
    memcpy(maximum, t->maximum + c, (size_t)lanes * sizeof *maximum);
    for (int64_t j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->row + c;
        finish_scores(t, s, j, c, lanes);
#pragma omp simd
        for (int i = 0; i < lanes; i++)
            maximum[i] = larger(maximum[i], s[i]);
    }
#pragma omp simd
    for (int i = 0; i < lanes; i++) {
        base[i] = base_of(maximum[i]);
        t->factor[c + i] = weight(t->maximum[c + i] - base[i]);
        sum[i] = t->sum[c + i] * t->factor[c + i];
    }
    for (int64_t j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->row + c;
#pragma omp simd
        for (int i = 0; i < lanes; i++) {
            s[i] = weight(s[i] - base[i]);
            sum[i] += s[i];
        }
    }
    memcpy(t->maximum + c, maximum, (size_t)lanes * sizeof *maximum);
    memcpy(t->sum + c, sum, (size_t)lanes * sizeof *sum);
}

ROW_INLINE void tile_of(const struct attention_score_tile *t, const int lanes)
{
    for (int64_t c = 0; c < t->columns; c += lanes)
        tile_columns(t, c, lanes);
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
        lane[i] = s[i] = weight(s[i] - base);
    for (int half = ATTENTION_LINE / 2; half > 0; half /= 2)
#pragma omp simd
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    sum = lane[0];
    l->factor = weight(l->maximum - base);
    l->maximum = maximum;
    l->sum = l->sum * l->factor + sum;
}

#define ROWS(name, target, lanes)                                                        \
    target static void tile_##name(const struct attention_score_tile *t)                 \
    {                                                                                    \
        tile_of(t, lanes);                                                               \
    }                                                                                    \
    target static void line_##name(struct attention_score_line *l)                       \
    {                                                                                    \
        line_of(l);                                                                      \
    }                                                                                    \
    static const struct attention_row_set rows_##name = {tile_##name, line_##name};

ROWS(plain, , 4)
#ifdef ELEMENT_X86
ROWS(avx2, __attribute__((target("avx2,fma"))), 8)
ROWS(avx512, ROW_AVX512, 16)
#endif

const struct attention_row_set *attention_rows_choose(void)
{
    return ROW_BEST(rows);
}
