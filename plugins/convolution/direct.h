/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution without gathering: output rows of one filter as weighted sums of input
 * rows, for few filters per group (depthwise), where columns would be used too rarely.
 * A channel is first copied with its pads, columns sorted by their remainder modulo the
 * stride, so that every load of the sums is contiguous and inside.
 */
#ifndef PLUGINS_CONVOLUTION_DIRECT_H
#define PLUGINS_CONVOLUTION_DIRECT_H

#include "plugins/convolution/job.h"

#define CONVOLUTION_TAPS 64 /* weights applied in one pass over the rows */
#define CONVOLUTION_LANES 8
#define CONVOLUTION_VECTORS 8 /* of sums at once */

#define CONVOLUTION_INLINE __attribute__((always_inline)) static inline

typedef float convolution_vector
    __attribute__((vector_size(CONVOLUTION_LANES * sizeof(float))));

/* One output takes no stride, by which the copy is padded. */
static inline void convolution_drop_strides(struct window *w)
{
    for (int d = 0; d < WINDOW_DIMS; d++)
        w->stride[d] = w->out[d] == 1 ? 1 : w->stride[d];
}

/* The padded copy: [depth][height][stride][length] floats and a vector of slack. */
struct convolution_plane {
    int64_t depth, height, length; /* length: columns of one remainder */
    int64_t pitch;                 /* of a row */
};

static inline struct convolution_plane convolution_plane(const struct window *w)
{
    struct convolution_plane p;
    int64_t stride = w->stride[2];
    p.depth = (w->out[0] - 1) * w->stride[0] + window_extent(w, 0);
    p.height = (w->out[1] - 1) * w->stride[1] + window_extent(w, 1);
    p.length = ((w->out[2] - 1) * stride + window_extent(w, 2) + stride - 1) / stride;
    p.pitch = p.length * stride;
    return p;
}

/* Bytes of a padded copy, in whole cache lines; 0 on overflow. */
static inline size_t convolution_plane_size(const struct window *w)
{
    struct convolution_plane p = convolution_plane(w);
    size_t size = sizeof(float);
    if (__builtin_mul_overflow(size, (size_t)p.depth, &size) ||
        __builtin_mul_overflow(size, (size_t)p.height, &size) ||
        __builtin_mul_overflow(size, (size_t)p.pitch, &size) ||
        __builtin_add_overflow(size, CONVOLUTION_LANES * sizeof(float) + 63, &size))
        return 0;
    return size & ~(size_t)63;
}

/* As convolution_copy, in whole vectors where it is of neighbours. */
CONVOLUTION_INLINE void convolution_copy_row(float *dst, const float *src, int64_t stride,
                                             int64_t n)
{
    convolution_vector v;
    if (stride != 1 || n < CONVOLUTION_LANES) {
        convolution_copy(dst, src, stride, n);
        return;
    }
    for (int64_t i = 0; i < n; i += CONVOLUTION_LANES) {
        const int64_t at = window_min(i, n - CONVOLUTION_LANES);
        memcpy(&v, src + at, sizeof v);
        memcpy(dst + at, &v, sizeof v);
    }
}

/* Columns of one remainder, of all rows that are inside; the rest of the copy is zero. */
CONVOLUTION_INLINE void convolution_pad_rest(const struct window *w, float *dst,
                                             const float *in, int64_t rest)
{
    struct convolution_plane p = convolution_plane(w);
    int64_t stride = w->stride[2], begin = w->begin[2] - rest;
    int64_t lo = begin > 0 ? (begin + stride - 1) / stride : 0;
    int64_t hi = w->in[2] + begin > 0 ? (w->in[2] + begin + stride - 1) / stride : 0;
    int64_t top = window_max(w->begin[1], 0);
    int64_t bottom = window_min(w->in[1] + w->begin[1], p.height);
    hi = window_min(hi, p.length);
    for (int64_t d = 0; d < p.depth && lo < hi; d++) {
        int64_t in_d = d - w->begin[0];
        if (in_d < 0 || in_d >= w->in[0])
            continue;
        for (int64_t h = top; h < bottom; h++)
            convolution_copy_row(dst + (d * p.height + h) * p.pitch + lo,
                                 in + (in_d * w->in[1] + h - w->begin[1]) * w->in[2] +
                                     lo * stride - begin,
                                 stride, hi - lo);
    }
}

/* dst was zeroed once for all planes. */
CONVOLUTION_INLINE void convolution_pad_body(const struct window *w, float *dst,
                                             const float *in)
{
    struct convolution_plane p = convolution_plane(w);
    for (int64_t rest = 0; rest < w->stride[2]; rest++)
        convolution_pad_rest(w, dst + rest * p.length, in, rest);
}

#ifdef ELEMENT_X86
__attribute__((target("avx2,fma"))) static void
convolution_pad_avx2(const struct window *w, float *dst, const float *in)
{
    convolution_pad_body(w, dst, in);
}
#endif

static void convolution_pad(const struct window *w, float *dst, const float *in)
{
#ifdef ELEMENT_X86
    if (element_has_f16c()) {
        convolution_pad_avx2(w, dst, in);
        return;
    }
#endif
    convolution_pad_body(w, dst, in);
}

/* Weights, and where output 0 finds each one's input in the padded copy. */
struct convolution_taps {
    int64_t offset[CONVOLUTION_TAPS];
    float weight[CONVOLUTION_TAPS];
    int64_t n;
};

static inline void convolution_collect(struct convolution_taps *t, const struct window *w,
                                       const float *weight, int64_t first)
{
    struct convolution_plane p = convolution_plane(w);
    int64_t c = first % w->kernel[2], h = first / w->kernel[2] % w->kernel[1];
    int64_t d = first / w->kernel[2] / w->kernel[1];
    t->n = window_min(window_kernel_count(w) - first, CONVOLUTION_TAPS);
    for (int64_t i = 0; i < t->n; i++) {
        int64_t column = c * w->dilation[2];
        int64_t rest = w->stride[2] == 1 ? 0 : column % w->stride[2];
        t->weight[i] = weight[first + i];
        t->offset[i] =
            (d * w->dilation[0] * p.height + h * w->dilation[1]) * p.pitch +
            rest * p.length + (w->stride[2] == 1 ? column : column / w->stride[2]);
        c = c + 1 == w->kernel[2] ? 0 : c + 1;
        h = c > 0 ? h : h + 1 == w->kernel[1] ? 0 : h + 1;
        d += c == 0 && h == 0;
    }
}

/* `vectors` times 8 sums from x; vectors is a constant, so that they are registers. */
__attribute__((always_inline)) static inline void
convolution_block(float *restrict y, const float *restrict x,
                  const struct convolution_taps *restrict t, int accumulate, int vectors)
{
    convolution_vector sum[CONVOLUTION_VECTORS] = {{0}}, v;
    if (accumulate)
#pragma GCC unroll 8
        for (int i = 0; i < vectors; i++)
            memcpy(&sum[i], y + CONVOLUTION_LANES * i, sizeof v);
    for (int64_t k = 0; k < t->n; k++) {
        const float *from = x + t->offset[k];
        float weight = t->weight[k];
#pragma GCC unroll 8
        for (int i = 0; i < vectors; i++) {
            memcpy(&v, from + CONVOLUTION_LANES * i, sizeof v);
            sum[i] += weight * v;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < vectors; i++)
        memcpy(y + CONVOLUTION_LANES * i, &sum[i], sizeof v);
}

/* Fewer vectors than the most; together, so that sums wait for each other less. */
__attribute__((always_inline)) static inline void
convolution_some(float *y, const float *x, const struct convolution_taps *t,
                 int accumulate, int64_t vectors)
{
    switch (vectors) {
    case 1: convolution_block(y, x, t, accumulate, 1); break;
    case 2: convolution_block(y, x, t, accumulate, 2); break;
    case 3: convolution_block(y, x, t, accumulate, 3); break;
    case 4: convolution_block(y, x, t, accumulate, 4); break;
    case 5: convolution_block(y, x, t, accumulate, 5); break;
    case 6: convolution_block(y, x, t, accumulate, 6); break;
    case 7: convolution_block(y, x, t, accumulate, 7); break;
    default: break;
    }
}

/* y[i] (+)= sum over taps of weight*x[offset + i]; the copy's slack lets the last block
 * read whole vectors. */
__attribute__((always_inline)) static inline void
convolution_row_body(float *y, const float *x, const struct convolution_taps *t,
                     int64_t n, int accumulate)
{
    const int64_t most = CONVOLUTION_VECTORS * CONVOLUTION_LANES;
    float rest[CONVOLUTION_LANES] = {0};
    int64_t i = 0;
    for (; i + most <= n; i += most)
        convolution_block(y + i, x + i, t, accumulate, CONVOLUTION_VECTORS);
    convolution_some(y + i, x + i, t, accumulate, (n - i) / CONVOLUTION_LANES);
    i += (n - i) / CONVOLUTION_LANES * CONVOLUTION_LANES;
    if (i == n)
        return;
    memcpy(rest, y + i, (size_t)(n - i) * sizeof *y);
    convolution_block(rest, x + i, t, accumulate, 1);
    memcpy(y + i, rest, (size_t)(n - i) * sizeof *y);
}

/* All output rows from one padded channel. */
__attribute__((always_inline)) static inline void
convolution_rows_body(float *y, const float *x, const struct convolution_taps *t,
                      const struct window *w, int accumulate)
{
    struct convolution_plane p = convolution_plane(w);
    for (int64_t d = 0; d < w->out[0]; d++)
        for (int64_t h = 0; h < w->out[1]; h++, y += w->out[2])
            convolution_row_body(
                y, x + (d * w->stride[0] * p.height + h * w->stride[1]) * p.pitch, t,
                w->out[2], accumulate);
}

#ifdef ELEMENT_X86
__attribute__((target("avx2,fma"))) static void
convolution_rows_avx2(float *y, const float *x, const struct convolution_taps *t,
                      const struct window *w, int accumulate)
{
    convolution_rows_body(y, x, t, w, accumulate);
}
#endif

static void convolution_rows(float *y, const float *x, const struct convolution_taps *t,
                             const struct window *w, int accumulate)
{
#ifdef ELEMENT_X86
    if (element_has_f16c()) {
        convolution_rows_avx2(y, x, t, w, accumulate);
        return;
    }
#endif
    convolution_rows_body(y, x, t, w, accumulate);
}

/* Task = image*filters + filter; scratch holds a padded copy, whose pads are zero. */
static inline void convolution_direct(const struct convolution_job *job, int64_t task,
                                      float *scratch)
{
    const struct convolution *cv = job->cv;
    const struct window *w = &cv->w;
    int64_t filters = cv->groups * cv->out_c, filter = task % filters;
    int64_t image = task / filters, plane = window_out_count(w);
    int64_t channel = (image * cv->groups + filter / cv->out_c) * cv->in_c;
    int64_t kernel = window_kernel_count(w);
    const float *weight = job->weight + filter * cv->depth;
    for (int64_t c = 0; c < cv->in_c; c++, weight += kernel) {
        struct convolution_taps t;
        convolution_pad(w, scratch, job->in + (channel + c) * window_in_count(w));
        for (int64_t k = 0; k < kernel; k += CONVOLUTION_TAPS) {
            convolution_collect(&t, w, weight, k);
            convolution_rows(job->out + task * plane, scratch, &t, w, c > 0 || k > 0);
        }
    }
    convolution_tail(job, image, filter, 0, plane);
}

#endif /* PLUGINS_CONVOLUTION_DIRECT_H */
