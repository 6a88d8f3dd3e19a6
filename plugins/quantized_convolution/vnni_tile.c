/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of `vnni`: sums of a tile in registers, and what becomes of them. Operations
 * are those of the definition, each rounded; only quotients are found by products where
 * that is the same (plugins/common/quantized/quotient.h).
 */
#include "plugins/quantized_convolution/vnni.h"

#include "plugins/quantized_convolution/join.h"

#ifdef __x86_64__
#include <immintrin.h>

#define TARGET                                                                           \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))
#define INSIDE TARGET static inline __attribute__((always_inline))

enum { AHEAD = 8 }; /* words that weights are fetched ahead of their use */

/* Of one vector of filters. */
struct lanes {
    __m512 factor, bias;
    __mmask16 mask;
};

INSIDE __m512 quotient(__m512 y, struct vnni_step s, int is_short)
{
    const __m512 scale = _mm512_set1_ps(s.scale), r = _mm512_set1_ps(s.reciprocal);
    const __m512 q0 = _mm512_mul_ps(y, r);
    const __m512 q1 = _mm512_fmadd_ps(_mm512_fnmadd_ps(q0, scale, y), r, q0);
    return is_short ? q1 : _mm512_fmadd_ps(_mm512_fnmadd_ps(q1, scale, y), r, q1);
}

/* Steps from the zero, as whole numbers: what saturates is cut before it is rounded,
 * which comes to the same. */
INSIDE __m512i steps(__m512 y, struct vnni_step s, int is_short)
{
    const __m512 q = _mm512_max_ps(quotient(y, s, is_short), _mm512_set1_ps(s.low));
    return _mm512_cvtps_epi32(_mm512_min_ps(q, _mm512_set1_ps(s.high)));
}

/* What becomes of sums, known where code is made for it. */
struct kind {
    int adds, between, slopes, to_bytes, is_short;
};

INSIDE __m512 joined(const struct vnni_end *e, struct kind kind, __m512 y,
                     const uint8_t *addend, __mmask16 mask)
{
    if (kind.between)
        y = _mm512_mul_ps(_mm512_cvtepi32_ps(steps(y, e->between, kind.is_short)),
                          _mm512_set1_ps(e->between.scale));
    __m512i b = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, addend));
    b = _mm512_sub_epi32(_mm512_xor_si512(b, _mm512_set1_epi32(e->addend_flip)),
                         _mm512_set1_epi32(e->zero_addend));
    return _mm512_add_ps(
        y, _mm512_mul_ps(_mm512_cvtepi32_ps(b), _mm512_set1_ps(e->scale_addend)));
}

INSIDE void finish(const struct vnni_end *e, struct kind kind, __m512i sum,
                   const struct lanes *l, const uint8_t *addend, void *out)
{
    __m512 y = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), l->factor), l->bias);
    if (kind.adds)
        y = joined(e, kind, y, addend, l->mask);
    if (kind.slopes)
        y = _mm512_mask_mul_ps(y, _mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_LT_OQ),
                               y, _mm512_set1_ps(e->slope));
    if (kind.to_bytes) {
        const __m512i whole =
            _mm512_add_epi32(steps(y, e->out, kind.is_short), _mm512_set1_epi32(e->zero));
        _mm512_mask_cvtepi32_storeu_epi8(out, l->mask, whole);
        return;
    }
    y = _mm512_max_ps(y, _mm512_set1_ps(e->out.low));
    _mm512_mask_storeu_ps(out, l->mask, _mm512_min_ps(y, _mm512_set1_ps(e->out.high)));
}

/* Scales and numbers of any kind: by the definition, one by one. */
static void finish_any(const struct vnni_tile *t, const int32_t *sum, int64_t filter,
                       int64_t at)
{
    const strata_quantized_convolution *p = t->end->params;
    const int64_t lanes = window_min(VNNI_LANES, t->v->filters - filter);
    const strata_tensor out = {.data = t->out};
    for (int64_t i = 0; i < lanes; i++) {
        float y = (float)sum[i] * t->v->factor[filter + i] + t->v->bias[filter + i];
        if (t->end->has_addend) {
            const int32_t b =
                (t->addend[at + i] ^ t->end->addend_flip) - t->end->addend_flip;
            y = join_value(p, y, b, t->end->scale_addend, t->end->between.scale);
        }
        quantized_store(&p->quantized, &out, at + i, quantized_activate(&p->quantized, y),
                        t->end->out.scale);
    }
}

INSIDE struct lanes lanes_of(const struct vnni *v, int64_t filter)
{
    const int64_t left = v->filters - filter;
    return (struct lanes){_mm512_loadu_ps(v->factor + filter),
                          _mm512_loadu_ps(v->bias + filter),
                          left >= VNNI_LANES ? 0xffff : (__mmask16)((1U << left) - 1)};
}

/* 64 filters of a pixel: what is past a byte saturates where it is packed. */
INSIDE __m512i packed(const struct vnni_end *e, const __m512i whole[VNNI_VECTORS])
{
    const __m512i zero = _mm512_set1_epi16((int16_t)e->zero);
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(whole[0], whole[1]), zero);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(whole[2], whole[3]), zero);
    return _mm512_permutexvar_epi32(order, e->params->quantized.to == 2
                                               ? _mm512_packus_epi16(a, b)
                                               : _mm512_packs_epi16(a, b));
}

INSIDE void finish_packed(const struct vnni_tile *t, const __m512i *sums, int pixels,
                          struct kind kind)
{
    const struct vnni_end e = *t->end;
    struct lanes l[VNNI_VECTORS];
    for (int k = 0; k < VNNI_VECTORS; k++)
        l[k] = lanes_of(t->v, t->filter + k * VNNI_LANES);
    int64_t at = t->at + t->filter;
    for (int p = 0; p < pixels; p++, at += t->v->filters, sums += VNNI_VECTORS) {
        __m512i whole[VNNI_VECTORS];
#pragma GCC unroll 4
        for (int k = 0; k < VNNI_VECTORS; k++) {
            __m512 y = _mm512_add_ps(
                _mm512_mul_ps(_mm512_cvtepi32_ps(sums[k]), l[k].factor), l[k].bias);
            if (kind.adds)
                y = joined(&e, kind, y, t->addend + at + k * VNNI_LANES, 0xffff);
            whole[k] = _mm512_cvtps_epi32(quotient(y, e.out, kind.is_short));
        }
        _mm512_storeu_si512((uint8_t *)t->out + at, packed(&e, whole));
    }
}

/* Copies of what is read: a store of bytes may change all else. */
INSIDE void finish_as(const struct vnni_tile *t, const __m512i *sums, int pixels,
                      int vectors, struct kind kind)
{
    const struct vnni_end e = *t->end;
    const int64_t filters = t->v->filters, size = kind.to_bytes ? 1 : sizeof(float);
    for (int k = 0; k < vectors; k++) {
        const int64_t filter = t->filter + k * VNNI_LANES;
        const struct lanes l = lanes_of(t->v, filter);
        int64_t at = t->at + filter;
        for (int p = 0; p < pixels; p++, at += filters)
            finish(&e, kind, sums[p * vectors + k], &l, kind.adds ? t->addend + at : NULL,
                   (char *)t->out + at * size);
    }
}

/* Blocks of 64 filters to bytes, which is what most are. */
INSIDE void finish_most(const struct vnni_tile *t, const __m512i *sums, int pixels,
                        int is_short)
{
    const struct vnni_end *e = t->end;
    if (!e->has_addend)
        finish_packed(t, sums, pixels, (struct kind){0, 0, 0, 1, is_short});
    else if (e->has_between)
        finish_packed(t, sums, pixels, (struct kind){1, 1, 0, 1, is_short});
    else
        finish_packed(t, sums, pixels, (struct kind){1, 0, 0, 1, is_short});
}

TARGET static void finish_tile(const struct vnni_tile *t, const __m512i *sums, int pixels,
                               int vectors)
{
    const struct vnni_end *e = t->end;
    const int64_t filters = t->v->filters;
    const struct kind kind = {e->has_addend, e->has_between, e->has_slope, e->to_bytes,
                              0};
    if (!e->multiplies)
        for (int i = 0; i < pixels * vectors; i++) {
            const int64_t filter = t->filter + i % vectors * VNNI_LANES;
            finish_any(t, (const int32_t *)&sums[i], filter,
                       t->at + i / vectors * filters + filter);
        }
    else if (e->packs && filters - t->filter >= VNNI_FILTERS && t->v->is_short)
        finish_most(t, sums, pixels, 1);
    else if (e->packs && filters - t->filter >= VNNI_FILTERS)
        finish_most(t, sums, pixels, 0);
    else
        finish_as(t, sums, pixels, vectors, kind);
}

INSIDE void run(const struct vnni_tile *t, int pixels, int vectors)
{
    const struct vnni *v = t->v;
    const int8_t *w = v->packed + t->filter * v->rows * v->words * 4;
    /* what only unrolled loops touch is in registers */
    __m512i sum[VNNI_PIXELS][VNNI_VECTORS], sums[VNNI_PIXELS * VNNI_VECTORS];
#pragma GCC unroll 8
    for (int k = 0; k < vectors; k++)
#pragma GCC unroll 8
        for (int p = 0; p < pixels; p++)
            sum[p][k] = _mm512_loadu_si512(v->correction + t->filter + k * VNNI_LANES);
    for (int64_t r = 0; r < v->rows; r++) {
        const int64_t offset = v->offset[r];
        for (int64_t i = 0; i < v->words; i++, w += vectors * VNNI_LANES * 4) {
            __m512i weight[VNNI_VECTORS];
#pragma GCC unroll 8
            for (int k = 0; k < vectors; k++) {
                weight[k] = _mm512_loadu_si512(w + k * VNNI_LANES * 4);
                _mm_prefetch(w + (AHEAD * vectors + k) * VNNI_LANES * 4, _MM_HINT_T0);
            }
#pragma GCC unroll 8
            for (int p = 0; p < pixels; p++) {
                int32_t four;
                __builtin_memcpy(&four, t->x[p] + offset + i * 4, sizeof four);
                const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 8
                for (int k = 0; k < vectors; k++)
                    sum[p][k] = _mm512_dpbusd_epi32(sum[p][k], x, weight[k]);
            }
        }
    }
#pragma GCC unroll 8
    for (int p = 0; p < pixels; p++)
#pragma GCC unroll 8
        for (int k = 0; k < vectors; k++)
            _mm512_store_si512(&sums[p * vectors + k], sum[p][k]);
    finish_tile(t, sums, pixels, vectors);
}

#define TILE(pixels, vectors)                                                            \
    TARGET static void run_##pixels##_##vectors(const struct vnni_tile *t)               \
    {                                                                                    \
        run(t, pixels, vectors);                                                         \
    }
#define TILES(pixels) TILE(pixels, 1) TILE(pixels, 2) TILE(pixels, 3) TILE(pixels, 4)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)

#define NAMES(pixels)                                                                    \
    {                                                                                    \
        run_##pixels##_1, run_##pixels##_2, run_##pixels##_3, run_##pixels##_4           \
    }
void vnni_run_tile(const struct vnni_tile *t, int pixels)
{
    static void (*const tiles[VNNI_PIXELS][VNNI_VECTORS])(const struct vnni_tile *t) = {
        NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6)};
    const int64_t left = (t->v->filters - t->filter + VNNI_LANES - 1) / VNNI_LANES;
    tiles[pixels - 1][(left < VNNI_VECTORS ? left : VNNI_VECTORS) - 1](t);
}
#endif
