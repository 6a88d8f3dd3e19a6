/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of the pointwise layers: memory as it lies where all operands lie alike, four
 * packs of up to 16 bytes a thread before the first use; else a walk with the operands'
 * strides. A body says what is done:
 *
 *   K            operands beside the output
 *   N            elements of a pack
 *   raw          what is loaded for a pack before any is used
 *   load(raw &, i)       from element i on, where operands lie alike
 *   finish(raw &, i)     computes and stores
 *   at<M>(w, p, lane, i) M elements of a walk, to walk_to(w, p, lane, i) of the output; i:
 *                        where they would lie in memory of its own
 *   zero_pad(i)          a pad lane
 *   one(i)               one element, where operands lie alike
 */
#ifndef PLUGINS_COMMON_POINTWISE_WALK_CUH
#define PLUGINS_COMMON_POINTWISE_WALK_CUH

#include "kernels/overlap.cuh"
#include "kernels/walk.cuh"

#include "plugins/common/pointwise.cuh"

/* ---- values -------------------------------------------------------------------------- */

template <typename T> static __device__ inline T point_element(float x)
{
    return (T)x;
}
template <> __device__ inline __half point_element<__half>(float x)
{
    return __float2half_rn(x);
}
template <> __device__ inline __nv_bfloat16 point_element<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}
template <typename T> static __device__ inline T point_element(int32_t x)
{
    return (T)x; /* the low bits */
}
template <typename T> static __device__ inline T point_element(int64_t x)
{
    return (T)x;
}

template <typename C, typename T> static __device__ inline C point_value(T x)
{
    return (C)x;
}
template <> __device__ inline float point_value<float, __half>(__half x)
{
    return __half2float(x);
}
template <> __device__ inline float point_value<float, __nv_bfloat16>(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

/* Elements of a pack: 16 bytes, but eight of bytes, which compile in half the time. */
template <typename T>
constexpr int POINT_WIDTH = sizeof(T) == 1 ? 8 : 16 / (int)sizeof(T);

/* The class of an element type. */
template <typename T> struct point_class {
    typedef int32_t type;
};
template <> struct point_class<float> {
    typedef float type;
};
template <> struct point_class<__half> {
    typedef float type;
};
template <> struct point_class<__nv_bfloat16> {
    typedef float type;
};
template <> struct point_class<int64_t> {
    typedef int64_t type;
};

template <typename T, int N, typename C>
static __device__ inline void point_store(T *to, const C *v)
{
    pack<T, N> x;
#pragma unroll
    for (int i = 0; i < N; i++)
        x.v[i] = point_element<T>(v[i]);
    *(pack<T, N> *)to = x;
}

/* N elements of operand k from p on, beginning in `lane` (0 unless N is 1). */
template <typename T, int N, typename C, int K>
static __device__ inline void point_load(C *v, const T *base, const walk<K> &w,
                                         const walk_place<K> &p, int k, int lane)
{
    const T *from = base + p.at[k] + lane * w.lane[k];
    const int64_t step = w.stride[k][0];
    const bool lanes = w.lanes == 2;
    if (N == 1 || (step == 0 && !lanes)) {
        const C x = point_value<C>(*from);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = x;
        return;
    }
    const int bytes = N * (int)sizeof(T) > 16 ? 16 : N * (int)sizeof(T);
    const int M = bytes / (int)sizeof(T);
    if (step == w.lanes && (!lanes || w.lane[k] == 1) && (uintptr_t)from % bytes == 0) {
#pragma unroll
        for (int i = 0; i < N; i += M) {
            const pack<T, M> x = *(const pack<T, M> *)(from + i);
#pragma unroll
            for (int e = 0; e < M; e++)
                v[i + e] = point_value<C>(x.v[e]);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = point_value<C>(lanes ? from[i / 2 * step + i % 2 * w.lane[k]]
                                    : from[i * step]);
}

/* ---- formats --------------------------------------------------------------------------- */

#define POINT_LINEAR_FLOATS (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW)
#define POINT_INTEGERS                                                                   \
    (STRATA_I32_NCHW | STRATA_I64_NCHW | STRATA_U8_NCHW | STRATA_I8_NCHW)

/* An input of lower rank whose vectors do not lie along the output's is vetoed. */
static inline int point_accept(const strata_node *n)
{
    for (int32_t k = 0; k < n->n_in; k++) {
        const strata_tensor *t = &n->in[k];
        if (t->rank < n->out[0].rank && t->vector > 1 && t->dims[t->vector_dim] > 1)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "input %d of rank %d has vectors along another dim than "
                               "the output; give it rank %d",
                               (int)k, (int)t->rank, (int)n->out[0].rank);
    }
    return STRATA_OK;
}

/* ---- operands ------------------------------------------------------------------------ */

/* A tensor that is broadcast to the output, also of a lower rank. */
static inline walk_operand point_operand(const strata_tensor *out, const strata_tensor *t)
{
    walk_operand o = {};
    for (int d = 0; d < out->rank; d++) {
        const int own = d - (out->rank - t->rank);
        if (own < 0 || (t->dims[own] == 1 && out->dims[d] != 1))
            continue;
        const bool same = t->vector > 1 && own == t->vector_dim;
        o.stride[d] = t->strides[own];
        if (d == out->vector_dim) {
            o.lane = same ? 1 : t->strides[own];
            o.stride[d] *= same ? 1 : out->vector;
        }
    }
    return o;
}

/* Whether element i of the output's memory is element i of t's. */
static inline bool point_alike(const strata_tensor *out, const strata_tensor *t)
{
    const walk_operand o = point_operand(out, t);
    if (t->count != out->count || t->size != out->size || out->size != out->count)
        return false;
    for (int d = 0; d < out->rank; d++)
        if (out->dims[d] > 1 && o.stride[d] != out->strides[d])
            return false;
    return out->vector_dim < 0 || out->vector == 1 || o.lane == 1;
}

/* ---- kernels ------------------------------------------------------------------------- */

#define POINT_PACKS 4 /* a thread's */

/* Four blocks a processor, lest packs on their way are spilled to run more of them. */
template <typename Body>
static __global__ void __launch_bounds__(CUDA_BLOCK, 4)
    point_flat_kernel(Body body, int64_t size)
{
    launch_next();
    wait_for_previous();
    const int N = Body::N, step = CUDA_BLOCK * N;
    const int64_t begin = (int64_t)blockIdx.x * (step * POINT_PACKS);
    const int64_t i = begin + threadIdx.x * N;
    typename Body::raw raw[POINT_PACKS];
    if (begin + step * POINT_PACKS <= size) {
#pragma unroll
        for (int u = 0; u < POINT_PACKS; u++)
            body.load(raw[u], i + u * step);
#pragma unroll
        for (int u = 0; u < POINT_PACKS; u++)
            body.finish(raw[u], i + u * step);
        return;
    }
    for (int64_t e = i; e < size; e += step)
        if (e + N <= size) {
            body.load(raw[0], e);
            body.finish(raw[0], e);
        } else {
            for (int64_t j = e; j < size; j++)
                body.one(j);
        }
}

template <typename Body>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    point_walk_kernel(Body body, walk<Body::K> w)
{
    launch_next();
    wait_for_previous();
    const int N = Body::N, K = Body::K;
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK * N;
    for (int64_t i = ((int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x) * N; i < w.size;
         i += step) {
        const walk_place<K> p = walk_place_of<K>(w, i);
        if (i + N <= w.size && walk_whole<N>(w, p)) {
            body.template at<N>(w, p, 0, i);
            continue;
        }
        for (int64_t e = i; e < i + N && e < w.size; e++) {
            const int lane = (int)(e & (w.lanes - 1));
            const walk_place<K> q = walk_place_of<K>(w, e);
            if (w.channel_dim < 0 || q.channel + lane < w.channels)
                body.template at<1>(w, q, lane, e);
            else
                body.zero_pad(walk_to<K>(w, q, lane, e));
        }
    }
}

template <typename Body>
static void point_flat(const strata_run *r, const Body &body)
{
    const int64_t size = r->out[0].size;
    const unsigned blocks = layer_blocks(size, CUDA_BLOCK * Body::N * POINT_PACKS);
    launch_overlapped(point_flat_kernel<Body>, blocks, CUDA_BLOCK, 0, layer_stream(r), body,
                      size);
}

/* `out` is the output, or a view of all of it. */
template <typename Body>
static void point_walk_over(const strata_run *r, const strata_tensor *out,
                            const Body &body, const walk_operand *operand)
{
    const walk<Body::K> w = walk_output<Body::K>(out, operand);
    const unsigned blocks = layer_blocks(w.size, CUDA_BLOCK * Body::N);
    launch_overlapped(point_walk_kernel<Body>, blocks, CUDA_BLOCK, 0, layer_stream(r), body,
                      w);
}

template <typename Body>
static void point_walk(const strata_run *r, const Body &body, const walk_operand *operand)
{
    point_walk_over(r, &r->out[0], body, operand);
}

/* ---- bodies -------------------------------------------------------------------------- */

/* y = op(a). */
template <int Group, typename In, typename Out>
struct point_unary {
    typedef typename point_class<In>::type C;
    static const int K = 1, N = POINT_WIDTH<In>;
    typedef pack<In, N> raw;
    Out *y;
    const In *a;
    int32_t op;
    pointwise_args k;

    template <int M> __device__ void put(C *v, int64_t i) const
    {
        pointwise_apply<Group, M>(op, k, v, v, v, v);
        point_store<Out, M>(y + i, v);
    }
    __device__ void load(raw &x, int64_t i) const
    {
        x = *(const raw *)(a + i);
    }
    __device__ void finish(const raw &x, int64_t i) const
    {
        C v[N];
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = point_value<C>(x.v[e]);
        put<N>(v, i);
    }
    __device__ void one(int64_t i) const
    {
        C v = point_value<C>(a[i]);
        put<1>(&v, i);
    }
    template <int M> __device__ void at(const walk<K> &w, const walk_place<K> &p, int lane,
                                        int64_t i) const
    {
        C v[M];
        point_load<In, M>(v, a, w, p, 0, lane);
        put<M>(v, walk_to<K>(w, p, lane, i));
    }
    __device__ void zero_pad(int64_t i) const
    {
        y[i] = point_element<Out>((C)0);
    }
};

/* y = op(a, b); an operand of one element lies alike with everything. */
template <int Group, typename A, typename B, typename Out>
struct point_binary {
    typedef typename point_class<A>::type C;
    static const int K = 2, N = POINT_WIDTH<A>;
    struct raw {
        pack<A, N> a;
        pack<B, N> b;
    };
    Out *y;
    const A *a;
    const B *b;
    int32_t op;
    bool one_a, one_b; /* of one element */
    pointwise_args k;

    template <int M> __device__ void put(C *v, const C *u, int64_t i) const
    {
        pointwise_apply<Group, M>(op, k, v, v, u, u);
        point_store<Out, M>(y + i, v);
    }
    __device__ void load(raw &x, int64_t i) const
    {
        if (!one_a)
            x.a = *(const pack<A, N> *)(a + i);
        if (!one_b)
            x.b = *(const pack<B, N> *)(b + i);
    }
    __device__ void finish(const raw &x, int64_t i) const
    {
        C v[N], u[N];
#pragma unroll
        for (int e = 0; e < N; e++) {
            v[e] = point_value<C>(one_a ? *a : x.a.v[e]);
            u[e] = point_value<C>(one_b ? *b : x.b.v[e]);
        }
        put<N>(v, u, i);
    }
    __device__ void one(int64_t i) const
    {
        C v = point_value<C>(a[one_a ? 0 : i]), u = point_value<C>(b[one_b ? 0 : i]);
        put<1>(&v, &u, i);
    }
    template <int M> __device__ void at(const walk<K> &w, const walk_place<K> &p, int lane,
                                        int64_t i) const
    {
        C v[M], u[M];
        point_load<A, M>(v, a, w, p, 0, lane);
        point_load<B, M>(u, b, w, p, 1, lane);
        put<M>(v, u, walk_to<K>(w, p, lane, i));
    }
    __device__ void zero_pad(int64_t i) const
    {
        y[i] = point_element<Out>((C)0);
    }
};

template <int Group, typename In, typename Out>
static void point_unary_run(const strata_run *r, int op, const pointwise_args &k)
{
    const strata_tensor *out = &r->out[0], *x = &r->in[0];
    point_unary<Group, In, Out> body = {(Out *)out->data, (const In *)x->data, op, k};
    const walk_operand operand = point_operand(out, x);
    point_alike(out, x) ? point_flat(r, body) : point_walk(r, body, &operand);
}

/* a and b are tensors or weights. */
template <int Group, typename A, typename B, typename Out>
static void point_binary_run(const strata_run *r, const strata_tensor *a,
                             const strata_tensor *b, int op, const pointwise_args &k)
{
    const strata_tensor *out = &r->out[0];
    const bool one_a = a->count == 1, one_b = b->count == 1;
    point_binary<Group, A, B, Out> body = {
        (Out *)out->data, (const A *)a->data, (const B *)b->data, op, one_a, one_b, k};
    const walk_operand operand[2] = {point_operand(out, a), point_operand(out, b)};
    const bool flat = out->size == out->count && (one_a || point_alike(out, a)) &&
                      (one_b || point_alike(out, b));
    flat ? point_flat(r, body) : point_walk(r, body, operand);
}

#endif /* PLUGINS_COMMON_POINTWISE_WALK_CUH */
