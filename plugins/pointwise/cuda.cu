/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on CUDA: the program in kernel parameters, interpreted a pack at a time. All
 * branches are the same for all threads, so an instruction costs its arithmetic and some
 * moves: rows are registers, chosen by switches, as an index would send them to memory.
 *
 * Bytes: every input once and the output once. With FP16 and two inputs that is 6 bytes
 * an element, 0.7 elements a clock and SM at 4 TB/s, or 11 instruction issues of a warp's
 * 32 elements a clock and element: about six steps fit beside the loads.
 */
#include "plugins/common/pointwise_walk.cuh"
#include "plugins/pointwise/program.h"

/* Rows that are no registers of their own: the result before, and none at all. */
enum { ROW_LAST = 254, ROW_NONE = 255 };

struct device_step {
    int32_t op, group;
    uint8_t to, a, b, c;
    pointwise_args k;
};

struct device_program {
    int32_t n_steps, n_in;
    uint32_t truth; /* bit i: input i is of BOOL8 */
    uint32_t one;   /* it has one element */
    int32_t truth_out;
    device_step step[PROGRAM_STEPS];
};

/* Kept results, each in registers of its own. */
template <int M>
struct kept_rows {
    float a[M], b[M], c[M], d[M];
};

template <int M>
static __device__ inline void copy_row(float *to, const float *from)
{
#pragma unroll
    for (int e = 0; e < M; e++)
        to[e] = from[e];
}

template <int K, int M>
static __device__ inline void fetch_row(float *v, int row, const float (&x)[K][M],
                                        const kept_rows<M> &kept)
{
    switch (row) {
    case 0:
        copy_row<M>(v, x[0]);
        break;
    case 1:
        copy_row<M>(v, x[K > 1 ? 1 : 0]);
        break;
    case 2:
        copy_row<M>(v, x[K > 2 ? 2 : 0]);
        break;
    case 3:
        copy_row<M>(v, x[K > 3 ? 3 : 0]);
        break;
    case 4:
        copy_row<M>(v, x[K > 4 ? 4 : 0]);
        break;
    case 5:
        copy_row<M>(v, x[K > 5 ? 5 : 0]);
        break;
    case 6:
        copy_row<M>(v, x[K > 6 ? 6 : 0]);
        break;
    case 7:
        copy_row<M>(v, x[K > 7 ? 7 : 0]);
        break;
    case PROGRAM_INPUTS:
        copy_row<M>(v, kept.a);
        break;
    case PROGRAM_INPUTS + 1:
        copy_row<M>(v, kept.b);
        break;
    case PROGRAM_INPUTS + 2:
        copy_row<M>(v, kept.c);
        break;
    case PROGRAM_INPUTS + 3:
        copy_row<M>(v, kept.d);
        break;
    default:
        break;
    }
}

template <int M>
static __device__ inline void keep_row(kept_rows<M> &kept, int row, const float *v)
{
    switch (row) {
    case PROGRAM_INPUTS:
        copy_row<M>(kept.a, v);
        break;
    case PROGRAM_INPUTS + 1:
        copy_row<M>(kept.b, v);
        break;
    case PROGRAM_INPUTS + 2:
        copy_row<M>(kept.c, v);
        break;
    default:
        copy_row<M>(kept.d, v);
        break;
    }
}

/* Rare: with the operations that are calls. */
template <bool Rare, int K, int M>
static __device__ inline void run_program(const device_program &p, float *y,
                                          const float (&x)[K][M])
{
    kept_rows<M> kept = {};
#pragma unroll 1
    for (int i = 0; i < p.n_steps; i++) {
        const device_step &s = p.step[i];
        float b[M], c[M];
        if (s.b == ROW_LAST)
            copy_row<M>(b, y);
        else if (s.b != ROW_NONE)
            fetch_row<K, M>(b, s.b, x, kept);
        if (s.c == ROW_LAST)
            copy_row<M>(c, y);
        else if (s.c != ROW_NONE)
            fetch_row<K, M>(c, s.c, x, kept);
        if (s.a != ROW_LAST)
            fetch_row<K, M>(y, s.a, x, kept);
        if (s.group == POINTWISE_SIMPLE)
            pointwise_apply<POINTWISE_SIMPLE, M>(s.op, s.k, y, y, b, c);
        else if (s.group == POINTWISE_KINDS)
            pointwise_apply<POINTWISE_KINDS, M>(s.op, s.k, y, y, b, c);
        else if (!Rare || s.group == POINTWISE_CURVES)
            pointwise_apply<POINTWISE_CURVES, M>(s.op, s.k, y, y, b, c);
        else
            pointwise_apply<POINTWISE_RARE, M>(s.op, s.k, y, y, b, c);
        if (s.to != ROW_NONE)
            keep_row<M>(kept, s.to, y);
    }
}

/* K_ inputs at most, of T or BOOL8. */
template <typename T, int K_, bool Rare>
struct program_body {
    static const int K = K_, N = 16 / (int)sizeof(T);
    struct raw {
        pack<T, N> x[K];
    };
    void *y;
    const void *in[K];
    device_program p;

    template <int M>
    __device__ void put(const float (&x)[K][M], int64_t i) const
    {
        float v[M];
        run_program<Rare, K, M>(p, v, x);
        if (p.truth_out)
            point_store<uint8_t, M>((uint8_t *)y + i, v);
        else
            point_store<T, M>((T *)y + i, v);
    }
    __device__ bool has(int k, uint32_t mask) const
    {
        return mask >> k & 1;
    }
    __device__ void load(raw &r, int64_t i) const
    {
#pragma unroll
        for (int k = 0; k < K; k++) {
            if (k >= p.n_in || has(k, p.one))
                continue;
            if (has(k, p.truth))
                *(pack<uint8_t, N> *)&r.x[k] =
                    *(const pack<uint8_t, N> *)((const uint8_t *)in[k] + i);
            else
                r.x[k] = *(const pack<T, N> *)((const T *)in[k] + i);
        }
    }
    __device__ float element(int k, int64_t i) const
    {
        return has(k, p.truth) ? point_value<float>(((const uint8_t *)in[k])[i])
                               : point_value<float>(((const T *)in[k])[i]);
    }
    __device__ void finish(const raw &r, int64_t i) const
    {
        float x[K][N];
#pragma unroll
        for (int k = 0; k < K; k++) {
            if (k >= p.n_in)
                continue;
            const float all = has(k, p.one) ? element(k, 0) : 0;
            const pack<uint8_t, N> &bytes = *(const pack<uint8_t, N> *)&r.x[k];
#pragma unroll
            for (int e = 0; e < N; e++)
                x[k][e] = has(k, p.one)     ? all
                          : has(k, p.truth) ? point_value<float>(bytes.v[e])
                                            : point_value<float>(r.x[k].v[e]);
        }
        put<N>(x, i);
    }
    __device__ void one(int64_t i) const
    {
        float x[K][1];
#pragma unroll
        for (int k = 0; k < K; k++)
            x[k][0] = k < p.n_in ? element(k, has(k, p.one) ? 0 : i) : 0;
        put<1>(x, i);
    }
    template <int M>
    __device__ void at(const walk<K> &w, const walk_place<K> &place, int lane,
                       int64_t i) const
    {
        float x[K][M];
#pragma unroll
        for (int k = 0; k < K; k++)
            if (k < p.n_in && has(k, p.truth))
                point_load<uint8_t, M>(x[k], (const uint8_t *)in[k], w, place, k, lane);
            else if (k < p.n_in)
                point_load<T, M>(x[k], (const T *)in[k], w, place, k, lane);
        put<M>(x, i);
    }
    __device__ void zero_pad(int64_t i) const
    {
        if (p.truth_out)
            ((uint8_t *)y)[i] = 0;
        else
            ((T *)y)[i] = point_element<T>(0.0f);
    }
};

/* Memory as it lies: the next pack is on its way while one is computed. A program is long
 * and its rows take the registers, so packs are not unrolled as in point_flat. */
template <typename Body>
static __global__ void __launch_bounds__(CUDA_BLOCK, 4)
    program_flat_kernel(const __grid_constant__ Body body, int64_t size)
{
    const int N = Body::N, step = CUDA_BLOCK * N;
    const int64_t begin = (int64_t)blockIdx.x * (step * POINT_PACKS);
    const int64_t end = min(begin + step * POINT_PACKS, size);
    int64_t i = begin + threadIdx.x * N;
    typename Body::raw now, next;
    if (i + N <= end)
        body.load(now, i);
#pragma unroll 1
    for (; i + N <= end; i += step) {
        if (i + step + N <= end)
            body.load(next, i + step);
        body.finish(now, i);
        now = next;
    }
    for (; i < end; i++)
        body.one(i);
}

template <typename Body>
static void program_flat(const strata_run *r, const Body &body)
{
    const int64_t size = r->out[0].size;
    const unsigned blocks = layer_blocks(size, CUDA_BLOCK * Body::N * POINT_PACKS);
    program_flat_kernel<Body><<<blocks, CUDA_BLOCK, 0, layer_stream(r)>>>(body, size);
}

/* ---- launching --------------------------------------------------------------------- */

/* Whether an operation reads its second operand, and its third. */
static int operands_of(int op)
{
    if (op == POINTWISE_SELECT)
        return 3;
    return op >= POINTWISE_ELEMENTWISE && op < POINTWISE_SELECT ? 2 : 1;
}

/* Whether a row's content is read after step i + 1 before it is written again. */
static bool is_kept(const struct program *p, int i)
{
    for (int k = i + 1; k < p->n_steps; k++) {
        const struct program_step *s = &p->step[k];
        const uint8_t row = p->step[i].to;
        if (k > i + 1 && (s->a == row || s->b == row || s->c == row))
            return true;
        if (s->to == row)
            return false;
    }
    return false;
}

static bool settle_steps(device_program *p, const struct program *from)
{
    bool rare = false;
    p->n_steps = from->n_steps;
    for (int i = 0; i < from->n_steps; i++) {
        const struct program_step *s = &from->step[i];
        const int group = pointwise_group(s->op);
        const int last = i ? from->step[i - 1].to : -1, n = operands_of(s->op);
        const uint8_t row[3] = {s->a, s->b, s->c};
        device_step *to = &p->step[i];
        uint8_t *const read[3] = {&to->a, &to->b, &to->c};
        for (int k = 0; k < 3; k++)
            *read[k] = k >= n           ? (uint8_t)ROW_NONE
                       : row[k] == last ? (uint8_t)ROW_LAST
                                        : row[k];
        to->op = s->op;
        to->group = group;
        to->to = is_kept(from, i) ? s->to : (uint8_t)ROW_NONE;
        to->k = pointwise_args_of(s->alpha, s->beta, 0);
        rare |= group == POINTWISE_RARE;
    }
    return rare;
}

template <typename T, int K, bool Rare>
static void launch(const strata_run *r, const device_program &p)
{
    const strata_tensor *out = &r->out[0];
    program_body<T, K, Rare> body = {};
    walk_operand operand[K] = {};
    bool flat = out->size == out->count;
    body.y = out->data;
    body.p = p;
    body.p.n_in = r->n_in;
    body.p.truth_out = out->dtype == STRATA_BOOL8;
    for (int k = 0; k < r->n_in; k++) {
        const strata_tensor *t = &r->in[k];
        body.in[k] = t->data;
        body.p.one |= (uint32_t)(t->count == 1) << k;
        body.p.truth |= (uint32_t)(t->dtype == STRATA_BOOL8) << k;
        operand[k] = point_operand(out, t);
        flat = flat && (t->count == 1 || point_alike(out, t));
    }
    for (int k = r->n_in; k < K; k++) /* keeps dims apart no more than input 0 does */
        operand[k] = operand[0];
    flat ? program_flat(r, body) : point_walk(r, body, operand);
}

template <typename T>
static void launch_of(const strata_run *r)
{
    device_program p = {};
    const bool rare = settle_steps(&p, (const struct program *)r->state);
    if (r->n_in <= 1)
        rare ? launch<T, 1, true>(r, p) : launch<T, 1, false>(r, p);
    else if (r->n_in <= 3)
        rare ? launch<T, 3, true>(r, p) : launch<T, 3, false>(r, p);
    else
        launch<T, PROGRAM_INPUTS, true>(r, p);
}

/* The dtype of the floats; all truths: as FP32. */
static int32_t float_dtype(const strata_tensor *in, int32_t n_in,
                           const strata_tensor *out)
{
    int32_t dtype = out->dtype;
    for (int32_t i = 0; i < n_in && dtype == STRATA_BOOL8; i++)
        dtype = in[i].dtype;
    return dtype == STRATA_BOOL8 ? STRATA_FP32 : dtype;
}

static int pointwise_accept(const strata_node *n)
{
    const int32_t dtype = float_dtype(n->in, n->n_in, &n->out[0]);
    for (int32_t i = 0; i < n->n_in; i++) {
        const strata_tensor *t = &n->in[i];
        if (t->dtype != STRATA_BOOL8 && t->dtype != dtype)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "floats are of several dtypes");
        if (t->rank < n->out[0].rank && t->vector > 1 && t->dims[t->vector_dim] > 1)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "input %d of rank %d has vectors along another dim than "
                               "the output",
                               (int)i, (int)t->rank);
    }
    return STRATA_OK;
}

static int pointwise_setup(const strata_node *n, void *state)
{
    return program_parse((struct program *)state, n);
}

static int pointwise_run(const strata_run *r)
{
    switch (float_dtype(r->in, r->n_in, &r->out[0])) {
    case STRATA_FP16:
        launch_of<__half>(r);
        break;
    case STRATA_BF16:
        launch_of<__nv_bfloat16>(r);
        break;
    default:
        launch_of<float>(r);
        break;
    }
    return layer_launched(r, "pointwise");
}

#define FLOATS                                                                           \
    (STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NCHW |                \
     STRATA_BF16_NHWC | STRATA_BF16_NHWC8)
#define MIXED(format)                                                                    \
    {                                                                                    \
        {(format), (format), (format), (format)}, {(format)},                            \
            {(format), (format), (format), (format)},                                    \
        {                                                                                \
            0                                                                            \
        }                                                                                \
    }
static const strata_row rows[] = {
    {{FLOATS, STRATA_SAME}, {STRATA_SAME}},
    MIXED(STRATA_F32_NCHW | STRATA_BOOL_NCHW),
    MIXED(STRATA_F16_NCHW | STRATA_BOOL_NCHW),
    MIXED(STRATA_BF16_NCHW | STRATA_BOOL_NCHW),
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .state_size = sizeof(struct program),
     .accept = pointwise_accept,
     .setup = pointwise_setup,
     .run = pointwise_run,
     .bandwidth = 0.85},
};

static const strata_extends pointwise = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Pointwise",
    .params_size = sizeof(strata_pointwise),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&pointwise};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Pointwise", extends)
