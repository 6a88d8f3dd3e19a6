/* SPDX-License-Identifier: Apache-2.0
 *
 * How a bottleneck whose blocks go down strips is shared by them.
 */
#ifndef PLUGINS_BOTTLENECK_ROLL_SHARE_CUH
#define PLUGINS_BOTTLENECK_ROLL_SHARE_CUH

#include "plugins/bottleneck/many.cuh"
#include "plugins/bottleneck/roll.cuh"

/* What is known without the batch. */
static inline void roll_plan(roll_job *j, const bottleneck_sizes &s)
{
    const int32_t most = ROLL_MOST_PITCH - 2, across = (s.width + most - 1) / most;
    j->height = s.height;
    j->width = s.width;
    j->results = (s.results + 7) / 8 * 8;
    j->panels = (s.channels + 63) / 64;
    j->parts = (s.results + 127) / 128 * 2;
    j->across = divisor_of(across);
    j->tile_w = (s.width + across - 1) / across;
    j->pitch = divisor_of(j->tile_w + 2);
    j->high = (ROLL_REACH / (j->tile_w + 2)) - 2;
    if (j->high > ROLL_PIXELS / (j->tile_w + 2))
        j->high = ROLL_PIXELS / (j->tile_w + 2);
}

static inline int64_t roll_units(const roll_job &j, int64_t images, int32_t steps)
{
    const int32_t rows = steps * j.high - 2;
    return images * j.across.d * ((j.height + rows - 1) / rows);
}

/* Steps of a unit, so that the block with most of them has few; more of equal ones, as
 * fewer rows are reduced twice. */
static inline int32_t roll_choose_steps(const roll_job &j, int64_t images, int32_t blocks)
{
    int32_t best = 0;
    int64_t least = INT64_MAX;
    for (int32_t steps = (j.height + 2 + j.high - 1) / j.high; steps * j.high > 2;
         steps--) {
        const int64_t units = roll_units(j, images, steps);
        const int64_t time = (units + blocks - 1) / blocks * steps;
        if (time < least) {
            least = time;
            best = steps;
        }
    }
    return best;
}

/* Clusters of a launch, where the device has room for so many at once. */
static inline int32_t roll_clusters(roll_job *j, int64_t images, int32_t clusters)
{
    j->steps = roll_choose_steps(*j, images, ROLL_CLUSTER * clusters);
    j->rows = j->steps * j->high - 2;
    j->tiles = divisor_of(roll_units(*j, 1, j->steps));
    j->units = (int32_t)roll_units(*j, images, j->steps);
    const int32_t most = (j->units + ROLL_CLUSTER - 1) / ROLL_CLUSTER;
    return most < clusters ? most : clusters;
}

/* ---- tensors ---------------------------------------------------------------------- */

static inline bool roll_map(roll_job *j, const void *x, int64_t images, int32_t channels)
{
    const int64_t pixels = images * j->height * j->width;
    j->large = pixels * ((channels + 7) / 8 * 8 + j->results) * 2 > MANY_ROOM;
    j->again = j->addend == x;
    return bottleneck_map(&j->x, x, images, j->height, j->width, channels, j->high,
                          j->tile_w + 2) &&
           bottleneck_map(&j->added, j->addend ? j->addend : j->y, images, j->height,
                          j->width, j->results, j->high, j->tile_w + 2);
}

#endif /* PLUGINS_BOTTLENECK_ROLL_SHARE_CUH */
