/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottleneck of many pixels on Hopper's tensor cores, in one launch: fp16:nhwc8, windows
 * of 3x3, more than 64 channels between and up to 128. Its weights come through a ring.
 */
#include "plugins/bottleneck/many.cuh"
#include "plugins/bottleneck/stream.cuh"

#define LEAST_TILES 16 /* for an eighth of the multiprocessors */

static int32_t stream_least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* As few tiles as an image may have in columns, and then as high as there is room. */
static void stream_choose_tile(stream_job *j)
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
static void stream_plan(stream_job *j, const bottleneck_sizes &s)
{
    j->height = s.height;
    j->width = s.width;
    j->results = (s.results + 7) / 8 * 8;
    j->panels = (s.channels + 63) / 64;
    j->parts = (s.results + 63) / 64;
    stream_choose_tile(j);
}

/* Of a launch, where the device has room for so many clusters. */
static int32_t stream_clusters(stream_job *j, int64_t images, int32_t clusters)
{
    j->units = (int32_t)(images * j->tiles.d);
    return stream_least((j->units + 1) / 2, clusters);
}

static bool stream_map(stream_job *j, const void *x, int64_t images, int32_t channels)
{
    const int64_t pixels = images * j->height * j->width;
    j->large = pixels * ((channels + 7) / 8 * 8 + j->results) * 2 > MANY_ROOM;
    return bottleneck_map(&j->x, x, images, j->height, j->width, channels, j->tile_h + 2,
                          j->tile_w + 2);
}

static const many_way<stream_job> way = {
    .kernel = (const void *)stream_kernel,
    .pack = ring_pack_kernel,
    .cluster = STREAM_CLUSTER,
    .threads = STREAM_THREADS,
    .least = LEAST_TILES,
    .refuse = ring_refuse,
    .plan = stream_plan,
    .work = [](const stream_job &j) { return (int64_t)j.tiles.d; },
    .matrices = [](const stream_job &j) { return 2 * stream_pieces(j); },
    .biases = [](const stream_job &j) { return 256 + j.parts * 64; },
    .shared = [](const stream_job &) { return (int32_t)STREAM_SHARED; },
    .clusters = stream_clusters,
    .map = stream_map,
};

MANY_WAY(stream, way)
