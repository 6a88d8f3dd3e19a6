/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling over windows that slide, in any layout and with pitches: a thread makes N
 * channels that lie side by side, of one output or of four below each other. These share
 * rows of the input, each of which is reduced along the window's width once.
 */
#ifndef PLUGINS_POOLING_WINDOW_CUH
#define PLUGINS_POOLING_WINDOW_CUH

#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"
#include "plugins/common/window.h"

#define POOL_ROWS 4

struct pooling {
    struct window w;
    int32_t kind, count_include_pad;
    float p; /* of lp */
};

struct pool_axis {
    int64_t stride, begin;
    int64_t counted; /* end of the positions that an average counts */
    int64_t x_step, y_step;
    int32_t in, out, kernel, dilation;
    divisor by; /* of threads along the axis */
};

struct pool_job {
    void *y;
    const void *x;
    pool_axis axis[WINDOW_DIMS];
    int64_t x_image, y_image, x_block, y_block; /* steps; a block is N channels */
    int64_t threads;
    divisor blocks;
    int32_t channels, with_pads;
};

/* The maximum of anything and a NaN is NaN. */
template <bool Max>
static __device__ inline float pool_fold(float a, float x)
{
    if (!Max)
        return a + x;
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(x));
    return a;
}

template <bool Max>
static __device__ inline float pool_start(void)
{
    return Max ? -INFINITY : 0;
}

/* Kernel elements [first, last) of a window at input position `at` that lie inside.
 * Int holds positions in the padded input: int32_t wherever it can. */
template <typename Int>
struct pool_span {
    Int at, first, last;
};

template <typename Int>
static __device__ inline pool_span<Int> pool_clip(const pool_axis &a, Int o)
{
    const Int at = o * (Int)a.stride - (Int)a.begin, room = a.in - at, kernel = a.kernel;
    Int first = at < 0 ? -at : 0, last = room > 0 ? room : 0;
    if (a.dilation > 1) {
        first = (first + a.dilation - 1) / a.dilation;
        last = (last + a.dilation - 1) / a.dilation;
    }
    return {at, first < kernel ? first : kernel, last < kernel ? last : kernel};
}

/* Positions an average counts. */
template <typename Int>
static __device__ inline Int pool_counted(const pool_axis &a, Int o, bool with_pads)
{
    const pool_span<Int> inside = pool_clip<Int>(a, o);
    const Int room = (Int)a.counted - inside.at, kernel = a.kernel;
    if (!with_pads)
        return inside.last > inside.first ? inside.last - inside.first : 0;
    const Int most = a.dilation > 1 ? (room + a.dilation - 1) / a.dilation : room;
    return most < 0 ? 0 : most < kernel ? most : kernel;
}

template <typename Int>
struct pool_index;
template <>
struct pool_index<int32_t> {
    typedef uint32_t type;
};
template <>
struct pool_index<int64_t> {
    typedef uint64_t type;
};

struct pool_place {
    int64_t image;
    uint32_t block, d, h, w; /* h: of the first row */
};

static __device__ inline uint32_t pool_take(uint32_t &i, const divisor &by)
{
    const uint32_t q = divide_by(i, by), rest = i - q * by.d;
    i = q;
    return rest;
}
static __device__ inline uint32_t pool_take(uint64_t &i, const divisor &by)
{
    const uint64_t q = i / by.d, rest = i - q * by.d;
    i = q;
    return (uint32_t)rest;
}

/* Neighbouring threads have neighbouring outputs: channels-last (Last) or rows. */
template <bool Last, int Rows, typename Index>
static __device__ inline pool_place pool_find(const pool_job &job, Index i)
{
    pool_place p;
    if (Last)
        p.block = pool_take(i, job.blocks);
    p.w = pool_take(i, job.axis[2].by);
    p.h = pool_take(i, job.axis[1].by) * Rows;
    p.d = pool_take(i, job.axis[0].by);
    if (!Last)
        p.block = pool_take(i, job.blocks);
    p.image = i;
    return p;
}

/* One row of the input under the window. */
template <typename T, int N, bool Max, typename Int>
static __device__ inline void pool_row(float v[N], const T *x, int64_t step,
                                       const pool_span<Int> &w)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        v[k] = pool_start<Max>();
    for (Int i = w.first; i < w.last; i++, x += step) {
        const pack<T, N> p = *(const pack<T, N> *)x;
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = pool_fold<Max>(v[k], to_float(p.v[k]));
    }
}

/* acc[r] is the output r rows below h; x the input's first element of its channels. */
template <typename T, int N, int Rows, bool Max, typename Int>
static __device__ inline void pool_plane(float acc[Rows][N], const pool_job &job,
                                         const T *x, Int h, const pool_span<Int> &w)
{
    const pool_axis &a = job.axis[1], &b = job.axis[2];
    const pool_span<Int> top = pool_clip<Int>(a, h);
    Int from = top.at + top.first * a.dilation, to = top.at + top.last * a.dilation;
    if (Rows >
        1) { /* without dilation: from the first window's begin to the last's end */
        const Int below = min((Int)Rows, a.out - h) - 1;
        from = max((Int)0, top.at);
        to = min((Int)a.in, top.at + below * (Int)a.stride + a.kernel);
    }
    x += (int64_t)(w.at + w.first * b.dilation) * b.x_step;
    for (Int row = from; row < to; row += a.dilation) {
        float v[N];
        pool_row<T, N, Max, Int>(v, x + row * a.x_step, b.dilation * b.x_step, w);
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            const Int place = row - top.at - r * (Int)a.stride;
            if (Rows == 1 || (place >= 0 && place < a.kernel))
#pragma unroll
                for (int k = 0; k < N; k++)
                    acc[r][k] = pool_fold<Max>(acc[r][k], v[k]);
        }
    }
}

template <typename T, int N, bool Max>
static __device__ inline void pool_store(T *y, const float acc[N], float factor,
                                         int32_t channels)
{
    pack<T, N> p;
#pragma unroll
    for (int k = 0; k < N; k++)
        from_float(&p.v[k], k >= channels ? 0 : Max ? acc[k] : acc[k] * factor);
    *(pack<T, N> *)y = p;
}

template <typename T, int N, bool Last, int Rows, bool Max, typename Int>
static __global__ void __launch_bounds__(CUDA_BLOCK) pool_window_kernel(pool_job job)
{
    typedef typename pool_index<Int>::type index;
    const int64_t thread = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    launch_next();
    wait_for_previous();
    if (thread >= job.threads)
        return;
    const pool_place p = pool_find<Last, Rows, index>(job, (index)thread);
    const pool_axis &d = job.axis[0], &h = job.axis[1], &w = job.axis[2];
    const T *x = (const T *)job.x + p.image * job.x_image + p.block * job.x_block;
    T *y = (T *)job.y + p.image * job.y_image + p.block * job.y_block + p.d * d.y_step +
           p.w * w.y_step;
    const pool_span<Int> deep = pool_clip<Int>(d, p.d), wide = pool_clip<Int>(w, p.w);
    float acc[Rows][N];
#pragma unroll
    for (int r = 0; r < Rows; r++)
#pragma unroll
        for (int k = 0; k < N; k++)
            acc[r][k] = pool_start<Max>();
    for (Int i = deep.first; i < deep.last && wide.first < wide.last; i++)
        pool_plane<T, N, Rows, Max, Int>(
            acc, job, x + (int64_t)(deep.at + i * d.dilation) * d.x_step, p.h, wide);
    const float area = Max ? 1
                           : (float)pool_counted<Int>(d, p.d, job.with_pads) *
                                 (float)pool_counted<Int>(w, p.w, job.with_pads);
#pragma unroll
    for (int r = 0; r < Rows; r++) {
        if (p.h + r >= (uint32_t)h.out)
            break;
        const float n =
            Max ? 1 : area * (float)pool_counted<Int>(h, p.h + r, job.with_pads);
        pool_store<T, N, Max>(y + (p.h + r) * h.y_step, acc[r], n > 0 ? 1 / n : 0,
                              job.channels - (int32_t)p.block * N);
    }
}

/* ---- on the host --------------------------------------------------------------------
 */

/* Whether all positions, those between the rows of a thread too, fit in 32 bits. */
static inline bool pool_is_narrow(const pool_job &job)
{
    bool narrow = job.threads < 0x7fffffff;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const pool_axis &a = job.axis[d];
        const int64_t last = (a.out + POOL_ROWS) * a.stride;
        narrow = narrow && a.begin < 1 << 29 && a.in < 1 << 29 && last < 1 << 29 &&
                 a.counted < 1 << 29 && (int64_t)a.kernel * a.dilation < 1 << 29;
    }
    return narrow;
}

template <typename T, int N, bool Last, int Rows, bool Max>
static void pool_window_launch(const pool_job &job, cudaStream_t stream)
{
    const unsigned blocks = layer_blocks(job.threads, CUDA_BLOCK);
    launch_overlapped(pool_is_narrow(job)
                          ? pool_window_kernel<T, N, Last, Rows, Max, int32_t>
                          : pool_window_kernel<T, N, Last, Rows, Max, int64_t>,
                      blocks, CUDA_BLOCK, 0, stream, job);
}

/* Strides of spatial dim d (0 to 2) of the window; 0 for one that the tensor lacks. */
static inline int64_t pool_step(const strata_tensor *t, const struct window *w, int d)
{
    return d < w->first ? 0 : t->strides[2 + d - w->first];
}

/* Rows of outputs to a thread: several where windows overlap and threads abound. */
static inline int pool_rows(const struct window *w, int64_t outputs)
{
    return w->dilation[1] == 1 && w->kernel[1] > w->stride[1] && w->out[1] >= POOL_ROWS &&
                   outputs >= (int64_t)1 << 17
               ? POOL_ROWS
               : 1;
}

static inline pool_job pool_job_of(const strata_run *r, int n, int *rows)
{
    const pooling *pool = (const pooling *)r->state;
    const struct window *w = &pool->w;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const int64_t step =
        y->vector == n ? 1 : n; /* of the channel's strides, to a block */
    const int64_t channels = (y->dims[1] + y->vector - 1) / y->vector * y->vector;
    pool_job job = {};
    job.y = y->data;
    job.x = x->data;
    job.x_image = x->strides[0];
    job.y_image = y->strides[0];
    job.x_block = y->vector > n ? n : x->strides[1] * step;
    job.y_block = y->vector > n ? n : y->strides[1] * step;
    job.blocks = divisor_of(channels / n);
    job.channels = (int32_t)y->dims[1];
    job.with_pads = pool->count_include_pad;
    job.threads = y->dims[0] * (channels / n) * window_out_count(w);
    *rows = pool_rows(w, job.threads);
    job.threads = job.threads / w->out[1] * ((w->out[1] + *rows - 1) / *rows);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        pool_axis *a = &job.axis[d];
        a->stride = w->stride[d];
        a->begin = w->begin[d];
        a->counted = w->in[d] + (pool->count_include_pad ? w->end[d] : 0);
        a->x_step = pool_step(x, w, d);
        a->y_step = pool_step(y, w, d);
        a->in = (int32_t)w->in[d];
        a->out = (int32_t)w->out[d];
        a->kernel = (int32_t)w->kernel[d];
        a->dilation = (int32_t)w->dilation[d];
        a->by = divisor_of(d == 1 ? (w->out[d] + *rows - 1) / *rows : w->out[d]);
    }
    return job;
}

#endif /* PLUGINS_POOLING_WINDOW_CUH */
