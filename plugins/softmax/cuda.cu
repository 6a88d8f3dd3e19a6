/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax on CUDA along any axis: what ring.cu and columns.cu leave, which is short
 * lines, those at odd addresses and those with pads. A line that is contiguous in memory
 * is shared by 4, 32 or 256 threads; of strided lines, neighbours go to neighbouring
 * threads, and a long axis is shared by the rows of a block. Contiguous lines that fit
 * are held in registers; of others there is one pass for maximum and sum together and one
 * for the result, which finds the line in a cache. The sum is FP32.
 *
 * A thread writes only elements that it alone reads, after it has read them all.
 */
#include "plugins/softmax/job.cuh"

#define LINE_ROWS 8 /* of a block, that share an axis */
#define HELD 32     /* elements of a line that a thread holds */

/* ---- contiguous lines ---------------------------------------------------------------
 */

template <int Threads>
static __device__ inline tally tally_all(tally t)
{
    const int width = Threads < 32 ? Threads : 32;
#pragma unroll
    for (int d = width / 2; d > 0; d /= 2) {
        const tally other = {__shfl_xor_sync(0xffffffffu, t.largest, d),
                             __shfl_xor_sync(0xffffffffu, t.sum, d)};
        t = tally_join(t, other);
    }
    if (Threads <= 32)
        return t;
    __shared__ tally warps[Threads / 32 + 1];
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = t;
    __syncthreads();
    t = warps[0];
    for (int i = 1; i < Threads / 32; i++)
        t = tally_join(t, warps[i]);
    return t;
}

/* A line that a warp holds; results are of To. */
template <typename T, typename To, int N, typename Index>
static __global__ void __launch_bounds__(CUDA_BLOCK) held_kernel(softmax_job job)
{
    const int64_t line = (int64_t)blockIdx.x * (CUDA_BLOCK / 32) + threadIdx.x / 32;
    const int32_t length = (int32_t)job.length, padded = (int32_t)job.padded;
    launch_next();
    if (line >= job.n_lines)
        return;
    wait_for_previous();
    const int64_t at = walk_find<1, Index>(job.lines, (Index)line).at[0];
    const T *x = (const T *)job.x + at;
    To *y = (To *)job.y + at;
    const int32_t first = (int32_t)(threadIdx.x % 32) * N;
    pack<T, N> v[HELD / N];
    tally t = {-INFINITY, 0};
#pragma unroll
    for (int i = 0; i < HELD / N; i++)
        if (first + i * 32 * N < length)
            v[i] = *(const pack<T, N> *)(x + first + i * 32 * N);
#pragma unroll
    for (int i = 0; i < HELD; i++)
        if (first + i / N * 32 * N + i % N < length)
            t.largest = fmaxf(t.largest, to_float(v[i / N].v[i % N]));
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        t.largest = fmaxf(t.largest, __shfl_xor_sync(0xffffffffu, t.largest, d));
#pragma unroll
    for (int i = 0; i < HELD; i++)
        if (first + i / N * 32 * N + i % N < length)
            t.sum += __expf(to_float(v[i / N].v[i % N]) - t.largest);
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        t.sum += __shfl_xor_sync(0xffffffffu, t.sum, d);
    tally_close(t, job.log);
#pragma unroll
    for (int i = 0; i < HELD / N; i++) {
        const int32_t j = first + i * 32 * N;
        pack<To, N> results;
#pragma unroll
        for (int k = 0; k < N; k++)
            from_float(&results.v[k],
                       j + k < length ? softmax_of(to_float(v[i].v[k]), t, job.log) : 0);
        if (j < padded)
            *(pack<To, N> *)(y + j) = results;
    }
}

template <typename T, typename To, int N, int Threads, typename Index>
static __global__ void __launch_bounds__(CUDA_BLOCK) contiguous_kernel(softmax_job job)
{
    const int64_t line =
        (int64_t)blockIdx.x * (CUDA_BLOCK / Threads) + threadIdx.x / Threads;
    const bool live = line < job.n_lines; /* the others take part in shuffles */
    const int64_t at = live ? walk_find<1, Index>(job.lines, (Index)line).at[0] : 0;
    const int64_t first = (int64_t)(threadIdx.x % Threads) * N;
    const T *x = (const T *)job.x + at;
    To *y = (To *)job.y + at;
    tally t = {-INFINITY, 0};
    launch_next();
    wait_for_previous();
    for (int64_t j = first; live && j < job.length; j += Threads * N) {
        const pack<T, N> p = *(const pack<T, N> *)(x + j);
#pragma unroll
        for (int k = 0; k < N; k++)
            if (j + k < job.length)
                tally_add(t, to_float(p.v[k]));
    }
    t = tally_all<Threads>(t);
    tally_close(t, job.log);
    for (int64_t j = first; live && j < job.padded; j += Threads * N) {
        const pack<T, N> p = *(const pack<T, N> *)(x + j);
        pack<To, N> results;
#pragma unroll
        for (int k = 0; k < N; k++)
            from_float(&results.v[k],
                       j + k < job.length ? softmax_of(to_float(p.v[k]), t, job.log) : 0);
        *(pack<To, N> *)(y + j) = results;
    }
}

/* Lines that more than four threads share have over 1,024 elements: 2^31 of them would be
 * 4 TB, so only four threads ever need 64 bits. */
template <typename T, int N, int Threads>
static void contiguous_launch(const softmax_job &job, cudaStream_t stream)
{
    const unsigned blocks = layer_blocks(job.n_lines, CUDA_BLOCK / Threads);
    if constexpr (Threads == 4)
        if (job.n_lines >= 0x7fffffff) {
            launch_overlapped(contiguous_kernel<T, T, N, Threads, uint64_t>, blocks,
                              CUDA_BLOCK, 0, stream, job);
            return;
        }
    launch_overlapped(contiguous_kernel<T, T, N, Threads, uint32_t>, blocks, CUDA_BLOCK,
                      0, stream, job);
}

template <typename T, int N>
static void held_launch(const softmax_job &job, cudaStream_t stream)
{
    const unsigned blocks = layer_blocks(job.n_lines, CUDA_BLOCK / 32);
    launch_overlapped(job.n_lines < 0x7fffffff ? held_kernel<T, T, N, uint32_t>
                                               : held_kernel<T, T, N, uint64_t>,
                      blocks, CUDA_BLOCK, 0, stream, job);
}

/* Lines of up to 32 * HELD elements are held, so not all kinds have any left for a
 * warp. */
template <typename T, int N>
static void contiguous(const softmax_job &job, cudaStream_t stream)
{
    const int Some = 256 * N > 32 * HELD ? 32 : CUDA_BLOCK;
    if (job.length <= 4 * N)
        contiguous_launch<T, N, 4>(job, stream);
    else if (job.padded <= 32 * HELD)
        held_launch<T, N>(job, stream);
    else if (job.length <= 256 * N)
        contiguous_launch<T, N, Some>(job, stream);
    else
        contiguous_launch<T, N, CUDA_BLOCK>(job, stream);
}

/* ---- strided lines ------------------------------------------------------------------
 */

/* N lines that lie side by side. */
template <typename T, int N>
struct strided_lines {
    const softmax_job &job;
    int64_t at;
    int rows, row;
    bool live;
    tally t[N];

    __device__ int64_t offset(int64_t j) const
    {
        const int64_t lane = j & ((1 << job.shift) - 1);
        return at + (j >> job.shift) * job.step + lane;
    }

    __device__ void count()
    {
        for (int k = 0; k < N; k++)
            t[k] = {-INFINITY, 0};
#pragma unroll 4
        for (int64_t j = row; live && j < job.length; j += rows) {
            const pack<T, N> p = *(const pack<T, N> *)((const T *)job.x + offset(j));
#pragma unroll
            for (int k = 0; k < N; k++)
                tally_add(t[k], to_float(p.v[k]));
        }
    }

    __device__ void write(int channels) /* of these, the rest are pads */
    {
        for (int64_t j = row; live && j < job.padded; j += rows) {
            const int64_t o = offset(j);
            pack<T, N> p = *(const pack<T, N> *)((const T *)job.x + o);
#pragma unroll
            for (int k = 0; k < N; k++)
                from_float(&p.v[k], j < job.length && k < channels
                                        ? softmax_of(to_float(p.v[k]), t[k], job.log)
                                        : 0);
            *(pack<T, N> *)((T *)job.y + o) = p;
        }
    }
};

/* A block has 32 x blockDim.y threads: columns of lines, rows that share them. */
template <typename T, int N, typename Index>
static __global__ void __launch_bounds__(32 * LINE_ROWS) strided_kernel(softmax_job job)
{
    __shared__ tally rows[LINE_ROWS][32];
    const int lanes = job.lines.lanes;
    const int64_t line = ((int64_t)blockIdx.x * 32 + threadIdx.x) * N;
    const bool live = line < job.n_lines;
    const walk_place<1> p =
        walk_find<1, Index>(job.lines, live ? (Index)(line >> (lanes - 1)) : 0);
    const int64_t lane = lanes == 2 ? line & 1 : 0;
    strided_lines<T, N> lines = {
        job, p.at[0] + lane * job.lines.lane[0], (int)blockDim.y, (int)threadIdx.y, live,
        {}};
    lines.count();
#pragma unroll
    for (int k = 0; k < N; k++) {
        rows[threadIdx.y][threadIdx.x] = lines.t[k];
        __syncthreads();
        for (int row = 1; row < lines.rows; row++)
            lines.t[k] = tally_join(lines.t[k],
                                    rows[(threadIdx.y + row) % lines.rows][threadIdx.x]);
        tally_close(lines.t[k], job.log);
        __syncthreads();
    }
    lines.write(job.lines.channel_dim < 0
                    ? N
                    : (int)min((int64_t)N, job.lines.channels - p.channel - lane));
}

template <typename T, int N>
static void strided(const softmax_job &job, cudaStream_t stream)
{
    const unsigned blocks = layer_blocks((job.n_lines + N - 1) / N, 32);
    dim3 threads(32, 1);
    while (threads.y < LINE_ROWS && threads.y * 2 <= job.length)
        threads.y *= 2;
    if (job.n_lines < 0x7fffffff)
        strided_kernel<T, N, uint32_t><<<blocks, threads, 0, stream>>>(job);
    else
        strided_kernel<T, N, uint64_t><<<blocks, threads, 0, stream>>>(job);
}

/* ---- the choice ---------------------------------------------------------------------
 */

static int softmax_axis(const strata_softmax *p, int rank)
{
    return (int)(p->axis < 0 ? p->axis + rank : p->axis);
}

static softmax_job softmax_job_of(const strata_softmax *params, const strata_tensor *x,
                                  const strata_tensor *y)
{
    const int axis = softmax_axis(params, x->rank);
    const bool blocked = axis == x->vector_dim;
    softmax_job job = {};
    strata_tensor rest = *x; /* without the axis */
    job.y = y->data;
    job.x = x->data;
    job.log = params->log;
    job.length = job.padded = x->dims[axis];
    job.step = x->strides[axis];
    while (blocked && (1 << job.shift) < x->vector)
        job.shift++;
    if (blocked)
        job.padded = (job.length + x->vector - 1) / x->vector * x->vector;
    rest.size = x->size / job.padded;
    rest.count = x->count / job.length;
    rest.dims[axis] = 1;
    if (blocked) {
        rest.vector_dim = -1;
        rest.vector = 1;
    }
    const walk_operand operand = walk_tensor(&rest, &rest);
    job.lines = walk_over<1>(&rest, &operand);
    job.n_lines = rest.size;
    return job;
}

/* Whether lines begin at multiples of N elements, or lie N side by side. */
static bool lines_start_at(const softmax_job &job, int64_t n, bool side_by_side)
{
    const walk<1> &w = job.lines;
    bool fits = w.lanes == 1;
    for (int d = 0; d < w.dims; d++)
        if (d == 0 && side_by_side)
            fits = fits && w.stride[0][0] == 1 && w.extent[0] % n == 0;
        else
            fits = fits && (w.stride[0][d] % n == 0 || w.extent[d] == 1);
    return fits;
}

template <typename T>
static void softmax_launch(const softmax_job &job, cudaStream_t stream)
{
    const int N = 16 / (int)sizeof(T);
    const int64_t width = (int64_t)1 << job.shift;
    const bool contiguous_lines = (job.step == width || job.padded == width) &&
                                  job.lines.lanes == 1 && job.lines.channel_dim < 0;
    if (contiguous_lines && job.padded % N == 0 && lines_start_at(job, N, false))
        contiguous<T, N>(job, stream);
    else if (contiguous_lines)
        contiguous<T, 1>(job, stream);
    else if (job.shift == 0 && job.step % N == 0 && lines_start_at(job, N, true))
        strided<T, N>(job, stream);
    else
        strided<T, 1>(job, stream);
}

static int softmax_run(const strata_run *r)
{
    const softmax_job job =
        softmax_job_of((const strata_softmax *)r->params, &r->in[0], &r->out[0]);
    if (!softmax_ring(job, r->out[0].dtype, layer_stream(r)))
        layer_float(r->out[0].dtype,
                    [&](auto t) { softmax_launch<decltype(t)>(job, layer_stream(r)); });
    return layer_launched(r, "softmax");
}

/* ---- halves to FP32, as a network's last layer ----------------------------------------
 */

static int wider_accept(const strata_node *n)
{
    if (n->in[0].count == 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "takes no tensor that is empty");
    const softmax_job job =
        softmax_job_of((const strata_softmax *)n->params, &n->in[0], &n->out[0]);
    return job.step == 1 && job.length <= 32 * HELD && job.n_lines < 0x7fffffff
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "takes contiguous lines of up to %d elements", 32 * HELD);
}

/* A line by a warp, of few lines by a block. */
template <typename T>
static void wider_launch(const softmax_job &job, cudaStream_t stream)
{
    static void (*const kernels[2][2])(softmax_job) = {
        {held_kernel<T, float, 1, uint32_t>, held_kernel<T, float, 8, uint32_t>},
        {contiguous_kernel<T, float, 1, CUDA_BLOCK, uint32_t>,
         contiguous_kernel<T, float, 4, CUDA_BLOCK, uint32_t>},
    };
    const bool few = job.n_lines <= 1024;
    const bool whole = job.length % 8 == 0 && lines_start_at(job, 8, false);
    launch_overlapped(kernels[few][whole],
                      few ? (unsigned)job.n_lines
                          : layer_blocks(job.n_lines, CUDA_BLOCK / 32),
                      CUDA_BLOCK, 0, stream, job);
}

static int wider_run(const strata_run *r)
{
    const softmax_job job =
        softmax_job_of((const strata_softmax *)r->params, &r->in[0], &r->out[0]);
    if (job.n_lines == 0)
        return STRATA_OK;
    if (r->in[0].dtype == STRATA_FP16)
        wider_launch<__half>(job, layer_stream(r));
    else
        wider_launch<__nv_bfloat16>(job, layer_stream(r));
    return layer_launched(r, "softmax wider");
}

static const strata_row rows[] = {{{CUDA_FLOATS}, {STRATA_SAME}}};
static const strata_row wider_rows[] = {
    {{STRATA_F16_NCHW | STRATA_BF16_NCHW}, {STRATA_F32_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = softmax_run,
     .bandwidth = 0.8},
    {.id = 2,
     .device = STRATA_CUDA,
     .name = "wider",
     .rows = STRATA_ARRAY(wider_rows),
     .accept = wider_accept,
     .run = wider_run,
     .bandwidth = 0.8},
};

static const strata_extends softmax = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Softmax",
    .params_size = sizeof(strata_softmax),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&softmax};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Softmax", extends)
