/* SPDX-License-Identifier: Apache-2.0
 *
 * How a bottleneck whose weights come through a ring is shared by blocks: tiles.
 */
#ifndef PLUGINS_BOTTLENECK_STREAM_SHARE_CUH
#define PLUGINS_BOTTLENECK_STREAM_SHARE_CUH

#include "plugins/bottleneck/many.cuh"
#include "plugins/bottleneck/stream.cuh"

static inline int32_t stream_least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* As few tiles as an image may have in columns, and then as high as there is room. */
static inline void stream_choose_tile(stream_job *j)
{
    const int32_t most = STREAM_MOST_PITCH - 2, across = (j->width + most - 1) / most;
    const int32_t wide = (j->width + across - 1) / across, pitch = wide + 2;
    const int32_t high =
        stream_least((2 * STREAM_PIXELS + 2) / pitch, 2 * STREAM_REACHED / pitch - 2);
    const int32_t down = (j->height + high - 1) / high;
    j->tile_w = wide;
    j->tile_h = (j->height + down - 1) / down;
    j->pitch = divisor_of(pitch);
    j->across = divisor_of(across);
    j->tiles = divisor_of((int64_t)across * down);
    j->box = pitch * (j->tile_h + 2) * BOTTLENECK_ROW;
}

/* What is known without the batch. */
static inline void stream_plan(stream_job *j, const bottleneck_sizes &s)
{
    j->height = s.height;
    j->width = s.width;
    j->results = (s.results + 7) / 8 * 8;
    j->panels = (s.channels + 63) / 64;
    j->parts = (s.results + 63) / 64;
    stream_choose_tile(j);
}

/* Of a launch, where the device has room for so many clusters. */
static inline int32_t stream_clusters(stream_job *j, int64_t images, int32_t clusters)
{
    j->units = (int32_t)(images * j->tiles.d);
    return stream_least((j->units + 1) / 2, clusters);
}

/* ---- tensors ---------------------------------------------------------------------- */

static inline bool stream_map(stream_job *j, const void *x, int64_t images,
                              int32_t channels)
{
    const int64_t pixels = images * j->height * j->width;
    j->large = pixels * ((channels + 7) / 8 * 8 + j->results) * 2 > MANY_ROOM;
    return bottleneck_map(&j->x, x, images, j->height, j->width, channels, j->tile_h + 2,
                          j->tile_w + 2);
}

#endif /* PLUGINS_BOTTLENECK_STREAM_SHARE_CUH */
