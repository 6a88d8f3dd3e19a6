/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of few queries over many keys, where reading K and V is all the work. The
 * query heads that share a head of K and V are rows of one product (mma.sync, 16 rows).
 * Blocks and their warps share the keys, 16 at a time. The last block of a head to arrive
 * merges what all have found, in the order of their numbers, so that results do not
 * depend on timing. New rows of a cache are read where they come from and written behind
 * the taken ones by the same launch.
 */
#include "plugins/attention/decode.cuh"

enum { MOST_QUERIES = 16, MOST_SPLITS = 64 };

/* ---- merging --------------------------------------------------------------------------
 */

/* An output of several parts together. */
struct decode_merged {
    float o, largest, sum;
};

/* In order. Far: of other blocks, which a cache of this multiprocessor may not know. */
template <bool Far, int Dim>
static __device__ inline decode_merged merge(const decode_part<Dim> *parts, int n,
                                             int row, int d)
{
    decode_merged all = {0, -INFINITY, 0};
#pragma unroll 8
    for (int i = 0; i < n; i++) {
        const float *o = &parts[i].o[row][d], *largest = &parts[i].largest[row],
                    *sum = &parts[i].sum[row];
        const float x = Far ? __ldcg(largest) : *largest, y = Far ? __ldcg(o) : *o,
                    z = Far ? __ldcg(sum) : *sum;
        const float most = fmaxf(all.largest, x), base = most == -INFINITY ? 0 : most;
        const float old = exp2_near(all.largest - base), by = exp2_near(x - base);
        all.o = fmaf(all.o, old, by == 0 ? 0 : y * by);
        all.sum = fmaf(all.sum, old, z * by);
        all.largest = most;
    }
    return all;
}

template <int Dim>
static __device__ inline void put_part(decode_part<Dim> *to, int row, int d,
                                       const decode_merged &all)
{
    to->o[row][d] = all.o;
    if (d == 0) {
        to->largest[row] = all.largest;
        to->sum[row] = all.sum;
    }
}

template <typename T>
static __device__ inline void finish_output(const decode_job &job, int64_t offset, int d,
                                            const decode_merged &all)
{
    if (d < job.a.plan.v_dim)
        from_float((T *)job.a.y + offset + d,
                   all.sum == 0 ? 0 : all.o / all.sum); /* 0: all keys are masked */
}

/* Whether this block is the last of its tile to arrive; then it sees what all wrote. */
static __device__ inline bool last_to_arrive(uint32_t *arrived, uint32_t blocks)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc(arrived, blocks - 1) == blocks - 1;
    __syncthreads();
    __threadfence();
    return last;
}

template <typename T, int Dim, bool Odd>
static __device__ inline void append(const decode_job &job,
                                     const decode_warp<T, Dim, Odd> &w)
{
    const struct attention_plan &p = job.a.plan;
    T *k = (T *)job.a.present_k + w.batch * p.present_k.batch + w.kv * p.present_k.head;
    T *v = (T *)job.a.present_v + w.batch * p.present_v.batch + w.kv * p.present_v.head;
    const int32_t n = (int32_t)(w.reach.keys - w.reach.split);
    for (int32_t i = 0; i < n; i++) {
        const int64_t to = w.reach.split + i;
        for (int32_t d = (int32_t)threadIdx.x * 8; d < Dim; d += WARPS * 32 * 8) {
            if (d < p.dim)
                *(uint4 *)(k + to * p.present_k.row + d) =
                    *(const uint4 *)(w.k + i * p.k.row + d);
            if (d < p.v_dim)
                *(uint4 *)(v + to * p.present_v.row + d) =
                    *(const uint4 *)(w.v + i * p.v.row + d);
        }
    }
}

/* ---- the kernel -----------------------------------------------------------------------
 */

/* The blocks that share the keys [from, last) of a tile: as many as there are keys for,
 * of those that were launched. */
static __device__ inline int splits_for(int32_t from, int32_t last)
{
    const int32_t each = WARPS * STEP;
    return max(1, min((int)gridDim.x, (last - from + each - 1) / each));
}

/* Asks the L2 cache for the past keys and values that the warp takes first, while the
 * kernel before this one still runs: behind it the next product's weights are asked for,
 * all at once, and keys would come after them. Lengths may still change and are read past
 * the L1; what is asked for is not used before the wait. */
template <typename T>
static __device__ inline void bring_past(const decode_job &job, int32_t batch, int32_t kv,
                                         int32_t query)
{
    const struct attention_plan &p = job.a.plan;
    const int64_t length =
        p.lengths_port < 0 ? 0
        : p.lengths_dtype == STRATA_INT32
            ? (int64_t)__ldcg((const int32_t *)job.a.lengths + batch)
            : (int64_t)__ldcg((const long long *)job.a.lengths + batch);
    const attention_reach reach = attention_reach_of(&p, length);
    int64_t low, high;
    attention_bounds(&p, &reach, query, &low, &high);
    const int32_t from = (int32_t)(low / STEP * STEP);
    const int splits = splits_for(from, (int32_t)min(high, reach.keys));
    const int32_t key =
        from + ((int32_t)blockIdx.x * WARPS + (int)threadIdx.x / 32) * STEP;
    const int64_t row = key + (int64_t)threadIdx.x % STEP;
    if ((int)blockIdx.x >= splits || row >= min(reach.split, p.past))
        return;
    const bool value = threadIdx.x % 32 >= STEP;
    const attention_view &view = value ? p.past_v : p.past_k;
    const T *at = (const T *)(value ? job.a.past_v : job.a.past_k) + batch * view.batch +
                  kv * view.head + row * view.row;
    for (int64_t d = 0; d < (value ? p.v_dim : p.dim); d += 128 / (int64_t)sizeof(T))
        asm volatile("prefetch.global.L2 [%0];\n" ::"l"(at + d));
}

/* Block (split, tile): every splits-th 16 keys of each warp. */
template <typename T, int Dim, bool Odd>
static __global__ void __launch_bounds__(WARPS * 32, Dim > 64 ? 1 : 2)
    decode_kernel(const __grid_constant__ decode_job job)
{
    typedef decode_part<Dim> part;
    extern __shared__ __align__(16) uint8_t shared[];
    __shared__ int64_t offset[TILE];
    part *const warps = (part *)shared;
    const struct attention_plan &p = job.a.plan;
    const int split = (int)blockIdx.x, warp = threadIdx.x / 32;
    const int32_t tile = (int32_t)blockIdx.y % job.row_tiles,
                  head = (int32_t)blockIdx.y / job.row_tiles;
    const int32_t first = tile * TILE, rows = min(TILE, job.rows - first);
    const int32_t batch = head / (int32_t)p.kv_heads, kv = head % (int32_t)p.kv_heads;
    bring_past<T>(job, batch, kv, first / (int32_t)p.group);
    launch_next();
    wait_for_previous();
    decode_warp<T, Dim, Odd> w(job, batch, kv, first);
    int64_t low, high, ignored;
    attention_bounds(&p, &w.reach, w.query_of(first), &low, &ignored);
    attention_bounds(&p, &w.reach, w.query_of(first + rows - 1), &ignored, &high);
    const int32_t from = (int32_t)(low / STEP * STEP);
    const int32_t last = (int32_t)min(high, w.reach.keys);
    const int splits = splits_for(from, last);
    if (split >= splits)
        return;
    w.walk(from + (split * WARPS + warp) * STEP, last, splits * WARPS * STEP);
    w.store(warps + warp, rows);
    if ((int)threadIdx.x < rows)
        offset[threadIdx.x] = w.batch * p.y.batch +
                              w.head_of(first + (int32_t)threadIdx.x) * p.y.head +
                              w.query_of(first + (int32_t)threadIdx.x) * p.y.row;
    __syncthreads();
    part *const parts = (part *)job.found + (size_t)blockIdx.y * gridDim.x;
    for (int i = threadIdx.x; i < rows * Dim; i += WARPS * 32) {
        const int row = i / Dim, d = i % Dim;
        const decode_merged all = merge<false>(warps, WARPS, row, d);
        if (splits == 1)
            finish_output<T>(job, offset[row], d, all);
        else
            put_part(parts + split, row, d, all);
    }
    if (job.append && tile == 0 && split == splits - 1)
        append(job, w);
    if (splits == 1 || !last_to_arrive(job.arrived + blockIdx.y, (uint32_t)splits))
        return;
    for (int i = threadIdx.x; i < rows * Dim; i += WARPS * 32) {
        const int row = i / Dim, d = i % Dim;
        finish_output<T>(job, offset[row], d, merge<true>(parts, splits, row, d));
    }
}

/* ---- launching ------------------------------------------------------------------------
 */

#define BLOCKS 132     /* of the chip at a time */
#define BLOCK_COST 200 /* of a block besides its keys, in keys */

static int64_t tiles_of(const struct attention_plan *p)
{
    return p->batch * p->kv_heads * ((p->group * p->length + TILE - 1) / TILE);
}

/* Blocks that share a tile's keys, by the time that all waves of blocks take. */
static int splits_of(const struct attention_plan *p)
{
    const int64_t tiles = tiles_of(p);
    int best = 1;
    int64_t least = INT64_MAX;
    for (int s = 1; s <= MOST_SPLITS && (s - 1) * STEP < p->keys; s++) {
        const int64_t waves = (tiles * s + BLOCKS - 1) / BLOCKS;
        const int64_t time = waves * ((p->keys + s - 1) / s + BLOCK_COST) + s;
        if (time < least) {
            least = time;
            best = s;
        }
    }
    return best;
}

static bool narrow(const struct attention_plan *p)
{
    return p->dim <= 64 && p->v_dim <= 64;
}

static size_t part_size(const struct attention_plan *p)
{
    return narrow(p) ? sizeof(decode_part<64>) : sizeof(decode_part<128>);
}

size_t attention_decode_counters(const struct attention_plan *p)
{
    return (size_t)tiles_of(p) * sizeof(uint32_t);
}

/* For any batch up to this one, which may be split more. */
size_t attention_decode_workspace(const struct attention_plan *p)
{
    const int64_t parts = tiles_of(p) * splits_of(p);
    return (size_t)(parts > 2 * BLOCKS ? parts : 2 * BLOCKS) * part_size(p);
}

template <typename T, int Dim, bool Odd>
static cudaError_t decode_launch(const decode_job &job, int splits, cudaStream_t stream)
{
    const struct attention_plan &p = job.a.plan;
    const size_t bytes = WARPS * sizeof(decode_part<Dim>);
    const void *kernel = (const void *)decode_kernel<T, Dim, Odd>;
    const cudaError_t e = shared_allow(kernel, bytes);
    if (e != cudaSuccess)
        return e;
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)splits, (unsigned)tiles_of(&p));
    config.blockDim = dim3(WARPS * 32);
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    config.attrs = &overlap;
    config.numAttrs = 1;
    void *arguments[] = {(void *)&job};
    return cudaLaunchKernelExC(&config, kernel, arguments);
}

template <typename T>
static cudaError_t decode_of(const decode_job &job, bool plain, int splits,
                             cudaStream_t stream)
{
    if (narrow(&job.a.plan))
        return plain ? decode_launch<T, 64, false>(job, splits, stream)
                     : decode_launch<T, 64, true>(job, splits, stream);
    return plain ? decode_launch<T, 128, false>(job, splits, stream)
                 : decode_launch<T, 128, true>(job, splits, stream);
}

cudaError_t attention_decode(const attention_job *a, void *workspace, size_t size,
                             void *counters, cudaStream_t stream)
{
    const struct attention_plan &p = a->plan;
    int splits = splits_of(&p);
    while (splits > 1 && (size_t)(tiles_of(&p) * splits) * part_size(&p) > size)
        splits--;
    decode_job job = {*a, (float *)workspace, (uint32_t *)counters, 0, 0, 0, false};
    const bool plain = p.mask.port < 0 && !(p.softcap > 0);
    job.scale = (float)(plain ? p.scale * 1.4426950408889634 : p.scale);
    job.rows = (int32_t)(p.group * p.length);
    job.row_tiles = (job.rows + TILE - 1) / TILE;
    job.append = a->present_k && a->present_k == a->past_k && a->present_v == a->past_v;
    if (p.q.dtype == STRATA_FP16)
        return decode_of<__half>(job, plain, splits, stream);
    return decode_of<__nv_bfloat16>(job, plain, splits, stream);
}

const char *attention_decode_refuses(const struct attention_plan *p)
{
    if (p->length > MOST_QUERIES)
        return "takes up to 16 queries";
    return tiles_of(p) > 65535 ? "takes up to 65535 tiles of queries" : NULL;
}
