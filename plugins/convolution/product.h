/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution as matrix products: an output panel (a few vectors of pixels, all filters
 * of a group) is packed weights times gathered input columns; 1x1 reads its columns in
 * place. k runs over kernel elements first and channels inside, so that one gather
 * pattern serves all channels.
 */
#ifndef PLUGINS_CONVOLUTION_PRODUCT_H
#define PLUGINS_CONVOLUTION_PRODUCT_H

#include "plugins/convolution/job.h"

#define CONVOLUTION_OFTEN 4 /* panels of filters for which columns are copied */

/* Consecutive output pixels of one row inside a panel. */
struct convolution_segment {
    int64_t column, length, d, h, w;
};

struct convolution_panel {
    struct convolution_segment segment[GEMM_MAX_COLUMNS];
    int64_t segments, pixel, columns, width; /* width: columns in whole vectors */
    float b[GEMM_DEPTH * GEMM_MAX_COLUMNS] __attribute__((aligned(64)));
};

static inline void convolution_split(struct convolution_panel *p, const struct window *w)
{
    p->segments = 0;
    for (int64_t column = 0; column < p->columns;) {
        struct convolution_segment *s = &p->segment[p->segments++];
        int64_t pixel = p->pixel + column;
        s->column = column;
        s->w = pixel % w->out[2];
        s->h = pixel / w->out[2] % w->out[1];
        s->d = pixel / w->out[2] / w->out[1];
        s->length = window_min(w->out[2] - s->w, p->columns - column);
        column += s->length;
    }
}

/* One kernel element over `n` channels from `in` to rows of b. */
static inline void convolution_gather(struct convolution_panel *p, float *b,
                                      const struct window *w, const float *in,
                                      int64_t position, int64_t n)
{
    int64_t kw = position % w->kernel[2], kh = position / w->kernel[2] % w->kernel[1];
    int64_t kd = position / w->kernel[2] / w->kernel[1], lo, hi;
    int64_t plane = window_in_count(w), stride = w->stride[2];
    window_valid(w, 2, kw, &lo, &hi);
    for (int64_t i = 0; i < p->segments; i++) {
        const struct convolution_segment *s = &p->segment[i];
        int64_t d = convolution_index(w, 0, s->d, kd);
        int64_t h = convolution_index(w, 1, s->h, kh);
        int64_t first = window_max(lo - s->w, 0), last = window_min(hi - s->w, s->length);
        int64_t live = d < 0 || h < 0 ? 0 : window_max(last - first, 0);
        first = live ? first : s->length;
        last = live ? last : s->length;
        int64_t at = live ? (d * w->in[1] + h) * w->in[2] + (s->w + first) * stride -
                                w->begin[2] + kw * w->dilation[2]
                          : 0;
        float *row = b + s->column;
        for (int64_t c = 0; c < n; c++, row += p->width) {
            if (first > 0) /* rare, and a call */
                memset(row, 0, (size_t)first * sizeof *row);
            convolution_copy(row + first, in + c * plane + at, stride, live);
            if (last < s->length)
                memset(row + last, 0, (size_t)(s->length - last) * sizeof *row);
        }
    }
}

/* k rows [k0, k0 + n) of the panel's columns. */
static inline void convolution_columns(struct convolution_panel *p,
                                       const struct convolution *cv, const float *in,
                                       int64_t k0, int64_t n)
{
    int64_t plane = window_in_count(&cv->w);
    for (int64_t k = k0; k < k0 + n;) {
        int64_t c = k % cv->in_c, run = window_min(cv->in_c - c, k0 + n - k);
        convolution_gather(p, p->b + (k - k0) * p->width, &cv->w, in + c * plane,
                           k / cv->in_c, run);
        k += run;
    }
}

/* The same where columns are the input's own rows, so far apart that the L1 cache holds
 * few of them at once. */
static inline void convolution_own_rows(float *b, const float *in, int64_t pitch,
                                        int64_t width, int64_t n)
{
    for (int64_t k = 0; k < n; k++, b += width, in += pitch)
        memcpy(b, in, (size_t)width * sizeof *b);
}

/* One tile of C, through a buffer where it is not whole. */
static inline void convolution_tile(const struct convolution *cv, int64_t n,
                                    const float *a, const float *b, int64_t ldb, float *c,
                                    int64_t rows, int64_t columns, int64_t width,
                                    int accumulate)
{
    float buffer[GEMM_MAX_ROWS * GEMM_MAX_COLUMNS];
    int64_t ldc = window_out_count(&cv->w);
    gemm_tile_fn tile = cv->tile->tile[width / cv->tile->vector - 1];
    if (rows == cv->tile->rows && columns == width) {
        tile(n, a, b, ldb, c, ldc, accumulate);
        return;
    }
    size_t bytes = (size_t)columns * sizeof *c;
    if (accumulate) {
        memset(buffer, 0, sizeof buffer);
        for (int64_t m = 0; m < rows; m++)
            memcpy(buffer + m * width, c + m * ldc, bytes);
    }
    tile(n, a, b, ldb, buffer, width, accumulate);
    for (int64_t m = 0; m < rows; m++)
        memcpy(c + m * ldc, buffer + m * width, bytes);
}

/* Filters of panels [first, last) at the pixels of p. */
static inline void convolution_product(const struct convolution_job *job,
                                       struct convolution_panel *p, int64_t image,
                                       int64_t group, int64_t first, int64_t last)
{
    const struct convolution *cv = job->cv;
    int64_t rows = cv->tile->rows, plane = window_out_count(&cv->w);
    const float *in =
        job->in + (image * cv->groups + group) * cv->in_c * window_in_count(&cv->w);
    float *out = job->out + (image * cv->groups + group) * cv->out_c * plane + p->pixel;
    float a[GEMM_DEPTH * GEMM_MAX_ROWS];
    int own = cv->pointwise && p->columns == p->width;
    int in_place = own && last - first < CONVOLUTION_OFTEN;
    for (int64_t k = 0; k < cv->depth; k += GEMM_DEPTH) {
        int64_t n = window_min(cv->depth - k, GEMM_DEPTH);
        const float *b = in_place ? in + k * plane + p->pixel : p->b;
        if (own && !in_place)
            convolution_own_rows(p->b, in + k * plane + p->pixel, plane, p->width, n);
        else if (!in_place)
            convolution_columns(p, cv, in, k, n);
        for (int64_t m = first; m < last; m++) {
            const float *packed = a;
            if (cv->packed)
                packed = cv->packed +
                         ((group * convolution_panels(cv) + m) * cv->depth + k) * rows;
            else
                convolution_pack(cv, a, job->weight, group, m, k, n);
            convolution_tile(
                cv, n, packed, b, in_place ? plane : p->width, out + m * rows * plane,
                window_min(rows, cv->out_c - m * rows), p->columns, p->width, k > 0);
        }
    }
    for (int64_t c = first * rows; c < window_min(last * rows, cv->out_c); c++)
        convolution_tail(job, image, group * cv->out_c + c, p->pixel, p->columns);
}

/* Task = ((image*groups + group)*pixel panels + panel)*chunks + chunk of filters. */
static inline void convolution_task(const struct convolution_job *job, int64_t task,
                                    int64_t chunks)
{
    const struct convolution *cv = job->cv;
    int64_t whole = 3 * cv->tile->vector, plane = window_out_count(&cv->w);
    int64_t pixels = (plane + whole - 1) / whole, panels = convolution_panels(cv);
    int64_t chunk = task % chunks, panel = task / chunks % pixels;
    int64_t group = task / chunks / pixels % cv->groups;
    struct convolution_panel p;
    p.pixel = panel * whole;
    p.columns = window_min(whole, plane - p.pixel);
    p.width = (p.columns + cv->tile->vector - 1) / cv->tile->vector * cv->tile->vector;
    if (p.columns < p.width) /* the gather never touches these columns */
        for (int64_t k = 0; k < GEMM_DEPTH; k++)
            for (int64_t i = p.columns; i < p.width; i++)
                p.b[k * p.width + i] = 0;
    convolution_split(&p, &cv->w);
    convolution_product(job, &p, task / chunks / pixels / cv->groups, group,
                        panels * chunk / chunks, panels * (chunk + 1) / chunks);
}

#endif /* PLUGINS_CONVOLUTION_PRODUCT_H */
