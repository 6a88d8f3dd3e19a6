/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of `depthwise`: some columns at a time, down the rows. The words of as many
 * rows as the kernel has lie in a ring; each output row adds the next ones.
 */
#include "plugins/quantized_convolution/depthwise.h"

#ifdef __x86_64__
#include "plugins/quantized_convolution/end_avx512.h"

/* A strip's columns: `vectors` of words from word `first` on. What is read often is here,
 * for a store of bytes may change all else. */
struct columns {
    const struct depthwise_strip *s;
    int64_t first, vectors;
    __m512i *memory;
    int64_t channels, width, out_width;
};

/* What is known where code is made for it. */
struct shape {
    int64_t parts, both, rows, words;
};

/* ---- words ------------------------------------------------------------------------- */

/* A row's first byte of the block (NULL: pads), and what stands for pads. */
struct source {
    const uint8_t *row, *pads;
    int64_t channels, width;
};

INSIDE const uint8_t *pixel_at(const struct source *x, int64_t column)
{
    const int inside = x->row && (uint64_t)column < (uint64_t)x->width;
    return inside ? x->row + column * x->channels : x->pads;
}

#define LOAD(suffix, from) _mm##suffix((const void *)(from))

/* One vector of pixels: 1, 2 or 4 that are `step` columns apart. */
INSIDE __m512i load_pixels(const struct source *x, int64_t column, int64_t step,
                           int64_t parts)
{
    if (parts == 4)
        return _mm512_loadu_si512(pixel_at(x, column));
    if (parts == 2)
        return _mm512_inserti64x4(
            _mm512_castsi256_si512(LOAD(256_loadu_si256, pixel_at(x, column))),
            LOAD(256_loadu_si256, pixel_at(x, column + step)), 1);
    __m512i all = _mm512_castsi128_si512(LOAD(_loadu_si128, pixel_at(x, column)));
    all = _mm512_inserti32x4(all, LOAD(_loadu_si128, pixel_at(x, column + step)), 1);
    all = _mm512_inserti32x4(all, LOAD(_loadu_si128, pixel_at(x, column + 2 * step)), 2);
    return _mm512_inserti32x4(all, LOAD(_loadu_si128, pixel_at(x, column + 3 * step)), 3);
}

/* Four columns of bytes to four vectors of words. */
INSIDE void weave(__m512i *to, const __m512i x[DEPTHWISE_TAPS])
{
    const __m512i low = _mm512_unpacklo_epi8(x[0], x[1]);
    const __m512i high = _mm512_unpackhi_epi8(x[0], x[1]);
    const __m512i low2 = _mm512_unpacklo_epi8(x[2], x[3]);
    const __m512i high2 = _mm512_unpackhi_epi8(x[2], x[3]);
    _mm512_storeu_si512(to, _mm512_unpacklo_epi16(low, low2));
    _mm512_storeu_si512(to + 1, _mm512_unpackhi_epi16(low, low2));
    _mm512_storeu_si512(to + 2, _mm512_unpacklo_epi16(high, high2));
    _mm512_storeu_si512(to + 3, _mm512_unpackhi_epi16(high, high2));
}

/* One vector's words of a row. */
INSIDE void make_words(__m512i *to, const struct source *x, int64_t column, int64_t step,
                       __m512i flip, struct shape k)
{
    for (int64_t q = 0; q < k.words; q++, to += VNNI_VECTORS) {
        __m512i tap[DEPTHWISE_TAPS];
#pragma GCC unroll 4
        for (int t = 0; t < DEPTHWISE_TAPS; t++, column++)
            tap[t] = _mm512_xor_si512(load_pixels(x, column, step, k.parts), flip);
        weave(to, tap);
    }
}

/* A row, which is one of the image's or pads. */
INSIDE void make_row(const struct columns *c, struct shape k, int64_t row)
{
    const struct depthwise_strip *s = c->s;
    const struct window *w = &s->d->w;
    const int64_t i = row - w->begin[1], pixels = DEPTHWISE_PARTS / k.parts;
    const int64_t step = k.both == 2 ? 2 : w->stride[2], begin = w->begin[2];
    const struct source x = {i < 0 || i >= w->in[1]
                                 ? NULL
                                 : s->x + i * c->width * c->channels + s->block.first,
                             s->pads, c->channels, c->width};
    const __m512i flip = _mm512_set1_epi8((char)s->d->flip);
    __m512i *to = c->memory + row % k.rows * c->vectors * k.words * VNNI_VECTORS;
    for (int64_t at = 0; at < c->vectors; at++, to += k.words * VNNI_VECTORS)
        make_words(to, &x, (c->first + at * pixels) * step - begin, step, flip, k);
}

/* ---- outputs ----------------------------------------------------------------------- */

/* Where a vector's pixels go: output columns `step` apart from `column` on, of which `n`
 * are there. */
struct target {
    int64_t at, step, n; /* elements */
};

INSIDE void store_bytes(struct target t, uint64_t keep, void *to, int64_t parts,
                        __m512i bytes)
{
    uint8_t *out = (uint8_t *)to + t.at;
    if (parts == 4) {
        _mm512_mask_storeu_epi8(out, keep, bytes);
        return;
    }
    if (parts == 2) {
        _mm256_mask_storeu_epi8(out, (__mmask32)keep, _mm512_castsi512_si256(bytes));
        if (t.n > 1)
            _mm256_mask_storeu_epi8(out + t.step, (__mmask32)keep,
                                    _mm512_extracti64x4_epi64(bytes, 1));
        return;
    }
    _mm_mask_storeu_epi8(out, (__mmask16)keep, _mm512_castsi512_si128(bytes));
#define EXTRACT(i)                                                                       \
    if (t.n > (i))                                                                       \
    _mm_mask_storeu_epi8(out + (i)*t.step, (__mmask16)keep,                              \
                         _mm512_extracti32x4_epi32(bytes, i))
    EXTRACT(1);
    EXTRACT(2);
    EXTRACT(3);
#undef EXTRACT
}

/* Lane by lane, floats or what the definition makes of sums. */
TARGET static void store_each(const struct depthwise_strip *s, struct target t,
                              int64_t parts, const float *y)
{
    const strata_quantized_convolution *p = s->end->params;
    const strata_tensor out = {.data = s->out};
    for (int64_t i = 0; i < VNNI_VECTORS * VNNI_LANES; i++) {
        const int64_t part = i / 4 % DEPTHWISE_PARTS, pixel = part / parts;
        const int64_t channel =
            part % parts * DEPTHWISE_PART + i / VNNI_LANES * 4 + i % 4;
        if (pixel >= t.n || !(s->block.keep >> channel & 1))
            continue;
        const int64_t at = t.at + pixel * t.step + channel;
        if (s->end->multiplies)
            ((float *)s->out)[at] = y[i];
        else
            quantized_store(&p->quantized, &out, at,
                            quantized_activate(&p->quantized, y[i]), s->end->out.scale);
    }
}

/* Floats, bounds, scales of any kind. */
TARGET static void finish_rest(const struct depthwise_strip *s, struct target t,
                               int64_t parts, const __m512 *y)
{
    const struct vnni_end *e = s->end;
    __m512 v[VNNI_VECTORS];
    __m512i whole[VNNI_VECTORS];
    for (int k = 0; k < VNNI_VECTORS; k++) {
        v[k] = e->multiplies && e->has_slope ? sloped(e, y[k]) : y[k];
        if (e->multiplies && e->to_bytes)
            whole[k] = steps(v[k], e->out, 0);
        else if (e->multiplies)
            v[k] = bounded(e, v[k]);
    }
    if (e->multiplies && e->to_bytes)
        store_bytes(t, s->block.keep, s->out, parts, packed(e, whole));
    else
        store_each(s, t, parts, (const float *)v);
}

INSIDE void finish(const struct columns *c, const struct vnni_end *e, struct target t,
                   struct shape k, const __m512i *sum)
{
    const struct depthwise_strip *s = c->s;
    const struct vnni_lanes *l = &s->d->lanes;
    const int64_t lane = s->index * VNNI_VECTORS * VNNI_LANES;
    __m512 y[VNNI_VECTORS];
    __m512i whole[VNNI_VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VNNI_VECTORS; v++)
        y[v] = scaled(sum[v], _mm512_loadu_ps(l->factor + lane + v * VNNI_LANES),
                      _mm512_loadu_ps(l->bias + lane + v * VNNI_LANES));
    if (!e->packs || !l->is_short) {
        finish_rest(s, t, k.parts, y);
        return;
    }
#pragma GCC unroll 4
    for (int v = 0; v < VNNI_VECTORS; v++)
        whole[v] = _mm512_cvtps_epi32(quotient(y[v], e->out, 1));
    store_bytes(t, s->block.keep, s->out, k.parts, packed(e, whole));
}

/* The sums of a vector of words: `both` outputs beside each other. */
INSIDE void sum_vector(__m512i sum[2][VNNI_VECTORS], struct shape k,
                       const __m512i *const *rows, int64_t at, const int8_t *w,
                       const int32_t *correction)
{
    enum { BYTES = VNNI_VECTORS * VNNI_LANES * DEPTHWISE_TAPS, VECTOR = 64 };
#pragma GCC unroll 4
    for (int v = 0; v < VNNI_VECTORS; v++)
        sum[0][v] = sum[1][v] = _mm512_loadu_si512(correction + v * VNNI_LANES);
#pragma GCC unroll 3
    for (int64_t i = 0; i < k.rows; i++) {
        const __m512i *x = rows[i] + at * k.words * VNNI_VECTORS;
        for (int64_t q = 0; q < k.words; q++, x += VNNI_VECTORS, w += k.both * BYTES)
#pragma GCC unroll 4
            for (int v = 0; v < VNNI_VECTORS; v++) {
                const __m512i word = x[v];
                sum[0][v] = _mm512_dpbusd_epi32(sum[0][v], word,
                                                _mm512_loadu_si512(w + v * VECTOR));
                if (k.both == 2)
                    sum[1][v] = _mm512_dpbusd_epi32(
                        sum[1][v], word, _mm512_loadu_si512(w + BYTES + v * VECTOR));
            }
    }
}

INSIDE void run_row(const struct columns *c, struct shape k, int64_t row)
{
    const struct depthwise_strip *s = c->s;
    const struct vnni_end e = *s->end;
    const int64_t pixels = DEPTHWISE_PARTS / k.parts, lanes = VNNI_VECTORS * VNNI_LANES;
    const int8_t *w =
        s->d->weights + s->index * k.rows * k.words * k.both * lanes * DEPTHWISE_TAPS;
    const int32_t *correction = s->d->lanes.correction + s->index * lanes;
    const int64_t first = row * s->d->w.stride[1];
    const __m512i *rows[DEPTHWISE_ROWS];
#pragma GCC unroll 3
    for (int64_t i = 0; i < k.rows; i++)
        rows[i] = c->memory + (first + i) % k.rows * c->vectors * k.words * VNNI_VECTORS;
    int64_t column = c->first * k.both;
    for (int64_t at = 0; at < c->vectors; at++, column += pixels * k.both) {
        __m512i sum[2][VNNI_VECTORS];
        struct target t = {(row * c->out_width + column) * c->channels + s->block.first,
                           k.both * c->channels, 0};
        sum_vector(sum, k, rows, at, w, correction);
#pragma GCC unroll 2
        for (int o = 0; o < k.both; o++, t.at += c->channels) {
            t.n = (c->out_width - column - o + k.both - 1) / k.both;
            if (t.n > 0)
                finish(c, &e, t, k, sum[o]);
        }
    }
}

INSIDE void run_columns(const struct columns *c, struct shape k)
{
    const int64_t stride = c->s->d->w.stride[1];
    int64_t made = c->s->begin * stride;
    for (int64_t row = c->s->begin; row < c->s->end_row; row++) {
        const int64_t first = row * stride;
        for (made = window_max(made, first); made < first + k.rows; made++)
            make_row(c, k, made);
        run_row(c, k, row);
    }
}

INSIDE void run_shape(const struct depthwise_strip *s, struct shape k)
{
    __m512i memory[DEPTHWISE_MEMORY];
    const int64_t pixels = DEPTHWISE_PARTS / k.parts;
    const int64_t words = (s->d->w.out[2] + k.both - 1) / k.both;
    const int64_t all = (words + pixels - 1) / pixels;
    const int64_t most = DEPTHWISE_MEMORY / (k.rows * k.words * VNNI_VECTORS);
    const int64_t strips = (all + most - 1) / most, each = (all + strips - 1) / strips;
    for (int64_t at = 0; at < all; at += each) {
        const struct columns c = {.s = s,
                                  .first = at * pixels,
                                  .vectors = window_min(each, all - at),
                                  .memory = memory,
                                  .channels = s->d->channels,
                                  .width = s->d->w.in[2],
                                  .out_width = s->d->w.out[2]};
        run_columns(&c, k);
    }
}

/* The usual sizes as constants. */
INSIDE void run_parts(const struct depthwise_strip *s, int64_t parts)
{
    const int64_t rows = s->d->w.kernel[1], words = s->d->words;
    if (rows == 3 && words == 1 && s->d->both == 2)
        run_shape(s, (struct shape){parts, 2, 3, 1});
    else if (rows == 3 && words == 1)
        run_shape(s, (struct shape){parts, 1, 3, 1});
    else if (s->d->both == 2)
        run_shape(s, (struct shape){parts, 2, rows, words});
    else
        run_shape(s, (struct shape){parts, 1, rows, words});
}

TARGET static void run_4(const struct depthwise_strip *s)
{
    run_parts(s, 4);
}

TARGET static void run_2(const struct depthwise_strip *s)
{
    run_parts(s, 2);
}

TARGET static void run_1(const struct depthwise_strip *s)
{
    run_parts(s, 1);
}

void depthwise_run_strip(const struct depthwise_strip *s)
{
    if (s->block.parts == 4)
        run_4(s);
    else if (s->block.parts == 2)
        run_2(s);
    else
        run_1(s);
}
#endif
