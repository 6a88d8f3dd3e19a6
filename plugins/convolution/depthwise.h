/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution of 2-D images in blocks of 8 or 16 channels: a vector holds the
 * channels of a pixel, or of two neighbours where blocks are of 8 and the stride is 1.
 * Four vectors of outputs are summed at a time, so that weights are loaded once for all
 * and inputs once for the taps that share them. Bias and activation follow row by row.
 */
#ifndef PLUGINS_CONVOLUTION_DEPTHWISE_H
#define PLUGINS_CONVOLUTION_DEPTHWISE_H

#include "plugins/common/affine.h"
#include "plugins/common/window.h"

#define DEPTHWISE_WIDTH 16 /* floats of a packed weight: 8 channels are there twice */
#define DEPTHWISE_INLINE static inline __attribute__((always_inline))

struct depthwise {
    struct window w;
    int64_t lanes;  /* channels of a block */
    int64_t blocks; /* of an image */
    const float *weights; /* [blocks][kernel height][kernel width][DEPTHWISE_WIDTH] */
    const float *ones, *bias; /* [blocks][lanes] */
};

typedef float depthwise_8 __attribute__((vector_size(32)));
typedef float depthwise_16 __attribute__((vector_size(64)));

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
                                      int64_t pixel, int64_t step)                       \
    {                                                                                    \
        type a = {0}, b = {0}, c = {0}, d = {0}, v, weight;                              \
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
        memcpy(y, &a, sizeof a);                                                         \
        memcpy(y + sizeof a / sizeof *y, &b, sizeof b);                                  \
        memcpy(y + 2 * (sizeof a / sizeof *y), &c, sizeof c);                            \
        memcpy(y + 3 * (sizeof a / sizeof *y), &d, sizeof d);                            \
    }

DEPTHWISE_FOUR(depthwise_8)
DEPTHWISE_FOUR(depthwise_16)

/* One output: taps from..to of `width` lie inside. */
DEPTHWISE_INLINE void depthwise_pixel(float *y, const float *x, const float *w,
                                      int64_t rows, int64_t width, int64_t pitch,
                                      int64_t lanes, int64_t from, int64_t to)
{
    float sum[DEPTHWISE_WIDTH] = {0};
    for (; rows > 0; rows--, x += pitch, w += width * DEPTHWISE_WIDTH)
        for (int64_t k = from; k < to; k++)
#pragma omp simd
            for (int64_t l = 0; l < lanes; l++)
                sum[l] += x[k * lanes + l] * w[k * DEPTHWISE_WIDTH + l];
    memcpy(y, sum, (size_t)lanes * sizeof *y);
}

/* A row of outputs of a block, before bias and activation. x: the block's plane. */
DEPTHWISE_INLINE void depthwise_sums(const struct depthwise *d, float *y, const float *x,
                                     const float *w, int64_t row, int64_t lanes,
                                     int64_t width, int64_t stride)
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
        if (i >= low && i + 4 * pair <= high) {
            if (lanes * pair == 16)
                depthwise_16_four(y + i * lanes, x + at * lanes, w, rows, width, pitch,
                                  lanes, 16 * stride);
            else
                depthwise_8_four(y + i * lanes, x + at * lanes, w, rows, width, pitch,
                                 lanes, lanes * stride);
            i += 4 * pair;
            continue;
        }
        depthwise_pixel(y + i * lanes, x + at * lanes, w, rows, width, pitch, lanes,
                        at < 0 ? window_min(-at, width) : 0,
                        window_min(width, o->in[2] - at));
        i++;
    }
}

/* The usual sizes as constants. */
DEPTHWISE_INLINE void depthwise_sized(const struct depthwise *d, float *y, const float *x,
                                      const float *w, int64_t row, int64_t lanes)
{
    int64_t width = d->w.kernel[2], stride = d->w.stride[2];
    if (width == 3 && stride == 1)
        depthwise_sums(d, y, x, w, row, lanes, 3, 1);
    else if (width == 3 && stride == 2)
        depthwise_sums(d, y, x, w, row, lanes, 3, 2);
    else if (width == 5 && stride == 1)
        depthwise_sums(d, y, x, w, row, lanes, 5, 1);
    else
        depthwise_sums(d, y, x, w, row, lanes, width, stride);
}

DEPTHWISE_INLINE void depthwise_row_of(const struct depthwise *d, float *y,
                                       const float *x, const float *w, int64_t row)
{
    if (d->lanes == 16)
        depthwise_sized(d, y, x, w, row, 16);
    else
        depthwise_sized(d, y, x, w, row, 8);
}

typedef void depthwise_row(const struct depthwise *d, float *y, const float *x,
                           const float *w, int64_t row);

static void depthwise_plain(const struct depthwise *d, float *y, const float *x,
                            const float *w, int64_t row)
{
    depthwise_row_of(d, y, x, w, row);
}

#ifdef ELEMENT_X86
__attribute__((target("avx2,fma"))) static void
depthwise_avx2(const struct depthwise *d, float *y, const float *x, const float *w,
               int64_t row)
{
    depthwise_row_of(d, y, x, w, row);
}

__attribute__((target("avx512f"))) static void
depthwise_avx512(const struct depthwise *d, float *y, const float *x, const float *w,
                 int64_t row)
{
    depthwise_row_of(d, y, x, w, row);
}
#endif

static inline depthwise_row *depthwise_choose(void)
{
#ifdef ELEMENT_X86
    return __builtin_cpu_supports("avx512f") ? depthwise_avx512
           : element_has_f16c()              ? depthwise_avx2
                                             : depthwise_plain;
#else
    return depthwise_plain;
#endif
}

/* Floats of packed weights, ones and biases; 0: too many. */
static inline size_t depthwise_packed(const struct depthwise *d)
{
    size_t taps, width = DEPTHWISE_WIDTH, count;
    if (__builtin_mul_overflow((size_t)d->w.kernel[1], (size_t)d->w.kernel[2], &taps) ||
        __builtin_add_overflow(taps, 2, &taps) ||
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
    float *ones = to + d->blocks * taps * DEPTHWISE_WIDTH;
    float *biases = ones + d->blocks * lanes;
    for (int64_t b = 0; b < d->blocks; b++)
        for (int64_t k = 0; k < taps; k++)
            for (int64_t l = 0; l < DEPTHWISE_WIDTH; l++) {
                int64_t c = b * lanes + l % lanes;
                to[(b * taps + k) * DEPTHWISE_WIDTH + l] =
                    c < channels ? weight[c * taps + k] : 0;
            }
    for (int64_t c = 0; c < d->blocks * lanes; c++) {
        ones[c] = 1;
        biases[c] = bias && c < channels ? bias[c] : 0;
    }
    d->weights = to;
    d->ones = ones;
    d->bias = biases;
}

/* All rows of all images; e: an activation, or nothing. */
static inline void depthwise_compute(const struct depthwise *d, float *y, const float *x,
                                     int64_t images, const strata_epilogue *e)
{
    const struct window *w = &d->w;
    int64_t taps = w->kernel[1] * w->kernel[2], rows = images * d->blocks * w->out[1];
    int64_t in = w->in[1] * w->in[2] * d->lanes, out = w->out[2] * d->lanes;
    depthwise_row *row = depthwise_choose();
    affine_run *finish = affine_choose();
#pragma omp parallel for schedule(static) if (rows * out * taps >= 1 << 15)
    for (int64_t i = 0; i < rows; i++) {
        int64_t block = i / w->out[1] % d->blocks;
        struct affine f = {
            .factor = d->ones + block * d->lanes,
            .addend = d->bias + block * d->lanes,
            .lanes = d->lanes,
            .kind = e->flags & STRATA_EPILOGUE_ACTIVATION ? e->activation : -1,
            .alpha = e->alpha,
            .beta = e->beta};
        row(d, y + i * out, x + i / w->out[1] * in,
            d->weights + block * taps * DEPTHWISE_WIDTH, i % w->out[1]);
        finish(&f, y + i * out, y + i * out, out);
    }
}

#endif /* PLUGINS_CONVOLUTION_DEPTHWISE_H */
