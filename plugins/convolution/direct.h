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

/* Columns of one remainder, for all rows: zeros, [lo, hi) of the input, zeros. */
static inline void convolution_pad_rest(const struct window *w, float *dst,
                                        const float *in, int64_t rest)
{
    struct convolution_plane p = convolution_plane(w);
    int64_t stride = w->stride[2], begin = w->begin[2] - rest;
    int64_t lo = begin > 0 ? (begin + stride - 1) / stride : 0;
    int64_t hi = w->in[2] + begin > 0 ? (w->in[2] + begin + stride - 1) / stride : 0;
    hi = window_min(hi, p.length);
    for (int64_t d = 0; d < p.depth; d++)
        for (int64_t h = 0; h < p.height; h++, dst += p.pitch) {
            int64_t in_d = d - w->begin[0], in_h = h - w->begin[1];
            int inside = in_d >= 0 && in_d < w->in[0] && in_h >= 0 && in_h < w->in[1];
            int64_t first = inside && lo < hi ? lo : p.length;
            int64_t last = inside && lo < hi ? hi : p.length;
            for (int64_t i = 0; i < first; i++)
                dst[i] = 0;
            if (first < last)
                convolution_copy(dst + lo,
                                 in + (in_d * w->in[1] + in_h) * w->in[2] + lo * stride -
                                     begin,
                                 stride, hi - lo);
            for (int64_t i = last; i < p.length; i++)
                dst[i] = 0;
        }
}

static inline void convolution_pad(const struct window *w, float *dst, const float *in)
{
    struct convolution_plane p = convolution_plane(w);
    for (int64_t rest = 0; rest < w->stride[2]; rest++)
        convolution_pad_rest(w, dst + rest * p.length, in, rest);
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
    t->n = window_min(window_kernel_count(w) - first, CONVOLUTION_TAPS);
    for (int64_t i = 0; i < t->n; i++) {
        int64_t k = first + i, column = k % w->kernel[2] * w->dilation[2];
        int64_t h = k / w->kernel[2] % w->kernel[1] * w->dilation[1];
        int64_t d = k / w->kernel[2] / w->kernel[1] * w->dilation[0];
        t->weight[i] = weight[k];
        t->offset[i] = (d * p.height + h) * p.pitch +
                       column % w->stride[2] * p.length + column / w->stride[2];
    }
}

/* `vectors` times 8 sums from x; vectors is a constant, so that they are registers. */
__attribute__((always_inline)) static inline void
convolution_block(float *restrict y, const float *restrict x,
                  const struct convolution_taps *restrict t, int accumulate, int vectors)
{
    convolution_vector sum[4] = {{0}}, v;
    if (accumulate)
#pragma GCC unroll 4
        for (int i = 0; i < vectors; i++)
            memcpy(&sum[i], y + CONVOLUTION_LANES * i, sizeof v);
    for (int64_t k = 0; k < t->n; k++) {
        const float *from = x + t->offset[k];
        float weight = t->weight[k];
#pragma GCC unroll 4
        for (int i = 0; i < vectors; i++) {
            memcpy(&v, from + CONVOLUTION_LANES * i, sizeof v);
            sum[i] += weight * v;
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i++)
        memcpy(y + CONVOLUTION_LANES * i, &sum[i], sizeof v);
}

/* y[i] (+)= sum over taps of weight*x[offset + i]; the copy's slack lets the last block
 * read whole vectors. */
__attribute__((always_inline)) static inline void
convolution_row_body(float *y, const float *x, const struct convolution_taps *t,
                     int64_t n, int accumulate)
{
    float rest[CONVOLUTION_LANES] = {0};
    int64_t i = 0;
    for (; i + 4 * CONVOLUTION_LANES <= n; i += 4 * CONVOLUTION_LANES)
        convolution_block(y + i, x + i, t, accumulate, 4);
    for (; i + 2 * CONVOLUTION_LANES <= n; i += 2 * CONVOLUTION_LANES)
        convolution_block(y + i, x + i, t, accumulate, 2);
    for (; i + CONVOLUTION_LANES <= n; i += CONVOLUTION_LANES)
        convolution_block(y + i, x + i, t, accumulate, 1);
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

/* Task = image*filters + filter; scratch holds a padded copy. */
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
