/* SPDX-License-Identifier: Apache-2.0
 *
 * How a bottleneck of many pixels is shared by blocks: strips and their segments; and its
 * weights as the matrices that each block keeps.
 */
#ifndef PLUGINS_BOTTLENECK_STRIP_SHARE_CUH
#define PLUGINS_BOTTLENECK_STRIP_SHARE_CUH

#include "plugins/bottleneck/many.cuh"
#include "plugins/bottleneck/strip.cuh"

enum { STRIP_MEMORY = 232448 }; /* of a block, at most */

static inline int32_t strip_shared_bytes(const strip_job &j, int32_t slots)
{
    return 1024 + STRIP_WEIGHTS + strip_matrices(j) * BOTTLENECK_PIECE + STRIP_REDUCED +
           STRIP_CONVOLVED + slots * STRIP_SLOT;
}

/* What is known without the batch. */
static inline void strip_plan(strip_job *j, const bottleneck_sizes &s)
{
    j->height = s.height;
    j->width = s.width;
    j->channels = (s.channels + 7) / 8 * 8;
    j->results = (s.results + 7) / 8 * 8;
    j->crosses = s.crosses;
    j->panels = (s.channels + 63) / 64;
    j->parts = (s.results + 63) / 64;
    j->strips = divisor_of((s.height + STRIP_HIGH - 1) / STRIP_HIGH);
    j->steps = (s.width + STRIP_WIDE - 1) / STRIP_WIDE;
    j->slots = (STRIP_MEMORY - strip_shared_bytes(*j, 0)) / STRIP_SLOT;
    if (j->slots > STRIP_SLOTS)
        j->slots = STRIP_SLOTS;
}

/* Steps of a unit, so that the block with most of them has few: a unit's first step costs
 * half a one more, for its edge and for what waits for it. */
static inline int32_t strip_choose_each(const strip_job &j, int64_t images,
                                        int32_t blocks)
{
    int32_t best = j.steps;
    int64_t least = INT64_MAX;
    for (int32_t each = j.steps; each > 0; each--) {
        const int64_t segments = (j.steps + each - 1) / each;
        const int64_t units = images * j.strips.d * segments;
        const int64_t time = (units + blocks - 1) / blocks * (2 * each + 1);
        if (time < least) {
            least = time;
            best = each;
        }
    }
    return best;
}

/* Blocks of a launch. */
static inline int32_t strip_blocks(strip_job *j, int64_t images, int32_t blocks)
{
    j->each = strip_choose_each(*j, images, blocks);
    j->of_image = divisor_of((int64_t)j->strips.d * ((j->steps + j->each - 1) / j->each));
    j->units = (int32_t)(images * j->of_image.d);
    return j->units < blocks ? j->units : blocks;
}

/* ---- weights ---------------------------------------------------------------------- */

/* Result m of 64 and depth k of a matrix. */
static __device__ inline float strip_weight(const bottleneck_weights &w, int panels,
                                            int parts, int matrix, int m, int k)
{
    if (matrix < panels)
        return bottleneck_first(w, m, matrix * 64 + k);
    matrix -= panels;
    if (matrix < BOTTLENECK_WINDOWS)
        return m < w.convolved && k < w.reduced
                   ? w.windows[((int64_t)m * w.reduced + k) * BOTTLENECK_WINDOWS + matrix]
                   : 0;
    matrix -= BOTTLENECK_WINDOWS;
    return matrix < parts
               ? bottleneck_of(w.project, matrix * 64 + strip_result(m), w.results, k,
                               w.convolved)
               : bottleneck_of(w.shortcut, (matrix - parts) * 64 + strip_result(m),
                               w.results, strip_channel(k), w.channels);
}

static __global__ void __launch_bounds__(CUDA_BLOCK)
    strip_pack_kernel(bottleneck_weights w, int panels, int parts, uint8_t *matrices)
{
    bottleneck_pack(w, matrices, 1, 128 + parts * 64, [&](int m, int k) {
        return strip_weight(w, panels, parts, (int)blockIdx.x, m, k);
    });
}

/* ---- tensors ---------------------------------------------------------------------- */

static inline bool strip_map(strip_job *j, const void *x, int64_t images,
                             int32_t channels)
{
    const int64_t pixels = images * j->height * j->width;
    j->large = pixels * ((channels + 7) / 8 * 8 + j->results) * 2 > MANY_ROOM;
    j->joined = j->large && j->addend == x;
    j->x = (const __half *)x;
    return bottleneck_map(&j->step, x, images, j->height, j->width, channels, STRIP_REACH,
                          STRIP_WIDE) &&
           bottleneck_map(&j->edge, x, images, j->height, j->width, channels, STRIP_REACH,
                          STRIP_EDGE);
}

#endif /* PLUGINS_BOTTLENECK_STRIP_SHARE_CUH */
