/* SPDX-License-Identifier: Apache-2.0
 *
 * How a bottleneck whose blocks go down strips is shared by them; and its weights in the
 * order in which they are asked for.
 */
#ifndef PLUGINS_BOTTLENECK_ROLL_SHARE_CUH
#define PLUGINS_BOTTLENECK_ROLL_SHARE_CUH

#include "plugins/bottleneck/roll.cuh"
#include "plugins/bottleneck/share.cuh"

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

/* ---- weights ---------------------------------------------------------------------- */

/* Result m of 64 and depth k of a matrix; two of them are a piece. */
static __device__ inline float roll_weight(const bottleneck_weights &w, int panels,
                                           int matrix, int m, int k)
{
    const int half = matrix % 2 * 64;
    int piece = matrix / 2;
    if (piece < panels)
        return bottleneck_first(w, half + m, piece * 64 + k);
    piece -= panels;
    const int element = piece / 2, depth = piece % 2 * 64 + k;
    if (element < BOTTLENECK_WINDOWS)
        return half + m < w.convolved && depth < w.reduced
                   ? w.windows[((int64_t)(half + m) * w.reduced + depth) *
                                   BOTTLENECK_WINDOWS +
                               element]
                   : 0;
    return bottleneck_of(w.project,
                         (piece - 2 * BOTTLENECK_WINDOWS) * 64 + strip_result(m),
                         w.results, half + k, w.convolved);
}

static inline int64_t roll_packed(const roll_job &j)
{
    return roll_pieces(j) * (int64_t)ROLL_PIECE +
           (256 + j.parts * 64) * (int64_t)sizeof(float);
}

/* A block a matrix; the first has the biases, too, which lie behind the matrices. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    roll_pack_kernel(const __grid_constant__ bottleneck_weights w, int panels, int parts,
                     uint8_t *matrices)
{
    const int matrix = (int)blockIdx.x;
    __half *to = (__half *)(matrices + (int64_t)matrix * BOTTLENECK_PIECE);
    float *bias = (float *)(matrices + (int64_t)gridDim.x * BOTTLENECK_PIECE);
    for (int e = (int)threadIdx.x; e < 64 * 64; e += CUDA_BLOCK) {
        const int m = e / 64, k = e % 64;
        from_float(to + m * 64 + ((k / 8) ^ (m & 7)) * 8 + k % 8,
                   roll_weight(w, panels, matrix, m, k));
    }
    for (int c = (int)threadIdx.x; c < 256 + parts * 64 && matrix == 0; c += CUDA_BLOCK)
        bias[c] = bottleneck_bias(w, 2, c);
}

/* ---- launches --------------------------------------------------------------------- */

enum { ROLL_ROOM = 32 << 20 }; /* of L2, bytes: what is half of it at least */

static inline bool roll_map(roll_job *j, const void *x, int64_t images, int32_t channels)
{
    const int64_t pixels = images * j->height * j->width;
    j->large = pixels * ((channels + 7) / 8 * 8 + j->results) * 2 > ROLL_ROOM;
    #ifdef ROLL_NEVER
    j->again = false;
#else
    j->again = j->addend == x;
#endif
    return bottleneck_map(&j->x, x, images, j->height, j->width, channels, j->high,
                          j->tile_w + 2) &&
           bottleneck_map(&j->added, j->addend ? j->addend : j->y, images, j->height,
                          j->width, j->results, j->high, j->tile_w + 2);
}

static inline cudaLaunchConfig_t roll_config(cudaLaunchAttribute (&attributes)[2],
                                             int32_t clusters)
{
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = ROLL_CLUSTER;
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    config.gridDim = dim3((unsigned)clusters * ROLL_CLUSTER);
    config.blockDim = dim3(ROLL_THREADS);
    config.dynamicSmemBytes = ROLL_SHARED;
    config.attrs = attributes;
    config.numAttrs = 2;
    return config;
}

#endif /* PLUGINS_BOTTLENECK_ROLL_SHARE_CUH */
