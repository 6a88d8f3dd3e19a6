/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of few queries over many keys, where reading K and V is all the work. The
 * query heads that share a head of K and V are rows of one product (mma.sync), of which
 * up to 8 have a way of their own. Blocks and their warps share the keys. The last block
 * of a head to arrive merges what all have found, in the order of their numbers, so that
 * results do not depend on timing. New rows of a cache are read where they come from and
 * written behind the taken ones by the same launch.
 */
#include "kernels/beside.cuh"
#include "plugins/attention/decode.cuh"

enum {
    MOST_QUERIES = 16,
    MOST_SPLITS = 64,
    WHOLE_STEPS = 4, /* of a warp's that one block takes alone */
};

/* ---- merging --------------------------------------------------------------------------
 */

/* An output of several parts together. */
struct decode_merged {
    float o, largest, sum;
};

/* Of a block's warps: the largest of all first, then one factor a part. */
template <int Dim>
static __device__ inline decode_merged merge_warps(const decode_part<Dim> *parts, int row,
                                                   int d)
{
    decode_merged all = {0, -INFINITY, 0};
#pragma unroll
    for (int i = 0; i < WARPS; i++)
        all.largest = fmaxf(all.largest, parts[i].largest[row]);
    const float base = all.largest == -INFINITY ? 0 : all.largest;
#pragma unroll
    for (int i = 0; i < WARPS; i++) {
        const float by = exp2_near(parts[i].largest[row] - base), y = parts[i].o[row][d];
        all.o += by == 0 ? 0 : y * by;
        all.sum = fmaf(parts[i].sum[row], by, all.sum);
    }
    return all;
}

/* Of blocks, in order, past the cache of this multiprocessor, which may not know. */
template <int Dim>
static __device__ inline decode_merged merge_blocks(const decode_part<Dim> *parts, int n,
                                                    int row, int d)
{
    decode_merged all = {0, -INFINITY, 0};
#pragma unroll 8
    for (int i = 0; i < n; i++) {
        const float x = __ldcg(&parts[i].largest[row]), y = __ldcg(&parts[i].o[row][d]),
                    z = __ldcg(&parts[i].sum[row]);
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
                   all.sum == 0 ? 0 : __fdividef(all.o, all.sum)); /* 0: all masked */
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

/* The new rows behind the `taken` ones; by the last block, which few keys leave without
 * work, and not in line, as those that attend wait for what memory gives of their code.
 */
template <typename T>
static __device__ __noinline__ void append(const decode_job &job, int32_t batch,
                                           int32_t kv, int32_t taken, int32_t rows)
{
    const struct attention_plan &p = job.a.plan;
    const T *k = (const T *)job.a.k + batch * p.k.batch + kv * p.k.head;
    const T *v = (const T *)job.a.v + batch * p.v.batch + kv * p.v.head;
    T *to_k = (T *)job.a.present_k + batch * p.present_k.batch + kv * p.present_k.head;
    T *to_v = (T *)job.a.present_v + batch * p.present_v.batch + kv * p.present_v.head;
    const int32_t pieces = (max(job.dim, job.v_dim) + 7) / 8;
#pragma unroll 1
    for (int32_t i = (int32_t)threadIdx.x; i < rows * pieces; i += WARPS * 32) {
        const int64_t row = i / pieces, to = taken + row;
        const int32_t d = i % pieces * 8;
        if (d < job.dim)
            *(uint4 *)(to_k + to * p.present_k.row + d) =
                *(const uint4 *)(k + row * p.k.row + d);
        if (d < job.v_dim)
            *(uint4 *)(to_v + to * p.present_v.row + d) =
                *(const uint4 *)(v + row * p.v.row + d);
    }
}

/* ---- the kernel -----------------------------------------------------------------------
 */

/* As many blocks as there are keys for, of those that were launched; one for few keys:
 * to hand sums from block to block takes as long as some steps do. */
template <class Warp>
static __device__ inline decode_share share_of(const Warp &w, int32_t first, int32_t rows)
{
    const int32_t each = WARPS * STEP;
    decode_share s;
    int32_t ignored;
    w.bounds(w.query_of(first), &s.from, &ignored);
    w.bounds(w.query_of(first + rows - 1), &ignored, &s.last);
    s.from = s.from / STEP * STEP;
    const int32_t keys = s.last - s.from;
    s.splits = keys <= WHOLE_STEPS * each
                   ? 1
                   : min((int32_t)gridDim.x, (keys + each - 1) / each);
    s.key = s.from + ((int32_t)blockIdx.x * WARPS + (int)threadIdx.x / 32) * STEP;
    s.by = s.splits * each;
    s.steps = (int32_t)blockIdx.x >= s.splits || s.key >= s.last ? 0
              : s.key + s.by < s.last                            ? 2
                                                                 : 1;
    return s;
}

/* Asks the L2 cache for the past keys and values that the warp takes first, while the
 * kernel before this one still runs: behind it the next product's weights are asked for,
 * all at once, and keys would come after them. What is asked for is not used before the
 * wait. */
template <class Warp>
static __device__ inline void bring_past(const Warp &w, const decode_share &s)
{
    typedef typename Warp::T T;
    const int32_t end = min(min(w.split, (int32_t)w.p.past), s.last);
    const bool value = threadIdx.x % 32 >= STEP;
    for (int32_t key = s.key; key < end; key += s.by) {
        const int64_t row = key + (int32_t)threadIdx.x % STEP;
        if ((int32_t)blockIdx.x >= s.splits || row >= end)
            return;
        const T *at = value ? w.past_v + row * w.job.past_v_row - w.g * 8
                            : w.past_k + row * w.job.past_k_row - w.t * 8;
        for (int32_t d = 0; d < (value ? w.job.v_dim : w.job.dim);
             d += 128 / (int)sizeof(T))
            asm volatile("prefetch.global.L2 [%0];\n" ::"l"(at + d));
    }
}

/* Block (split, tile): every splits-th 16 keys of each warp. */
template <class Warp>
static __global__ void __launch_bounds__(WARPS * 32, Warp::Dim > 64 ? 1 : 2)
    decode_kernel(const __grid_constant__ decode_job job)
{
    typedef typename Warp::T T;
    enum { Dim = Warp::Dim };
    typedef decode_part<Dim> part;
    extern __shared__ __align__(16) uint8_t shared[];
    __shared__ int64_t offset[TILE];
    part *const warps = (part *)shared;
    const struct attention_plan &p = job.a.plan;
    const int32_t tile = (int32_t)blockIdx.y % job.row_tiles,
                  head = (int32_t)blockIdx.y / job.row_tiles;
    const int32_t first = tile * TILE, rows = min(TILE, job.rows - first);
    Warp w(job, head / (int32_t)p.kv_heads, head % (int32_t)p.kv_heads, first);
    decode_share s;
    launch_next();
    if ((int)threadIdx.x < rows)
        offset[threadIdx.x] = w.batch * p.y.batch +
                              w.head_of(first + (int32_t)threadIdx.x) * p.y.head +
                              w.query_of(first + (int32_t)threadIdx.x) * p.y.row;
    int32_t length = w.length(), known = length;
    for (bool waited = false;; known = length) {
        w.place(known);
        s = share_of(w, first, rows);
        if (s.key < s.last)
            w.find(s.key, s.last, s.by);
        if (!waited) {
            bring_past(w, s);
            wait_for_previous();
            w.load_queries();
        }
        waited = true;
        length = w.length();
        if (length == known)
            break;
    }
    if (job.append && tile == 0 && blockIdx.x == gridDim.x - 1)
        append<T>(job, w.batch, w.kv, w.split, w.keys_there - w.split);
    if ((int32_t)blockIdx.x >= s.splits)
        return;
    w.walk(s);
    w.store(warps + threadIdx.x / 32, rows);
    __syncthreads();
    part *const parts = (part *)job.found + (size_t)blockIdx.y * gridDim.x;
    for (int i = threadIdx.x; i < rows * Dim; i += WARPS * 32) {
        const int row = i / Dim, d = i % Dim;
        const decode_merged all = merge_warps(warps, row, d);
        if (s.splits == 1)
            finish_output<T>(job, offset[row], d, all);
        else
            put_part(parts + blockIdx.x, row, d, all);
    }
    if (s.splits == 1 || !last_to_arrive(job.arrived + blockIdx.y, (uint32_t)s.splits))
        return;
    for (int i = threadIdx.x; i < rows * Dim; i += WARPS * 32) {
        const int row = i / Dim, d = i % Dim;
        finish_output<T>(job, offset[row], d, merge_blocks(parts, s.splits, row, d));
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

template <class Warp>
static cudaError_t decode_launch(const decode_job &job, int splits, cudaStream_t stream)
{
    const struct attention_plan &p = job.a.plan;
    const size_t bytes = WARPS * sizeof(decode_part<Warp::Dim>);
    const void *kernel = (const void *)decode_kernel<Warp>;
    cudaError_t e = shared_allow(kernel, bytes);
    if (e == cudaSuccess && p.batch * p.length == 1) /* as products of one row do */
        e = shared_beside(kernel);
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

template <typename T, int Dim>
static cudaError_t decode_rows(const decode_job &job, decode_kind kind, int splits,
                               cudaStream_t stream)
{
    typedef decode_reader<T, Dim, DECODE_WHOLE> whole;
    typedef decode_reader<T, Dim, DECODE_PLAIN> plain;
    typedef decode_reader<T, Dim, DECODE_UNUSUAL> unusual;
    if (job.rows > decode_few<plain>::Rows)
        return kind == DECODE_UNUSUAL
                   ? decode_launch<decode_warp<unusual>>(job, splits, stream)
                   : decode_launch<decode_warp<plain>>(job, splits, stream);
    return kind == DECODE_UNUSUAL
               ? decode_launch<decode_few<unusual>>(job, splits, stream)
           : kind == DECODE_PLAIN ? decode_launch<decode_few<plain>>(job, splits, stream)
                                  : decode_launch<decode_few<whole>>(job, splits, stream);
}

template <typename T>
static cudaError_t decode_of(const decode_job &job, decode_kind kind, int splits,
                             cudaStream_t stream)
{
    return narrow(&job.a.plan) ? decode_rows<T, 64>(job, kind, splits, stream)
                               : decode_rows<T, 128>(job, kind, splits, stream);
}

static decode_kind kind_of(const struct attention_plan *p)
{
    if (p->mask.port >= 0 || p->softcap > 0)
        return DECODE_UNUSUAL;
    return p->dim == p->v_dim && (p->dim == 64 || p->dim == 128) ? DECODE_WHOLE
                                                                 : DECODE_PLAIN;
}

/* A window's side; negative: without a bound. */
static int32_t near_of(int64_t side)
{
    return side < 0 || side > DECODE_FAR ? (int32_t)DECODE_FAR : (int32_t)side;
}

cudaError_t attention_decode(const attention_job *a, void *workspace, size_t size,
                             void *counters, cudaStream_t stream)
{
    const struct attention_plan &p = a->plan;
    int splits = splits_of(&p);
    while (splits > 1 && (size_t)(tiles_of(&p) * splits) * part_size(&p) > size)
        splits--;
    decode_job job = {*a, (float *)workspace, (uint32_t *)counters, 0, 0, 0, false};
    const decode_kind kind = kind_of(&p);
    job.scale = (float)(kind == DECODE_UNUSUAL ? p.scale : p.scale * 1.4426950408889634);
    job.rows = (int32_t)(p.group * p.length);
    job.row_tiles = (job.rows + TILE - 1) / TILE;
    job.left = near_of(p.window_left);
    job.right = p.causal ? 0 : near_of(p.window_right);
    job.dim = (int32_t)p.dim;
    job.v_dim = (int32_t)p.v_dim;
    job.k_row = (int32_t)p.k.row;
    job.v_row = (int32_t)p.v.row;
    job.past_k_row = (int32_t)p.past_k.row;
    job.past_v_row = (int32_t)p.past_v.row;
    job.append = a->present_k && a->present_k == a->past_k && a->present_v == a->past_v;
    if (p.q.dtype == STRATA_FP16)
        return decode_of<__half>(job, kind, splits, stream);
    return decode_of<__nv_bfloat16>(job, kind, splits, stream);
}

const char *attention_decode_refuses(const struct attention_plan *p)
{
    if (p->length > MOST_QUERIES)
        return "takes up to 16 queries";
    if (p->k.row > INT32_MAX || p->v.row > INT32_MAX || p->past_k.row > INT32_MAX ||
        p->past_v.row > INT32_MAX)
        return "takes rows of keys less than 2^31 elements apart";
    return tiles_of(p) > 65535 ? "takes up to 65535 tiles of queries" : NULL;
}
