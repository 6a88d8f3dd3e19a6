/* SPDX-License-Identifier: Apache-2.0
 *
 * The windows of a convolution as the rows of a product's A: what the copy engine takes,
 * and how it is told.
 */
#ifndef PLUGINS_COMMON_PRODUCT_WINDOWS_CUH
#define PLUGINS_COMMON_PRODUCT_WINDOWS_CUH

#include "plugins/common/product/launch.cuh"
#include "plugins/common/window.h"

#define WINDOWS_CORNER 127 /* pixels: of a window's begin and end, past the image's */
#define WINDOWS_STRIDE 8
#define WINDOWS_REACH 255 /* pixels from a window's first element to its last */

/* Images in channels-last order. */
struct windows_input {
    const void *data;
    int32_t dtype;
    int64_t channels, pitch; /* elements of a pixel; from one to the next */
    int64_t images;
};

/* Windows that are pixels: A is a matrix as it lies. */
static inline bool windows_are_rows(const struct window *w)
{
    bool rows = true;
    for (int d = 1; d < WINDOW_DIMS; d++)
        rows &= w->kernel[d] == 1 && w->stride[d] == 1 && w->begin[d] == 0 &&
                w->in[d] == w->out[d];
    return rows;
}

/* Why the copy engine does not find such windows, or NULL. */
static inline const char *windows_refusal(const struct window *w)
{
    for (int d = 1; d < WINDOW_DIMS; d++) {
        const int64_t end = (w->out[d] - 1) * w->stride[d] - w->begin[d] - w->in[d] + 1;
        if (w->stride[d] > WINDOWS_STRIDE || window_extent(w, d) - 1 > WINDOWS_REACH)
            return "the copy engine takes strides up to 8, windows up to 256 pixels";
        if (w->begin[d] > WINDOWS_CORNER || end > WINDOWS_CORNER || end < -WINDOWS_CORNER)
            return "the copy engine takes pads up to 127";
    }
    return NULL;
}

/* Pieces of channels of an element of the kernel. */
static inline int64_t windows_pieces(int64_t channels, int64_t depth)
{
    return (channels + depth - 1) / depth;
}

static inline product_window windows_of(const struct window *w, int64_t pieces)
{
    product_window p = {};
    p.on = !windows_are_rows(w);
    p.pixels = divisor_of(w->out[1] * w->out[2]);
    p.width = divisor_of(w->out[2]);
    p.pieces = divisor_of(pieces);
    p.kernel_w = divisor_of(w->kernel[2]);
    p.stride_h = (int32_t)w->stride[1];
    p.stride_w = (int32_t)w->stride[2];
    p.begin_h = (int32_t)w->begin[1];
    p.begin_w = (int32_t)w->begin[2];
    p.dilation_h = (int32_t)w->dilation[1];
    p.dilation_w = (int32_t)w->dilation[2];
    return p;
}

/* A of a job that has its m. */
static inline bool windows_map(product_job *job, const windows_input &x,
                               const struct window *w, const product_launch &l)
{
    tensor_map_window map = {};
    const product_matrix pixels = {x.data, x.channels, job->m, x.pitch, 1, 0};
    job->window = windows_of(w, windows_pieces(x.channels, l.depth));
    if (!job->window.on)
        return map_matrix(&job->a, pixels, x.dtype, l.rows, l.depth);
    map.channels = (uint64_t)x.channels;
    map.width = (uint64_t)w->in[2];
    map.height = (uint64_t)w->in[1];
    map.images = (uint64_t)(x.images * w->in[0]);
    map.pitch = x.pitch;
    map.across = (int)w->out[2];
    map.down = (int)w->out[1];
    map.begin_h = (int)w->begin[1];
    map.begin_w = (int)w->begin[2];
    map.stride_h = (int)w->stride[1];
    map.stride_w = (int)w->stride[2];
    map.depth = l.depth;
    return tensor_map_windows(&job->a, x.data, x.dtype, map, (uint32_t)l.rows);
}

#endif /* PLUGINS_COMMON_PRODUCT_WINDOWS_CUH */
