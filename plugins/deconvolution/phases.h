/* SPDX-License-Identifier: Apache-2.0
 *
 * A deconvolution as convolutions, on the host: the phases of its output, each computed
 * by Convolution's FP32 core into scratch, whose rows are woven into the output's.
 */
#ifndef PLUGINS_DECONVOLUTION_PHASES_H
#define PLUGINS_DECONVOLUTION_PHASES_H

#include "plugins/convolution/core.h"
#include "plugins/common/deconvolution/deconvolution.h"

struct deconvolution {
    struct window w;
    int64_t groups, in_c, out_c;  /* channels per group */
    const struct gemm_tile *tile; /* NULL: direct */
    const float *packed;          /* weights of the phases, one after the other */
};

/* ---- weights ------------------------------------------------------------------- */

/* The convolution that a phase is; packed: its weights. */
static struct convolution phase_convolution(const struct deconvolution *dc,
                                            const struct deconvolution_phase *phase,
                                            const float *packed)
{
    struct convolution cv = {.w = phase->w,
                             .groups = dc->groups,
                             .in_c = dc->in_c,
                             .out_c = dc->out_c,
                             .tile = dc->tile,
                             .packed = packed};
    cv.depth = cv.in_c * window_kernel_count(&cv.w);
    cv.pointwise = cv.tile && cv.depth == cv.in_c;
    for (int d = 0; d < WINDOW_DIMS; d++)
        cv.pointwise &= cv.w.begin[d] == 0 && cv.w.out[d] == cv.w.in[d];
    return cv;
}

/* Floats of a phase's weights: in panels of the tile, or as Convolution's weight. */
static int64_t phase_weights(const struct convolution *cv)
{
    int64_t rows = cv->tile ? convolution_panels(cv) * cv->tile->rows : cv->out_c;
    return cv->groups * rows * cv->depth;
}

static size_t deconvolution_packed_size(const struct deconvolution *dc)
{
    int64_t rows = dc->tile ? dc->tile->rows : 1, bytes = (int64_t)sizeof(float);
    if (__builtin_mul_overflow(bytes, (dc->out_c + rows - 1) / rows * rows, &bytes) ||
        __builtin_mul_overflow(bytes, dc->groups * dc->in_c, &bytes) ||
        __builtin_mul_overflow(bytes, window_kernel_count(&dc->w), &bytes))
        return 0;
    return (size_t)bytes;
}

/* Filters [0, rows) of a panel: rows innermost, as tiles read them; absent ones zero. */
static float *phase_pack_panel(const struct deconvolution *dc,
                               const struct deconvolution_phase *phase, int64_t depth,
                               int64_t group, int64_t first, float *dst,
                               const float *weight)
{
    int64_t taps = window_kernel_count(&dc->w), rows = dc->tile->rows;
    for (int64_t k = 0; k < depth; k++) {
        int64_t tap = deconvolution_tap(phase, &dc->w, k / dc->in_c);
        int64_t channel = group * dc->in_c + k % dc->in_c;
        for (int64_t m = first; m < first + rows; m++)
            *dst++ = m < dc->out_c ? weight[(channel * dc->out_c + m) * taps + tap] : 0;
    }
    return dst;
}

static void phase_pack_direct(const struct deconvolution *dc,
                              const struct deconvolution_phase *phase, float *dst,
                              const float *weight)
{
    int64_t taps = window_kernel_count(&dc->w), own = window_kernel_count(&phase->w);
    for (int64_t filter = 0; filter < dc->groups * dc->out_c; filter++)
        for (int64_t c = 0; c < dc->in_c; c++)
            for (int64_t e = 0; e < own; e++) {
                int64_t channel = filter / dc->out_c * dc->in_c + c;
                *dst++ = weight[(channel * dc->out_c + filter % dc->out_c) * taps +
                                deconvolution_tap(phase, &dc->w, e)];
            }
}

static void deconvolution_pack(const struct deconvolution *dc, float *dst,
                               const float *weight)
{
    for (int64_t i = 0; i < deconvolution_phases(&dc->w); i++) {
        struct deconvolution_phase phase = deconvolution_phase_at(&dc->w, i);
        struct convolution cv = phase_convolution(dc, &phase, NULL);
        float *to = dst;
        if (!dc->tile)
            phase_pack_direct(dc, &phase, dst, weight);
        for (int64_t g = 0; g < dc->groups && dc->tile; g++)
            for (int64_t m = 0; m < dc->out_c; m += dc->tile->rows)
                to = phase_pack_panel(dc, &phase, cv.depth, g, m, to, weight);
        dst += phase_weights(&cv);
    }
}

/* ---- one image ----------------------------------------------------------------- */

/* Pixels that a phase has at most: its place in the scratch. */
static int64_t phase_room(const struct window *w)
{
    int64_t room = 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        room *= (w->out[d] + w->stride[d] - 1) / w->stride[d];
    return room;
}

/* The phases' outputs as one image. */
static strata_tensor woven_image(const struct window *w, int64_t channels)
{
    strata_tensor t = {.rank = 4};
    t.dims[1] = channels;
    t.dims[2] = deconvolution_phases(w);
    t.dims[3] = phase_room(w);
    return t;
}

/* Scratch of the direct method for any phase, in whole 256 bytes; false: overflow. */
static int direct_reserve(size_t *total, const struct deconvolution *dc)
{
    size_t most = 0;
    for (int64_t i = 0; i < deconvolution_phases(&dc->w) && !dc->tile; i++) {
        struct deconvolution_phase phase = deconvolution_phase_at(&dc->w, i);
        size_t bytes;
        if (window_kernel_count(&phase.w) == 0)
            continue;
        if ((bytes = convolution_scratch(&phase.w)) == 0)
            return 0;
        most = bytes > most ? bytes : most;
    }
    return !__builtin_add_overflow(most, 255, &most) &&
           !__builtin_add_overflow(*total, most & ~(size_t)255, total);
}

/* dst[i*stride] = src[i]; the usual stride is a constant in its loop. */
static void weave(float *dst, const float *src, int64_t stride, int64_t n)
{
    if (stride == 2)
        for (int64_t i = 0; i < n; i++)
            dst[2 * i] = src[i];
    else
        for (int64_t i = 0; i < n; i++)
            dst[i * stride] = src[i];
}

/* Two rows of n in turns. */
static void weave_two(float *restrict dst, const float *restrict a,
                      const float *restrict b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dst[2 * i] = a[i];
        dst[2 * i + 1] = b[i];
    }
}

/* Outputs along d of the phases that begin at o. */
static int64_t phase_outputs(const struct window *w, int d, int64_t o)
{
    return (w->out[d] - o + w->stride[d] - 1) / w->stride[d];
}

/* What the phases that lie along a row have of a channel. */
struct woven_row {
    const float *from; /* of the first one's first phase */
    int64_t phase;     /* from one to the next */
    int64_t channel;   /* number of the channel times rows of a channel */
    int64_t across;    /* phases */
    int64_t even;      /* outputs of each of two phases of stride 2; 0: not so */
};

/* Row `row` of those. */
static void weave_row(const struct window *w, const struct woven_row *r, float *y,
                      int64_t row)
{
    const int64_t at = r->channel + row;
    if (r->even) {
        const float *from = r->from + at * r->even;
        weave_two(y, from, from + r->phase, r->even);
        return;
    }
    for (int64_t i = 0; i < r->across; i++) {
        const int64_t n = phase_outputs(w, 2, i);
        weave(y + i, r->from + i * r->phase + at * n, w->stride[2], n);
    }
}

/* Channel c of the phases that begin at plane o and row p. */
static void weave_phases(const struct window *w, float *y, const float *scratch,
                         int64_t channels, int64_t c, int64_t o, int64_t p)
{
    const int64_t rows = phase_outputs(w, 1, p), planes = phase_outputs(w, 0, o);
    const int64_t across = deconvolution_phases_along(w, 2), n = phase_outputs(w, 2, 0);
    const int64_t first = (o * deconvolution_phases_along(w, 1) + p) * across;
    struct woven_row r = {.phase = channels * phase_room(w), .across = across};
    r.from = scratch + first * r.phase;
    r.channel = c * planes * rows;
    r.even = w->stride[2] == 2 && across == 2 && n == phase_outputs(w, 2, 1) ? n : 0;
    for (int64_t d = 0; d < planes; d++)
        for (int64_t h = 0; h < rows; h++)
            weave_row(w, &r,
                      y + ((o + d * w->stride[0]) * w->out[1] + p + h * w->stride[1]) *
                              w->out[2],
                      d * rows + h);
}

/* Channel c of all phases into its plane of the output. */
static void weave_channel(const struct convolution_job *tail, const float *scratch,
                          int64_t image, int64_t c)
{
    const struct window *w = &tail->cv->w;
    int64_t channels = tail->cv->groups * tail->cv->out_c;
    float *y = tail->out + (image * channels + c) * window_out_count(w);
    for (int64_t o = 0; o < deconvolution_phases_along(w, 0); o++)
        for (int64_t p = 0; p < deconvolution_phases_along(w, 1); p++)
            weave_phases(w, y, scratch, channels, c, o, p);
    convolution_tail(tail, image, c, 0, window_out_count(w));
}

/* The outputs of a phase that sees no input. */
static void phase_clear(const struct convolution_job *job)
{
    size_t count =
        (size_t)(job->cv->groups * job->cv->out_c * window_out_count(&job->cv->w));
    memset(job->out, 0, count * sizeof *job->out);
}

/* Phase i of one image into job.out; the weights of the next one. */
static const float *phase_compute(const struct deconvolution *dc, int64_t i,
                                  const float *packed, struct convolution_job job)
{
    struct deconvolution_phase phase = deconvolution_phase_at(&dc->w, i);
    struct convolution cv = phase_convolution(dc, &phase, packed);
    job.cv = &cv;
    job.weight = packed;
    if (cv.depth)
        convolution_compute(&job);
    else
        phase_clear(&job);
    return packed + phase_weights(&cv);
}

/* One image; tail: the layer's output, bias and epilogue, with memory of the direct
 * method. scratch: for the phases, where there are several. */
static void phases_image(const struct deconvolution *dc,
                         const struct convolution_job *tail, const float *in,
                         int64_t image, float *scratch)
{
    static const strata_epilogue none;
    const float *packed = dc->packed;
    int64_t channels = dc->groups * dc->out_c, phases = deconvolution_phases(&dc->w);
    int64_t size = channels * window_out_count(&dc->w);
    struct convolution_job job = *tail;
    job.in = in;
    job.images = 1;
    if (phases == 1) {
        job.out += image * size;
        job.residual += job.residual ? image * size : 0;
        phase_compute(dc, 0, packed, job);
        return;
    }
    job.bias = job.residual = NULL;
    job.epilogue = &none;
    for (int64_t i = 0; i < phases; i++) {
        job.out = scratch + i * channels * phase_room(&dc->w);
        packed = phase_compute(dc, i, packed, job);
    }
#pragma omp parallel for if (size > IMAGE_PARALLEL)
    for (int64_t c = 0; c < channels; c++)
        weave_channel(tail, scratch, image, c);
}

#endif /* PLUGINS_DECONVOLUTION_PHASES_H */
