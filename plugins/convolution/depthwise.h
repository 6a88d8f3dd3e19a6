/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution of 2-D images in blocks of 8 or 16 channels: a vector holds the
 * channels of a pixel, or of two neighbours where blocks are of 8 and the stride is 1.
 * Four vectors of outputs are summed at a time, so that weights are loaded once for all
 * and inputs once for the taps that share them. Anything between a leaky ReLU and a clip
 * is applied before they are stored, other activations band by band.
 */
#ifndef PLUGINS_CONVOLUTION_DEPTHWISE_H
#define PLUGINS_CONVOLUTION_DEPTHWISE_H

#include <stdbool.h>

#include "plugins/common/activate.h"
#include "plugins/common/element.h"
#include "plugins/common/window.h"

#define DEPTHWISE_WIDTH 16 /* floats of a packed weight: 8 channels are there twice */
#define DEPTHWISE_INLINE static inline __attribute__((always_inline))

struct depthwise {
    struct window w;
    int64_t lanes;  /* channels of a block */
    int64_t blocks; /* of an image */
    const float *weights; /* [blocks][kernel height][kernel width][DEPTHWISE_WIDTH] */
    const float *bias;    /* [blocks][DEPTHWISE_WIDTH] */
};

/* y = min(max(x < 0 ? slope*x : x, low), high); a slope of 1 costs nothing. */
struct depthwise_tail {
    const float *bias;
    float slope, low, high;
};

typedef float depthwise_8 __attribute__((vector_size(32)));
typedef float depthwise_16 __attribute__((vector_size(64)));
typedef int32_t depthwise_8_mask __attribute__((vector_size(32)));
typedef int32_t depthwise_16_mask __attribute__((vector_size(64)));

/* The tail of a sum, and where it goes; NaN stays. */
#define DEPTHWISE_PICK(type, v, mask, a)                                                 \
    v = (type)(((mask) & (type##_mask)(a)) | (~(mask) & (type##_mask)(v)))
#define DEPTHWISE_STORE(type)                                                            \
    DEPTHWISE_INLINE void type##_store(float *y, const type *sum, bool leaky,            \
                                       const struct depthwise_tail *t)                   \
    {                                                                                    \
        type v = *sum, low = t->low - (type){0}, high = t->high - (type){0};             \
        if (leaky)                                                                       \
            DEPTHWISE_PICK(type, v, v < 0, v *t->slope);                                 \
        DEPTHWISE_PICK(type, v, v < low, low);                                           \
        DEPTHWISE_PICK(type, v, v > high, high);                                         \
        memcpy(y, &v, sizeof v);                                                         \
    }

DEPTHWISE_STORE(depthwise_8)
DEPTHWISE_STORE(depthwise_16)

/* One tap on four vectors of inputs, `step` floats apart. */
#define DEPTHWISE_TAP(k)                                     \
    do {                                                     \
        const float *p = x + (k) * pixel;                    \
        memcpy(&weight, w + (k) * DEPTHWISE_WIDTH, sizeof weight); \
        memcpy(&v, p, sizeof v);                             \
        a += v * weight;                                     \
        memcpy(&v, p + step, sizeof v);                      \
        b += v * weight;                                     \
        memcpy(&v, p + 2 * step, sizeof v);                  \
        c += v * weight;                                     \
        memcpy(&v, p + 3 * step, sizeof v);                  \
        d += v * weight;                                     \
    } while (0)

/* Four vectors of outputs. x: the first one's first tap; rows: of the kernel. A constant
 * `width` of up to 5 leaves no branches. */
#define DEPTHWISE_FOUR(type)                                                             \
    DEPTHWISE_INLINE void type##_four(float *y, const float *x, const float *w,          \
                                      int64_t rows, int64_t width, int64_t pitch,        \
                                      int64_t pixel, int64_t step, bool leaky,           \
                                      const struct depthwise_tail *t)                    \
    {                                                                                    \
        type a, b, c, d, v, weight;                                                      \
        memcpy(&a, t->bias, sizeof a);                                                   \
        b = c = d = a;                                                                   \
        for (; rows > 0; rows--, x += pitch, w += width * DEPTHWISE_WIDTH) {             \
            DEPTHWISE_TAP(0);                                                            \
            if (width > 1)                                                               \
                DEPTHWISE_TAP(1);                                                        \
            if (width > 2)                                                               \
                DEPTHWISE_TAP(2);                                                        \
            if (width > 3)                                                               \
                DEPTHWISE_TAP(3);                                                        \
            if (width > 4)                                                               \
                DEPTHWISE_TAP(4);                                                        \
            for (int64_t k = 5; k < width; k++)                                          \
                DEPTHWISE_TAP(k);                                                        \
        }                                                                                \
        type##_store(y, &a, leaky, t);                                                   \
        type##_store(y + sizeof a / sizeof *y, &b, leaky, t);                            \
        type##_store(y + 2 * (sizeof a / sizeof *y), &c, leaky, t);                      \
        type##_store(y + 3 * (sizeof a / sizeof *y), &d, leaky, t);                      \
    }

DEPTHWISE_FOUR(depthwise_8)
DEPTHWISE_FOUR(depthwise_16)

/* One output: taps from..to of `width` lie inside. */
#define DEPTHWISE_ONE(type)                                                              \
    DEPTHWISE_INLINE void type##_one(float *y, const float *x, const float *w,           \
                                     int64_t rows, int64_t width, int64_t pitch,         \
                                     int64_t from, int64_t to, bool leaky,               \
                                     const struct depthwise_tail *t)                     \
    {                                                                                    \
        type a, v, weight;                                                               \
        memcpy(&a, t->bias, sizeof a);                                                   \
        for (; rows > 0; rows--, x += pitch, w += width * DEPTHWISE_WIDTH)               \
            for (int64_t k = from; k < to; k++) {                                        \
                memcpy(&weight, w + k * DEPTHWISE_WIDTH, sizeof weight);                 \
                memcpy(&v, x + k * (int64_t)(sizeof v / sizeof *x), sizeof v);           \
                a += v * weight;                                                         \
            }                                                                            \
        type##_store(y, &a, leaky, t);                                                   \
    }

DEPTHWISE_ONE(depthwise_8)
DEPTHWISE_ONE(depthwise_16)

/* A row of outputs of a block. x: the block's plane. */
DEPTHWISE_INLINE void depthwise_row(const struct depthwise *d,
                                    const struct depthwise_tail *t, float *y,
                                    const float *x, const float *w, int64_t row,
                                    int64_t lanes, int64_t width, int64_t stride,
                                    bool leaky)
{
    const struct window *o = &d->w;
    int64_t top = row * o->stride[1] - o->begin[1], pitch = o->in[2] * lanes;
    int64_t first = top < 0 ? window_min(-top, o->kernel[1]) : 0;
    int64_t rows = window_min(o->kernel[1], o->in[1] - top) - first;
    int64_t low = window_min((o->begin[2] + stride - 1) / stride, o->out[2]);
    int64_t space = o->in[2] + o->begin[2] - width, i = 0;
    int64_t high = space < 0 ? low : window_min(space / stride + 1, o->out[2]);
    int64_t pair = lanes == 8 && stride == 1 ? 2 : 1; /* pixels of a vector */
    x += (top + first) * pitch;
    w += first * width * DEPTHWISE_WIDTH;
    while (i < o->out[2]) {
        int64_t at = i * stride - o->begin[2];
        int64_t from = at < 0 ? window_min(-at, width) : 0;
        int64_t to = window_min(width, o->in[2] - at);
        const float *from_x = x + at * lanes;
        float *to_y = y + i * lanes;
        bool four = i >= low && i + 4 * pair <= high;
        i += four ? 4 * pair : 1;
        if (four && lanes * pair == 16)
            depthwise_16_four(to_y, from_x, w, rows, width, pitch, lanes, 16 * stride,
                              leaky, t);
        else if (four)
            depthwise_8_four(to_y, from_x, w, rows, width, pitch, lanes, 8 * stride,
                             leaky, t);
        else if (lanes == 16)
            depthwise_16_one(to_y, from_x, w, rows, width, pitch, from, to, leaky, t);
        else
            depthwise_8_one(to_y, from_x, w, rows, width, pitch, from, to, leaky, t);
    }
}

/* Output rows of a block; y and x: its planes, w: its weights. */
struct depthwise_band {
    const struct depthwise *d;
    struct depthwise_tail tail;
    float *y;
    const float *x, *w;
    int64_t from, to;
};

DEPTHWISE_INLINE void depthwise_each(const struct depthwise_band *b, int64_t lanes,
                                     int64_t width, int64_t stride)
{
    const int64_t pitch = b->d->w.out[2] * lanes;
    if (b->tail.slope == 1)
        for (int64_t row = b->from; row < b->to; row++)
            depthwise_row(b->d, &b->tail, b->y + row * pitch, b->x, b->w, row, lanes,
                          width, stride, false);
    else
        for (int64_t row = b->from; row < b->to; row++)
            depthwise_row(b->d, &b->tail, b->y + row * pitch, b->x, b->w, row, lanes,
                          width, stride, true);
}

/* The usual sizes as constants. */
DEPTHWISE_INLINE void depthwise_sized(const struct depthwise_band *b, int64_t lanes)
{
    int64_t width = b->d->w.kernel[2], stride = b->d->w.stride[2];
    if (width == 3 && stride == 1)
        depthwise_each(b, lanes, 3, 1);
    else if (width == 3 && stride == 2)
        depthwise_each(b, lanes, 3, 2);
    else if (width == 5 && stride == 1)
        depthwise_each(b, lanes, 5, 1);
    else
        depthwise_each(b, lanes, width, stride);
}

DEPTHWISE_INLINE void depthwise_any(const struct depthwise_band *b)
{
    if (b->d->lanes == 16)
        depthwise_sized(b, 16);
    else
        depthwise_sized(b, 8);
}

typedef void depthwise_kernel(const struct depthwise_band *b);

static void depthwise_plain(const struct depthwise_band *b)
{
    depthwise_any(b);
}

#ifdef ELEMENT_X86
__attribute__((target("avx2,fma"))) static void
depthwise_avx2(const struct depthwise_band *b)
{
    depthwise_any(b);
}

__attribute__((target("avx512f"))) static void
depthwise_avx512(const struct depthwise_band *b)
{
    depthwise_any(b);
}
#endif

static inline depthwise_kernel *depthwise_choose(void)
{
#ifdef ELEMENT_X86
    return __builtin_cpu_supports("avx512f") ? depthwise_avx512
           : element_has_f16c()              ? depthwise_avx2
                                             : depthwise_plain;
#else
    return depthwise_plain;
#endif
}

/* Floats of packed weights and biases; 0: too many. */
static inline size_t depthwise_packed(const struct depthwise *d)
{
    size_t taps, width = DEPTHWISE_WIDTH, count;
    if (__builtin_mul_overflow((size_t)d->w.kernel[1], (size_t)d->w.kernel[2], &taps) ||
        __builtin_add_overflow(taps, 1, &taps) ||
        __builtin_mul_overflow(taps, width, &taps) ||
        __builtin_mul_overflow(taps, (size_t)d->blocks, &count) ||
        count > SIZE_MAX / sizeof(float))
        return 0;
    return count;
}

/* bias may be NULL. */
static inline void depthwise_pack(struct depthwise *d, float *to, const float *weight,
                                  const float *bias, int64_t channels)
{
    int64_t taps = d->w.kernel[1] * d->w.kernel[2], lanes = d->lanes;
    float *biases = to + d->blocks * taps * DEPTHWISE_WIDTH;
    for (int64_t b = 0; b < d->blocks; b++)
        for (int64_t k = 0; k < taps; k++)
            for (int64_t l = 0; l < DEPTHWISE_WIDTH; l++) {
                int64_t c = b * lanes + l % lanes;
                to[(b * taps + k) * DEPTHWISE_WIDTH + l] =
                    c < channels ? weight[c * taps + k] : 0;
            }
    for (int64_t i = 0; i < d->blocks * DEPTHWISE_WIDTH; i++) {
        int64_t c = i / DEPTHWISE_WIDTH * lanes + i % DEPTHWISE_WIDTH % lanes;
        biases[i] = bias && c < channels ? bias[c] : 0;
    }
    d->weights = to;
    d->bias = biases;
}

#define DEPTHWISE_BAND 4096 /* floats of outputs done at once: they stay near */

/* What of an activation goes before the store; false: it comes after. */
static inline bool depthwise_tail(struct depthwise_tail *t, const strata_epilogue *e)
{
    *t = (struct depthwise_tail){.slope = 1, .low = -INFINITY, .high = INFINITY};
    if (!(e->flags & STRATA_EPILOGUE_ACTIVATION))
        return true;
    switch (e->activation) {
    case STRATA_RELU: t->low = 0; return true;
    case STRATA_RELU6: t->low = 0; t->high = 6; return true;
    case STRATA_LEAKY_RELU: t->slope = (float)e->alpha; return true;
    case STRATA_CLIP: t->low = (float)e->alpha; t->high = (float)e->beta; return true;
    default: return false;
    }
}

/* All images; e: an activation, or nothing. */
static inline void depthwise_compute(const struct depthwise *d, float *y, const float *x,
                                     int64_t images, const strata_epilogue *e)
{
    const struct window *w = &d->w;
    int64_t taps = w->kernel[1] * w->kernel[2], rows = w->out[1];
    int64_t out = w->out[2] * d->lanes, in = w->in[1] * w->in[2] * d->lanes;
    int64_t step = window_max(1, DEPTHWISE_BAND / out), bands = (rows + step - 1) / step;
    int64_t items = images * d->blocks * bands;
    depthwise_kernel *run = depthwise_choose();
    struct depthwise_tail tail;
    const bool done = depthwise_tail(&tail, e);
#pragma omp parallel for schedule(static) if (items * step * out * taps >= 1 << 15)
    for (int64_t i = 0; i < items; i++) {
        int64_t plane = i / bands, block = plane % d->blocks, from = i % bands * step;
        struct depthwise_band b = {.d = d,
                                   .tail = tail,
                                   .y = y + plane * rows * out,
                                   .x = x + plane * in,
                                   .w = d->weights + block * taps * DEPTHWISE_WIDTH,
                                   .from = from,
                                   .to = window_min(from + step, rows)};
        b.tail.bias = d->bias + block * DEPTHWISE_WIDTH;
        run(&b);
        if (!done)
            activate_row(e->activation, e->alpha, e->beta, b.y + from * out,
                         (b.to - from) * out);
    }
}

#endif /* PLUGINS_CONVOLUTION_DEPTHWISE_H */
