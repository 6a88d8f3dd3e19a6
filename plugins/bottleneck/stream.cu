/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottleneck of many pixels on Hopper's tensor cores, in one launch: fp16:nhwc8, windows
 * of 3x3, more than 64 channels between and up to 128.
 */
#include "plugins/bottleneck/stream_share.cuh"

#define LEAST_TILES 16 /* for an eighth of the multiprocessors */

static const char *refuse_channels(const bottleneck_shape &s)
{
    if (s.shortcut)
        return "it adds no product of its input";
    return s.channels > 1024 || s.results > 1024 || s.reduced > 128 || s.convolved > 128
               ? "it is for up to 1024 channels, 128 of them between"
           : s.reduced <= 64 && s.convolved <= 64
               ? "it is for more than 64 channels between"
               : NULL;
}

static const many_way<stream_job> way = {
    .kernel = (const void *)stream_kernel,
    .pack = ring_pack_kernel,
    .cluster = STREAM_CLUSTER,
    .threads = STREAM_THREADS,
    .least = LEAST_TILES,
    .refuse = refuse_channels,
    .plan = stream_plan,
    .work = [](const stream_job &j) { return (int64_t)j.tiles.d; },
    .matrices = [](const stream_job &j) { return 2 * stream_pieces(j); },
    .biases = [](const stream_job &j) { return 256 + j.parts * 64; },
    .shared = [](const stream_job &) { return (int32_t)STREAM_SHARED; },
    .clusters = stream_clusters,
    .map = stream_map,
};

MANY_WAY(stream, way)
