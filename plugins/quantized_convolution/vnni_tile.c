/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of `vnni`: sums of a tile in registers.
 */
#include "plugins/quantized_convolution/vnni.h"

#ifdef __x86_64__
#include "plugins/quantized_convolution/end_avx512.h"

/* What the next tile's finish reads and writes comes while there are products. */
INSIDE void fetch_ends(const struct vnni_tile *t, int pixels)
{
    const int64_t size = t->to.end->to_bytes ? 1 : sizeof(float);
    const int64_t at = t->to.at + t->to.filter + pixels * t->v->filters;
    const char *addend = t->to.addend ? (const char *)t->to.addend + at : NULL;
    const char *out = (const char *)t->to.out + at * size;
#pragma GCC unroll 8
    for (int p = 0; p < pixels; p++) {
        if (addend)
            _mm_prefetch(addend + p * t->v->filters, _MM_HINT_T0);
        __builtin_prefetch(out + p * t->v->filters * size, 1);
    }
}

INSIDE void run(const struct vnni_tile *t, const struct vnni_piece *piece, int pixels,
                int vectors)
{
    const struct vnni *v = t->v;
    const int64_t line = VNNI_LANES * 4, word = vectors * line, step = t->step;
    const int8_t *w =
        v->packed + t->to.filter * v->rows * v->words * 4 + piece->begin * word;
    const int fetches = vectors > 2; /* else loads are what takes the time */
    const char *next = t->next;
    int32_t *sums = t->sums;
    __m512i sum[VNNI_PIXELS][VNNI_VECTORS];
#pragma GCC unroll 8
    for (int k = 0; k < vectors; k++)
#pragma GCC unroll 8
        for (int p = 0; p < pixels; p++)
            sum[p][k] = _mm512_loadu_si512(
                piece->is_first ? v->lanes.correction + t->to.filter + k * VNNI_LANES
                                : sums + (p * vectors + k) * VNNI_LANES);
    if (fetches && piece->is_last)
        fetch_ends(t, pixels);
    for (int64_t i = piece->begin; i < piece->end; i++, w += word, next += step) {
        const int64_t offset = v->offset[i];
        __m512i weight[VNNI_VECTORS];
        if (fetches)
            _mm_prefetch(next, _MM_HINT_T1);
#pragma GCC unroll 8
        for (int k = 0; k < vectors; k++)
            weight[k] = _mm512_loadu_si512(w + k * line);
#pragma GCC unroll 8
        for (int p = 0; p < pixels; p++) {
            int32_t four;
            __builtin_memcpy(&four, t->x[p] + offset, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 8
            for (int k = 0; k < vectors; k++)
                sum[p][k] = _mm512_dpbusd_epi32(sum[p][k], x, weight[k]);
        }
    }
#pragma GCC unroll 8
    for (int p = 0; p < pixels; p++)
#pragma GCC unroll 8
        for (int k = 0; k < vectors; k++)
            _mm512_store_si512(sums + (p * vectors + k) * VNNI_LANES, sum[p][k]);
    if (piece->is_last)
        vnni_finish(&t->to, sums, pixels, vectors);
}

#define TILE(pixels, vectors)                                                            \
    TARGET static void run_##pixels##_##vectors(const struct vnni_tile *t,               \
                                                const struct vnni_piece *piece)          \
    {                                                                                    \
        run(t, piece, pixels, vectors);                                                  \
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
typedef void run_tile(const struct vnni_tile *t, const struct vnni_piece *piece);

void vnni_run_tile(const struct vnni_tile *t, const struct vnni_piece *piece)
{
    static run_tile *const tiles[VNNI_PIXELS][VNNI_VECTORS] = {
        NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6)};
    const int64_t left = (t->v->filters - t->to.filter + VNNI_LANES - 1) / VNNI_LANES;
    tiles[t->pixels - 1][(left < VNNI_VECTORS ? left : VNNI_VECTORS) - 1](t, piece);
}
#endif
