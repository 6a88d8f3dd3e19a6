/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottleneck of many pixels on Hopper's tensor cores, in one launch: fp16:nhwc8, windows
 * of 3x3, more than 64 channels between and up to 128.
 */
#include "plugins/bottleneck/roll_share.cuh"

#define LEAST_PIXELS 3000

static const many_way<roll_job> way = {
    .kernel = (const void *)roll_kernel,
    .pack = ring_pack_kernel,
    .cluster = ROLL_CLUSTER,
    .threads = ROLL_THREADS,
    .least = LEAST_PIXELS,
    .refuse = ring_refuse,
    .plan = roll_plan,
    .work = [](const roll_job &j) { return (int64_t)j.height * j.width; },
    .matrices = [](const roll_job &j) { return 2 * roll_pieces(j); },
    .biases = [](const roll_job &j) { return 256 + j.parts * 64; },
    .shared = [](const roll_job &) { return (int32_t)ROLL_SHARED; },
    .clusters = roll_clusters,
    .map = roll_map,
};

MANY_WAY(roll, way)
