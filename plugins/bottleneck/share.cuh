/* SPDX-License-Identifier: Apache-2.0
 *
 * How a bottleneck is shared by blocks: tiles, blocks of a tile and of a cluster; and its
 * weights as the matrices that a block keeps or asks for.
 */
#ifndef PLUGINS_BOTTLENECK_SHARE_CUH
#define PLUGINS_BOTTLENECK_SHARE_CUH

#include "plugins/bottleneck/stages.cuh"
#include "plugins/bottleneck/strip_tail.cuh"
#include "plugins/common/product/tensor_map.cuh"

struct bottleneck_sizes {
    int32_t channels, reduced, convolved, results; /* without pads */
    int32_t height, width;
    bool crosses; /* a product of x is added */
};

/* Blocks of a tile, as a root; 0: there are too many channels. */
static inline int bottleneck_root(const bottleneck_sizes &s)
{
    for (int g = 1; g <= 4; g *= 2)
        if (s.channels <= 256 * g && s.results <= 256 * g && s.reduced <= 64 * g &&
            s.convolved <= 64 * g)
            return g;
    return 0;
}

/* Tiles of four rows of 8 pixels, or of two of 14, of which there are fewer. */
static inline void bottleneck_choose_tile(bottleneck_job *j, const bottleneck_sizes &s)
{
    const int64_t high = (s.height + 3) / 4 * (int64_t)((s.width + 7) / 8);
    const int64_t wide = (s.height + 1) / 2 * (int64_t)((s.width + 13) / 14);
    const bool four = high <= wide;
    const int32_t most = four ? 8 : 14, across = (s.width + most - 1) / most;
    j->tile_h = four ? 4 : 2;
    j->tile_w = (s.width + across - 1) / across;
    j->shift = four ? 3 : 4;
    j->pitch = four ? 10 : 16;
    j->group = four ? j->pitch * BOTTLENECK_ROW : 8 * BOTTLENECK_ROW;
    j->box = j->pitch * (j->tile_h + 2) * BOTTLENECK_ROW;
    j->added = BOTTLENECK_PIXELS * BOTTLENECK_ROW;
    j->across = divisor_of(across);
    j->tiles = divisor_of(four ? high : wide);
}

/* Of a launch, where the device has room for so many clusters; a tile each. */
static inline int32_t bottleneck_clusters(bottleneck_job *j, int64_t images,
                                          int32_t clusters)
{
    const int64_t units = images * j->tiles.d;
    j->units = (int32_t)units;
    j->by = units < clusters ? (int32_t)units : clusters;
    return j->by;
}

/* The root, or 0. */
static inline int bottleneck_plan(bottleneck_job *j, const bottleneck_sizes &s)
{
    bottleneck_choose_tile(j, s);
    j->height = s.height;
    j->width = s.width;
    j->channels = (s.channels + 7) / 8 * 8;
    j->results = (s.results + 7) / 8 * 8;
    return bottleneck_root(s);
}

/* ---- weights --------------------------------------------------------------------- */

struct bottleneck_weights {
    const float *reduce, *reduce_bias, *windows, *windows_bias, *project, *project_bias;
    const float *shortcut, *shortcut_bias; /* or NULL, as biases may be */
    int32_t channels, reduced, convolved, results;
};

static __device__ inline float bottleneck_of(const float *w, int row, int rows,
                                             int column, int columns)
{
    return row < rows && column < columns ? w[(int64_t)row * columns + column] : 0;
}

/* Of the first stage. Rows past its results are some of them again: of zeros an infinite
 * input would make NaN, which the windows' zeros do not undo. */
static __device__ inline float bottleneck_first(const bottleneck_weights &w, int row,
                                                int column)
{
    return bottleneck_of(w.reduce, row % w.reduced, w.reduced, column, w.channels);
}

/* Result m of 64 and depth k of matrix p of a block. */
static __device__ inline float bottleneck_weight(const bottleneck_weights &w, int root,
                                                 int block, int p, int m, int k)
{
    const int i = block / root, j = block % root, parts = 4 / root;
    if (p < BOTTLENECK_REDUCE)
        return bottleneck_first(w, j * 64 + m, i * 256 + p * 64 + k);
    p -= BOTTLENECK_REDUCE;
    if (p < BOTTLENECK_WINDOWS)
        return i * 64 + m < w.convolved && j * 64 + k < w.reduced
                   ? w.windows[((int64_t)(i * 64 + m) * w.reduced + j * 64 + k) *
                                   BOTTLENECK_WINDOWS +
                               p]
                   : 0;
    p -= BOTTLENECK_WINDOWS;
    return bottleneck_of(w.project, (block * parts + p / root) * 64 + m, w.results,
                         p % root * 64 + k, w.convolved);
}

static __device__ inline float bottleneck_bias(const bottleneck_weights &w, int root,
                                               int c)
{
    const int of = c < 64 * root ? 0 : c < 128 * root ? 1 : 2;
    const float *const bias[] = {w.reduce_bias, w.windows_bias, w.project_bias};
    const int32_t count[] = {w.reduced, w.convolved, w.results};
    c -= of * 64 * root;
    if (c >= count[of])
        return 0;
    return (bias[of] ? bias[of][c] : 0) +
           (of == 2 && w.shortcut_bias ? w.shortcut_bias[c] : 0);
}

static inline int64_t bottleneck_matrices(int root)
{
    return (int64_t)root * root * BOTTLENECK_PIECES * BOTTLENECK_PIECE;
}

/* Bytes; biases lie behind the matrices. */
static inline int64_t bottleneck_packed(int root)
{
    return bottleneck_matrices(root) + 384 * root * (int64_t)sizeof(float);
}

/* A block a matrix, of weight(m, k); the first has the biases, too, which lie behind the
 * matrices. */
template <class Weight>
static __device__ inline void bottleneck_pack(const bottleneck_weights &w,
                                              uint8_t *matrices, int root, int biases,
                                              const Weight &weight)
{
    __half *to = (__half *)(matrices + (int64_t)blockIdx.x * BOTTLENECK_PIECE);
    float *bias = (float *)(matrices + (int64_t)gridDim.x * BOTTLENECK_PIECE);
    for (int e = (int)threadIdx.x; e < 64 * 64; e += CUDA_BLOCK) {
        const int m = e / 64, k = e % 64;
        from_float(to + m * 64 + ((k / 8) ^ (m & 7)) * 8 + k % 8, weight(m, k));
    }
    for (int c = (int)threadIdx.x; c < biases && blockIdx.x == 0; c += CUDA_BLOCK)
        bias[c] = bottleneck_bias(w, root, c);
}

static __global__ void __launch_bounds__(CUDA_BLOCK)
    bottleneck_pack_kernel(const __grid_constant__ bottleneck_weights w, int root,
                           uint8_t *matrices)
{
    const int block = (int)blockIdx.x / BOTTLENECK_PIECES;
    const int p = (int)blockIdx.x % BOTTLENECK_PIECES;
    bottleneck_pack(w, matrices, root, 384 * root, [&](int m, int k) {
        return bottleneck_weight(w, root, block, p, m, k);
    });
}

/* Where weights come through a ring, in the order in which they are asked for: result m
 * of 64 and depth k of a matrix; two of them are a piece. */
static __device__ inline float ring_weight(const bottleneck_weights &w, int panels,
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

static __global__ void __launch_bounds__(CUDA_BLOCK)
    ring_pack_kernel(bottleneck_weights w, int panels, int parts, uint8_t *matrices)
{
    bottleneck_pack(w, matrices, 2, 256 + parts * 64, [&](int m, int k) {
        return ring_weight(w, panels, (int)blockIdx.x, m, k);
    });
}

/* ---- launches -------------------------------------------------------------------- */

/* Boxes of 64 channels of `images` images, that many pixels wide and high. */
static inline bool bottleneck_map(CUtensorMap *map, const void *data, int64_t images,
                                  int32_t height, int32_t width, int32_t channels,
                                  int32_t box_h, int32_t box_w)
{
    const int64_t pitch = (channels + 7) / 8 * 8;
    const uint64_t dims[4] = {(uint64_t)pitch, (uint64_t)width, (uint64_t)height,
                              (uint64_t)images};
    const int64_t strides[3] = {pitch, pitch * width, pitch * width * height};
    const uint32_t box[4] = {64, (uint32_t)box_w, (uint32_t)box_h, 1};
    return tensor_map_boxes(map, data, STRATA_FP16, 4, dims, strides, box,
                            strides[2] * images * 2);
}

struct bottleneck_launch {
    const void *kernel;
    int32_t threads, shared;
};

template <int G>
static const bottleneck_launch bottleneck_launch_with = {
    .kernel = (const void *)bottleneck_kernel<G>,
    .threads = bottleneck_layout<G>::Threads,
    .shared = bottleneck_layout<G>::Shared,
};

static inline const bottleneck_launch &bottleneck_launch_of(int root)
{
    return root == 1   ? bottleneck_launch_with<1>
           : root == 2 ? bottleneck_launch_with<2>
                       : bottleneck_launch_with<4>;
}

static inline cudaLaunchConfig_t bottleneck_config(cudaLaunchAttribute (&attributes)[2],
                                                   int root, int32_t clusters)
{
    const bottleneck_launch &l = bottleneck_launch_of(root);
    const unsigned cluster = (unsigned)(root * root);
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = cluster;
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    config.gridDim = dim3((unsigned)clusters * cluster);
    config.blockDim = dim3((unsigned)l.threads);
    config.dynamicSmemBytes = (size_t)l.shared;
    config.attrs = attributes;
    config.numAttrs = cluster > 1 ? 2 : 1;
    return config;
}

/* Why weights of such channels do not go through a ring, or NULL. */
static inline const char *ring_refuse(const bottleneck_shape &s)
{
    if (s.shortcut)
        return "it adds no product of its input";
    return s.channels > 1024 || s.results > 1024 || s.reduced > 128 || s.convolved > 128
               ? "it is for up to 1024 channels, 128 of them between"
           : s.reduced <= 64 && s.convolved <= 64
               ? "it is for more than 64 channels between"
               : NULL;
}

#endif /* PLUGINS_BOTTLENECK_SHARE_CUH */
