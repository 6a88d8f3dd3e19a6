/* SPDX-License-Identifier: Apache-2.0
 *
 * TopK on CUDA. An element is ranked by its key and then by its lower index, so that no
 * two are equal. Up to 128 of them are kept in order in the registers of a warp: most
 * elements are below the last of these and cost a comparison. Warps have parts of a line,
 * and their lists are joined by a block, and those of blocks by a second launch. Beyond,
 * a block finds the rank of the last one digit by digit, gathers what is not below it,
 * and sorts.
 */
#include "plugins/top_k/lists.cuh"

#define LIST_BLOCKS 528 /* to be had, where lines are long */
#define LIST_PIECE 4096 /* elements of a block, at least */
#define RADIX_THREADS 1024
#define RADIX_SHARED 2048 /* elements that are sorted in shared memory */

/* ---- digit by digit -------------------------------------------------------------------
 */

/* Byte i of a rank, from the most significant on. */
static __device__ inline uint32_t digit_of(const rank &r, int i)
{
    return i < 8 ? (uint32_t)(r.hi >> (56 - 8 * i)) & 255 : r.lo >> (88 - 8 * i) & 255;
}

/* Its first n bytes, the others 0. */
static __device__ inline rank head_of(const rank &r, int n)
{
    const uint64_t hi = n >= 8 ? r.hi : n == 0 ? 0 : r.hi >> (64 - 8 * n) << (64 - 8 * n);
    const uint32_t lo = n >= 12  ? r.lo
                        : n <= 8 ? 0
                                 : r.lo >> (96 - 8 * n) << (96 - 8 * n);
    return {hi, lo};
}

/* Falling order, by a whole block; n is a power of 2. */
static __device__ void sort_ranks(rank *r, int32_t n)
{
    for (int32_t size = 2; size <= n; size *= 2)
        for (int32_t step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int32_t i = (int32_t)threadIdx.x; i < n / 2; i += (int32_t)blockDim.x) {
                const int32_t a = i / step * step * 2 + i % step, b = a + step;
                const bool falling = (a & size) == 0;
                const rank left = r[a], right = r[b];
                if (above<true>(right, left) == falling) {
                    r[a] = right;
                    r[b] = left;
                }
            }
        }
    __syncthreads();
}

/* Which digit the k-th has among those counted, from the greatest on. */
struct digit_choice {
    uint32_t digit, above, here; /* how many are above it, and have it */
};

/* By one warp: each lane has eight digits, lane 0 the greatest. */
static __device__ inline void choose_digit(const uint32_t *count, uint32_t needed,
                                           digit_choice *choice)
{
    const int lane = (int)threadIdx.x, first = 255 - 8 * lane;
    uint32_t mine = 0;
    for (int i = 0; i < 8; i++)
        mine += count[first - i];
    uint32_t seen = mine;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_up_sync(0xffffffffu, seen, d);
        seen += lane >= d ? other : 0;
    }
    const uint32_t reached = __ballot_sync(0xffffffffu, seen >= needed);
    if (lane != __ffs(reached) - 1)
        return;
    seen -= mine;
    for (int d = first; d > first - 8; d--) {
        if (seen + count[d] >= needed) {
            *choice = {(uint32_t)d, seen, count[d]};
            return;
        }
        seen += count[d];
    }
}

template <typename T>
static __global__ void __launch_bounds__(RADIX_THREADS) radix_kernel(top_k_job job)
{
    __shared__ uint32_t count[256], taken;
    __shared__ digit_choice choice;
    __shared__ rank shared[RADIX_SHARED];
    const int digits = sizeof(T) == 8 ? 12 : 8;
    const int64_t line = blockIdx.x;
    const T *x = (const T *)job.x + element_at(job, line, 0);
    rank *to = job.sorted <= RADIX_SHARED ? shared : job.ranks + line * job.sorted;
    rank head = {0, 0};
    uint32_t needed = (uint32_t)job.k;
    int known = 0; /* bytes of the last one's rank */
    for (bool found = false; known < digits && !found; known++) {
        for (int i = (int)threadIdx.x; i < 256; i += RADIX_THREADS)
            count[i] = 0;
        __syncthreads();
        for (int64_t j = threadIdx.x; j < job.length; j += RADIX_THREADS) {
            const rank r = rank_of(job, x[j * job.inner], j), h = head_of(r, known);
            if (h.hi == head.hi && h.lo == head.lo)
                atomicAdd(&count[digit_of(r, known)], 1u);
        }
        __syncthreads();
        if (threadIdx.x < 32)
            choose_digit(count, needed, &choice);
        __syncthreads();
        needed -= choice.above;
        found = choice.here == needed; /* all that begin so are among the best */
        if (known < 8)
            head.hi |= (uint64_t)choice.digit << (56 - 8 * known);
        else
            head.lo |= choice.digit << (88 - 8 * known);
    }
    if (threadIdx.x == 0)
        taken = 0;
    __syncthreads();
    for (int64_t j = threadIdx.x; j < job.length; j += RADIX_THREADS) {
        const rank r = rank_of(job, x[j * job.inner], j);
        if (!above<true>(head, head_of(r, known)))
            to[atomicAdd(&taken, 1u)] = r;
    }
    for (int32_t i = job.k + (int32_t)threadIdx.x; i < job.sorted; i += RADIX_THREADS)
        to[i] = {0, 0};
    sort_ranks(to, job.sorted);
    for (int32_t i = (int32_t)threadIdx.x; i < job.k; i += RADIX_THREADS)
        give<T>(job, line, i, to[i]);
}

/* ---- the choice -----------------------------------------------------------------------
 */

static top_k_job top_k_job_of(const strata_top_k *p, const strata_tensor *x)
{
    const lines l = lines_of(x, lines_axis(p->axis, x->rank));
    top_k_job job = {};
    job.lines = l.outer * l.inner;
    job.length = job.piece = l.length;
    job.inner = l.inner;
    job.k = (int32_t)p->k;
    job.pieces = job.sorted = 1;
    job.smallest = !p->largest;
    while (job.sorted < job.k && job.sorted < 1 << 30)
        job.sorted *= 2;
    if (job.k > LIST || job.lines >= LIST_BLOCKS || job.lines == 0)
        return job;
    /* A warp's list is worth it where it sees much more than k. */
    const int64_t least = job.k > 32 ? 2 * LIST_PIECE : LIST_PIECE;
    int64_t pieces = LIST_BLOCKS / job.lines;
    pieces = pieces > l.length / least ? l.length / least : pieces;
    pieces = pieces < 1 ? 1 : pieces;
    job.piece = ((l.length + pieces - 1) / pieces + 15) / 16 * 16;
    job.pieces = (int32_t)((l.length + job.piece - 1) / job.piece);
    return job;
}

static size_t top_k_workspace(const strata_node *n)
{
    const top_k_job job = top_k_job_of((const strata_top_k *)n->params, &n->in[0]);
    size_t ranks =
        job.pieces > 1 ? (size_t)job.lines * (size_t)job.pieces * (size_t)job.k : 0;
    if (job.k > LIST)
        ranks = job.sorted <= RADIX_SHARED ? 0 : (size_t)job.lines * (size_t)job.sorted;
    return ranks * sizeof(rank);
}

template <typename T, int P>
static void list_launch(const top_k_job &job, cudaStream_t stream)
{
    const int N = 16 / (int)sizeof(T) > 8 ? 8 : 16 / (int)sizeof(T);
    const unsigned blocks = (unsigned)(job.lines * job.pieces);
    if (job.inner == 1 && job.length % N == 0)
        list_kernel<T, N, P><<<blocks, WARPS * 32, 0, stream>>>(job);
    else
        list_kernel<T, 1, P><<<blocks, WARPS * 32, 0, stream>>>(job);
    if (job.pieces > 1)
        join_kernel<T, P><<<(unsigned)job.lines, WARPS * 32, 0, stream>>>(job);
}

template <typename T>
static void top_k_launch(const strata_run *r)
{
    top_k_job job = top_k_job_of((const strata_top_k *)r->params, &r->in[0]);
    job.x = r->in[0].data;
    job.y = r->out[0].data;
    job.index = (int64_t *)r->out[1].data;
    job.ranks = (rank *)r->workspace;
    const cudaStream_t stream = layer_stream(r);
    if (job.k <= 32)
        list_launch<T, 1>(job, stream);
    else if (job.k <= LIST)
        list_launch<T, LIST / 32>(job, stream);
    else
        radix_kernel<T><<<(unsigned)job.lines, RADIX_THREADS, 0, stream>>>(job);
}

static int top_k_run(const strata_run *r)
{
    switch (r->in[0].dtype) {
    case STRATA_INT8:
        top_k_launch<int8_t>(r);
        break;
    case STRATA_UINT8:
        top_k_launch<uint8_t>(r);
        break;
    case STRATA_INT32:
        top_k_launch<int32_t>(r);
        break;
    case STRATA_INT64:
        top_k_launch<int64_t>(r);
        break;
    default:
        layer_float(r->in[0].dtype, [&](auto t) { top_k_launch<decltype(t)>(r); });
    }
    return layer_launched(r, "top_k");
}

/* ---- tables ---------------------------------------------------------------------------
 */

static int top_k_accept(const strata_node *n)
{
    const top_k_job job = top_k_job_of((const strata_top_k *)n->params, &n->in[0]);
    if (job.lines * job.pieces > 0x7fffffff || job.length > INT32_MAX || job.k > 1 << 29)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld lines of %lld elements; a launch has at most 2^31 - 1 "
                           "blocks, and an index 31 bits",
                           (long long)job.lines, (long long)job.length);
    return STRATA_OK;
}

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_I32_NCHW |
      STRATA_I64_NCHW | STRATA_U8_NCHW | STRATA_I8_NCHW},
     {STRATA_SAME, STRATA_I64_NCHW},
     {0},
     {0}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = 0,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = top_k_accept,
     .workspace = top_k_workspace,
     .run = top_k_run,
     .bandwidth = 0.3},
};

static const strata_extends top_k = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::TopK",
    .params_size = sizeof(strata_top_k),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&top_k};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::TopK", extends)
