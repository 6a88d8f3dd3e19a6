/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottleneck of many pixels on Hopper's tensor cores, in one launch: fp16:nhwc8, windows
 * of 3x3, up to 64 channels between.
 */
#include "plugins/bottleneck/strip_share.cuh"

#define LEAST_STEPS 32 /* for a quarter of the multiprocessors */

static const char *refuse_channels(const bottleneck_shape &s)
{
    return s.channels > 64 * STRIP_PARTS || s.results > 64 * STRIP_PARTS ||
                   s.reduced > 64 || s.convolved > 64
               ? "it is for up to 256 channels, 64 of them between"
           : !s.shortcut     ? NULL
           : s.channels > 64 ? "it adds a product of up to 64 channels"
           : s.results % 8   ? "it adds a product to whole eights of results alone"
                             : NULL;
}

static const many_way<strip_job> way = {
    .kernel = (const void *)strip_kernel,
    .pack = strip_pack_kernel,
    .cluster = 1,
    .threads = STRIP_THREADS,
    .least = LEAST_STEPS,
    .refuse = refuse_channels,
    .plan = strip_plan,
    .work = [](const strip_job &j) { return (int64_t)j.strips.d * j.steps; },
    .matrices = strip_matrices,
    .biases = [](const strip_job &j) { return 128 + j.parts * 64; },
    .shared = [](const strip_job &j) { return strip_shared_bytes(j, j.slots); },
    .clusters = strip_blocks,
    .map = strip_map,
};

MANY_WAY(strip, way)
