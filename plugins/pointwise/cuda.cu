/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise on CUDA: the program in kernel parameters, run by the machine of machine.cuh.
 * Where all lies as the output does, the next tile of all inputs is on its way while one
 * is computed; else each input has a walk of its own.
 *
 * Bytes: every input once and the output once. With FP16 and two inputs that is 6 bytes
 * an element, 2.9 elements a clock and multiprocessor at 4 TB/s, or 44 instruction issues
 * for each: six steps of 2 to 3 beside what they compute.
 */
#include "kernels/shared.cuh"
#include "plugins/common/copy_ahead.cuh"
#include "plugins/pointwise/compiled.cuh"
#include "plugins/pointwise/machine.cuh"

#define STAGES 2 /* tiles of a block that are loaded or computed */

static __device__ inline char *bytes_at(uint32_t shared)
{
    return (char *)__cvta_shared_to_generic(shared);
}

/* ---- memory as it lies ----------------------------------------------------------------
 */

/* Bytes of one element; past the tensor's end elements are anything. */
static __device__ inline void copy_elements(char *to, const char *from, int bytes,
                                            int64_t n)
{
#pragma unroll 1
    for (int i = 0; i < (int)n * bytes; i++)
        to[i] = from[i];
}

/* The pack of N elements from element i on. */
template <typename E, int N>
static __device__ inline void copy_pack(char *to, const void *base, int64_t i,
                                        int64_t size)
{
    const E *from = (const E *)base + i;
    if (i + N <= size)
        copy_ahead<N *(int)sizeof(E)>(to, from);
    else if (i < size)
        copy_elements(to, (const char *)from, sizeof(E), size - i);
}

/* Begin to load the inputs of a tile, if there is one. */
template <typename T>
static __device__ inline void load_tile(const machine_rows<T> &rows, uint32_t tile,
                                        int64_t size)
{
    typedef machine_rows<T> shape;
    const machine &p = rows.p;
    const int64_t i = (int64_t)tile * shape::TILE + threadIdx.x * shape::N;
    if (i < size)
#pragma unroll 1
        for (int k = 0; k < p.n_in; k++) {
            if (p.one >> k & 1)
                continue;
#pragma unroll
            for (int e = 0; e < shape::V; e += shape::N) {
                const int64_t at = i + e * CUDA_BLOCK;
                if (p.truth >> k & 1)
                    copy_pack<uint8_t, shape::N>(bytes_at(rows.slot(k, e)), p.in[k], at,
                                                 size);
                else
                    copy_pack<T, shape::N>(bytes_at(rows.slot(k, e)), p.in[k], at, size);
            }
        }
    end_copies();
}

template <typename E, typename T>
static __device__ inline void store_tile(const machine_rows<T> &rows, const float *v,
                                         uint32_t tile, int64_t size)
{
    typedef machine_rows<T> shape;
    const int64_t i = (int64_t)tile * shape::TILE + threadIdx.x * shape::N;
    E *const y = (E *)rows.p.y;
#pragma unroll
    for (int e = 0; e < shape::V; e += shape::N) {
        const int64_t at = i + e * CUDA_BLOCK;
        if (at + shape::N <= size) {
            point_store<E, shape::N>(y + at, v + e);
        } else if (at < size) {
            char *const by = bytes_at(rows.inputs);
            point_store<E, shape::N>((E *)by, v + e);
            copy_elements((char *)(y + at), by, sizeof(E), size - at);
        }
    }
}

template <typename T, bool Rare>
static __global__ void __launch_bounds__(CUDA_BLOCK, 4)
    program_flat_kernel(const __grid_constant__ machine p, int64_t size)
{
    extern __shared__ __align__(16) char shared[];
    typedef machine_rows<T> shape;
    const int tiles = (int)((size + shape::TILE - 1) / shape::TILE);
    const int stage = p.n_in * shape::ROW;
    const uint32_t mine = (uint32_t)__cvta_generic_to_shared(shared) + threadIdx.x * 16;
    shape rows = {mine, mine + STAGES * stage - PROGRAM_INPUTS * shape::KEPT, p};
    int turn = 0;
#pragma unroll 1
    for (int tile = (int)(blockIdx.x - gridDim.x); tile < tiles; tile += gridDim.x) {
        float y[shape::V];
        rows.inputs = mine + turn * stage;
        load_tile(rows, tile + gridDim.x, size);
        turn ^= 1;
        if (tile < 0)
            continue;
        rows.inputs = mine + turn * stage;
        await_copies<STAGES - 1>();
        machine_run<T, Rare>(rows, y);
        if (p.truth_out)
            store_tile<uint8_t>(rows, y, tile, size);
        else
            store_tile<T>(rows, y, tile, size);
    }
}

/* ---- operands of other strides --------------------------------------------------------
 */

struct program_walks {
    walk<1> of[PROGRAM_INPUTS];
};

/* Input k's pack for the output's elements from i on, as T. */
template <typename E, typename T>
static __device__ inline void gather_pack(char *to, const void *base, const walk<1> &w,
                                          int64_t i)
{
    const int N = machine_rows<T>::N;
    const walk_place<1> p = walk_place_of<1>(w, i);
    if (i + N <= w.size && walk_whole<N>(w, p)) {
        float v[N];
        point_load<E, N>(v, (const E *)base, w, p, 0, 0);
        point_store<T, N>((T *)to, v);
        return;
    }
#pragma unroll 1
    for (int64_t e = i; e < i + N && e < w.size; e++) {
        const int lane = (int)(e & (w.lanes - 1));
        const walk_place<1> q = walk_place_of<1>(w, e);
        float v = 0;
        if (w.channel_dim < 0 || q.channel + lane < w.channels)
            point_load<E, 1>(&v, (const E *)base, w, q, 0, lane);
        ((T *)to)[e - i] = point_element<T>(v);
    }
}

/* The pack of results from element i on; `by` has room for it. Pad lanes become zero. */
template <typename E, typename T>
static __device__ inline void scatter_pack(E *y, const float *v, char *by,
                                           const walk<1> &w, int64_t i)
{
    const int N = machine_rows<T>::N;
    if (i + N <= w.size &&
        (w.channel_dim < 0 || walk_whole<N>(w, walk_place_of<1>(w, i)))) {
        point_store<E, N>(y + i, v);
        return;
    }
    point_store<T, N>((T *)by, v);
#pragma unroll 1
    for (int64_t e = i; e < i + N && e < w.size; e++) {
        const int64_t channel =
            w.channel_dim < 0 ? 0 : walk_place_of<1>(w, e).channel + (e & (w.lanes - 1));
        const float x = point_value<float>(((const T *)by)[e - i]);
        y[e] = point_element<E>(w.channel_dim < 0 || channel < w.channels ? x : 0.0f);
    }
}

template <typename T, bool Rare>
static __global__ void __launch_bounds__(CUDA_BLOCK, 4)
    program_walk_kernel(const __grid_constant__ machine p,
                        const __grid_constant__ program_walks walks, int64_t size)
{
    extern __shared__ __align__(16) char shared[];
    typedef machine_rows<T> shape;
    const int64_t step = (int64_t)gridDim.x * shape::TILE;
    const uint32_t mine = (uint32_t)__cvta_generic_to_shared(shared) + threadIdx.x * 16;
    const shape rows = {mine, mine + p.n_in * shape::ROW - PROGRAM_INPUTS * shape::KEPT,
                        p};
#pragma unroll 1
    for (int64_t i = (int64_t)blockIdx.x * shape::TILE + threadIdx.x * shape::N; i < size;
         i += step) {
        float y[shape::V];
#pragma unroll 1
        for (int k = 0; k < p.n_in; k++)
#pragma unroll 1
            for (int e = 0; e < shape::V; e += shape::N) {
                const int64_t at = i + e * CUDA_BLOCK;
                if (at >= size)
                    break;
                if (p.truth >> k & 1)
                    gather_pack<uint8_t, T>(bytes_at(rows.slot(k, e)), p.in[k],
                                            walks.of[k], at);
                else
                    gather_pack<T, T>(bytes_at(rows.slot(k, e)), p.in[k], walks.of[k],
                                      at);
            }
        machine_run<T, Rare>(rows, y);
#pragma unroll
        for (int e = 0; e < shape::V; e += shape::N) {
            const int64_t at = i + e * CUDA_BLOCK;
            if (at < size && p.truth_out)
                scatter_pack<uint8_t, T>((uint8_t *)p.y, y + e, bytes_at(mine),
                                         walks.of[0], at);
            else if (at < size)
                scatter_pack<T, T>((T *)p.y, y + e, bytes_at(mine), walks.of[0], at);
        }
    }
}

/* ---- programs for the machine ---------------------------------------------------------
 */

/* Whether an operation reads its second operand, and its third. */
static int operands_of(int op)
{
    if (op == POINTWISE_SELECT)
        return 3;
    return op >= POINTWISE_ELEMENTWISE && op < POINTWISE_SELECT ? 2 : 1;
}

static bool commutes(int op)
{
    switch (op) {
    case POINTWISE_ELEMENTWISE + STRATA_SUM:
    case POINTWISE_ELEMENTWISE + STRATA_PRODUCT:
    case POINTWISE_ELEMENTWISE + STRATA_AND:
    case POINTWISE_ELEMENTWISE + STRATA_OR:
    case POINTWISE_ELEMENTWISE + STRATA_XOR:
    case POINTWISE_COMPARE + STRATA_COMPARE_EQUAL:
    case POINTWISE_COMPARE + STRATA_COMPARE_NOT_EQUAL:
        return true;
    default:
        return false;
    }
}

/* Step i's operands; b and c are there where it takes them. The result before is best as
 * the first, which is in registers. */
static void read_operands(const struct program *p, int i, uint8_t row[3])
{
    const struct program_step *s = &p->step[i];
    const bool swap = i > 0 && commutes(s->op) && s->a != p->step[i - 1].to &&
                      s->b == p->step[i - 1].to;
    row[0] = swap ? s->b : s->a;
    row[1] = swap ? s->a : s->b;
    row[2] = s->c;
}

/* Whether step i's result is read otherwise than as the first operand of the next. */
static bool is_kept(const struct program *p, int i)
{
    const uint8_t to = p->step[i].to;
    for (int k = i + 1; k < p->n_steps; k++) {
        uint8_t row[3];
        read_operands(p, k, row);
        for (int j = k == i + 1; j < operands_of(p->step[k].op); j++)
            if (row[j] == to)
                return true;
        if (p->step[k].to == to)
            return false;
    }
    return false;
}

static uint8_t operand_of(const machine *m, uint8_t row, bool flat)
{
    if (row >= PROGRAM_INPUTS || !flat)
        return row;
    return (uint8_t)(row | (m->one >> row & 1 ? OPERAND_ONE : 0) |
                     (m->truth >> row & 1 ? OPERAND_TRUTH : 0));
}

/* Whether the program has rare operations. flat: inputs are in their slots as they came,
 * else all as floats. */
static bool settle_steps(machine *m, const struct program *p, bool flat)
{
    bool rare = false;
    m->n_steps = p->n_steps;
    for (int i = 0; i < p->n_steps; i++) {
        const struct program_step *s = &p->step[i];
        machine_step *to = &m->step[i];
        const int n = operands_of(s->op);
        uint8_t row[3];
        read_operands(p, i, row);
        const bool follows = i > 0 && row[0] == p->step[i - 1].to;
        const bool copy = s->op == POINTWISE_COPY; /* x*1 - 0, which is x for -0 too */
        to->op = (uint8_t)(copy ? POINTWISE_AFFINE : s->op);
        to->group = (uint8_t)pointwise_group(to->op);
        to->a = follows ? (uint8_t)OPERAND_LAST : operand_of(m, row[0], flat);
        to->b = n > 1 ? operand_of(m, row[1], flat) : (uint8_t)OPERAND_NONE;
        to->c = n > 2 ? operand_of(m, row[2], flat) : (uint8_t)OPERAND_NONE;
        to->to = is_kept(p, i) ? s->to : (uint8_t)OPERAND_NONE;
        to->alpha = copy ? 1 : (float)s->alpha;
        to->beta = copy ? -0.0f : (float)s->beta;
        if (to->to != OPERAND_NONE && to->to - PROGRAM_INPUTS >= m->n_kept)
            m->n_kept = to->to - PROGRAM_INPUTS + 1;
        rare |= to->group == POINTWISE_RARE;
    }
    m->n_kept += rare ? 2 : 0;
    return rare;
}

/* ---- launching ----------------------------------------------------------------------
 */

/* As many blocks as the device holds, and no more than tiles. 0: an error, which is left
 * for layer_launched(). */
static unsigned blocks_of(const void *kernel, int shared, int64_t tiles)
{
    int each = 0;
    if (shared_allow(kernel, (size_t)shared) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, CUDA_BLOCK,
                                                      (size_t)shared) != cudaSuccess)
        return 0;
    const int64_t all = (int64_t)each * device_attribute(cudaDevAttrMultiProcessorCount);
    return (unsigned)(tiles < all ? tiles : all);
}

template <typename T, bool Rare>
static void launch(const strata_run *r, const machine &m, bool flat)
{
    typedef machine_rows<T> shape;
    const strata_tensor *out = &r->out[0];
    const int rows = m.n_in * (flat ? STAGES : 1) * shape::ROW;
    const int shared = rows + m.n_kept * shape::KEPT;
    const int64_t tiles = (out->size + shape::TILE - 1) / shape::TILE;
    if (flat) {
        const unsigned blocks =
            blocks_of((const void *)program_flat_kernel<T, Rare>, shared, tiles);
        if (blocks)
            program_flat_kernel<T, Rare>
                <<<blocks, CUDA_BLOCK, shared, layer_stream(r)>>>(m, out->size);
        return;
    }
    program_walks walks = {};
    for (int k = 0; k < r->n_in; k++) {
        const walk_operand operand = point_operand(out, &r->in[k]);
        walks.of[k] = walk_over<1>(out, &operand);
    }
    const unsigned blocks =
        blocks_of((const void *)program_walk_kernel<T, Rare>, shared, tiles);
    if (blocks)
        program_walk_kernel<T, Rare>
            <<<blocks, CUDA_BLOCK, shared, layer_stream(r)>>>(m, walks, out->size);
}

template <typename T>
static void launch_of(const strata_run *r)
{
    const strata_tensor *out = &r->out[0];
    bool flat = out->size == out->count;
    machine m = {};
    m.y = out->data;
    m.n_in = r->n_in;
    m.truth_out = out->dtype == STRATA_BOOL8;
    for (int k = 0; k < r->n_in; k++) {
        const strata_tensor *t = &r->in[k];
        m.in[k] = t->data;
        m.one |= (uint32_t)(t->count == 1) << k;
        m.truth |= (uint32_t)(t->dtype == STRATA_BOOL8) << k;
        flat = flat && (t->count == 1 || point_alike(out, t));
    }
    settle_steps(&m, (const struct program *)r->state, flat)
        ? launch<T, true>(r, m, flat)
        : launch<T, false>(r, m, flat);
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

static int pointwise_compiled_accept(const strata_node *n)
{
    const int status = pointwise_accept(n);
    return status == STRATA_OK ? compiled_accept(n) : status;
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
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.03,
     .state_size = sizeof(struct program),
     .accept = pointwise_accept,
     .setup = pointwise_setup,
     .run = pointwise_run,
     .bandwidth = 0.85},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN,
     .min_sm = 80,
     .name = "compiled",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.3,
     .state_size = sizeof(compiled_state),
     .accept = pointwise_compiled_accept,
     .setup = compiled_setup,
     .run = compiled_run,
     .bandwidth = 0.9},
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
