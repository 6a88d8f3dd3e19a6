/* SPDX-License-Identifier: Apache-2.0
 *
 * One image of a tensor to and from dense FP32 [C][spatial], whatever its format (FP32,
 * FP16 or BF16) and pitches. With these an impl with one FP32 core serves every format:
 * the image is unpacked into workspace, computed, and packed with zero pad lanes.
 */
#ifndef PLUGINS_COMMON_IMAGE_H
#define PLUGINS_COMMON_IMAGE_H

#include "plugins/common/element.h"

#define IMAGE_LANES 16        /* channels moved together at most */
#define IMAGE_TILE 64         /* pixels moved together */
#define IMAGE_PARALLEL 65536  /* elements that pay for a thread team */

/* Spatial dims as rows of pixels; dims that lie dense in each other are merged. */
struct image_rows {
    int64_t n[2], stride[2]; /* rows, outermost first */
    int64_t length, step;    /* pixels of a row and their distance */
};

static inline struct image_rows image_rows(const strata_tensor *t)
{
    struct image_rows r = {{1, 1}, {0, 0}, 1, 1};
    int outer = 1;
    if (t->rank > 2) {
        r.length = t->dims[t->rank - 1];
        r.step = t->strides[t->rank - 1];
    }
    for (int d = t->rank - 2; d >= 2; d--)
        if (outer == 1 && t->strides[d] == r.length * r.step) {
            r.length *= t->dims[d];
        } else {
            r.n[outer] = t->dims[d];
            r.stride[outer--] = t->strides[d];
        }
    return r;
}

/* Elements of a spatial plane. */
static inline int64_t image_plane(const strata_tensor *t)
{
    int64_t plane = 1;
    for (int d = 2; d < t->rank; d++)
        plane *= t->dims[d];
    return plane;
}

/* Channels that lie beside each other in memory, moved together. */
static inline int64_t image_lanes(const strata_tensor *t)
{
    if (t->vector_dim == 1 && t->vector > 1)
        return t->vector < IMAGE_LANES ? t->vector : IMAGE_LANES;
    return t->strides[1] == 1 && t->dims[1] > 1 ? IMAGE_LANES : 1;
}

/* Channels with pad lanes. */
static inline int64_t image_channels(const strata_tensor *t)
{
    int64_t v = t->vector_dim == 1 ? t->vector : 1;
    return (t->dims[1] + v - 1) / v * v;
}

/* `live` channels of `n` pixels from `offset` to rows of dst, `plane` apart. */
static inline void image_unpack_tile(float *dst, int64_t plane, const strata_tensor *t,
                                     int64_t offset, int64_t step, int64_t lanes,
                                     int64_t live, int64_t n)
{
    float tile[IMAGE_TILE * IMAGE_LANES];
    if (step == lanes)
        element_load_row(tile, t->data, t->dtype, offset, 1, n * lanes);
    else
        for (int64_t p = 0; p < n; p++)
            element_load_row(tile + p * lanes, t->data, t->dtype, offset + p * step, 1,
                             live);
    for (int64_t c = 0; c < live; c++)
        for (int64_t p = 0; p < n; p++)
            dst[c * plane + p] = tile[p * lanes + c];
}

/* The way back; lanes from `live` to `lanes` are pads and become zero. */
static inline void image_pack_tile(const strata_tensor *t, int64_t offset, int64_t step,
                                   int64_t lanes, int64_t live, int64_t n,
                                   const float *src, int64_t plane)
{
    float tile[IMAGE_TILE * IMAGE_LANES];
    for (int64_t c = 0; c < lanes; c++)
        for (int64_t p = 0; p < n; p++)
            tile[p * lanes + c] = c < live ? src[c * plane + p] : 0;
    if (step == lanes)
        element_store_row(t->data, t->dtype, offset, 1, tile, n * lanes);
    else
        for (int64_t p = 0; p < n; p++)
            element_store_row(t->data, t->dtype, offset + p * step, 1, tile + p * lanes,
                              lanes);
}

/* Pixels [from, to) of the spatial dims, in their order. */
struct image_part {
    int64_t from, to;
};

/* Channels [c, c + lanes) of image n; src NULL: unpack into dst, else pack from src. */
static inline void image_move(const strata_tensor *t, int64_t n, struct image_part part,
                              int64_t c, int64_t lanes, float *dst, const float *src)
{
    struct image_rows r = image_rows(t);
    int64_t plane = part.to - part.from, width = image_channels(t) - c;
    int64_t live = t->dims[1] - c < lanes ? t->dims[1] - c : lanes;
    live = live < 0 ? 0 : live;
    lanes = width < lanes ? width : lanes;
    for (int64_t from = part.from, to; from < part.to; from = to) {
        int64_t row = from / r.length, at = c * plane + from - part.from;
        to = (row + 1) * r.length < part.to ? (row + 1) * r.length : part.to;
        int64_t offset = element_channel(t, n, c) + row / r.n[1] * r.stride[0] +
                         row % r.n[1] * r.stride[1] + (from - row * r.length) * r.step;
        if (lanes == 1 && src)
            element_store_row(t->data, t->dtype, offset, r.step, src + at, to - from);
        else if (lanes == 1)
            element_load_row(dst + at, t->data, t->dtype, offset, r.step, to - from);
        for (int64_t p = 0; p < to - from && lanes > 1; p += IMAGE_TILE) {
            int64_t m = to - from - p < IMAGE_TILE ? to - from - p : IMAGE_TILE;
            if (src)
                image_pack_tile(t, offset + p * r.step, r.step, lanes, live, m,
                                live ? src + at + p : src, plane);
            else
                image_unpack_tile(dst + at + p, plane, t, offset + p * r.step, r.step,
                                  lanes, live, m);
        }
    }
}

static inline void image_unpack_part(float *dst, const strata_tensor *t, int64_t n,
                                     struct image_part part)
{
    int64_t lanes = image_lanes(t), channels = t->dims[1];
#pragma omp parallel for if (channels * (part.to - part.from) > IMAGE_PARALLEL)
    for (int64_t c = 0; c < channels; c += lanes)
        image_move(t, n, part, c, lanes, dst, NULL);
}

static inline void image_pack_part(const strata_tensor *t, int64_t n,
                                   struct image_part part, const float *src)
{
    int64_t lanes = image_lanes(t), channels = image_channels(t);
#pragma omp parallel for if (channels * (part.to - part.from) > IMAGE_PARALLEL)
    for (int64_t c = 0; c < channels; c += lanes)
        image_move(t, n, part, c, lanes, NULL, src);
}

static inline void image_unpack(float *dst, const strata_tensor *t, int64_t n)
{
    image_unpack_part(dst, t, n, (struct image_part){0, image_plane(t)});
}

static inline void image_pack(const strata_tensor *t, int64_t n, const float *src)
{
    image_pack_part(t, n, (struct image_part){0, image_plane(t)}, src);
}

/* *total += bytes of `images` FP32 images like t, each rounded to 256; false: overflow.
 */
static inline int image_reserve(size_t *total, const strata_tensor *t)
{
    size_t bytes = sizeof(float);
    for (int d = 1; d < t->rank; d++)
        if (t->dims[d] < 0 || __builtin_mul_overflow(bytes, (size_t)t->dims[d], &bytes))
            return 0;
    return !__builtin_add_overflow(bytes, 255, &bytes) &&
           !__builtin_add_overflow(*total, bytes & ~(size_t)255, total);
}

/* The next image like t from a workspace that image_reserve measured. */
static inline float *image_take(char **workspace, const strata_tensor *t)
{
    size_t bytes = 0;
    float *image = (float *)(void *)*workspace;
    image_reserve(&bytes, t);
    *workspace += bytes;
    return image;
}

#endif /* PLUGINS_COMMON_IMAGE_H */
