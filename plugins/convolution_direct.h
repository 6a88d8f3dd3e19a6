/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution without gathering: output rows of one filter as weighted sums of input
 * rows. For few filters per group (depthwise), where columns would be used too rarely.
 */
#ifndef PLUGINS_CONVOLUTION_DIRECT_H
#define PLUGINS_CONVOLUTION_DIRECT_H

#include "plugins/convolution_job.h"

#define CONVOLUTION_TAPS 64 /* weights applied in one pass over a row */

typedef float convolution_vector __attribute__((vector_size(8 * sizeof(float))));

#define CONVOLUTION_STRIDED(p, s)                                                     \
    ((convolution_vector){(p)[0], (p)[s], (p)[2 * (s)], (p)[3 * (s)], (p)[4 * (s)],   \
                          (p)[5 * (s)], (p)[6 * (s)], (p)[7 * (s)]})

/* Weights over one output row, and where the row's first output finds each input. */
struct convolution_taps {
    const float *x[CONVOLUTION_TAPS];
    float weight[CONVOLUTION_TAPS];
    int n, flushed; /* flushed: y holds the sum of earlier taps */
};

__attribute__((always_inline)) static inline void
convolution_row_block(float *y, const struct convolution_taps *t, int64_t i,
                      int64_t stride, int accumulate)
{
    convolution_vector sum = {0}, x;
    if (accumulate)
        memcpy(&sum, y + i, sizeof sum);
    for (int k = 0; k < t->n; k++) {
        const float *from = t->x[k] + i * stride;
        if (stride == 1)
            memcpy(&x, from, sizeof x);
        else
            x = CONVOLUTION_STRIDED(from, stride);
        sum += t->weight[k] * x;
    }
    memcpy(y + i, &sum, sizeof sum);
}

/* y[i] (+)= sum over taps of weight*x[i*stride]; sums of a block stay in registers. */
__attribute__((always_inline)) static inline void
convolution_row_body(float *y, const struct convolution_taps *t, int64_t stride,
                     int64_t n, int accumulate)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        convolution_row_block(y, t, i, stride, accumulate);
    if (i < n && n >= 8 && !accumulate) { /* the last whole block, again in part */
        convolution_row_block(y, t, n - 8, stride, 0);
        return;
    }
    for (int k = 0; k < t->n; k++)
        for (int64_t j = i; j < n; j++)
            y[j] = (k > 0 || accumulate ? y[j] : 0) + t->weight[k] * t->x[k][j * stride];
}

/* The strides that networks use are constants in their loops. */
__attribute__((always_inline)) static inline void
convolution_row_strides(float *y, const struct convolution_taps *t, int64_t stride,
                        int64_t n, int accumulate)
{
    if (stride == 1)
        convolution_row_body(y, t, 1, n, accumulate);
    else if (stride == 2)
        convolution_row_body(y, t, 2, n, accumulate);
    else
        convolution_row_body(y, t, stride, n, accumulate);
}

#ifdef ELEMENT_X86
__attribute__((target("avx2,fma"))) static void
convolution_row_avx2(float *y, const struct convolution_taps *t, int64_t stride,
                     int64_t n, int accumulate)
{
    convolution_row_strides(y, t, stride, n, accumulate);
}
#endif

/* Apply the taps to n outputs and start a new list. */
static void convolution_flush(float *y, struct convolution_taps *t, int64_t stride,
                              int64_t n)
{
#ifdef ELEMENT_X86
    if (element_has_f16c())
        convolution_row_avx2(y, t, stride, n, t->flushed);
    else
#endif
        convolution_row_strides(y, t, stride, n, t->flushed);
    t->n = 0;
    t->flushed = 1;
}

/* The inputs and weights of one filter, and the outputs [lo, hi) of a row for which all
 * kernel elements of a kernel row lie inside the input. */
struct convolution_filter {
    const struct window *w;
    const float *in, *weight;
    int64_t channels, lo, hi;
};

static inline void convolution_interior(struct convolution_filter *f)
{
    f->lo = 0;
    f->hi = f->w->out[2];
    for (int64_t k = 0; k < f->w->kernel[2]; k++) {
        int64_t lo, hi;
        window_valid(f->w, 2, k, &lo, &hi);
        f->lo = window_max(f->lo, lo);
        f->hi = window_min(f->hi, hi);
    }
    f->hi = window_max(f->hi, f->lo);
}

/* Outputs [from, to) of row (d, h), where some kernel elements lie in the pads. */
static inline void convolution_edge(const struct convolution_filter *f, float *y,
                                    const int64_t in_d, const int64_t in_h,
                                    const float *weight, int64_t from, int64_t to)
{
    const struct window *w = f->w;
    const float *row = f->in + (in_d * w->in[1] + in_h) * w->in[2];
    int64_t plane = window_in_count(w), kernel = window_kernel_count(w);
    for (int64_t i = from; i < to; i++)
        for (int64_t c = 0; c < f->channels; c++)
            for (int64_t k = 0; k < w->kernel[2]; k++) {
                int64_t at = convolution_index(w, 2, i, k);
                if (at >= 0)
                    y[i] += weight[c * kernel + k] * row[c * plane + at];
            }
}

/* The part of row (d, h) that one kernel row gives; taps collect until they are full. */
static inline void convolution_kernel_row(const struct convolution_filter *f, float *y,
                                          struct convolution_taps *t, int64_t in_d,
                                          int64_t in_h, const float *weight)
{
    const struct window *w = f->w;
    int64_t plane = window_in_count(w), kernel = window_kernel_count(w);
    int64_t row = (in_d * w->in[1] + in_h) * w->in[2] + f->lo * w->stride[2] - w->begin[2];
    convolution_edge(f, y, in_d, in_h, weight, 0, f->lo);
    convolution_edge(f, y, in_d, in_h, weight, f->hi, w->out[2]);
    if (f->lo == f->hi)
        return;
    for (int64_t c = 0; c < f->channels; c++)
        for (int64_t k = 0; k < w->kernel[2]; k++) {
            if (t->n == CONVOLUTION_TAPS)
                convolution_flush(y + f->lo, t, w->stride[2], f->hi - f->lo);
            t->x[t->n] = f->in + c * plane + row + k * w->dilation[2];
            t->weight[t->n++] = weight[c * kernel + k];
        }
}

static inline void convolution_output_row(const struct convolution_filter *f, float *y,
                                          int64_t d, int64_t h)
{
    const struct window *w = f->w;
    struct convolution_taps t;
    t.n = t.flushed = 0;
    memset(y, 0, (size_t)w->out[2] * sizeof *y);
    for (int64_t kd = 0; kd < w->kernel[0]; kd++)
        for (int64_t kh = 0; kh < w->kernel[1]; kh++) {
            int64_t in_d = convolution_index(w, 0, d, kd);
            int64_t in_h = convolution_index(w, 1, h, kh);
            if (in_d >= 0 && in_h >= 0)
                convolution_kernel_row(f, y, &t, in_d, in_h,
                                       f->weight +
                                           (kd * w->kernel[1] + kh) * w->kernel[2]);
        }
    if (t.n > 0)
        convolution_flush(y + f->lo, &t, w->stride[2], f->hi - f->lo);
}

/* Task = image*filters + filter. */
static inline void convolution_direct(const struct convolution_job *job, int64_t task)
{
    const struct convolution *cv = job->cv;
    const struct window *w = &cv->w;
    int64_t filters = cv->groups * cv->out_c, filter = task % filters;
    int64_t image = task / filters, plane = window_out_count(w);
    int64_t channel = (image * cv->groups + filter / cv->out_c) * cv->in_c;
    struct convolution_filter f = {w, job->in + channel * window_in_count(w),
                                   job->weight + filter * cv->depth, cv->in_c, 0, 0};
    float *out = job->out + task * plane;
    convolution_interior(&f);
    for (int64_t d = 0; d < w->out[0]; d++)
        for (int64_t h = 0; h < w->out[1]; h++)
            convolution_output_row(&f, out + (d * w->out[1] + h) * w->out[2], d, h);
    convolution_tail(job, image, filter, 0, plane);
}

#endif /* PLUGINS_CONVOLUTION_DIRECT_H */
