/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of `vnni`: sums of a tile in registers, and what becomes of them.
 */
#include "plugins/quantized_convolution/vnni.h"

#include "plugins/quantized_convolution/join.h"

#ifdef __x86_64__
#include "plugins/quantized_convolution/end_avx512.h"

enum { AHEAD = 8 }; /* words that weights are fetched ahead of their use */

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
static void finish_any(const struct vnni_tile *t, const int32_t *sum, int64_t filter,
                       int64_t at)
{
    const strata_quantized_convolution *p = t->end->params;
    const int64_t lanes = window_min(VNNI_LANES, t->v->filters - filter);
    const strata_tensor out = {.data = t->out};
    for (int64_t i = 0; i < lanes; i++) {
        float y =
            (float)sum[i] * t->v->lanes.factor[filter + i] + t->v->lanes.bias[filter + i];
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
    return (struct lanes){_mm512_loadu_ps(v->lanes.factor + filter),
                          _mm512_loadu_ps(v->lanes.bias + filter),
                          left >= VNNI_LANES ? 0xffff : (__mmask16)((1U << left) - 1)};
}

/* Up to 64 filters of a pixel after the other. */
INSIDE void finish_packed(const struct vnni_tile *t, const __m512i *sums, int pixels,
                          int vectors, struct kind kind)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const struct vnni_end e = *t->end;
    const int64_t left = t->v->filters - t->filter;
    const __mmask64 mask =
        left >= VNNI_FILTERS ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
    struct lanes l[VNNI_VECTORS];
    __m512i whole[VNNI_VECTORS];
    for (int k = 0; k < vectors; k++)
        l[k] = lanes_of(t->v, t->filter + k * VNNI_LANES);
    for (int k = vectors; k < VNNI_VECTORS; k++)
        whole[k] = _mm512_setzero_si512();
    int64_t at = t->at + t->filter;
    for (int p = 0; p < pixels; p++, at += t->v->filters, sums += vectors) {
#pragma GCC unroll 4
        for (int k = 0; k < vectors; k++) {
            __m512 y = scaled(sums[k], l[k].factor, l[k].bias);
            if (kind.adds)
                y = joined(&e, kind, y, t->addend + at + k * VNNI_LANES, l[k].mask);
            whole[k] = _mm512_cvtps_epi32(quotient(y, e.out, kind.is_short));
        }
        _mm512_mask_storeu_epi8((uint8_t *)t->out + at, mask,
                                _mm512_permutexvar_epi32(order, packed(&e, whole)));
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

/* Bytes, which is what most are. */
INSIDE void finish_most(const struct vnni_tile *t, const __m512i *sums, int pixels,
                        int vectors, int is_short)
{
    const struct vnni_end *e = t->end;
    if (!e->has_addend)
        finish_packed(t, sums, pixels, vectors, (struct kind){0, 0, 0, 1, is_short});
    else if (e->has_between)
        finish_packed(t, sums, pixels, vectors, (struct kind){1, 1, 0, 1, is_short});
    else
        finish_packed(t, sums, pixels, vectors, (struct kind){1, 0, 0, 1, is_short});
}

/* The rest: floats, bounds, scales of any kind. */
TARGET static void finish_rest(const struct vnni_tile *t, const __m512i *sums, int pixels,
                               int vectors)
{
    const struct vnni_end *e = t->end;
    const struct kind kind = {e->has_addend, e->has_between, e->has_slope, e->to_bytes,
                              0};
    if (e->multiplies) {
        finish_as(t, sums, pixels, vectors, kind);
        return;
    }
    for (int i = 0; i < pixels * vectors; i++) {
        const int64_t filter = t->filter + i % vectors * VNNI_LANES;
        finish_any(t, (const int32_t *)&sums[i], filter,
                   t->at + i / vectors * t->v->filters + filter);
    }
}

/* `vectors` is a constant where most are finished. */
#define FINISH(vectors)                                                                  \
    TARGET static void finish_##vectors(const struct vnni_tile *t, const __m512i *sums,  \
                                        int pixels)                                      \
    {                                                                                    \
        if (!t->end->packs)                                                              \
            finish_rest(t, sums, pixels, vectors);                                       \
        else if (t->v->lanes.is_short)                                                   \
            finish_most(t, sums, pixels, vectors, 1);                                    \
        else                                                                             \
            finish_most(t, sums, pixels, vectors, 0);                                    \
    }
FINISH(1)
FINISH(2)
FINISH(3)
FINISH(4)

INSIDE void finish_tile(const struct vnni_tile *t, const __m512i *sums, int pixels,
                        int vectors)
{
    if (vectors == 1)
        finish_1(t, sums, pixels);
    else if (vectors == 2)
        finish_2(t, sums, pixels);
    else if (vectors == 3)
        finish_3(t, sums, pixels);
    else
        finish_4(t, sums, pixels);
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
            sum[p][k] =
                _mm512_loadu_si512(v->lanes.correction + t->filter + k * VNNI_LANES);
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
