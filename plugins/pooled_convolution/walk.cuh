/* SPDX-License-Identifier: Apache-2.0
 *
 * Maxima of a first layer's results on Hopper's tensor cores, what a block does: it walks
 * down rows of windows as the convolution does by itself, keeps the largest of the rows
 * that a maximum has in registers, as halves, and writes maxima alone.
 *
 * The columns of a maximum come together in shared memory, where results become
 * channels-last. Outside of the convolution's results the nearest one is read, which the
 * maximum has too. On the way out they may become bytes.
 */
#ifndef PLUGINS_POOLED_CONVOLUTION_WALK_CUH
#define PLUGINS_POOLED_CONVOLUTION_WALK_CUH

#include "plugins/convolution/cuda/stem/wgmma.cuh"
#include "plugins/pooled_convolution/bytes.cuh"

enum { MOST_POOLED = 3 }; /* columns of a maximum */

/* A maximum's rows begin stride_h below those of the one above, and one is of both at
 * most; the last row of each is another. */
struct pooled_job {
    stem_wgmma_job stem;    /* out_h, out_w: of the convolution; high, rows: of maxima */
    const float *scale_out; /* of bytes, with zero_out and is_unsigned */
    uint32_t pitch; /* elements from a pixel to the next: above `stored` inside others */
    int32_t wide;   /* maxima of a row of an image */
    int32_t across; /* maxima of a row of a tile */
    int32_t kernel_h, stride_h, begin_h;
    int32_t kernel_w, stride_w, begin_w;
    bool cut; /* the last maximum's columns end with the results */
    int32_t zero_out, is_unsigned;
    pooled_brief brief; /* of bytes */
};

/* A row of maxima of a tile. */
struct pooled_row {
    uint32_t image;
    int32_t h, w, q; /* its first maximum; the tile's first column of results */

    __device__ inline pooled_row(const pooled_job &job, uint32_t row)
    {
        const uint32_t tile = row / job.stem.high;
        image = tile / job.stem.across;
        h = (int32_t)(row - tile * job.stem.high);
        w = (int32_t)(tile - image * job.stem.across) * job.across;
        q = max(w * job.stride_w - job.begin_w, 0);
    }
};

static __device__ inline uint4 larger_eight(const uint4 &a, const uint4 &b)
{
    pack<__half2, 4> x, y;
    uint4 z;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
#pragma unroll
    for (int i = 0; i < 4; i++)
        x.v[i] = __hmax2_nan(x.v[i], y.v[i]);
    memcpy(&z, &x, sizeof z);
    return z;
}

/* ---- what maxima become ------------------------------------------------------------ */

/* A shape whose maxima become bytes. */
template <class S>
struct pooled_rounded : S {
};

template <class S>
struct pooled_result {
    typedef __half Element;

    __device__ inline explicit pooled_result(const pooled_job &)
    {
    }
    __device__ inline void put(__half *y, const uint4 &eight) const
    {
        *(uint4 *)y = eight;
    }
};

template <class S>
struct pooled_result<pooled_rounded<S>> {
    typedef uint8_t Element;
    const pooled_brief &brief;
    const quantized_rounding rounding;
    const uint32_t flip;

    __device__ inline explicit pooled_result(const pooled_job &job)
        : brief(job.brief),
          rounding(pooled_rounding(job.scale_out, job.zero_out, job.is_unsigned)),
          flip(job.is_unsigned ? QUANTIZED_FLIP : 0)
    {
    }
    __device__ inline uint2 round(const pack<__half2, 4> &x) const
    {
        int32_t whole[8];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float2 two = __half22float2(x.v[i]);
            whole[2 * i] = rounding.whole(rounding.divide(two.x));
            whole[2 * i + 1] = rounding.whole(rounding.divide(two.y));
        }
        return make_uint2(saturate_four(whole[0], whole[1], whole[2], whole[3]) ^ flip,
                          saturate_four(whole[4], whole[5], whole[6], whole[7]) ^ flip);
    }
    /* A sum is NaN where one of them is. */
    __device__ inline void put(uint8_t *y, const uint4 &eight) const
    {
        pack<__half2, 4> x;
        memcpy(&x, &eight, sizeof x);
        const __half2 sum = __hadd2(__hadd2(x.v[0], x.v[1]), __hadd2(x.v[2], x.v[3]));
        *(uint2 *)y = brief.is && __hbeq2(sum, sum)
                          ? make_uint2(pooled_word(brief, x.v[0], x.v[1]),
                                       pooled_word(brief, x.v[2], x.v[3]))
                          : round(x);
    }
};

/* ---- maxima ------------------------------------------------------------------------ */

#define NONE 0xfc00fc00 /* minus infinity, twice */

/* A part of a row, rounded: a thread's share of 16 columns each. */
template <int N>
struct pooled_halves {
    uint4 v[N];

    pooled_halves(void) = default;
    __device__ inline pooled_halves(const stem_tail &tail, float (&sum)[2 * N][4])
    {
        uint32_t word[4];
        tail.shifted(sum);
#pragma unroll
        for (int i = 0; i < N; i++) {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const float *two = &sum[2 * i + k / 2][k % 2 * 2];
                const __half2 both = __floats2half2_rn(two[0], two[1]);
                memcpy(&word[k], &both, sizeof both);
            }
            v[i] = make_uint4(word[0], word[1], word[2], word[3]);
        }
    }
};

/* What of a maximum a thread has seen: of each of its parts' columns and filters, as
 * halves, in shared memory, where no other thread looks. */
struct pooled_most {
    uint4 *slot; /* of 16 columns each */

    __device__ inline pooled_most(uint8_t *memory) : slot((uint4 *)memory + threadIdx.x)
    {
    }

    __device__ inline void clear(int columns)
    {
        for (int i = 0; i < columns / 16; i++)
            slot[i * THREADS] = make_uint4(NONE, NONE, NONE, NONE);
    }

    /* A part of a row, from a column on. */
    template <int N>
    __device__ inline void add(int column, const pooled_halves<N> &row)
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
            uint4 &most = slot[(column / 16 + i) * THREADS];
            most = larger_eight(most, row.v[i]);
        }
    }

    /* Of the last of a maximum's rows; it begins the next one where it is of both. */
    template <int N>
    __device__ inline void finish(int column, const pooled_halves<N> &row, uint32_t stage,
                                  const stem_tail &tail, bool both)
    {
        const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        stage += (column + lane / 16 * 8 + lane % 8) * STAGE_ROW +
                 (warp * 2 + lane / 8 % 2) * PIECE;
#pragma unroll
        for (int i = 0; i < N; i++) {
            uint4 &most = slot[(column / 16 + i) * THREADS];
            const uint4 all = larger_eight(most, row.v[i]);
            const uint32_t word[4] = {
                tail.bounded(all.x) & tail.mask[0], tail.bounded(all.y) & tail.mask[1],
                tail.bounded(all.z) & tail.mask[0], tail.bounded(all.w) & tail.mask[1]};
            most = both ? row.v[i] : make_uint4(NONE, NONE, NONE, NONE);
            store_turned(stage + i * 16 * STAGE_ROW, word);
        }
    }
};

/* A row of maxima to `y`, of its first one and the block's first filter. */
template <class Result>
static __device__ inline void pooled_write(const pooled_job &job, const pooled_row &at,
                                           const Result &result, const uint8_t *stage,
                                           typename Result::Element *y, int32_t filters)
{
    const int32_t piece = threadIdx.x % 8, last = job.stem.out_w - 1 - at.q;
    const int32_t count = min(job.across, job.wide - at.w);
    if (piece * 8 >= filters)
        return;
    stage += piece * PIECE;
    for (int32_t i = threadIdx.x / 8; i < count; i += THREADS / 8) {
        const int32_t left = (at.w + i) * job.stride_w - job.begin_w - at.q;
        uint4 v = *(const uint4 *)(stage + min(max(left, 0), last) * STAGE_ROW);
#pragma unroll
        for (int k = 1; k < MOST_POOLED; k++) {
            const int32_t column =
                min(max(left + min(k, job.kernel_w - 1), 0), last) * STAGE_ROW;
            v = larger_eight(v, *(const uint4 *)(stage + column));
        }
        result.put(y + (size_t)i * job.pitch + piece * 8, v);
    }
}

/* A block's way down one tile, from a row of maxima on. */
template <class S>
struct pooled_way {
    const pooled_job &job;
    const pooled_row &at;
    const stem_tail &tail;
    const pooled_result<S> &result;
    uint8_t *stage, *other; /* of two rows of maxima, in turn */
    typename pooled_result<S>::Element *y;
    pooled_most most;
    int32_t whole; /* the last of the rows that the next maxima have */
    bool both;     /* whether it is one of those behind them, too */

    __device__ inline pooled_way(const pooled_job &job_, const pooled_row &at_,
                                 const stem_tail &tail_, const pooled_result<S> &result_,
                                 uint8_t *memory, uint32_t filter)
        : job(job_), at(at_), tail(tail_), result(result_),
          stage(memory + RING * S::Pair), other(stage + S::Stage),
          most(memory + S::Shared)
    {
        const int32_t below = job.kernel_h - job.begin_h; /* the first maximum */
        both = job.kernel_h > job.stride_h;
        whole = min(at.h * job.stride_h + below, job.stem.out_h) - 1;
        y = (typename pooled_result<S>::Element *)job.stem.y + filter +
            (((size_t)at.image * job.stem.high + at.h) * job.wide + at.w) * job.pitch;
        most.clear(S::Columns);
    }

    /* A part of row p, from a column on. */
    template <int N>
    __device__ inline void keep(int column, const pooled_halves<N> &row, int32_t p)
    {
        if (p == whole)
            most.finish(column, row, shared_address(stage), tail, both);
        else
            most.add(column, row);
    }

    /* Row p is done by all. */
    __device__ inline void write(int32_t p, int32_t filters)
    {
        if (p != whole)
            return;
        __syncthreads();
        pooled_write(job, at, result, stage, y, filters);
        y += (size_t)job.wide * job.pitch;
        whole = min(whole + job.stride_h, job.stem.out_h - 1);
        uint8_t *const used = stage;
        stage = other;
        other = used;
    }
};

/* Rows of maxima from at.h to `last` of one tile. Rows of windows are made in two parts;
 * what becomes of the second is done while the next row's are made. */
template <typename T, class S>
static __device__ inline void
pooled_walk(const pooled_job &job, const pooled_row &at, int32_t last,
            const stem_tail &tail, const pooled_result<S> &result,
            const uint4 (&weight)[S::Steps], uint8_t *ring, uint32_t filter)
{
    const int First = (S::Columns + 16) / 32 * 16, Second = S::Columns - First;
    const stem_wgmma_job &stem = job.stem;
    const stem_strip<T> strip(stem, at.image, max(at.h * job.stride_h - job.begin_h, 0),
                              at.q);
    const int32_t end =
        min((last - 1) * job.stride_h + job.kernel_h - job.begin_h, stem.out_h);
    const int32_t filters = (int32_t)(stem.stored - filter);
    const uint32_t rows = shared_address(ring), behind = rows + First * PIECE;
    pooled_way<S> way(job, at, tail, result, ring, filter);
    stem_piece<T> next;
    pooled_halves<Second / 16> late;
    stem_fill<T, S>(stem, strip, ring, strip.p);
    next.load(stem, strip, strip.p + S::Pairs);
    publish_shared();
    __syncthreads();
    for (int32_t p = strip.p; p < end; p++) {
        float first[First / 8][4], second[Second / 8][4];
        stem_multiply<S>(first, weight, rows, p);
        stem_multiply<S>(second, weight, behind, p);
        if (p > strip.p) {
            way.keep(First, late, p - 1);
            way.write(p - 1, filters);
        }
        next.template store<S>(ring, p + S::Pairs);
        publish_shared();
        next.load(stem, strip, p + S::Pairs + 1);
        stem_wait<1>(first);
        way.keep(0, pooled_halves<First / 16>(tail, first), p);
        stem_wait<0>(second);
        late = pooled_halves<Second / 16>(tail, second);
        __syncthreads();
    }
    way.keep(First, late, end - 1);
    way.write(end - 1, filters);
}

#endif /* PLUGINS_POOLED_CONVOLUTION_WALK_CUH */
