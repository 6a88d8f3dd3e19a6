/* SPDX-License-Identifier: Apache-2.0
 *
 * Group and instance normalization where channels lie side by side, of tensors that are
 * many times as large as what a device holds: clusters stay, a block on a multiprocessor,
 * and take slabs in turns. A block's pixels of a slab go through a ring of chunks in
 * shared memory, each of which waits there from its load until it is written, and the
 * next slab's are on their way meanwhile, where slab.cu has waves. Memory is read once.
 *
 * Warps have one of three roles. One asks the copy engine for chunks; measurers gather
 * moments of channels as chunks arrive and send those of the block's part of a slab to
 * all blocks of the cluster; writers, once they have all, write chunks and give them
 * back.
 *
 * Moments of a slab lie where those of the STREAM_MEETINGS-th before it lay. They have
 * been read by then: a ring has less than three slabs, so a block that measures a slab
 * has begun to write the second one before it, whose moments it had from all others.
 */
#include "kernels/shared.cuh"
#include "plugins/common/copy_ahead.cuh"
#include "plugins/common/product/tensor_map.cuh"
#include "plugins/normalization/stream.cuh"

#define STREAM_THREADS (32 * (1 + 2 * STREAM_WARPS))
#define STREAM_CHUNK 10240 /* bytes, about */
#define STREAM_CHUNKS 4    /* of a block's part of a slab at least */
#define STREAM_ROUNDS 3    /* slabs of a cluster at least */
#define STREAM_SPARE 3     /* chunks beyond a block's part that its ring has at least */
#define STREAM_ROOM (224 * 1024)
#define STREAM_BOX 256 /* of the copy engine, at most */

template <typename T>
static __global__ void __launch_bounds__(STREAM_THREADS, 1)
    stream_kernel(const __grid_constant__ CUtensorMap x,
                  const __grid_constant__ norm_job job,
                  const __grid_constant__ norm_stream s)
{
#if __CUDA_ARCH__ >= 900
    const int N = 16 / (int)sizeof(T), warp = (int)threadIdx.x / 32;
    extern __shared__ __align__(128) uint8_t stream_memory[];
    const stream_shared m = stream_share(stream_memory, s);
    const int rank = (int)(blockIdx.x % (uint32_t)s.blocks);
    const int cluster = (int)(blockIdx.x / (uint32_t)s.blocks);
    const int by = (int)(gridDim.x / (uint32_t)s.blocks), measurers = s.sides * s.parts;
    if (threadIdx.x == 0)
        stream_init(m, s);
    __syncthreads();
    cluster_arrive();
    cluster_wait();
    if (warp == 0) {
        if (threadIdx.x == 0)
            stream_load(m, &x, s, rank, cluster, by);
    } else if (warp <= measurers) {
        stream_moments<T, N>(m, s, warp - 1, rank, cluster, by);
    } else {
        stream_write<T, N>(m, job, s, (int)threadIdx.x - 32 * (1 + measurers), rank,
                           cluster, by);
    }
    __syncwarp();
    cluster_leave(); /* shared memory ends with the block, and others send to it */
#endif
}

/* ---- launches ---------------------------------------------------------------------- */

static bool stream_map(CUtensorMap *map, const norm_job &job, const norm_stream &s,
                       int32_t dtype, int64_t images)
{
    const cuuint64_t size = (cuuint64_t)tensor_map_size(dtype);
    const cuuint64_t pixel = size * (cuuint64_t)s.channels;
    const cuuint64_t dims[3] = {(cuuint64_t)s.channels, (cuuint64_t)s.pixels,
                                (cuuint64_t)images};
    const cuuint64_t steps[2] = {pixel, pixel * (cuuint64_t)s.pixels};
    const cuuint32_t box[3] = {(cuuint32_t)s.span, (cuuint32_t)s.rows, 1};
    const cuuint32_t every[3] = {1, 1, 1};
    (void)tensor_map_boxes; /* swizzles rows, which these are too long for */
    return pthread_once(&tensor_map_once, tensor_map_find) == 0 && tensor_map_entry &&
           tensor_map_entry(map, tensor_map_dtype(dtype), 3, (void *)job.x, dims, steps,
                            box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                            CU_TENSOR_MAP_SWIZZLE_NONE,
                            CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* How `blocks` blocks share slabs of `span` channels; false: they have no room. */
static bool stream_shape(norm_stream &s, int span, int blocks, int size, int64_t images)
{
    const int lanes = 16 / size, fits = STREAM_CHUNK / (span * size);
    const int target = fits < STREAM_BOX ? fits : STREAM_BOX;
    const int share = (int)((s.pixels + blocks - 1) / blocks);
    s.span = span;
    s.slabs = s.channels / span;
    s.groups = span / s.each;
    s.units = (int32_t)(images * s.slabs);
    s.blocks = blocks;
    s.across = span / lanes;
    s.bits = s.across % 4 == 0 ? 2 : s.across % 2 == 0 ? 1 : 0;
    s.sides = s.across >> s.bits;
    s.parts = STREAM_WARPS / s.sides;
    s.chunks = (share + target - 1) / target;
    s.rows = (share + s.chunks - 1) / s.chunks;
    s.share = s.rows * s.chunks;
    s.bytes = s.rows * span * size;
    s.slot = (s.bytes + 127) / 128 * 128;
    s.writers = STREAM_WARPS;
    while (s.writers > 8 && s.writers * 32 % s.across != 0)
        s.writers--;
    s.by_slabs = divisor_of(s.slabs);
    if (s.parts < 1 || s.chunks < STREAM_CHUNKS || stream_beside(s) > STREAM_ROOM / 4)
        return false;
    s.slots = (int32_t)((STREAM_ROOM - stream_beside(s)) / (size_t)s.slot);
    s.slots = s.slots < STREAM_SLOTS ? s.slots : STREAM_SLOTS;
    /* More, and a block's moments of four slabs on could meet those still to be read. */
    s.slots = s.slots < 3 * s.chunks ? s.slots : 3 * s.chunks - 1;
    return blocks > SLAB_BLOCKS ? s.slots >= s.chunks + STREAM_SPARE
                                : s.slots * 3 >= s.chunks * 4;
}

static bool stream_spans(const norm_stream &s, int span, int size)
{
    return s.channels % span == 0 && span % s.each == 0 && span * size % SLAB_RUN == 0 &&
           span <= STREAM_BOX && span / s.each <= SLAB_GROUPS &&
           span * size * 32 <= STREAM_CHUNK * 2;
}

struct stream_launch {
    cudaLaunchAttribute cluster;
    cudaLaunchConfig_t config;
};

static void stream_config(stream_launch *l, const norm_stream &s, cudaStream_t stream)
{
    *l = {};
    l->cluster.id = cudaLaunchAttributeClusterDimension;
    l->cluster.val.clusterDim = {(unsigned)s.blocks, 1, 1};
    l->config.gridDim = dim3((unsigned)s.blocks);
    l->config.blockDim = dim3((unsigned)(32 * (1 + s.sides * s.parts + s.writers)));
    l->config.dynamicSmemBytes = (size_t)s.slots * s.slot + stream_beside(s);
    l->config.stream = stream;
    l->config.attrs = &l->cluster;
    l->config.numAttrs = 1;
}

/* Of the clusters of that many blocks, those with which a block has least to do; 0: none.
 */
static int stream_cut_of(norm_stream &s, const void *kernel, int size, int64_t images,
                         int from, int to)
{
    norm_stream best = s;
    int64_t least = INT64_MAX;
    int found = 0;
    for (int span = s.channels; span > 0 && !found; span -= s.each)
        for (int blocks = to; blocks >= from && stream_spans(s, span, size); blocks--) {
            stream_launch l;
            int clusters = 0;
            if (!stream_shape(s, span, blocks, size, images))
                continue;
            stream_config(&l, s, NULL);
            if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &l.config) !=
                    cudaSuccess ||
                clusters < 1)
                return give_up();
            const int64_t rounds = (s.units + clusters - 1) / clusters;
            if (rounds < STREAM_ROUNDS || rounds * s.share >= least)
                continue;
            least = rounds * s.share;
            found = clusters;
            best = s;
        }
    s = best;
    return found;
}

/* Clusters of more than eight blocks, which a device need not have and has few of, only
 * where a slab has no room in eight. */
static int stream_cut(norm_stream &s, const void *kernel, int size, int64_t images)
{
    int found = stream_cut_of(s, kernel, size, images, 2, SLAB_BLOCKS);
    if (!found &&
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) !=
            cudaSuccess)
        return give_up();
    return found ? found
                 : stream_cut_of(s, kernel, size, images, SLAB_BLOCKS + 1, STREAM_BLOCKS);
}

template <typename T>
static bool stream_launch_of(const norm_job &job, norm_stream &s, int32_t dtype,
                             int64_t images, cudaStream_t stream)
{
    const auto kernel = stream_kernel<T>;
    CUtensorMap map;
    stream_launch l;
    if (shared_allow((const void *)kernel, STREAM_ROOM) != cudaSuccess)
        return give_up();
    int clusters = stream_cut(s, (const void *)kernel, (int)sizeof(T), images);
    if (!clusters || !stream_map(&map, job, s, dtype, images))
        return false;
    if (clusters > s.units)
        clusters = s.units;
    stream_config(&l, s, stream);
    l.config.gridDim = dim3((unsigned)(clusters * s.blocks));
    return cudaLaunchKernelEx(&l.config, kernel, map, job, s) == cudaSuccess || give_up();
}

bool norm_stream_run(const norm_job &job, int32_t dtype, int64_t images, int64_t channels,
                     cudaStream_t stream)
{
    norm_stream s = {};
    bool launched = false;
    if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 9 || images > 0x7fff ||
        channels > 0x7fff || channels * tensor_map_size(dtype) % 16 != 0)
        return false;
    s.pixels = job.plane;
    s.channels = (int32_t)channels;
    s.each = (int32_t)job.each;
    s.by_each = divisor_of(job.each);
    layer_float(dtype, [&](auto t) {
        launched = stream_launch_of<decltype(t)>(job, s, dtype, images, stream);
    });
    return launched;
}
