/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of sums in memory, of neighbouring pixels by up to 64 filters.
 */
#include "plugins/quantized_convolution/end.h"

#include "plugins/common/window.h"
#include "plugins/quantized_convolution/join.h"

#ifdef __x86_64__
#include "plugins/quantized_convolution/end_avx512.h"

INSIDE void finish(const struct vnni_end *e, struct kind kind, __m512i sum,
                   const struct lanes *l, const uint8_t *addend, void *out)
{
    __m512 y = scaled(sum, l->factor, l->bias);
    if (kind.adds)
        y = joined(e, kind, y, addend, l->mask);
    if (kind.slopes)
        y = sloped(e, y);
    if (kind.to_bytes) {
        const __m512i whole =
            _mm512_add_epi32(steps(y, e->out, kind.is_short), _mm512_set1_epi32(e->zero));
        _mm512_mask_cvtepi32_storeu_epi8(out, l->mask, whole);
        return;
    }
    _mm512_mask_storeu_ps(out, l->mask, bounded(e, y));
}

/* Scales and numbers of any kind: by the definition, one by one. */
static void finish_any(const struct vnni_outputs *t, const int32_t *sum, int64_t filter,
                       int64_t at)
{
    const strata_quantized_convolution *p = t->end->params;
    const int64_t lanes = window_min(VNNI_LANES, t->filters - filter);
    const strata_tensor out = {.data = t->out};
    for (int64_t i = 0; i < lanes; i++) {
        float y =
            (float)sum[i] * t->lanes->factor[filter + i] + t->lanes->bias[filter + i];
        if (t->end->has_addend) {
            const int32_t b =
                (t->addend[at + i] ^ t->end->addend_flip) - t->end->addend_flip;
            y = join_value(p, y, b, t->end->scale_addend, t->end->between.scale);
        }
        quantized_store(&p->quantized, &out, at + i, quantized_activate(&p->quantized, y),
                        t->end->out.scale);
    }
}

INSIDE struct lanes lanes_of(const struct vnni_outputs *t, int64_t filter)
{
    const int64_t left = t->filters - filter;
    return (struct lanes){_mm512_loadu_ps(t->lanes->factor + filter),
                          _mm512_loadu_ps(t->lanes->bias + filter),
                          (__mmask16)(left >= VNNI_LANES ? 0xffffU : (1U << left) - 1)};
}

/* Operations of all vectors of a pixel, one operation after another. Compilers would put
 * all of a vector's behind each other, where each waits for the one before: `keep` is
 * what they do not move. */
#define EACH(statement)                                                                  \
    _Pragma("GCC unroll 4") for (int k = 0; k < vectors; k++) statement

INSIDE __m512 keep(__m512 x)
{
    __asm__ volatile("" : "+v"(x));
    return x;
}

INSIDE void scale_all(__m512 *y, const __m512i *sums, const struct lanes *l, int vectors)
{
    EACH(y[k] = keep(_mm512_cvtepi32_ps(sums[k])));
    EACH(y[k] = keep(_mm512_mul_ps(y[k], l[k].factor)));
    EACH(y[k] = keep(_mm512_add_ps(y[k], l[k].bias)));
}

INSIDE void divide_all(__m512 *y, struct vnni_step s, int is_short, int vectors)
{
    __m512 rest[VNNI_VECTORS];
    if (!is_short) {
        EACH(y[k] = quotient(y[k], s, 0));
        return;
    }
    EACH(rest[k] = keep(_mm512_mul_ps(y[k], _mm512_set1_ps(s.rest))));
    EACH(y[k] = keep(_mm512_fmadd_ps(y[k], _mm512_set1_ps(s.reciprocal), rest[k])));
}

/* To the output's quotient, by the two FMAs of vnni_join. */
INSIDE void join_all(struct vnni_step between, struct vnni_join join, struct kind kind,
                     __m512 *y, const uint8_t *addend, int vectors)
{
    const __m512 low = _mm512_set1_ps(between.low);
    const __m512 high = _mm512_set1_ps(between.high);
    __m512 b[VNNI_VECTORS];
    divide_all(y, between, kind.is_short, vectors);
    EACH(b[k] = keep(bytes(kind, addend + k * VNNI_LANES)));
    EACH(y[k] = keep(_mm512_max_ps(y[k], low)));
    EACH(b[k] = keep(_mm512_cvtepi32_ps(_mm512_castps_si512(b[k]))));
    EACH(y[k] = keep(_mm512_min_ps(y[k], high)));
    EACH(b[k] = keep(_mm512_fmadd_ps(b[k], _mm512_set1_ps(join.addend),
                                     _mm512_set1_ps(join.rest))));
    EACH(y[k] = keep(_mm512_castsi512_ps(_mm512_cvtps_epi32(y[k]))));
    EACH(y[k] = keep(_mm512_cvtepi32_ps(_mm512_castps_si512(y[k]))));
    EACH(y[k] = keep(_mm512_fmadd_ps(y[k], _mm512_set1_ps(join.between), b[k])));
}

/* Up to 64 filters of a pixel after the other. */
INSIDE void finish_packed(const struct vnni_outputs *t, const __m512i *sums, int pixels,
                          int vectors, struct kind kind)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const struct vnni_end e = *t->end;
    const struct vnni_join join = *t->join;
    const int64_t left = t->filters - t->filter;
    const __mmask64 mask =
        left >= VNNI_FILTERS ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
    struct lanes l[VNNI_VECTORS];
    __m512i whole[VNNI_VECTORS];
    for (int k = 0; k < vectors; k++)
        l[k] = lanes_of(t, t->filter + k * VNNI_LANES);
    for (int k = vectors; k < VNNI_VECTORS; k++)
        whole[k] = _mm512_setzero_si512();
    int64_t at = t->at + t->filter;
    for (int p = 0; p < pixels; p++, at += t->filters, sums += vectors) {
        const uint8_t *addend = kind.adds ? t->addend + at : NULL;
        __m512 y[VNNI_VECTORS];
        scale_all(y, sums, l, vectors);
        if (kind.joins)
            join_all(e.between, join, kind, y, addend, vectors);
        else if (kind.adds)
            EACH(y[k] = joined(&e, kind, y[k], addend + k * VNNI_LANES, l[k].mask));
        if (!kind.joins)
            divide_all(y, e.out, kind.is_short, vectors);
        EACH(whole[k] = _mm512_cvtps_epi32(y[k]));
        _mm512_mask_storeu_epi8((uint8_t *)t->out + at, mask,
                                _mm512_permutexvar_epi32(order, packed(&e, whole)));
    }
}

/* Copies of what is read: a store of bytes may change all else. */
INSIDE void finish_as(const struct vnni_outputs *t, const __m512i *sums, int pixels,
                      int vectors, struct kind kind)
{
    const struct vnni_end e = *t->end;
    const int64_t filters = t->filters, size = kind.to_bytes ? 1 : sizeof(float);
    for (int k = 0; k < vectors; k++) {
        const int64_t filter = t->filter + k * VNNI_LANES;
        const struct lanes l = lanes_of(t, filter);
        int64_t at = t->at + filter;
        for (int p = 0; p < pixels; p++, at += filters)
            finish(&e, kind, sums[p * vectors + k], &l, kind.adds ? t->addend + at : NULL,
                   (char *)t->out + at * size);
    }
}

INSIDE void finish_joined(const struct vnni_outputs *t, const __m512i *sums, int pixels,
                          int vectors)
{
    if (t->end->addend_flip)
        finish_packed(t, sums, pixels, vectors,
                      (struct kind){.adds = 1,
                                    .between = 1,
                                    .to_bytes = 1,
                                    .is_short = 1,
                                    .joins = 1,
                                    .flips = 1});
    else
        finish_packed(
            t, sums, pixels, vectors,
            (struct kind){
                .adds = 1, .between = 1, .to_bytes = 1, .is_short = 1, .joins = 1});
}

/* Bytes, which is what most are. */
INSIDE void finish_most(const struct vnni_outputs *t, const __m512i *sums, int pixels,
                        int vectors, int is_short)
{
    const struct vnni_end *e = t->end;
    if (!e->has_addend)
        finish_packed(t, sums, pixels, vectors,
                      (struct kind){.to_bytes = 1, .is_short = is_short});
    else if (e->has_between)
        finish_packed(
            t, sums, pixels, vectors,
            (struct kind){.adds = 1, .between = 1, .to_bytes = 1, .is_short = is_short});
    else
        finish_packed(t, sums, pixels, vectors,
                      (struct kind){.adds = 1, .to_bytes = 1, .is_short = is_short});
}

/* The rest: floats, bounds, scales of any kind. */
TARGET static void finish_rest(const struct vnni_outputs *t, const __m512i *sums,
                               int pixels, int vectors)
{
    const struct vnni_end *e = t->end;
    const struct kind kind = {.adds = e->has_addend,
                              .between = e->has_between,
                              .slopes = e->has_slope,
                              .to_bytes = e->to_bytes};
    if (e->multiplies) {
        finish_as(t, sums, pixels, vectors, kind);
        return;
    }
    for (int i = 0; i < pixels * vectors; i++) {
        const int64_t filter = t->filter + i % vectors * VNNI_LANES;
        finish_any(t, (const int32_t *)&sums[i], filter,
                   t->at + i / vectors * t->filters + filter);
    }
}

static int joins(const struct vnni_outputs *t, int vectors)
{
    return t->join->is_exact && t->lanes->is_short &&
           t->filters - t->filter >= vectors * VNNI_LANES;
}

/* `vectors` is a constant where most are finished. */
#define FINISH(vectors)                                                                  \
    TARGET void vnni_finish_##vectors(const struct vnni_outputs *t, const int32_t *all,  \
                                      int pixels)                                        \
    {                                                                                    \
        const __m512i *sums = (const __m512i *)(const void *)all;                        \
        if (!t->end->packs)                                                              \
            finish_rest(t, sums, pixels, vectors);                                       \
        else if (joins(t, vectors))                                                      \
            finish_joined(t, sums, pixels, vectors);                                     \
        else if (t->lanes->is_short)                                                     \
            finish_most(t, sums, pixels, vectors, 1);                                    \
        else                                                                             \
            finish_most(t, sums, pixels, vectors, 0);                                    \
    }
FINISH(1)
FINISH(2)
FINISH(3)
FINISH(4)
#else
#define FINISH(vectors)                                                                  \
    void vnni_finish_##vectors(const struct vnni_outputs *t, const int32_t *sums,        \
                               int pixels)                                               \
    {                                                                                    \
        (void)t;                                                                         \
        (void)sums;                                                                      \
        (void)pixels;                                                                    \
    }
FINISH(1)
FINISH(2)
FINISH(3)
FINISH(4)
#endif
