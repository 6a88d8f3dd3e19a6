/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over an output as it lies in memory, 16 bytes a step, with operands of other
 * strides: broadcast dims, weights per channel or per element of an image. Dims that lie
 * alike in all operands become one, so that most walks divide once or not at all, and
 * then by a constant. Pad lanes of the output become zero; no operand is read there.
 */
#ifndef KERNELS_WALK_CUH
#define KERNELS_WALK_CUH

#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"

#define WALK_DIMS (STRATA_MAX_RANK + 1)

/* K operands beside the output. Positions are in groups of `lanes` elements: 2 in
 * NC/2HW2 where its lanes are a dim of their own, else 1. Dims are innermost first. */
template <int K>
struct walk {
    int64_t size; /* elements of the output, pad lanes included */
    int32_t dims, lanes;
    int32_t channel_dim; /* the one whose last groups are pads, or -1 */
    int32_t lane_dim;    /* lanes of wider vectors, apart from their blocks, or -1 */
    int32_t channels;
    int64_t extent[WALK_DIMS];
    divisor by[WALK_DIMS]; /* of extents below 2^31 */
    int64_t stride[K][WALK_DIMS];
    int64_t lane[K];       /* of the second lane */
    int64_t to[WALK_DIMS]; /* the output's own strides */
    bool apart;            /* the output lies inside a larger tensor, at these */
};

/* An operand: where index i of the output's dims lies. lane is the stride inside a
 * vector, block the stride of vectors; for unblocked dims they are not used. */
struct walk_operand {
    int64_t stride[STRATA_MAX_RANK], lane;
};

/* A tensor of the output's format, whose dims of 1 stretch. */
static inline walk_operand walk_tensor(const strata_tensor *out, const strata_tensor *t)
{
    walk_operand o = {};
    for (int d = 0; d < out->rank; d++)
        o.stride[d] = t->dims[d] == 1 && out->dims[d] > 1 ? 0 : t->strides[d];
    if (out->vector_dim >= 0)
        o.lane = t->dims[out->vector_dim] == 1 && out->dims[out->vector_dim] > 1 ? 0 : 1;
    return o;
}

/* Dense linear memory over the output's dims from `first` to `last`, as weights have. */
static inline walk_operand walk_dense(const strata_tensor *out, int first, int last)
{
    walk_operand o = {};
    int64_t stride = 1;
    for (int d = last; d >= first; d--) {
        o.stride[d] = stride;
        if (d == out->vector_dim) {
            o.lane = stride;
            o.stride[d] *= out->vector;
        }
        stride *= out->dims[d];
    }
    return o;
}

/* One dim of the output's memory. */
template <int K>
struct walk_axis {
    int64_t extent, out, stride[K];
    bool channel; /* may not be merged: its last elements are pads */
};

template <int K>
static bool walk_merges(const walk_axis<K> *inner, const walk_axis<K> *outer)
{
    bool same = outer->out == inner->out * inner->extent;
    for (int k = 0; k < K; k++)
        same = same && outer->stride[k] == inner->stride[k] * inner->extent;
    return same && inner->channel == outer->channel;
}

/* Sorted innermost first, dims of 1 left out. */
template <int K>
static int walk_axes(walk_axis<K> *axis, const strata_tensor *out,
                     const walk_operand *operand)
{
    int n = 0;
    const bool pads = out->size != out->count;
    for (int d = 0; d <= out->rank; d++) {
        const bool lane = d == out->rank, blocked = !lane && d == out->vector_dim;
        walk_axis<K> a = {};
        if (lane && out->vector_dim < 0)
            break;
        a.extent = lane ? out->vector : out->dims[d];
        if (blocked)
            a.extent = (a.extent + out->vector - 1) / out->vector;
        a.out = lane ? 1 : out->strides[d];
        a.channel = pads && (lane || blocked);
        for (int k = 0; k < K; k++)
            a.stride[k] = lane ? operand[k].lane : operand[k].stride[d];
        if (a.extent == 1 && !a.channel)
            continue;
        int at = n++;
        for (; at > 0 && (axis[at - 1].out > a.out ||
                          (axis[at - 1].out == a.out && axis[at - 1].extent > 1));
             at--)
            axis[at] = axis[at - 1];
        axis[at] = a;
    }
    return n;
}

template <int K>
static int walk_merge(walk_axis<K> *axis, int n)
{
    int last = 0;
    for (int i = 1; i < n; i++)
        if (walk_merges<K>(&axis[last], &axis[i]))
            axis[last].extent *= axis[i].extent;
        else
            axis[++last] = axis[i];
    return n ? last + 1 : 0;
}

/* Whether the lanes of NC/2HW2 are a dim of their own; pads are found by their block. */
template <int K>
static bool walk_has_lanes(const walk_axis<K> *axis, int n, const strata_tensor *out)
{
    bool block = false;
    for (int i = 1; i < n; i++)
        block = block || axis[i].channel;
    return n > 1 && out->vector == 2 && axis[0].extent == 2 && axis[0].channel == block;
}

template <int K>
static walk<K> walk_over(const strata_tensor *out, const walk_operand *operand)
{
    walk_axis<K> axis[WALK_DIMS];
    walk<K> w = {};
    const int n = walk_merge<K>(axis, walk_axes<K>(axis, out, operand));
    const int first = walk_has_lanes<K>(axis, n, out);
    w.size = out->size;
    w.lanes = 1 + first;
    w.channel_dim = w.lane_dim = -1;
    w.channels = out->rank > 1 ? (int32_t)out->dims[1] : 1;
    for (int k = 0; k < K && first; k++)
        w.lane[k] = axis[0].stride[k];
    for (int i = first; i < n; i++, w.dims++) {
        w.extent[w.dims] = axis[i].extent;
        w.by[w.dims] = divisor_of(axis[i].extent < 0x7fffffff ? axis[i].extent : 1);
        w.to[w.dims] = axis[i].out;
        for (int k = 0; k < K; k++)
            w.stride[k][w.dims] = axis[i].stride[k];
        if (axis[i].channel) { /* lanes come first, blocks behind */
            w.lane_dim = w.channel_dim;
            w.channel_dim = w.dims;
        }
    }
    if (w.dims == 0) {
        w.extent[0] = 1;
        w.dims = 1;
    }
    return w;
}

/* Elements and pads that are t's own. */
static inline int64_t walk_elements(const strata_tensor *t)
{
    int64_t size = 1;
    for (int d = 0; d < t->rank; d++) {
        const int64_t vector = d == t->vector_dim ? t->vector : 1;
        size *= (t->dims[d] + vector - 1) / vector * vector;
    }
    return size;
}

/* Over an output that may lie inside a larger tensor. Positions are then those that its
 * elements would have in memory of its own. */
template <int K>
static walk<K> walk_output(const strata_tensor *out, const walk_operand *operand)
{
    walk<K> w = walk_over<K>(out, operand);
    w.size = walk_elements(out);
    w.apart = w.size != out->size;
    return w;
}

/* ---- on the device ------------------------------------------------------------------
 */

template <int K>
struct walk_place {
    int64_t at[K];   /* offset of the group in each operand */
    int64_t to;      /* in an output that lies apart */
    int64_t inner;   /* position along the innermost dim */
    int64_t channel; /* of the group's first lane, where there are pads */
};

static __device__ inline uint32_t walk_divide(uint32_t x, int64_t, const divisor &by)
{
    return divide_by(x, by);
}
static __device__ inline uint64_t walk_divide(uint64_t x, int64_t extent, const divisor &)
{
    return x / (uint64_t)extent;
}

template <int K, typename Index>
static __device__ inline walk_place<K> walk_find(const walk<K> &w, Index group)
{
    walk_place<K> p = {};
#pragma unroll 1 /* few dims, and longer code for many is no faster */
    for (int d = 0; d < w.dims; d++) {
        const bool last = d + 1 == w.dims;
        const Index next = last ? 0 : walk_divide(group, w.extent[d], w.by[d]);
        const Index c = last ? group : group - next * (Index)w.extent[d];
        if (d == 0)
            p.inner = c;
        if (d == w.lane_dim)
            p.channel += (int64_t)c;
        if (d == w.channel_dim)
            p.channel += (int64_t)c * (w.lane_dim < 0 ? w.lanes : w.extent[w.lane_dim]);
        if (w.apart)
            p.to += (int64_t)c * w.to[d];
#pragma unroll
        for (int k = 0; k < K; k++)
            p.at[k] += (int64_t)c * w.stride[k][d];
        group = next;
    }
    return p;
}

/* Of element i's group. Below 2^31 divisions are multiplications. One kernel has both, in
 * a branch that all threads take alike: two kernels would compile twice as long. */
template <int K>
static __device__ inline walk_place<K> walk_place_of(const walk<K> &w, int64_t i)
{
    const int64_t group = i >> (w.lanes - 1);
    return w.size < 0x7fffffff ? walk_find<K, uint32_t>(w, (uint32_t)group)
                               : walk_find<K, uint64_t>(w, (uint64_t)group);
}

/* Where element i of the output's memory lies, which is `lane` of p. */
template <int K>
static __device__ inline int64_t walk_to(const walk<K> &w, const walk_place<K> &p,
                                         int lane, int64_t i)
{
    return w.apart ? p.to + lane : i;
}

/* Whether N elements from p on lie in one run of the innermost dim, none of them a pad,
 * and the output's as packs do.
 */
template <int N, int K>
static __device__ inline bool walk_whole(const walk<K> &w, const walk_place<K> &p)
{
    if (w.apart && (p.to % N || w.to[0] != w.lanes))
        return false;
    const int64_t last = w.channel_dim == 0 || w.lane_dim == 0 ? p.channel + N - 1
                                                               : p.channel + w.lanes - 1;
    return p.inner + (N >> (w.lanes - 1)) <= w.extent[0] &&
           (w.channel_dim < 0 || last < w.channels);
}

template <typename S, int N>
static __device__ inline void walk_load_pack(float v[N], const S *from)
{
    const int M = N * (int)sizeof(S) > 16 ? 16 / (int)sizeof(S) : N;
#pragma unroll
    for (int i = 0; i < N; i += M) {
        const pack<S, M> x = *(const pack<S, M> *)(from + i);
#pragma unroll
        for (int k = 0; k < M; k++)
            v[i + k] = to_float(x.v[k]);
    }
}

/* N elements of operand k from p on, beginning in `lane` (0 unless N is 1). */
template <typename S, int N, int K>
static __device__ inline void walk_load(float v[N], const void *base, const walk<K> &w,
                                        const walk_place<K> &p, int k, int lane)
{
    const S *from = (const S *)base + p.at[k] + lane * w.lane[k];
    const int64_t step = w.stride[k][0];
    const int pack_bytes = N * (int)sizeof(S) > 16 ? 16 : N * (int)sizeof(S);
    const bool lanes = w.lanes == 2;
    if (N == 1) {
        v[0] = to_float(*from);
        return;
    }
    if (step == w.lanes && (!lanes || w.lane[k] == 1) &&
        (uintptr_t)from % pack_bytes == 0) {
        walk_load_pack<S, N>(v, from);
        return;
    }
    if (step == 0) {
        const float even = to_float(from[0]),
                    odd = lanes ? to_float(from[w.lane[k]]) : even;
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = i % 2 ? odd : even;
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = to_float(lanes ? from[i / 2 * step + i % 2 * w.lane[k]] : from[i * step]);
}

template <typename T, int N>
static __device__ inline void walk_store(T *to, const float v[N])
{
    pack<T, N> x;
#pragma unroll
    for (int i = 0; i < N; i++)
        from_float(&x.v[i], v[i]);
    *(pack<T, N> *)to = x;
}

/* Called, not inlined: all kinds for each element of a pack would be long. */
static __device__ __noinline__ float walk_activate(float x, activation_args p)
{
    return activate(x, p);
}

/* The epilogue of the N results from element i on: a residual that lies as the output
 * does, and an activation. */
template <typename T, int N>
static __device__ inline void walk_finish(float v[N], int64_t i, const epilogue_args &e)
{
    if (e.residual) {
        float residual[N];
        walk_load_pack<T, N>(residual, (const T *)e.residual + i);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] += residual[k];
    }
    if (e.activation.kind == STRATA_RELU)
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = v[k] < 0 ? 0 : v[k];
    else if (e.activation.kind >= 0)
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = walk_activate(v[k], e.activation);
}

/* compute.apply<N>(v, w, place, lane, i) gives N results for the elements from i on of
 * the output, as they lie in memory of its own. */
template <typename T, int K, typename Compute>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    walk_kernel(T *y, walk<K> w, Compute compute)
{
    wait_for_previous();
    launch_next();
    const int N = 16 / (int)sizeof(T);
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK * N;
    for (int64_t i = ((int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x) * N; i < w.size;
         i += step) {
        const walk_place<K> p = walk_place_of<K>(w, i);
        float v[N];
        if (i + N <= w.size && walk_whole<N>(w, p)) {
            compute.template apply<N>(v, w, p, 0, i);
            walk_store<T, N>(y + walk_to<K>(w, p, 0, i), v);
            continue;
        }
        for (int64_t e = i; e < i + N && e < w.size; e++) {
            const int lane = (int)(e & (w.lanes - 1));
            const walk_place<K> q = walk_place_of<K>(w, e);
            v[0] = 0;
            if (w.channel_dim < 0 || q.channel + lane < w.channels)
                compute.template apply<1>(v, w, q, lane, e);
            walk_store<T, 1>(y + walk_to<K>(w, q, lane, e), v);
        }
    }
}

template <typename T, int K, typename Compute>
static void walk_launch(const strata_run *r, const walk<K> &w, const Compute &compute)
{
    const int N = 16 / (int)sizeof(T);
    const unsigned blocks = layer_blocks(w.size, CUDA_BLOCK * N);
    T *y = (T *)r->out[0].data;
    launch_overlapped(walk_kernel<T, K, Compute>, blocks, CUDA_BLOCK, 0, layer_stream(r),
                      y, w, compute);
}

#endif /* KERNELS_WALK_CUH */
