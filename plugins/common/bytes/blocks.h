/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of images between FP32 in blocks of 8 channels and bytes with the channels last: a
 * stretch of pixels of one block at a time, whose bytes lie together meanwhile.
 */
#ifndef PLUGINS_COMMON_BYTES_BLOCKS_H
#define PLUGINS_COMMON_BYTES_BLOCKS_H

#include <string.h>

#include "plugins/common/element.h"
#include "plugins/common/quantized/quantize.h"
#include "plugins/common/walk.h"

enum { BLOCK_LANES = 8, BLOCK_PIXELS = 128 };

struct byte_block {
    float *floats;                   /* of the first pixel */
    uint8_t *bytes;                  /* likewise, in the image */
    int64_t pixels, lanes, channels; /* lanes: those that are no pads */
};

/* `bytes` are those of b's pixels, pads included. */
static inline void block_load(const struct byte_block *b, uint8_t *bytes)
{
    if (b->lanes == BLOCK_LANES)
        for (int64_t i = 0; i < b->pixels; i++)
            memcpy(bytes + i * BLOCK_LANES, b->bytes + i * b->channels, BLOCK_LANES);
    else
        for (int64_t i = 0; i < b->pixels; i++)
            for (int64_t l = 0; l < BLOCK_LANES; l++)
                bytes[i * BLOCK_LANES + l] =
                    l < b->lanes ? b->bytes[i * b->channels + l] : 0;
}

static inline void block_store(const struct byte_block *b, const uint8_t *bytes)
{
    if (b->lanes == BLOCK_LANES)
        for (int64_t i = 0; i < b->pixels; i++)
            memcpy(b->bytes + i * b->channels, bytes + i * BLOCK_LANES, BLOCK_LANES);
    else
        for (int64_t i = 0; i < b->pixels; i++)
            for (int64_t l = 0; l < b->lanes; l++)
                b->bytes[i * b->channels + l] = bytes[i * BLOCK_LANES + l];
}

/* Calls `run` for all of an image; both are dense, of rank 4. */
static inline void blocks_run(const strata_tensor *floats, const strata_tensor *bytes,
                              void (*run)(const struct byte_block *, const void *),
                              const void *job)
{
    const int64_t channels = bytes->dims[1], height = bytes->dims[2],
                  width = bytes->dims[3];
    const int64_t blocks = (channels + BLOCK_LANES - 1) / BLOCK_LANES;
    const int64_t plane = height * width, rows = bytes->dims[0] * height;
#pragma omp parallel for schedule(static) if (bytes->count >= WALK_PARALLEL)
    for (int64_t row = 0; row < rows; row++)
        for (int64_t w = 0; w < width; w += BLOCK_PIXELS)
            for (int64_t c = 0; c < blocks; c++) {
                const int64_t pixel = row % height * width + w, left = width - w,
                              lanes = channels - c * BLOCK_LANES;
                const int64_t at = (row / height * blocks + c) * plane + pixel;
                const struct byte_block b = {
                    .floats = (float *)floats->data + at * BLOCK_LANES,
                    .bytes = (uint8_t *)bytes->data +
                             (row / height * plane + pixel) * channels + c * BLOCK_LANES,
                    .pixels = left < BLOCK_PIXELS ? left : BLOCK_PIXELS,
                    .lanes = lanes < BLOCK_LANES ? lanes : BLOCK_LANES,
                    .channels = channels};
                run(&b, job);
            }
}

static inline int blocks_accept(const strata_node *n)
{
    const strata_quantize *p = (const strata_quantize *)n->params;
    const int one = p->block == 0 && quantize_count(&n->weight[0]) == 1;
    return n->in[0].rank == 4 && one
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "it takes images of one scale, in four dims");
}

/* The layer's zero, 0 where it has none. */
static inline float blocks_zero(const strata_run *r)
{
    return r->weight[1].rank > 0 ? *(const float *)r->weight[1].data : 0;
}

#endif /* PLUGINS_COMMON_BYTES_BLOCKS_H */
