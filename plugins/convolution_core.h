/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution over dense FP32 [C][D][H][W] images on the host. Two methods:
 *
 *   product  an output panel (a few vectors of pixels, all filters) is a matrix product
 *            of packed weights and gathered input columns; 1x1 reads its columns in
 *            place. k runs over kernel elements first and channels inside, so that one
 *            gather pattern serves all channels.
 *   direct   a whole output plane per filter, one multiply-add pass per weight; for few
 *            filters per group (depthwise), where columns would be used too rarely.
 */
#ifndef PLUGINS_CONVOLUTION_CORE_H
#define PLUGINS_CONVOLUTION_CORE_H

#include "plugins/gemm_tile.h"
#include "plugins/window.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#define CONVOLUTION_DIRECT_FILTERS 3   /* per group, at most */
#define CONVOLUTION_PARALLEL 200000.0  /* multiply-adds that pay for a thread team */

struct convolution {
    struct window w;
    int64_t groups, in_c, out_c;   /* channels per group */
    int64_t depth;                 /* k: in_c * kernel elements */
    const struct gemm_tile *tile;  /* NULL: direct */
    const float *packed;           /* weights in tile order, or NULL: packed as used */
    int32_t pointwise;             /* columns are the input's own rows */
};

struct convolution_job {
    const struct convolution *cv;
    const float *in;
    float *out;
    const float *residual;       /* like out; NULL unless the epilogue has one */
    const float *weight, *bias;  /* bias may be NULL */
    const strata_epilogue *epilogue;
    int64_t images;
};

static inline int64_t convolution_panels(const struct convolution *cv)
{
    return (cv->out_c + cv->tile->rows - 1) / cv->tile->rows;
}

/* Bytes of packed weights; 0 on overflow. */
static inline size_t convolution_packed_size(const struct convolution *cv)
{
    int64_t size = cv->groups * (int64_t)sizeof(float);
    if (__builtin_mul_overflow(size, convolution_panels(cv) * cv->tile->rows, &size) ||
        __builtin_mul_overflow(size, cv->depth, &size))
        return 0;
    return (size_t)size;
}

/* k in [k0, k0 + n) of one panel of filters of a group; absent filters are zero. */
static inline void convolution_pack(const struct convolution *cv, float *dst,
                                    const float *weight, int64_t group, int64_t panel,
                                    int64_t k0, int64_t n)
{
    int64_t kernel = window_kernel_count(&cv->w), rows = cv->tile->rows;
    for (int64_t k = k0; k < k0 + n; k++)
        for (int64_t m = 0; m < rows; m++) {
            int64_t filter = panel * rows + m;
            int64_t at = (group * cv->out_c + filter) * cv->depth +
                         k % cv->in_c * kernel + k / cv->in_c;
            *dst++ = filter < cv->out_c ? weight[at] : 0;
        }
}

static inline void convolution_pack_all(const struct convolution *cv, float *dst,
                                        const float *weight)
{
    for (int64_t g = 0; g < cv->groups; g++)
        for (int64_t p = 0; p < convolution_panels(cv); p++) {
            convolution_pack(cv, dst, weight, g, p, 0, cv->depth);
            dst += cv->tile->rows * cv->depth;
        }
}

/* ---- the tail: y = activation(scale*(x + bias) + shift + residual) ----------------- */

static inline void convolution_tail(const struct convolution_job *job, int64_t image,
                                    int64_t channel, int64_t pixel, int64_t n)
{
    const strata_epilogue *e = job->epilogue;
    int64_t plane = window_out_count(&job->cv->w);
    int64_t at =
        (image * job->cv->groups * job->cv->out_c + channel) * plane + pixel;
    float *y = job->out + at;
    float scale = e->flags & STRATA_EPILOGUE_SCALE ? e->scale[channel] : 1;
    float shift = e->flags & STRATA_EPILOGUE_BIAS ? e->bias[channel] : 0;
    if (job->bias)
        shift += scale * job->bias[channel];
    if (scale != 1 || shift != 0)
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] * scale + shift;
    if (job->residual)
        for (int64_t i = 0; i < n; i++)
            y[i] += job->residual[at + i];
    if (e->flags & STRATA_EPILOGUE_ACTIVATION)
        element_activate_row(e->activation, e->alpha, e->beta, y, n);
}

/* ---- product ------------------------------------------------------------------------- */

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

/* Input index along d of output o at kernel element k; -1 in the pads. */
static inline int64_t convolution_index(const struct window *w, int d, int64_t o,
                                        int64_t k)
{
    int64_t i = o * w->stride[d] - w->begin[d] + k * w->dilation[d];
    return i >= 0 && i < w->in[d] ? i : -1;
}

static inline void convolution_copy(float *dst, const float *src, int64_t stride,
                                    int64_t n)
{
    if (stride == 1)
        for (int64_t i = 0; i < n; i++)
            dst[i] = src[i];
    else if (stride == 2)
        for (int64_t i = 0; i < n; i++)
            dst[i] = src[2 * i];
    else
        for (int64_t i = 0; i < n; i++)
            dst[i] = src[i * stride];
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
            memset(row, 0, (size_t)first * sizeof *row);
            convolution_copy(row + first, in + c * plane + at, stride, live);
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
    int in_place = cv->pointwise && p->columns == p->width;
    for (int64_t k = 0; k < cv->depth; k += GEMM_DEPTH) {
        int64_t n = window_min(cv->depth - k, GEMM_DEPTH);
        const float *b = in_place ? in + k * plane + p->pixel : p->b;
        if (!in_place)
            convolution_columns(p, cv, in, k, n);
        for (int64_t m = first; m < last; m++) {
            const float *packed = a;
            if (cv->packed)
                packed = cv->packed + ((group * convolution_panels(cv) + m) * cv->depth +
                                       k) * rows;
            else
                convolution_pack(cv, a, job->weight, group, m, k, n);
            convolution_tile(cv, n, packed, b, in_place ? plane : p->width,
                             out + m * rows * plane,
                             window_min(rows, cv->out_c - m * rows), p->columns,
                             p->width, k > 0);
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

/* ---- direct --------------------------------------------------------------------------- */

__attribute__((always_inline)) static inline void
convolution_axpy_body(float *restrict y, const float *restrict x, float factor,
                      int64_t stride, int64_t n)
{
    if (stride == 1)
        for (int64_t i = 0; i < n; i++)
            y[i] += factor * x[i];
    else if (stride == 2)
        for (int64_t i = 0; i < n; i++)
            y[i] += factor * x[2 * i];
    else
        for (int64_t i = 0; i < n; i++)
            y[i] += factor * x[i * stride];
}

#ifdef ELEMENT_X86
__attribute__((target("avx2,fma"))) static void
convolution_axpy_avx2(float *y, const float *x, float factor, int64_t stride, int64_t n)
{
    convolution_axpy_body(y, x, factor, stride, n);
}
#endif

/* y[i] += factor*x[i*stride] */
static inline void convolution_axpy(float *y, const float *x, float factor,
                                    int64_t stride, int64_t n)
{
#ifdef ELEMENT_X86
    if (element_has_f16c()) {
        convolution_axpy_avx2(y, x, factor, stride, n);
        return;
    }
#endif
    convolution_axpy_body(y, x, factor, stride, n);
}

/* One weight over a whole plane. */
static inline void convolution_pass(const struct window *w, float *out, const float *in,
                                    float factor, const int64_t k[WINDOW_DIMS])
{
    int64_t lo[WINDOW_DIMS], hi[WINDOW_DIMS], shift[WINDOW_DIMS];
    for (int d = 0; d < WINDOW_DIMS; d++) {
        window_valid(w, d, k[d], &lo[d], &hi[d]);
        shift[d] = k[d] * w->dilation[d] - w->begin[d];
    }
    if (lo[2] >= hi[2])
        return;
    for (int64_t d = lo[0]; d < hi[0]; d++)
        for (int64_t h = lo[1]; h < hi[1]; h++) {
            int64_t row = (d * w->stride[0] + shift[0]) * w->in[1] +
                          h * w->stride[1] + shift[1];
            convolution_axpy(out + (d * w->out[1] + h) * w->out[2] + lo[2],
                             in + row * w->in[2] + lo[2] * w->stride[2] + shift[2],
                             factor, w->stride[2], hi[2] - lo[2]);
        }
}

static inline void convolution_direct(const struct convolution_job *job, int64_t task)
{
    const struct convolution *cv = job->cv;
    const struct window *w = &cv->w;
    int64_t filters = cv->groups * cv->out_c, filter = task % filters;
    int64_t image = task / filters, plane = window_out_count(w), k[WINDOW_DIMS];
    const float *weight = job->weight + filter * cv->depth;
    float *out = job->out + task * plane;
    memset(out, 0, (size_t)plane * sizeof *out);
    for (int64_t c = 0; c < cv->in_c; c++) {
        int64_t channel =
            (image * cv->groups + filter / cv->out_c) * cv->in_c + c;
        const float *in = job->in + channel * window_in_count(w);
        for (k[0] = 0; k[0] < w->kernel[0]; k[0]++)
            for (k[1] = 0; k[1] < w->kernel[1]; k[1]++)
                for (k[2] = 0; k[2] < w->kernel[2]; k[2]++)
                    convolution_pass(w, out, in, *weight++, k);
    }
    convolution_tail(job, image, filter, 0, plane);
}

/* ---- all images -------------------------------------------------------------------------- */

/* Filters of a group are split where pixels alone would leave threads idle. */
static inline int64_t convolution_chunks(const struct convolution *cv, int64_t tasks)
{
    int64_t wanted = 1;
#ifdef _OPENMP
    int64_t threads = omp_get_max_threads();
    if (threads > 1)
        wanted = (2 * threads + tasks - 1) / tasks;
#endif
    return window_min(wanted, convolution_panels(cv));
}

static inline void convolution_compute(const struct convolution_job *job)
{
    const struct convolution *cv = job->cv;
    int64_t plane = window_out_count(&cv->w), tasks, chunks = 1;
    double work = (double)job->images * (double)(cv->groups * cv->out_c) *
                  (double)plane * (double)cv->depth;
    if (cv->tile) {
        int64_t whole = 3 * cv->tile->vector;
        tasks = job->images * cv->groups * ((plane + whole - 1) / whole);
        chunks = work > CONVOLUTION_PARALLEL ? convolution_chunks(cv, tasks) : 1;
        tasks *= chunks;
    } else {
        tasks = job->images * cv->groups * cv->out_c;
    }
#pragma omp parallel for schedule(dynamic) if (work > CONVOLUTION_PARALLEL)
    for (int64_t task = 0; task < tasks; task++)
        if (cv->tile)
            convolution_task(job, task, chunks);
        else
            convolution_direct(job, task);
}

#endif /* PLUGINS_CONVOLUTION_CORE_H */
