/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of up to 16 rows, bound by reading B once. B lies as rows of K, one a column
 * of Y; a block reads a few of them, 16 bytes a thread, along the whole depth or, where
 * that makes too few blocks, a part of it: the blocks of a cluster then add their sums in
 * the order of their rank.
 *   gemv      FP32 arithmetic, the sums of a thread over its part of k
 *   gemv_mma  tensor cores, 16 rows of B by 8 or 16 of A. A thread's 16 bytes are 8
 *             neighbouring k of one row; as A and B permute k alike, these are the
 *             operands of two products as they come.
 * The first of B is asked for before the kernel waits for the one before it, where B is
 * constant.
 */
#include <cooperative_groups.h>

#include "plugins/matrix_multiply/cuda.cuh"
#include "plugins/matrix_multiply/pack.h"

#define MOST_ROWS 16
#define THREADS 256
#define WARPS (THREADS / 32)
#define MOST_SPLIT 8
#define MMA_COLUMNS 16 /* of Y a block */
#define MMA_DEPTH 64   /* of k a warp at a time */

struct gemv_job {
    matrix_job j;
    int32_t split;  /* blocks that share the depth: a cluster in z */
    int32_t groups; /* of A's rows */
};

/* 16 bytes of B, which nobody reads again: past the L1, where A stays. Volatile, so that
 * it is not moved before a wait. */
static __device__ inline uint4 read_once(const void *from)
{
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

/* Sums of the block, [Count] in shared memory, to those of the cluster in its first. */
template <int Count>
static __device__ inline bool add_ranks(float *own, int split)
{
#if __CUDA_ARCH__ >= 900
    if (split == 1)
        return true;
    auto cluster = cooperative_groups::this_cluster();
    const bool first = cluster.block_rank() == 0;
    cluster.sync();
    for (int i = threadIdx.x; i < Count && first; i += THREADS) {
        float sum = own[i];
        for (int rank = 1; rank < split; rank++)
            sum += cluster.map_shared_rank(own, rank)[i];
        own[i] = sum;
    }
    cluster.sync();
    return first;
#else
    return true;
#endif
}

/* ---- FP32 arithmetic ------------------------------------------------------------- */

template <typename T, int N, int Columns>
static __device__ inline void read_b(pack<T, N> (&w)[Columns], const T *const (&b)[Columns],
                                     int64_t k, int64_t depth)
{
#pragma unroll
    for (int c = 0; c < Columns; c++)
        if (k < depth) {
            union {
                uint4 word;
                pack<T, N> x;
            } u = {read_once(b[c] + k)};
            w[c] = u.x;
        }
}

template <int Columns, int Rows>
static __device__ inline void add_lanes(float (&sum)[Columns][Rows])
{
#pragma unroll
    for (int c = 0; c < Columns; c++)
#pragma unroll
        for (int r = 0; r < Rows; r++)
#pragma unroll
            for (int lane = 16; lane > 0; lane /= 2)
                sum[c][r] += __shfl_xor_sync(0xffffffffu, sum[c][r], lane);
}

/* Columns and rows past the end are the last ones again, so that no load depends on a
 * condition. */
template <typename T, int Columns, int Rows>
static __global__ void __launch_bounds__(THREADS)
    gemv_kernel(const __grid_constant__ gemv_job g)
{
    const int N = 16 / sizeof(T);
    __shared__ float part[WARPS][Columns * Rows], total[Columns * Rows];
    const matrix_job &j = g.j;
    const matrix &x = j.p.at[PRODUCT_A];
    const matrix_offsets o = offsets_of(j.p, blockIdx.y);
    const int64_t first = (int64_t)(blockIdx.x / g.groups) * Columns;
    const int64_t row = (int64_t)(blockIdx.x % g.groups) * Rows;
    const int64_t step = (int64_t)g.split * THREADS * N;
    const T *a[Rows], *b[Columns];
    float sum[Columns][Rows] = {};
    pack<T, N> w[Columns];
#pragma unroll
    for (int c = 0; c < Columns; c++)
        b[c] = (const T *)j.b + o.at[PRODUCT_B] +
               min(first + c, j.p.n - 1) * j.p.at[PRODUCT_B].column;
#pragma unroll
    for (int r = 0; r < Rows; r++)
        a[r] = (const T *)j.a + o.at[PRODUCT_A] + min(row + r, j.p.m - 1) * x.row;
    int64_t k = ((int64_t)blockIdx.z * THREADS + threadIdx.x) * N;
    if (j.constant_b)
        read_b<T, N, Columns>(w, b, k, j.p.k);
    wait_for_previous();
    if (!j.constant_b)
        read_b<T, N, Columns>(w, b, k, j.p.k);
    for (; k < j.p.k; k += step) {
        pack<T, N> v[Rows], next[Columns];
#pragma unroll
        for (int r = 0; r < Rows; r++)
            v[r] = *(const pack<T, N> *)(a[r] + k);
        read_b<T, N, Columns>(next, b, k + step, j.p.k);
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int c = 0; c < Columns; c++)
#pragma unroll
                for (int r = 0; r < Rows; r++)
                    sum[c][r] += to_float(w[c].v[i]) * to_float(v[r].v[i]);
#pragma unroll
        for (int c = 0; c < Columns; c++)
            w[c] = next[c];
    }
    launch_next();
    add_lanes(sum);
    if (threadIdx.x % 32 == 0)
#pragma unroll
        for (int c = 0; c < Columns; c++)
#pragma unroll
            for (int r = 0; r < Rows; r++)
                part[threadIdx.x / 32][c * Rows + r] = sum[c][r];
    __syncthreads();
    if (threadIdx.x < Columns * Rows) {
        float all = 0;
        for (int i = 0; i < WARPS; i++)
            all += part[i][threadIdx.x];
        total[threadIdx.x] = all;
    }
    if (g.split == 1)
        __syncthreads();
    if (!add_ranks<Columns * Rows>(total, g.split) || threadIdx.x >= Columns * Rows)
        return;
    const int64_t m = row + threadIdx.x % Rows, n = first + threadIdx.x / Rows;
    if (m < j.p.m && n < j.p.n)
        store_sum<T>(j, o, m, n, total[threadIdx.x]);
}

/* ---- tensor cores ---------------------------------------------------------------- */

static __device__ inline void multiply_add(float (&d)[4], const uint32_t (&a)[4],
                                           uint32_t b0, uint32_t b1, __half)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

static __device__ inline void multiply_add(float (&d)[4], const uint32_t (&a)[4],
                                           uint32_t b0, uint32_t b1, __nv_bfloat16)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* 8 elements of A, zeros past the depth. */
template <typename T>
static __device__ inline uint4 read_eight(const T *from, int64_t k, int64_t depth)
{
    return k < depth ? *(const uint4 *)(from + k) : make_uint4(0, 0, 0, 0);
}

/* A warp's step of k: two halves of 32, of each two rows of B, 8 apart. */
template <typename T>
static __device__ inline void read_step(uint4 (&w)[2][2], const T *const (&b)[2],
                                        int64_t k, int64_t depth)
{
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            w[half][i] = k + half * 32 < depth ? read_once(b[i] + k + half * 32)
                                               : make_uint4(0, 0, 0, 0);
}

template <typename T, int Tiles>
static __device__ inline void multiply_step(float (&sum)[Tiles][4],
                                            const uint4 (&w)[2][2],
                                            const T *const (&a)[Tiles], int64_t k,
                                            int64_t depth)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const uint32_t low[4] = {w[half][0].x, w[half][1].x, w[half][0].y, w[half][1].y};
        const uint32_t high[4] = {w[half][0].z, w[half][1].z, w[half][0].w, w[half][1].w};
#pragma unroll
        for (int t = 0; t < Tiles; t++) {
            const uint4 v = read_eight(a[t], k + half * 32, depth);
            multiply_add(sum[t], low, v.x, v.y, T());
            multiply_add(sum[t], high, v.z, v.w, T());
        }
    }
}

template <typename T, int Tiles>
static __global__ void __launch_bounds__(THREADS)
    gemv_mma_kernel(const __grid_constant__ gemv_job g)
{
    const int Rows = Tiles * 8, Count = MMA_COLUMNS * Rows;
    __shared__ float part[WARPS][Count], total[Count];
    const matrix_job &j = g.j;
    const matrix_offsets o = offsets_of(j.p, blockIdx.y);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, line = lane / 4;
    const int64_t first = (int64_t)blockIdx.x * MMA_COLUMNS, depth = j.p.k;
    const int64_t step = (int64_t)g.split * WARPS * MMA_DEPTH;
    const T *a[Tiles], *b[2];
    float sum[Tiles][4] = {};
    uint4 w[2][2][2];
#pragma unroll
    for (int i = 0; i < 2; i++)
        b[i] = (const T *)j.b + o.at[PRODUCT_B] +
               min(first + line + i * 8, j.p.n - 1) * j.p.at[PRODUCT_B].column;
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        a[t] = (const T *)j.a + o.at[PRODUCT_A] +
               min((int64_t)(line + t * 8), j.p.m - 1) * j.p.at[PRODUCT_A].row;
    int64_t k = ((int64_t)blockIdx.z * WARPS + warp) * MMA_DEPTH + lane % 4 * 8;
    const int64_t end = depth + lane % 4 * 8; /* a warp's lanes end together */
    if (!j.constant_b)
        wait_for_previous();
#pragma unroll
    for (int s = 0; s < 2; s++)
        read_step(w[s], b, k + s * step, depth);
    if (j.constant_b)
        wait_for_previous();
    for (; k < end; k += 2 * step) {
#pragma unroll
        for (int s = 0; s < 2; s++) {
            multiply_step<T, Tiles>(sum, w[s], a, k + s * step, depth);
            read_step(w[s], b, k + (s + 2) * step, depth);
        }
    }
    launch_next();
#pragma unroll
    for (int t = 0; t < Tiles; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            part[warp][(line + i / 2 * 8) * Rows + t * 8 + lane % 4 * 2 + i % 2] =
                sum[t][i];
    __syncthreads();
    for (int i = threadIdx.x; i < Count; i += THREADS) {
        float all = 0;
        for (int s = 0; s < WARPS; s++)
            all += part[s][i];
        total[i] = all;
    }
    if (g.split == 1)
        __syncthreads();
    if (!add_ranks<Count>(total, g.split))
        return;
    for (int i = threadIdx.x; i < Count; i += THREADS)
        if (i % Rows < j.p.m && first + i / Rows < j.p.n)
            store_sum<T>(j, o, i % Rows, first + i / Rows, total[i]);
}

/* ---- host ------------------------------------------------------------------------ */

static int refuse(const strata_node *n, const char *why)
{
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why);
}

/* Rows begin at whole 16 bytes. */
static bool is_aligned(const matrix_product &p, const matrix &x, int64_t line, int whole)
{
    bool aligned = line % whole == 0;
    for (int d = 0; d < p.dims; d++)
        aligned &= x.batch[d] % whole == 0;
    return aligned;
}

int gemv_accept(const strata_node *n)
{
    const strata_matrix_multiply *params = (const strata_matrix_multiply *)n->params;
    const matrix_product p =
        matrix_product_of(params, n->n_in, n->in, n->weight, &n->out[0], NULL);
    const matrix &a = p.at[PRODUCT_A], &b = p.at[PRODUCT_B];
    const int whole = n->in[MATRIX_A].dtype == STRATA_FP32 ? 4 : 8;
    const bool constant = matrix_is_constant(n->n_in, n->in);
    if (p.m > MOST_ROWS)
        return refuse(n, "it multiplies up to 16 rows");
    if (p.k == 0 || p.k % whole != 0 || a.column != 1 ||
        !is_aligned(p, a, p.m > 1 ? a.row : 0, whole))
        return refuse(n, "rows of A are not whole pieces of 16 bytes");
    if (!constant && (b.row != 1 || !is_aligned(p, b, p.n > 1 ? b.column : 0, whole)))
        return refuse(n, "B lies as columns: with transpose_b it would be read in rows");
    if (p.batches > 65535 || p.n > INT32_MAX)
        return refuse(n, "a grid has at most 65535 products and 2^31 - 1 columns");
    return STRATA_OK;
}

int gemv_mma_accept(const strata_node *n)
{
    return n->math == STRATA_MATH_TENSOR_OP
               ? gemv_accept(n)
               : refuse(n, "tensor cores are for math = tensor_op");
}

int gemv_setup(const strata_node *n, void *state)
{
    gemv_state *s = (gemv_state *)state;
    int device = 0, multiprocessors = 0;
    void *packed = NULL;
    const int status = matrix_is_constant(n->n_in, n->in)
                           ? matrix_weight_pack(n, 0, &packed)
                           : (int)STRATA_OK;
    s->weight = packed;
    s->overlaps = n->sm >= 90;
    if (status != STRATA_OK)
        return status;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount,
                                   device);
    s->multiprocessors = multiprocessors;
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "asking for the device: %s",
                                          cudaGetErrorString(e));
}

/* Blocks of a cluster: enough that two a multiprocessor read, each at least `least` of
 * the depth. */
static int split_of(const gemv_state *s, int64_t blocks, int64_t depth, int64_t least)
{
    int split = 1;
    while (s->overlaps && 2 * split <= MOST_SPLIT && 2 * split * least <= depth &&
           blocks * split < 2 * (int64_t)s->multiprocessors)
        split *= 2;
    return split;
}

static int enqueue(const strata_run *r, const gemv_job &g, unsigned blocks,
                   const void *kernel)
{
    const gemv_state *s = (const gemv_state *)r->state;
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = attributes[1].val.clusterDim.y = 1;
    attributes[1].val.clusterDim.z = (unsigned)g.split;
    config.gridDim = dim3(blocks, (unsigned)g.j.p.batches, (unsigned)g.split);
    config.blockDim = dim3(THREADS);
    config.stream = layer_stream(r);
    config.attrs = attributes;
    config.numAttrs = s->overlaps ? 2 : 0;
    void *arguments[] = {(void *)&g};
    const cudaError_t e = cudaLaunchKernelExC(&config, kernel, arguments);
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel matrix_multiply gemv: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}

template <typename T, int Columns, int Rows> static int launch_gemv(const strata_run *r)
{
    const gemv_state *s = (const gemv_state *)r->state;
    gemv_job g = {};
    g.j = matrix_job_of(r, s->weight);
    g.groups = (int32_t)((g.j.p.m + Rows - 1) / Rows);
    const int64_t blocks = (g.j.p.n + Columns - 1) / Columns * g.groups;
    g.split = split_of(s, blocks * g.j.p.batches, g.j.p.k, THREADS * 16 / sizeof(T));
    return enqueue(r, g, (unsigned)blocks,
                   (const void *)gemv_kernel<T, Columns, Rows>);
}

template <typename T> static int choose_gemv(const strata_run *r, int64_t rows)
{
    return rows == 1   ? launch_gemv<T, 4, 1>(r)
           : rows == 2 ? launch_gemv<T, 4, 2>(r)
           : rows <= 4 ? launch_gemv<T, 4, 4>(r)
                       : launch_gemv<T, 2, 8>(r);
}

static int64_t rows_of(const strata_run *r)
{
    const gemv_state *s = (const gemv_state *)r->state;
    return matrix_job_of(r, s->weight).p.m;
}

int gemv_run(const strata_run *r)
{
    const int64_t rows = rows_of(r);
    int status = STRATA_OK;
    layer_float(r->out[0].dtype,
                [&](auto t) { status = choose_gemv<decltype(t)>(r, rows); });
    return status;
}

template <typename T, int Tiles> static int launch_mma(const strata_run *r)
{
    const gemv_state *s = (const gemv_state *)r->state;
    gemv_job g = {};
    g.j = matrix_job_of(r, s->weight);
    g.groups = 1;
    const int64_t blocks = (g.j.p.n + MMA_COLUMNS - 1) / MMA_COLUMNS;
    g.split = split_of(s, blocks * g.j.p.batches, g.j.p.k, 2 * WARPS * MMA_DEPTH);
    return enqueue(r, g, (unsigned)blocks, (const void *)gemv_mma_kernel<T, Tiles>);
}

int gemv_mma_run(const strata_run *r)
{
    const bool two = rows_of(r) > 8;
    if (r->out[0].dtype == STRATA_FP16)
        return two ? launch_mma<__half, 2>(r) : launch_mma<__half, 1>(r);
    return two ? launch_mma<__nv_bfloat16, 2>(r) : launch_mma<__nv_bfloat16, 1>(r);
}
