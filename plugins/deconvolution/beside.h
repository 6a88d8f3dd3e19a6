/* SPDX-License-Identifier: Apache-2.0
 *
 * A deconvolution whose windows lie side by side (stride as the kernel, nothing cut):
 * every input pixel gives a window of outputs of its own. The phases along a row are
 * computed for some filters at some pixels and woven into the output out of the L1
 * cache, so that no phase is written to memory first.
 */
#ifndef PLUGINS_DECONVOLUTION_BESIDE_H
#define PLUGINS_DECONVOLUTION_BESIDE_H

#include "plugins/common/pointwise/row.h"
#include "plugins/deconvolution/phases.h"

#define BESIDE_ACROSS 8 /* phases along a row, at most */

static int windows_are_beside(const struct deconvolution *dc)
{
    int beside = dc->tile != NULL && dc->w.stride[2] <= BESIDE_ACROSS;
    for (int d = 0; d < WINDOW_DIMS; d++)
        beside = beside && dc->w.kernel[d] == dc->w.stride[d] && dc->w.begin[d] == 0 &&
                 (dc->w.kernel[d] == 1 || dc->w.dilation[d] == 1) &&
                 dc->w.out[d] == dc->w.in[d] * dc->w.stride[d];
    return beside;
}

/* Sums of a panel of filters: [phase][filter][pixel]. */
struct beside_sums {
    float at[BESIDE_ACROSS][GEMM_MAX_ROWS][GEMM_MAX_COLUMNS] __attribute__((aligned(64)));
};

/* ---- weaving ------------------------------------------------------------------- */

/* y[i*across + a] = phase a's element i */
ROW_INLINE void beside_weave(float *restrict y, const float *restrict x, int64_t phase,
                             int64_t across, int64_t n)
{
    if (across == 2)
        for (int64_t i = 0; i < n; i++) {
            y[2 * i] = x[i];
            y[2 * i + 1] = x[phase + i];
        }
    else
        for (int64_t a = 0; a < across; a++, x += phase)
            for (int64_t i = 0; i < n; i++)
                y[i * across + a] = x[i];
}

/* `rows` filters' pixels of one row, to places `plane` apart. */
ROW_INLINE void beside_rows(float *y, int64_t plane, const float *x, int64_t across,
                            int64_t rows, int64_t n)
{
    const int64_t phase = (int64_t)GEMM_MAX_ROWS * GEMM_MAX_COLUMNS;
    for (int64_t m = 0; m < rows; m++, y += plane, x += GEMM_MAX_COLUMNS)
        beside_weave(y, x, phase, across, n);
}

typedef void beside_rows_fn(float *y, int64_t plane, const float *x, int64_t across,
                            int64_t rows, int64_t n);

#define BESIDE_ROWS(name, target)                                                        \
    target static void beside_rows_##name(float *y, int64_t plane, const float *x,       \
                                          int64_t across, int64_t rows, int64_t n)       \
    {                                                                                    \
        beside_rows(y, plane, x, across, rows, n);                                       \
    }

BESIDE_ROWS(plain, )
#ifdef ELEMENT_X86
BESIDE_ROWS(avx2, __attribute__((target("avx2,fma"))))
BESIDE_ROWS(avx512, ROW_AVX512)
#endif

/* ---- some pixels ---------------------------------------------------------------- */

/* What the threads share; cv: of one phase. */
struct beside {
    const struct deconvolution *dc;
    const struct convolution_job *tail;
    const float *in; /* of the image */
    int64_t image;
    int has_tail; /* bias or epilogue */
    struct convolution cv;
    beside_rows_fn *rows;
};

/* Panel m of filters of the phases along row `line` of a window. */
struct beside_part {
    int64_t group, line, m;
};

/* Columns [k, k + n) of the depth; those that the panel lacks were cleared once. */
static void beside_columns(const struct beside *b, struct convolution_panel *p,
                           int64_t group, int64_t k, int64_t n)
{
    const int64_t plane = window_in_count(&b->cv.w);
    const float *in = b->in + (group * b->cv.in_c + k) * plane + p->pixel;
    if (p->columns == p->width)
        convolution_own_rows(p->b, in, plane, p->width, n);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(p->b + i * p->width, in + i * plane,
                   (size_t)p->columns * sizeof *p->b);
}

/* there: the columns are in the panel already. */
static void beside_multiply(const struct beside *b, struct convolution_panel *p,
                            const struct beside_part *t, int there,
                            struct beside_sums *sums)
{
    const struct convolution *cv = &b->cv;
    const int64_t across = b->dc->w.stride[2], panels = convolution_panels(cv);
    const int64_t rows = cv->tile->rows, phase = phase_weights(cv);
    const float *packed = b->dc->packed + t->line * across * phase +
                          (t->group * panels + t->m) * cv->depth * rows;
    gemm_tile_fn tile = cv->tile->tile[p->width / cv->tile->vector - 1];
    for (int64_t k = 0; k < cv->depth; k += GEMM_DEPTH) {
        const int64_t n = window_min(cv->depth - k, GEMM_DEPTH);
        if (!there)
            beside_columns(b, p, t->group, k, n);
        for (int64_t a = 0; a < across; a++)
            tile(n, packed + a * phase + k * rows, p->b, p->width, sums->at[a][0],
                 GEMM_MAX_COLUMNS, k > 0);
    }
}

/* The sums to where they belong, and what becomes of them there. */
static void beside_put(const struct beside *b, const struct convolution_panel *p,
                       const struct beside_part *t, const struct beside_sums *sums)
{
    const struct window *w = &b->dc->w;
    const int64_t plane = window_out_count(w), rows = b->cv.tile->rows;
    const int64_t first = t->group * b->cv.out_c + t->m * rows;
    const int64_t filters = window_min(rows, b->cv.out_c - t->m * rows);
    const int64_t channels = b->cv.groups * b->cv.out_c, across = w->stride[2];
    const int64_t line_d = t->line / w->stride[1], line_h = t->line % w->stride[1];
    float *out = b->tail->out + (b->image * channels + first) * plane;
    for (int64_t i = 0; i < p->segments; i++) {
        const struct convolution_segment *s = &p->segment[i];
        const int64_t d = s->d * w->stride[0] + line_d;
        const int64_t h = s->h * w->stride[1] + line_h;
        const int64_t at = (d * w->out[1] + h) * w->out[2] + s->w * across;
        b->rows(out + at, plane, sums->at[0][0] + s->column, across, filters, s->length);
        for (int64_t c = first; b->has_tail && c < first + filters; c++)
            convolution_tail(b->tail, b->image, c, at, s->length * across);
    }
}

/* Parts [first, last) of a group at the pixels of panel `panel`. */
static void beside_task(const struct beside *b, int64_t group, int64_t panel,
                        int64_t first, int64_t last)
{
    const struct convolution *cv = &b->cv;
    const int64_t vector = cv->tile->vector, whole = 3 * vector;
    const int64_t panels = convolution_panels(cv);
    struct convolution_panel p;
    struct beside_sums sums;
    p.pixel = panel * whole;
    p.columns = window_min(whole, window_in_count(&cv->w) - p.pixel);
    p.width = (p.columns + vector - 1) / vector * vector;
    if (p.columns < p.width)
        memset(p.b, 0, (size_t)(GEMM_DEPTH * p.width) * sizeof *p.b);
    convolution_split(&p, &cv->w);
    for (int64_t i = first; i < last; i++) {
        const struct beside_part t = {group, i / panels, i % panels};
        beside_multiply(b, &p, &t, i > first && cv->depth <= GEMM_DEPTH, &sums);
        beside_put(b, &p, &t, &sums);
    }
}

/* One image; tail: the layer's output, bias and epilogue. */
static void beside_image(const struct deconvolution *dc,
                         const struct convolution_job *tail, const float *in,
                         int64_t image)
{
    const struct deconvolution_phase phase = deconvolution_phase_at(&dc->w, 0);
    const struct beside b = {.dc = dc,
                             .tail = tail,
                             .in = in,
                             .image = image,
                             .has_tail = tail->bias || tail->epilogue->flags,
                             .cv = phase_convolution(dc, &phase, dc->packed),
                             .rows = ROW_BEST(beside_rows)};
    const int64_t whole = 3 * dc->tile->vector, pixels = window_in_count(&dc->w);
    const int64_t panels = (pixels + whole - 1) / whole, tasks = panels * dc->groups;
    const int64_t parts = convolution_panels(&b.cv) * dc->w.stride[0] * dc->w.stride[1];
    const double work = (double)pixels * (double)b.cv.depth * (double)dc->out_c *
                        (double)(dc->groups * deconvolution_phases(&dc->w));
    const int64_t wanted = (2 * convolution_threads() + tasks - 1) / tasks;
    const int64_t chunks = work > CONVOLUTION_PARALLEL ? window_min(wanted, parts) : 1;
#pragma omp parallel for schedule(static) if (work > CONVOLUTION_PARALLEL)
    for (int64_t task = 0; task < tasks * chunks; task++) {
        const int64_t chunk = task % chunks;
        beside_task(&b, task / chunks / panels, task / chunks % panels,
                    parts * chunk / chunks, parts * (chunk + 1) / chunks);
    }
}

#endif /* PLUGINS_DECONVOLUTION_BESIDE_H */
