/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution of tensors of any float format by an FP32 core, in bands: some rows of the
 * output and the input rows they see are unpacked, computed and packed; a 1x1 convolution
 * takes any pixels for a row. Threads take bands apart, each in scratch of its own, so
 * that workspace is a fraction of an image and lies in the cache. Where there are too few
 * bands for that, and for the direct method, a band is a whole image and threads share it.
 */
#ifndef PLUGINS_CONVOLUTION_BAND_H
#define PLUGINS_CONVOLUTION_BAND_H

#include "plugins/convolution/core.h"
#include "plugins/common/image.h"

#define CONVOLUTION_BAND_BYTES ((size_t)512 << 10) /* all threads' bands, if they can */

struct convolution_bands {
    int64_t rows, count; /* outputs along the outermost spatial dim; bands of an image */
    int64_t teams;       /* bands at a time */
    size_t bytes;        /* of a band's input, output and residual */
};

/* Outputs of a row. */
static inline int64_t convolution_row(const struct window *w)
{
    return window_out_count(w) / w->out[w->first];
}

/* A window that sees one pixel: all spatial dims are one. */
static inline void convolution_merge(struct convolution *cv)
{
    struct window *w = &cv->w;
    if (!cv->pointwise)
        return;
    w->in[2] = w->out[2] = window_out_count(w);
    w->in[0] = w->in[1] = w->out[0] = w->out[1] = 1;
    w->first = 2;
    w->dims = 1;
}

/* Of bands of `rows` rows; 0: overflow. */
static inline size_t convolution_band_bytes(const struct window *w, const strata_node *n,
                                            int64_t rows)
{
    int d = w->first;
    int64_t seen = (rows - 1) * w->stride[d] + window_extent(w, d);
    int residual = n->epilogue && n->epilogue->flags & STRATA_EPILOGUE_RESIDUAL;
    strata_tensor in = {.rank = 3}, out = {.rank = 3};
    size_t bytes = 0;
    in.dims[1] = n->in[0].dims[1];
    in.dims[2] = window_in_count(w) / w->in[d] * window_min(seen, w->in[d]);
    out.dims[1] = n->out[0].dims[1];
    out.dims[2] = convolution_row(w) * rows;
    return image_reserve(&bytes, &in) && image_reserve(&bytes, &out) &&
                   (!residual || image_reserve(&bytes, &out))
               ? bytes
               : 0;
}

/* Columns that the product computes for an image: each band's in whole panels. */
static inline int64_t convolution_columns_of(const struct convolution *cv, int64_t rows)
{
    int64_t panel = 3 * cv->tile->vector, out = cv->w.out[cv->w.first];
    int64_t row = convolution_row(&cv->w), rest = out % rows;
    return (out / rows * ((rows * row + panel - 1) / panel) +
            (rest * row + panel - 1) / panel) * panel;
}

/* The most rows, below `out`, whose bands take no more than a share; 0: none do. */
static inline int64_t convolution_fitting_rows(const struct window *w,
                                               const strata_node *n, int64_t out,
                                               size_t share)
{
    int64_t fit = 0, above = out;
    while (above - fit > 1) {
        int64_t middle = fit + (above - fit) / 2;
        if (convolution_band_bytes(w, n, middle) <= share)
            fit = middle;
        else
            above = middle;
    }
    return fit;
}

/* The most rows that fit, or else the fewest, of those that leave few columns unused. A
 * band wastes less than a panel at its end, so that any of 64 panels or more leaves few:
 * both searches are short. */
static inline struct convolution_bands convolution_bands(const struct convolution *cv,
                                                         const strata_node *n)
{
    const struct window *w = &cv->w;
    int64_t out = w->out[w->first], threads = convolution_threads();
    struct convolution_bands b = {out, 1, 1, convolution_band_bytes(w, n, out)};
    struct convolution_bands whole = b;
    size_t share = CONVOLUTION_BAND_BYTES / (size_t)threads;
    if (!cv->tile || b.bytes == 0)
        return whole;
    int64_t most = convolution_columns_of(cv, out), fit = out, rows;
    most += most / 32;
    if (b.bytes > share)
        fit = convolution_fitting_rows(w, n, out, share);
    for (rows = fit; rows > 0 && convolution_columns_of(cv, rows) > most;)
        rows--;
    if (rows == 0)
        for (rows = fit + 1; convolution_columns_of(cv, rows) > most;)
            rows++;
    b.rows = rows;
    b.bytes = convolution_band_bytes(w, n, rows);
    b.count = (out + b.rows - 1) / b.rows;
    b.teams = threads;
    return b.count * n->in[0].dims[0] < 2 * threads ? whole : b;
}

/* The layer on rows [first, first + rows) of its output; the first input row it sees. */
static inline int64_t convolution_narrow(struct convolution *cv, int64_t first,
                                         int64_t rows)
{
    struct window *w = &cv->w;
    int d = w->first;
    int64_t from = first * w->stride[d] - w->begin[d];
    int64_t to = from + (rows - 1) * w->stride[d] + window_extent(w, d);
    int64_t lo = window_min(window_max(from, 0), w->in[d]);
    int64_t hi = window_max(window_min(to, w->in[d]), lo);
    w->begin[d] = lo - from;
    w->end[d] = to - hi;
    w->in[d] = hi - lo;
    w->out[d] = rows;
    return lo;
}

static inline float *convolution_take(char **scratch, int64_t channels, int64_t pixels)
{
    strata_tensor image = {.rank = 3};
    image.dims[1] = channels;
    image.dims[2] = pixels;
    return image_take(scratch, &image);
}

/* One band; task = image*count + band. scratch: its own, and then the direct method's. */
static inline void convolution_band(const struct convolution_job *job,
                                    const strata_run *r,
                                    const struct convolution_bands *b, int64_t task,
                                    char *scratch, size_t size)
{
    struct convolution cv = *job->cv;
    struct convolution_job own = *job;
    const strata_tensor *in = &r->in[0], *out = &r->out[0];
    int64_t image = task / b->count, first = task % b->count * b->rows;
    int64_t rows = window_min(b->rows, cv.w.out[cv.w.first] - first);
    int64_t from = convolution_narrow(&cv, first, rows);
    int64_t seen = window_in_count(&cv.w), made = window_out_count(&cv.w);
    from *= cv.w.in[cv.w.first] ? seen / cv.w.in[cv.w.first] : 0;
    first *= convolution_row(&cv.w);
    struct image_part reads = {from, from + seen}, writes = {first, first + made};
    char *end = scratch + size;
    float *x = convolution_take(&scratch, in->dims[1], seen);
    float *y = convolution_take(&scratch, out->dims[1], made);
    own.cv = &cv;
    own.in = x;
    own.out = y;
    own.images = 1;
    image_unpack_part(x, in, image, reads);
    if (r->epilogue->flags & STRATA_EPILOGUE_RESIDUAL) {
        float *sum = convolution_take(&scratch, out->dims[1], made);
        image_unpack_part(sum, r->epilogue->residual, image, writes);
        own.residual = sum;
    }
    own.scratch = scratch;
    own.scratch_size = (size_t)(end - scratch);
    convolution_compute(&own);
    image_pack_part(out, image, writes, y);
}

/* Never more teams than workspace was made for. Not one region with an if clause: the
 * regions inside would start threads anew. */
static inline void convolution_in_bands(const struct convolution_job *job,
                                        const strata_run *r,
                                        const struct convolution_bands *b)
{
    int64_t tasks = r->in[0].dims[0] * b->count;
    int teams = (int)window_min(b->teams, convolution_threads());
    if (teams < 2) {
        for (int64_t task = 0; task < tasks; task++)
            convolution_band(job, r, b, task, r->workspace, r->workspace_size);
        return;
    }
    int64_t next = 0;
#pragma omp parallel num_threads(teams)
    for (int64_t task; team_turn(&next, tasks, &task);) {
        char *scratch = (char *)r->workspace + b->bytes * (size_t)team_self();
        convolution_band(job, r, b, task, scratch, b->bytes);
    }
}

#endif /* PLUGINS_CONVOLUTION_BAND_H */
