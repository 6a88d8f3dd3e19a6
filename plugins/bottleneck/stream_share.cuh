/* SPDX-License-Identifier: Apache-2.0
 *
 * How a bottleneck whose weights come through a ring is shared by blocks: tiles; and its
 * weights in the order in which they are asked for.
 */
#ifndef PLUGINS_BOTTLENECK_STREAM_SHARE_CUH
#define PLUGINS_BOTTLENECK_STREAM_SHARE_CUH

#include "plugins/bottleneck/share.cuh"
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

/* ---- weights ---------------------------------------------------------------------- */

/* Result m of 64 and depth k of a matrix; two of them are a piece. */
static __device__ inline float stream_weight(const bottleneck_weights &w, int panels,
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

static inline int64_t stream_packed(const stream_job &j)
{
    return stream_pieces(j) * (int64_t)STREAM_WEIGHTS +
           (256 + j.parts * 64) * (int64_t)sizeof(float);
}

/* A block a matrix; the first has the biases, too, which lie behind the matrices. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    stream_pack_kernel(const __grid_constant__ bottleneck_weights w, int panels,
                       int parts, uint8_t *matrices)
{
    const int matrix = (int)blockIdx.x;
    __half *to = (__half *)(matrices + (int64_t)matrix * BOTTLENECK_PIECE);
    float *bias = (float *)(matrices + (int64_t)gridDim.x * BOTTLENECK_PIECE);
    for (int e = (int)threadIdx.x; e < 64 * 64; e += CUDA_BLOCK) {
        const int m = e / 64, k = e % 64;
        from_float(to + m * 64 + ((k / 8) ^ (m & 7)) * 8 + k % 8,
                   stream_weight(w, panels, matrix, m, k));
    }
    for (int c = (int)threadIdx.x; c < 256 + parts * 64 && matrix == 0; c += CUDA_BLOCK)
        bias[c] = bottleneck_bias(w, 2, c);
}

/* ---- launches --------------------------------------------------------------------- */

enum { STREAM_ROOM = 32 << 20 }; /* of L2, bytes: what is half of it at least */

static inline bool stream_map(stream_job *j, const void *x, int64_t images,
                              int32_t channels)
{
    const int64_t pixels = images * j->height * j->width;
    j->large = pixels * ((channels + 7) / 8 * 8 + j->results) * 2 > STREAM_ROOM;
    return bottleneck_map(&j->x, x, images, j->height, j->width, channels, j->tile_h + 2,
                          j->tile_w + 2);
}

static inline cudaLaunchConfig_t stream_config(cudaLaunchAttribute (&attributes)[2],
                                               int32_t clusters)
{
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = 2;
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    config.gridDim = dim3((unsigned)clusters * 2);
    config.blockDim = dim3(STREAM_THREADS);
    config.dynamicSmemBytes = STREAM_SHARED;
    config.attrs = attributes;
    config.numAttrs = 2;
    return config;
}

#endif /* PLUGINS_BOTTLENECK_STREAM_SHARE_CUH */
