/* SPDX-License-Identifier: Apache-2.0
 *
 * Reduce on CUDA: what is gathered of an element, by plugins/common/reduce/reduce.cuh. Floats
 * gather in FP32, integers in 64 bits.
 */
#include "plugins/common/reduce/joined.cuh"
#include "plugins/common/reduce/reduce.cuh"
#include "plugins/reduce/floats.cuh"

enum { TAKE_SUM, TAKE_ABS, TAKE_SQUARE, TAKE_PRODUCT, TAKE_MAX, TAKE_MIN };

/* ---- sums, extremes, and products of integers ------------------------------------- */

/* A: float or int64_t; Y: the output's elements. */
template <typename A, typename Y>
struct gathered {
    struct Tally {
        A value;
    };
    Y *y;
    int64_t terms;
    A first; /* of a gathering */
    int32_t op, kind;

    __device__ void start(Tally &t) const
    {
        t.value = first;
    }

    /* y = f(y, x) with the f of the kind: one switch for all of `each`. */
    template <typename Each>
    __device__ void choose(const Each &each) const
    {
        switch (kind) {
        case TAKE_ABS:
            return each([](A a, A x) { return total(a, magnitude(x)); });
        case TAKE_SQUARE:
            return each([](A a, A x) { return total(a, product(x, x)); });
        case TAKE_PRODUCT:
            return each([](A a, A x) { return product(a, x); });
        case TAKE_MAX:
            return each([](A a, A x) { return larger(a, x); });
        case TAKE_MIN:
            return each([](A a, A x) { return smaller(a, x); });
        default:
            return each([](A a, A x) { return total(a, x); });
        }
    }

    /* What changes no tally of the kind. */
    template <typename T, int N>
    __device__ pack<T, N> blank() const
    {
        pack<T, N> p;
#pragma unroll
        for (int k = 0; k < N; k++)
            put(&p.v[k], first);
        return p;
    }

    /* The same of two values, which were gathered. */
    template <typename Each>
    __device__ void choose_join(const Each &each) const
    {
        switch (kind) {
        case TAKE_PRODUCT:
            return each([](A a, A x) { return product(a, x); });
        case TAKE_MAX:
            return each([](A a, A x) { return larger(a, x); });
        case TAKE_MIN:
            return each([](A a, A x) { return smaller(a, x); });
        default:
            return each([](A a, A x) { return total(a, x); });
        }
    }

    __device__ void join(Tally &t, const Tally &other) const
    {
        choose_join([&](auto f) { t.value = f(t.value, other.value); });
    }

    __device__ Tally below(const Tally &t, int d) const
    {
        return {__shfl_down_sync(0xffffffffu, t.value, d)};
    }

    __device__ float closed(float x) const
    {
        switch (op) {
        case STRATA_REDUCE_MEAN:
            return x / (float)terms;
        case STRATA_REDUCE_L2:
            return sqrtf(x);
        case STRATA_REDUCE_LOG_SUM:
            return logf(x);
        default:
            return x;
        }
    }
    __device__ int64_t closed(int64_t x) const
    {
        return op != STRATA_REDUCE_MEAN ? x : terms ? x / terms : 0;
    }
    __device__ void close(const Tally &t, int64_t at) const
    {
        put(y + at, closed(t.value));
    }
};

template <typename T, int N>
static __device__ inline void fill_blank(pack<T, N> &v, const pack<T, N> &blank,
                                         bool there)
{
    const int words = (int)sizeof(pack<T, N>) / 4;
    if constexpr (words == 0) {
        v = there ? v : blank;
    } else { /* words, opaque, or the compiler takes elements out of them at once */
        uint32_t a[words], b[words];
        memcpy(a, &v, sizeof a);
        memcpy(b, &blank, sizeof b);
#pragma unroll
        for (int i = 0; i < words; i++) {
            asm("" : "+r"(a[i]), "+r"(b[i]));
            a[i] = there ? a[i] : b[i];
        }
        memcpy(&v, a, sizeof a);
    }
}

/* Packs that are not there become blank ones. */
template <typename T, int N, int U, typename A, typename Y>
static __device__ inline void fill_blanks(const gathered<A, Y> &op, pack<T, N> (&v)[U],
                                          int64_t row, int64_t step, int64_t to)
{
    const pack<T, N> blank = op.template blank<T, N>();
#pragma unroll
    for (int u = 1; u < U; u++)
        fill_blank(v[u], blank, row + u * step < to);
}

template <typename T, int N, typename A, typename Y>
static __device__ inline pack<T, N> blank_pack(const gathered<A, Y> &op)
{
    return op.template blank<T, N>();
}

/* Opaque words: or the compiler makes numbers of all elements ahead of the choice, and
 * spills them. */
template <typename T, int N, int U>
static __device__ inline void keep_packed(pack<T, N> (&v)[U])
{
    if constexpr (sizeof(T) == 2 && N % 2 == 0)
#pragma unroll
        for (int u = 0; u < U; u++) {
            uint32_t words[N / 2];
            memcpy(words, &v[u], sizeof words);
#pragma unroll
            for (int i = 0; i < N / 2; i++)
                asm volatile("" : "+r"(words[i]));
            memcpy(&v[u], words, sizeof words);
        }
}

/* One switch for all lanes: with one for each join, and blanks chosen after loads, rows
 * of 8 KB were bound by instructions (3.6 TB/s on an H200). */
template <typename A, typename Y>
static __device__ inline void join_lanes(const gathered<A, Y> &op,
                                         typename gathered<A, Y>::Tally &t, int team)
{
    op.choose_join([&](auto f) {
#pragma unroll
        for (int d = 16; d > 0; d /= 2)
            if (d < team)
                t.value = f(t.value, op.below(t, d).value);
    });
}

/* The same of the lanes that have the same columns. */
template <int N, typename A, typename Y>
static __device__ inline void join_alike(const gathered<A, Y> &op,
                                         typename gathered<A, Y>::Tally (&t)[N])
{
    op.choose_join([&](auto f) {
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int d = 16; d >= JOINED_PACKS; d /= 2)
                t[k].value = f(t[k].value, op.below(t[k], d).value);
    });
}

/* Even and odd packs apart at first, which makes short chains. */
template <typename T, int N, int U, typename A, typename Y>
static __device__ inline void
take_along(const gathered<A, Y> &op, typename gathered<A, Y>::Tally &t,
           pack<T, N> (&v)[U], int64_t row, int64_t step, int64_t to, bool blank)
{
    typename gathered<A, Y>::Tally odd;
    if (!blank)
        fill_blanks(op, v, row, step, to);
    op.start(odd);
    op.choose([&](auto f) {
        keep_packed(v);
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int k = 0; k < N; k++)
                if (u % 2)
                    odd.value = f(odd.value, number(v[u].v[k]));
                else
                    t.value = f(t.value, number(v[u].v[k]));
    });
    op.join(t, odd);
}

template <typename T, int N, int U, typename A, typename Y>
static __device__ inline void
take_rows(const gathered<A, Y> &op, typename gathered<A, Y>::Tally (&t)[N],
          pack<T, N> (&v)[U], int64_t row, int64_t step, int64_t to, bool whole)
{
    if (!whole)
        fill_blanks(op, v, row, step, to);
    op.choose([&](auto f) {
        keep_packed(v);
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int k = 0; k < N; k++)
                t[k].value = f(t[k].value, number(v[u].v[k]));
    });
}

/* ---- the choice ----------------------------------------------------------------------
 */

/* Pad lanes of the output. */
template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    clear_pads_kernel(T *y, int64_t size, channel_map map)
{
    const int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (i < size && channel_of(i, map) >= map.channels)
        put(y + i, 0.0f);
}

static int32_t reduce_take(int32_t op)
{
    switch (op) {
    case STRATA_REDUCE_MAX:
        return TAKE_MAX;
    case STRATA_REDUCE_MIN:
        return TAKE_MIN;
    case STRATA_REDUCE_PROD:
        return TAKE_PRODUCT;
    case STRATA_REDUCE_L1:
        return TAKE_ABS;
    case STRATA_REDUCE_L2:
    case STRATA_REDUCE_SUM_SQUARE:
        return TAKE_SQUARE;
    default:
        return TAKE_SUM;
    }
}

static size_t reduce_bytes(int32_t dtype)
{
    switch (dtype) {
    case STRATA_FP16:
    case STRATA_BF16:
        return 2;
    case STRATA_INT64:
        return 8;
    case STRATA_FP32:
    case STRATA_INT32:
        return 4;
    default:
        return 1;
    }
}

static reduce_cut reduce_cut_for(const strata_reduce *p, const strata_tensor *x,
                                 const strata_tensor *y)
{
    return reduce_cut_of(p, x, y, reduce_bytes(x->dtype));
}

static size_t reduce_workspace(const strata_node *n)
{
    const reduce_cut c =
        reduce_cut_for((const strata_reduce *)n->params, &n->in[0], &n->out[0]);
    return reduce_parts(c, sizeof(int64_t));
}

/* least, most: what extremes begin with. */
template <typename T, typename A>
static void reduce_gather(const strata_run *r, const reduce_cut &c, A least, A most)
{
    const strata_reduce *p = (const strata_reduce *)r->params;
    gathered<A, T> op = {};
    op.y = (T *)r->out[0].data;
    op.terms = reduce_terms(p, &r->in[0]);
    op.op = p->op;
    op.kind = reduce_take(p->op);
    op.first = op.kind == TAKE_PRODUCT ? (A)1
               : op.kind == TAKE_MAX   ? least
               : op.kind == TAKE_MIN   ? most
                                       : (A)0;
    if constexpr (sizeof(T) == 2)
        if (joined_launch<T, 8>(c, op, layer_stream(r)))
            return;
    reduce_launch<T>(c, op, layer_stream(r));
}

template <typename T>
static void reduce_floats(const strata_run *r, const reduce_cut &c)
{
    const strata_tensor *y = &r->out[0];
    const cudaStream_t stream = layer_stream(r);
    const strata_reduce *p = (const strata_reduce *)r->params;
    if (p->op == STRATA_REDUCE_LOG_SUM_EXP) {
        const exponents<T> op = {(T *)y->data};
        reduce_launch<T>(c, op, stream);
    } else if (p->op == STRATA_REDUCE_PROD) {
        const products<T> op = {(T *)y->data};
        reduce_launch<T>(c, op, stream);
    } else {
        reduce_gather<T, float>(r, c, -INFINITY, INFINITY);
    }
    if (y->vector > 1 && y->dims[1] % y->vector)
        clear_pads_kernel<<<layer_blocks(y->size, CUDA_BLOCK), CUDA_BLOCK, 0, stream>>>(
            (T *)y->data, y->size, channel_map_of(y));
}

static int reduce_run(const strata_run *r)
{
    reduce_cut c =
        reduce_cut_for((const strata_reduce *)r->params, &r->in[0], &r->out[0]);
    c.x = r->in[0].data;
    c.part = r->workspace;
    switch (r->in[0].dtype) {
    case STRATA_INT8:
        reduce_gather<int8_t, int64_t>(r, c, INT8_MIN, INT8_MAX);
        break;
    case STRATA_UINT8:
        reduce_gather<uint8_t, int64_t>(r, c, 0, UINT8_MAX);
        break;
    case STRATA_BOOL8:
        reduce_gather<uint8_t, int64_t>(r, c, 0, 1);
        break;
    case STRATA_INT32:
        reduce_gather<int32_t, int64_t>(r, c, INT32_MIN, INT32_MAX);
        break;
    case STRATA_INT64:
        reduce_gather<int64_t, int64_t>(r, c, INT64_MIN, INT64_MAX);
        break;
    default:
        layer_float(r->in[0].dtype, [&](auto t) { reduce_floats<decltype(t)>(r, c); });
    }
    return layer_launched(r, "reduce");
}

/* ---- tables --------------------------------------------------------------------------
 */

static int reduce_accept(const strata_node *n)
{
    const strata_reduce *p = (const strata_reduce *)n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t dims = reduce_dims(p, x->rank);
    if (x->vector_dim >= 0 && (dims >> 1 & 1 || (dims & 1 && !p->keep_dims)))
        return STRATA_FAIL(
            n, STRATA_EUNSUPPORTED,
            "reduces channels, or the batch without keep_dims; formats with "
            "vectors take spatial dims");
    const reduce_cut c = reduce_cut_for(p, x, &n->out[0]);
    if (reduce_blocks(c) > 0x7fffffff)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld outputs; a launch has at most 2^31 - 1 blocks",
                           (long long)c.outputs);
    return STRATA_OK;
}

#define LINEAR                                                                           \
    (STRATA_I32_NCHW | STRATA_I64_NCHW | STRATA_U8_NCHW | STRATA_I8_NCHW |               \
     STRATA_BOOL_NCHW)

static const strata_row rows[] = {{{CUDA_FLOATS | LINEAR}, {STRATA_SAME}, {0}, {0}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = reduce_accept,
     .workspace = reduce_workspace,
     .run = reduce_run,
     .bandwidth = 0.9},
};

static const strata_extends reduce = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Reduce",
    .params_size = sizeof(strata_reduce),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&reduce};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Reduce", extends)
