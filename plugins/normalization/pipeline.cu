/* SPDX-License-Identifier: Apache-2.0
 *
 * Group normalization where channels lie side by side, of tensors that are many times as
 * large as what a device holds: clusters stay, a block on a multiprocessor, and take
 * slabs in turns. Memory is read once, and reads and writes go on side by side all the
 * time.
 *
 * Every thread loads, measures and writes packs of its own, through places of a ring in
 * shared memory that are nobody else's, so that no barrier is between: at step k it
 * measures packs of step k, writes those of step k - delay, and asks for those of step k
 * + PIPELINE_AHEAD into the places that these leave. Some warps beside join what threads
 * have measured of a slab, exchange that with the cluster's other blocks and leave means
 * and factors for the threads, which come back to the slab later.
 *
 * Threads read where the copy engine would be slow (stream.cu): rows of a slab are short.
 *
 * The delay is more than a slab's steps, so that its moments are known by then. It is two
 * slabs' at most, for then those of the PIPELINE_MEETINGS-th slab before have been read
 * by all blocks: who has measured a slab writes the second one before it, whose moments
 * it had from all others.
 */
#include "kernels/shared.cuh"
#include "plugins/normalization/pipeline_step.cuh"

#define PIPELINE_ROOM (227 * 1024)
#define PIPELINE_ROUNDS 3 /* slabs of a cluster at least */

static __device__ inline int pipeline_around(int slot, int slots)
{
    return slot + 1 == slots ? 0 : slot + 1;
}

#if __CUDA_ARCH__ >= 900
/* What threads do beside joiners. */
template <typename T, bool Even>
static __device__ inline void pipeline_run(const pipeline_shared &m, const norm_job &job,
                                           const norm_pipeline &s,
                                           const pipeline_place &p)
{
    const int N = 16 / (int)sizeof(T), apart = PIPELINE_PACKS * PIPELINE_THREADS;
    const int steps = (s.units - p.cluster + p.by - 1) / p.by * s.chunks;
    uint4 *const own = m.ring + threadIdx.x;
    pipeline_cursor load = {p.cluster}, write = {p.cluster};
    pipeline_tally<N> tally;
    pipeline_affine<T, N> affine;
    int at = 0, back = PIPELINE_AHEAD, chunk = 0, row = p.row;
    uint32_t measured = 0, written = 0;
    load.place(s, p, N);
    write.place(s, p, N);
    for (int i = 0; i < PIPELINE_AHEAD; i++) {
        if (i < steps)
            pipeline_load<T, Even>(own + i * apart, job, s, p, load);
        end_copies();
    }
#pragma unroll 1
    for (int k = 0; k < steps + s.delay; k++) {
        uint4 *const place = own + back * apart;
        pack<T, N> held[PIPELINE_PACKS];
        if (k >= s.delay) {
            if (write.chunk == 0)
                affine.read(m, job, s, p, write.unit, written++);
#pragma unroll
            for (int u = 0; u < PIPELINE_PACKS; u++)
                held[u] = *(const pack<T, N> *)(place + u * PIPELINE_THREADS);
        }
        await_copies<PIPELINE_AHEAD - 1>();
        if (k < steps)
            pipeline_measure<T, N, Even>(tally, own + at * apart, s, p, row, chunk == 0);
        if (k >= s.delay) {
            if (job.activation.kind < 0)
                affine.template write<true, Even>(held, job, s, p, write);
            else
                affine.template write<false, Even>(held, job, s, p, write);
            write.advance(s, p, N);
        }
        if (k + PIPELINE_AHEAD < steps)
            pipeline_load<T, Even>(place, job, s, p, load);
        end_copies();
        at = pipeline_around(at, s.slots);
        back = pipeline_around(back, s.slots);
        row += s.rows;
        if (k < steps && ++chunk == s.chunks) {
            pipeline_part<N>(m, s, p, tally, measured++);
            chunk = 0;
            row = p.row;
        }
    }
}
#endif

template <typename T, bool Even>
static __global__ void __launch_bounds__(PIPELINE_THREADS + 32 * PIPELINE_JOINERS, 1)
    pipeline_kernel(const __grid_constant__ norm_job job,
                    const __grid_constant__ norm_pipeline s)
{
#if __CUDA_ARCH__ >= 900
    const int N = 16 / (int)sizeof(T);
    extern __shared__ __align__(128) uint8_t pipeline_memory[];
    const pipeline_shared m = pipeline_share(pipeline_memory, s);
    if (threadIdx.x == 0)
        pipeline_init(m, s);
    __syncthreads();
    cluster_arrive();
    cluster_wait();
    const pipeline_place p = pipeline_place_of(s, N);
    if (threadIdx.x < PIPELINE_THREADS)
        pipeline_run<T, Even>(m, job, s, p);
    else /* the last of them end when all blocks have told them all */
        pipeline_joiners<N>(m, job, s, ((int)threadIdx.x - PIPELINE_THREADS) / 32, p.rank,
                            p.cluster, p.by);
#endif
}

/* ---- launches ---------------------------------------------------------------------- */

/* How `blocks` blocks share slabs of `span` channels; false: they have no room. */
static bool pipeline_shape(norm_pipeline &s, int span, int blocks, int size,
                           int64_t images)
{
    s.span = span;
    s.slabs = s.channels / span;
    s.groups = span / s.each;
    s.units = (int32_t)(images * s.slabs);
    s.blocks = blocks;
    s.share = (int32_t)((s.pixels + blocks - 1) / blocks);
    s.across = span * size / 16;
    s.down = PIPELINE_THREADS / s.across;
    s.rows = s.down * PIPELINE_PACKS;
    s.chunks = (s.share + s.rows - 1) / s.rows;
    s.by_slabs = divisor_of(s.slabs);
    s.by_across = divisor_of(s.across);
    if (pipeline_beside(s) > PIPELINE_ROOM / 4)
        return false;
    const int slots = (int)((PIPELINE_ROOM - pipeline_beside(s)) / pipeline_slot());
    s.delay = slots - PIPELINE_AHEAD;
    s.delay = s.delay < 2 * s.chunks ? s.delay : 2 * s.chunks;
    s.slots = s.delay + PIPELINE_AHEAD;
    return s.delay > s.chunks;
}

/* Whether a slab may have `span` channels, whose packs have two groups each at most. */
static bool pipeline_spans(const norm_pipeline &s, int span, int size)
{
    const int n = 16 / size;
    if (s.channels % span || span % s.each || span * size % SLAB_RUN ||
        span / n > PIPELINE_THREADS || span / s.each > SLAB_GROUPS)
        return false;
    for (int c = 0; c < span; c += n)
        if ((c + n - 1) / s.each > c / s.each + 1)
            return false;
    return true;
}

struct pipeline_launch {
    cudaLaunchAttribute cluster;
    cudaLaunchConfig_t config;
};

static void pipeline_config(pipeline_launch *l, const norm_pipeline &s,
                            cudaStream_t stream)
{
    *l = {};
    l->cluster.id = cudaLaunchAttributeClusterDimension;
    l->cluster.val.clusterDim = {(unsigned)s.blocks, 1, 1};
    l->config.gridDim = dim3((unsigned)s.blocks);
    l->config.blockDim = dim3(PIPELINE_THREADS + 32 * PIPELINE_JOINERS);
    l->config.dynamicSmemBytes = (size_t)s.slots * pipeline_slot() + pipeline_beside(s);
    l->config.stream = stream;
    l->config.attrs = &l->cluster;
    l->config.numAttrs = 1;
}

/* The widest slab that has room, by clusters with which a block has least to do: how many
 * of them there are at once; 0: none. */
static int pipeline_cut(norm_pipeline &s, const void *kernel, int size, int64_t images)
{
    norm_pipeline best = s;
    int64_t least = INT64_MAX;
    int found = 0;
    for (int span = s.channels; span > 0 && !found; span -= s.each)
        for (int blocks = PIPELINE_LANES; blocks > 1 && pipeline_spans(s, span, size);
             blocks--) {
            pipeline_launch l;
            int clusters = 0;
            if (!pipeline_shape(s, span, blocks, size, images))
                continue;
            pipeline_config(&l, s, NULL);
            if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &l.config) !=
                    cudaSuccess ||
                clusters < 1)
                return give_up();
            const int64_t rounds = (s.units + clusters - 1) / clusters;
            if (rounds < PIPELINE_ROUNDS || rounds * s.chunks >= least)
                continue;
            least = rounds * s.chunks;
            found = clusters;
            best = s;
        }
    s = best;
    return found;
}

template <typename T>
static bool pipeline_launch_of(const norm_job &job, norm_pipeline &s, int64_t images,
                               cudaStream_t stream)
{
    pipeline_launch l;
    const auto any = pipeline_kernel<T, false>, even = pipeline_kernel<T, true>;
    if (shared_allow((const void *)any, PIPELINE_ROOM) != cudaSuccess ||
        shared_allow((const void *)even, PIPELINE_ROOM) != cudaSuccess)
        return give_up();
    int clusters = pipeline_cut(s, (const void *)any, (int)sizeof(T), images);
    if (!clusters)
        return false;
    if (clusters > s.units)
        clusters = s.units;
    pipeline_config(&l, s, stream);
    l.config.gridDim = dim3((unsigned)(clusters * s.blocks));
    const bool full = PIPELINE_THREADS % s.across == 0 &&
                      s.pixels == (int64_t)s.blocks * s.chunks * s.rows;
    return cudaLaunchKernelEx(&l.config, full ? even : any, job, s) == cudaSuccess ||
           give_up();
}

bool norm_pipeline_run(const norm_job &job, int32_t dtype, int64_t images,
                       int64_t channels, cudaStream_t stream)
{
    norm_pipeline s = {};
    bool launched = false;
    if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 9 || images > 0x7fff ||
        channels > 0x7fff)
        return false;
    s.pixels = job.plane;
    s.channels = (int32_t)channels;
    s.each = (int32_t)job.each;
    s.by_each = divisor_of(job.each);
    layer_float(dtype, [&](auto t) {
        launched = pipeline_launch_of<decltype(t)>(job, s, images, stream);
    });
    return launched;
}
