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

template <typename T, int Dim>
static __device__ inline void append(const decode_job &job, const decode_warp<T, Dim> &w)
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

/* The warps' parts to one; its outputs go where `put` says. */
template <int Dim, typename Put>
static __device__ inline void merge_warps(decode_part<Dim> *warps, int rows,
                                          float *largest, float *sum, const Put &put)
{
    __shared__ float by[TILE][WARPS];
    __syncthreads();
    if ((int)threadIdx.x < rows) {
        const int row = threadIdx.x;
        float most = -INFINITY, all = 0;
        for (int i = 0; i < WARPS; i++)
            most = fmaxf(most, warps[i].largest[row]);
        for (int i = 0; i < WARPS; i++) {
            const float own = warps[i].largest[row];
            by[row][i] = own == -INFINITY ? 0 : exp2_near(own - most);
            all = fmaf(by[row][i], warps[i].sum[row], all);
        }
        largest[row] = most;
        sum[row] = all;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * Dim; i += WARPS * 32) {
        const int row = i / Dim, d = i % Dim;
        float o = 0;
        for (int n = 0; n < WARPS; n++)
            if (by[row][n] != 0)
                o = fmaf(by[row][n], warps[n].o[row][d], o);
        put(row, d, o);
    }
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

/* The parts of all blocks to one, each row's weights by a warp of its own. */
template <int Dim, typename Put>
static __device__ inline void merge_blocks(const decode_part<Dim> *parts, int splits,
                                           int rows, float *sum, const Put &put)
{
    __shared__ float by[TILE][MOST_SPLITS];
    const int lane = threadIdx.x % 32;
    for (int row = threadIdx.x / 32; row < rows; row += WARPS) {
        float own[MOST_SPLITS / 32], most = -INFINITY, all = 0;
#pragma unroll
        for (int k = 0; k < MOST_SPLITS / 32; k++) {
            const int i = k * 32 + lane;
            own[k] = i < splits ? __ldcg(&parts[i].largest[row]) : -INFINITY;
            most = fmaxf(most, own[k]);
        }
        for (int d = 16; d > 0; d /= 2)
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
#pragma unroll
        for (int k = 0; k < MOST_SPLITS / 32; k++) {
            const int i = k * 32 + lane;
            const float w = own[k] == -INFINITY ? 0 : exp2_near(own[k] - most);
            by[row][i] = w;
            all += i < splits ? w * __ldcg(&parts[i].sum[row]) : 0;
        }
        for (int d = 16; d > 0; d /= 2)
            all += __shfl_xor_sync(0xffffffffu, all, d);
        if (lane == 0)
            sum[row] = all;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * Dim; i += WARPS * 32) {
        const int row = i / Dim, d = i % Dim;
        float o = 0;
#pragma unroll 8
        for (int n = 0; n < splits; n++)
            o = fmaf(by[row][n], __ldcg(&parts[n].o[row][d]), o);
        put(row, d, o);
    }
}

/* Block (split, tile): every splits-th 16 keys of each warp. */
template <typename T, int Dim>
static __global__ void __launch_bounds__(WARPS * 32, 1)
    decode_kernel(const __grid_constant__ decode_job job)
{
    extern __shared__ __align__(16) uint8_t shared[];
    __shared__ float largest[TILE], sum[TILE];
    decode_part<Dim> *const warps = (decode_part<Dim> *)shared;
    const struct attention_plan &p = job.a.plan;
    const int split = (int)blockIdx.x, splits = (int)gridDim.x, warp = threadIdx.x / 32;
    const int32_t tile = (int32_t)blockIdx.y % job.row_tiles,
                  head = (int32_t)blockIdx.y / job.row_tiles;
    const int32_t first = tile * TILE, rows = min(TILE, job.rows - first);
    wait_for_previous();
    launch_next();
    decode_warp<T, Dim> w(job, head / (int32_t)p.kv_heads, head % (int32_t)p.kv_heads,
                          first);
    int64_t low, high, ignored;
    attention_bounds(&p, &w.reach, w.query_of(first), &low, &ignored);
    attention_bounds(&p, &w.reach, w.query_of(first + rows - 1), &ignored, &high);
    const int32_t from = (int32_t)(low / STEP * STEP);
    w.walk(from + (split * WARPS + warp) * STEP, (int32_t)min(high, w.reach.keys),
           splits * WARPS * STEP);
    if (job.append && tile == 0 && split == splits - 1)
        append(job, w);
    w.store(warps + warp, rows);
    const auto put = [&](int row, int d, float o) {
        if (d < p.v_dim)
            from_float((T *)job.a.y + w.batch * p.y.batch +
                           w.head_of(first + row) * p.y.head +
                           w.query_of(first + row) * p.y.row + d,
                       sum[row] > 0 || sum[row] != sum[row] ? o / sum[row] : 0);
    };
    if (splits == 1) {
        merge_warps(warps, rows, largest, sum, put);
        return;
    }
    decode_part<Dim> *parts = (decode_part<Dim> *)job.found + (size_t)blockIdx.y * splits;
    decode_part<Dim> *mine = parts + split;
    merge_warps(warps, rows, mine->largest, mine->sum,
                [&](int row, int d, float o) { mine->o[row][d] = o; });
    if (last_to_arrive(job.arrived + blockIdx.y, (uint32_t)splits))
        merge_blocks(parts, splits, rows, sum, put);
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

template <typename T, int Dim>
static cudaError_t decode_launch(const decode_job &job, int splits, cudaStream_t stream)
{
    const struct attention_plan &p = job.a.plan;
    const size_t bytes = WARPS * sizeof(decode_part<Dim>);
    const void *kernel = (const void *)decode_kernel<T, Dim>;
    const cudaError_t e = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
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
    if (narrow(&p))
        return p.q.dtype == STRATA_FP16
                   ? decode_launch<__half, 64>(job, splits, stream)
                   : decode_launch<__nv_bfloat16, 64>(job, splits, stream);
    return p.q.dtype == STRATA_FP16
               ? decode_launch<__half, 128>(job, splits, stream)
               : decode_launch<__nv_bfloat16, 128>(job, splits, stream);
}

const char *attention_decode_refuses(const struct attention_plan *p)
{
    if (p->length > MOST_QUERIES)
        return "takes up to 16 queries";
    return tiles_of(p) > 65535 ? "takes up to 65535 tiles of queries" : NULL;
}
