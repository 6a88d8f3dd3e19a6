/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread of pipeline.cu does at a step: it loads, measures and writes packs of its
 * own, the same channels of every down-th pixel of its block.
 */
#ifndef PLUGINS_NORMALIZATION_PIPELINE_STEP_CUH
#define PLUGINS_NORMALIZATION_PIPELINE_STEP_CUH

#include "plugins/common/copy_ahead.cuh"
#include "plugins/normalization/pipeline.cuh"

#if __CUDA_ARCH__ >= 900
struct pipeline_place {
    int column, row; /* pack of a pixel; pixel of a step, or none: s.share */
    int count;       /* pixels of the block */
    int rank, cluster, by;
    int group, own;   /* of the slab, of the pack's first channel; its channels in it */
    float n, inverse; /* pixels that the thread has of a slab */
};

static __device__ inline pipeline_place pipeline_place_of(const norm_pipeline &s, int n)
{
    pipeline_place p;
    const int thread = (int)threadIdx.x;
    p.rank = (int)(blockIdx.x % (uint32_t)s.blocks);
    p.cluster = (int)(blockIdx.x / (uint32_t)s.blocks);
    p.by = (int)(gridDim.x / (uint32_t)s.blocks);
    p.row = (int)divide_by((uint32_t)thread, s.by_across);
    p.column = thread - p.row * s.across;
    if (p.row >= s.down)
        p.row = s.share;
    p.count = pipeline_count(s, p.rank);
    p.group = (int)divide_by((uint32_t)(p.column * n), s.by_each);
    p.own = min(n, (p.group + 1) * s.each - p.column * n);
    p.n = p.row < p.count ? (float)((p.count - p.row - 1) / s.down + 1) : 0;
    p.inverse = p.row < p.count ? 1 / p.n : 0;
    return p;
}

/* Where a thread is in its sequence of steps: the element of its first pack, and that
 * one's pixel in the block. */
struct pipeline_cursor {
    int unit, chunk, row;
    int64_t at;

    __device__ inline void place(const norm_pipeline &s, const pipeline_place &p, int n)
    {
        const uint32_t image = divide_by((uint32_t)unit, s.by_slabs);
        const int first = (unit - (int)image * s.slabs) * s.span + p.column * n;
        const int64_t pixel = (int64_t)image * s.pixels + (int64_t)p.rank * s.share;
        chunk = 0;
        row = p.row;
        at = (pixel + p.row) * s.channels + first;
    }

    __device__ inline void advance(const norm_pipeline &s, const pipeline_place &p, int n)
    {
        row += s.rows;
        at += (int64_t)s.rows * s.channels;
        if (++chunk == s.chunks) {
            unit += p.by;
            place(s, p, n);
        }
    }
};

/* 16 bytes past the first-level cache. Neighbours are other blocks'. */
static __device__ inline void pipeline_copy(void *shared, const void *memory)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(memory)
                 : "memory");
}

/* Even: every thread has a pixel each time. */
template <typename T, bool Even>
static __device__ inline void
pipeline_load(uint4 *own, const norm_job &job, const norm_pipeline &s,
              const pipeline_place &p, pipeline_cursor &from)
{
    const T *x = (const T *)job.x + from.at;
    const int apart = s.down * s.channels;
#pragma unroll
    for (int u = 0; u < PIPELINE_PACKS; u++)
        if (Even || from.row + u * s.down < p.count)
            pipeline_copy(own + u * PIPELINE_THREADS, x + u * apart);
    from.advance(s, p, 16 / (int)sizeof(T));
}

/* ---- moments -------------------------------------------------------------------------
 */

/* Of N channels, about the first pixel of each that the thread has. */
template <int N>
struct pipeline_tally {
    float first[N], sum[N], square[N];

    template <typename T>
    __device__ inline void begin(const pack<T, N> &p)
    {
#pragma unroll
        for (int k = 0; k < N; k++) {
            first[k] = to_float(p.v[k]);
            sum[k] = square[k] = 0;
        }
    }

    template <typename T>
    __device__ inline void add(const pack<T, N> &p)
    {
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float d = to_float(p.v[k]) - first[k];
            sum[k] += d;
            square[k] = fmaf(d, d, square[k]);
        }
    }

    /* Mean of channels from..to-1 of the thread's pixels, and squares about it. */
    __device__ inline float2 close(const pipeline_place &p, int from, int to) const
    {
        float mean = 0, all = 0;
#pragma unroll
        for (int k = 0; k < N; k++)
            mean += k >= from && k < to ? fmaf(sum[k], p.inverse, first[k]) : 0;
        mean /= (float)(to - from);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float d = sum[k] * p.inverse, e = first[k] + d - mean;
            const float own = fmaxf(square[k] - sum[k] * d, 0);
            all += k >= from && k < to ? fmaf(p.n * e, e, own) : 0;
        }
        return make_float2(mean, all);
    }
};

/* Packs that lie `own` on; the thread's first pixel of the step is `row`. */
template <typename T, int N, bool Even>
static __device__ inline void
pipeline_measure(pipeline_tally<N> &tally, const uint4 *own, const norm_pipeline &s,
                 const pipeline_place &p, int row, bool first)
{
    pack<T, N> x[PIPELINE_PACKS];
#pragma unroll
    for (int u = 0; u < PIPELINE_PACKS; u++)
        x[u] = *(const pack<T, N> *)(own + u * PIPELINE_THREADS);
    if (first)
        tally.begin(x[0]);
#pragma unroll
    for (int u = 0; u < PIPELINE_PACKS; u++)
        if (Even || row + u * s.down < p.count)
            tally.add(x[u]);
}

/* At a slab's end: for the joiners, who have read those of the slab before. */
template <int N>
static __device__ inline void
pipeline_part(const pipeline_shared &m, const norm_pipeline &s, const pipeline_place &p,
              const pipeline_tally<N> &tally, uint32_t turn)
{
    if (turn > 0)
        barrier_wait(m.joined, (turn - 1) % 2);
    if (p.row < p.count) {
        m.part[threadIdx.x] = tally.close(p, 0, p.own);
        if (p.own < N)
            m.part[PIPELINE_THREADS + threadIdx.x] = tally.close(p, p.own, N);
    }
    named_arrive(PIPELINE_PART, PIPELINE_THREADS + PIPELINE_JOINERS * 32);
}

/* ---- results -------------------------------------------------------------------------
 */

/* y = (x - shift)*factor + addend of N channels. */
template <typename T, int N>
struct pipeline_affine {
    float shift[N], factor[N], addend[N];

    /* Of a slab, the turn-th of the block, whose results are waited for. */
    __device__ inline void read(const pipeline_shared &m, const norm_job &job,
                                const norm_pipeline &s, const pipeline_place &p, int unit,
                                uint32_t turn)
    {
        const int image = (int)divide_by((uint32_t)unit, s.by_slabs);
        const int first = (unit - image * s.slabs) * s.span + p.column * N;
        const float2 *results = m.results + (int)(turn % 2) * s.groups;
#pragma unroll
        for (int k = 0; k < N; k++) {
            factor[k] = 1;
            addend[k] = 0;
        }
        if (job.scale)
            norm_read_weight<N>(factor, job.scale + first);
        if (job.bias)
            norm_read_weight<N>(addend, job.bias + first);
        barrier_wait(m.ready + turn % 2 * 8, turn / 2 % 2);
        const float2 a = results[p.group], b = p.own < N ? results[p.group + 1] : a;
#pragma unroll
        for (int k = 0; k < N; k++) {
            shift[k] = k < p.own ? a.x : b.x;
            factor[k] *= k < p.own ? a.y : b.y;
        }
    }

    template <bool Plain, bool Even>
    __device__ inline void write(const pack<T, N> (&held)[PIPELINE_PACKS],
                                 const norm_job &job, const norm_pipeline &s,
                                 const pipeline_place &p, const pipeline_cursor &to) const
    {
        T *y = (T *)job.y + to.at;
        const int apart = s.down * s.channels;
#pragma unroll
        for (int u = 0; u < PIPELINE_PACKS; u++) {
            float v[N];
            if (!Even && to.row + u * s.down >= p.count)
                continue;
#pragma unroll
            for (int k = 0; k < N; k++)
                v[k] = (to_float(held[u].v[k]) - shift[k]) * factor[k] + addend[k];
            if (!Plain)
                norm_activate<N>(v, job.activation);
            norm_store<T, N>(y + u * apart, 0, v);
        }
    }
};
#endif

#endif /* PLUGINS_NORMALIZATION_PIPELINE_STEP_CUH */
