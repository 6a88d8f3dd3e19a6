/* SPDX-License-Identifier: Apache-2.0
 *
 * Scatter on CUDA, in two ways. "ordered": a thread owns elements of the output and goes
 * through the updates in their order, so every reduction is deterministic. "atomic": a
 * thread an update; without a reduction the last update of an element is found first, by
 * the largest position, and only it is written.
 */
#include "plugins/common/index.cuh"
#include "plugins/scatter/update.cuh"

/* ---- ordered --------------------------------------------------------------------- */

/* Lines along the axis, a thread each; each[d]: elements of the indices from one position
 * of dim d to the next. */
struct lines_job {
    struct index_elements at;
    int64_t each[STRATA_MAX_RANK], lines;
    int32_t reduction;
};

template <typename S, typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    lines_kernel(S *y, const T *update, const __grid_constant__ lines_job j)
{
    const index_elements &g = j.at;
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    int64_t line = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    for (; line < j.lines; line += step) {
        int64_t to = 0, from = 0;
        uint64_t rest = (uint64_t)line;
        for (int d = g.rank - 1; d >= 0; d--) {
            if (d == g.axis)
                continue;
            const uint64_t next = index_divide(rest, (uint64_t)g.n[d]);
            const int64_t i = (int64_t)(rest - next * (uint64_t)g.n[d]);
            to += i * g.stride[d];
            from += i * j.each[d];
            rest = next;
        }
        for (int64_t k = 0; k < g.n[g.axis]; k++) {
            const int64_t i = from + k * j.each[g.axis];
            const int64_t at = index_at(g.index, g.dtype, i, g.dim);
            if (at < 0)
                continue;
            S *place = y + to + at * g.stride[g.axis];
            *place = joined(j.reduction, *place, held_as(y, update[i]));
        }
    }
}

/* Rows: a thread owns element x of every row of its share, blockIdx.y. */
template <typename S, typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    rows_kernel(S *y, const T *update, const __grid_constant__ struct scatter_rows s,
                int32_t reduction)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    int64_t e = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    for (; e < s.row; e += step)
        for (int64_t t = 0; t < s.tuples; t++) {
            const int64_t row = scatter_target(&s, t);
            if (row < 0 || (uint64_t)row % gridDim.y != blockIdx.y)
                continue;
            S *place = y + row * s.row + e;
            *place = joined(reduction, *place, held_as(y, update[t * s.row + e]));
        }
}

static lines_job lines_of(const strata_run *r)
{
    const strata_scatter *p = (const strata_scatter *)r->params;
    lines_job j = {};
    j.at = index_join(index_axis(p->axis, r->in[0].rank), &r->in[0], &r->in[1]);
    j.lines = r->in[1].count / j.at.n[j.at.axis];
    j.reduction = p->reduction;
    j.each[j.at.rank - 1] = 1;
    for (int d = j.at.rank - 1; d > 0; d--)
        j.each[d - 1] = j.each[d] * j.at.n[d];
    return j;
}

template <typename T, typename S>
static int run_ordered(const strata_run *r, S *y)
{
    const strata_scatter *p = (const strata_scatter *)r->params;
    const int SHARES = 64;
    const T *update = (const T *)r->in[2].data;
    if (p->mode == STRATA_SCATTER_ELEMENTS) {
        const lines_job j = lines_of(r);
        lines_kernel<<<layer_blocks(j.lines, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(
            y, update, j);
    } else {
        const struct scatter_rows s = scatter_rows(&r->in[0], &r->in[1]);
        const dim3 grid(layer_blocks(s.row, CUDA_BLOCK), SHARES);
        rows_kernel<<<grid, CUDA_BLOCK, 0, layer_stream(r)>>>(y, update, s,
                                                              p->reduction);
    }
    return layer_launched(r, "scatter");
}

/* ---- atomic ---------------------------------------------------------------------- */

/* Element of the data for element i of the updates, or -1. */
struct target_element {
    struct index_elements at;
    struct scatter_rows rows; /* row 0: mode elements */

    __device__ int64_t operator()(int64_t i) const
    {
        if (rows.row) {
            const int64_t tuple = (int64_t)index_divide((uint64_t)i, (uint64_t)rows.row);
            const int64_t row = scatter_target(&rows, tuple);
            return row < 0 ? -1 : row * rows.row + (i - tuple * rows.row);
        }
        const int64_t chosen = index_at(at.index, at.dtype, i, at.dim);
        int64_t to = chosen * at.stride[at.axis];
        uint64_t rest = (uint64_t)i;
        for (int d = at.rank - 1; d >= 0; d--) {
            const uint64_t next = index_divide(rest, (uint64_t)at.n[d]);
            if (d != at.axis)
                to += (int64_t)(rest - next * (uint64_t)at.n[d]) * at.stride[d];
            rest = next;
        }
        return chosen < 0 ? -1 : to;
    }
};

template <int Bytes>
struct bits_of;
template <>
struct bits_of<2> {
    typedef unsigned short type;
};
template <>
struct bits_of<4> {
    typedef unsigned int type;
};
template <>
struct bits_of<8> {
    typedef unsigned long long type;
};

template <typename To, typename From>
static __device__ inline To same_bits(From x)
{
    union {
        From from;
        To to;
    } u = {x};
    return u.to;
}

/* Which update of an element is the last. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    last_kernel(int32_t *last, int64_t count, const __grid_constant__ target_element to)
{
    const int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    const int64_t at = i < count ? to(i) : -1;
    if (at >= 0)
        atomicMax(&last[at], (int32_t)i);
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    write_kernel(T *y, const T *update, const int32_t *last, int64_t count,
                 const __grid_constant__ target_element to)
{
    const int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    const int64_t at = i < count ? to(i) : -1;
    if (at >= 0 && last[at] == (int32_t)i)
        y[at] = update[i];
}

template <typename S, typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    reduce_kernel(S *y, const T *update, int64_t count,
                  const __grid_constant__ target_element to, int32_t reduction)
{
    typedef typename bits_of<sizeof(S)>::type bits;
    const int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    const int64_t at = i < count ? to(i) : -1;
    if (at < 0)
        return;
    bits *place = (bits *)(y + at), seen = *place, held;
    const S u = held_as(y, update[i]);
    do {
        held = seen;
        seen = atomicCAS(place, held,
                         same_bits<bits>(joined(reduction, same_bits<S>(held), u)));
    } while (seen != held);
}

static target_element target_of(const strata_run *r)
{
    const strata_scatter *p = (const strata_scatter *)r->params;
    target_element t = {};
    if (p->mode == STRATA_SCATTER_ND)
        t.rows = scatter_rows(&r->in[0], &r->in[1]);
    else
        t.at = index_join(index_axis(p->axis, r->in[0].rank), &r->in[0], &r->in[1]);
    return t;
}

template <typename T>
static int run_last(const strata_run *r)
{
    const int64_t count = r->in[2].count;
    const unsigned blocks = layer_blocks(count, CUDA_BLOCK);
    const target_element to = target_of(r);
    const cudaError_t e =
        cudaMemsetAsync(r->workspace, 0xff, r->workspace_size, layer_stream(r));
    if (e != cudaSuccess)
        return STRATA_FAIL(r, STRATA_EDEVICE, "clearing positions: %s",
                           cudaGetErrorString(e));
    last_kernel<<<blocks, CUDA_BLOCK, 0, layer_stream(r)>>>((int32_t *)r->workspace,
                                                            count, to);
    const int status = layer_launched(r, "scatter_last");
    if (status != STRATA_OK)
        return status;
    write_kernel<T><<<blocks, CUDA_BLOCK, 0, layer_stream(r)>>>(
        (T *)r->out[0].data, (const T *)r->in[2].data, (const int32_t *)r->workspace,
        count, to);
    return layer_launched(r, "scatter_write");
}

template <typename T, typename S>
static int run_reduce(const strata_run *r, S *y)
{
    const strata_scatter *p = (const strata_scatter *)r->params;
    const int64_t count = r->in[2].count;
    reduce_kernel<<<layer_blocks(count, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(
        y, (const T *)r->in[2].data, count, target_of(r), p->reduction);
    return layer_launched(r, "scatter_reduce");
}

/* ---- impls ----------------------------------------------------------------------- */

static int copy_data(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    if (x->data == y->data)
        return STRATA_OK;
    const cudaError_t e =
        cudaMemcpyAsync(y->data, x->data, (size_t)(y->count * index_size(y->dtype)),
                        cudaMemcpyDeviceToDevice, layer_stream(r));
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "copy: %s", cudaGetErrorString(e));
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    widen_kernel(float *y, const T *x, int64_t count)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    for (; i < count; i += step)
        y[i] = to_float(x[i]);
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    narrow_kernel(T *y, const float *x, int64_t count)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    for (; i < count; i += step)
        from_float(y + i, x[i]);
}

template <bool Ordered, typename T, typename S>
static int run_updates(const strata_run *r, S *y)
{
    if constexpr (Ordered)
        return run_ordered<T>(r, y);
    else
        return run_reduce<T>(r, y);
}

template <bool Ordered, typename T>
static int run_as(const strata_run *r)
{
    const int status = copy_data(r);
    return status == STRATA_OK ? run_updates<Ordered, T>(r, (T *)r->out[0].data) : status;
}

/* Sums and products of halves gather in the workspace's FP32. */
template <bool Ordered, typename T>
static int run_halves(const strata_run *r)
{
    const int64_t count = r->out[0].count;
    const unsigned blocks = layer_blocks(count, CUDA_BLOCK);
    float *sum = (float *)r->workspace;
    if (!scatter_gathers((const strata_scatter *)r->params, r->out[0].dtype))
        return run_as<Ordered, T>(r);
    widen_kernel<<<blocks, CUDA_BLOCK, 0, layer_stream(r)>>>(
        sum, (const T *)r->in[0].data, count);
    int status = layer_launched(r, "scatter_widen");
    if (status == STRATA_OK)
        status = run_updates<Ordered, T>(r, sum);
    if (status != STRATA_OK)
        return status;
    narrow_kernel<<<blocks, CUDA_BLOCK, 0, layer_stream(r)>>>((T *)r->out[0].data, sum,
                                                              count);
    return layer_launched(r, "scatter_narrow");
}

static int ordered_run(const strata_run *r)
{
    if (r->in[2].count == 0)
        return copy_data(r);
    switch (r->out[0].dtype) {
    case STRATA_FP32:
        return run_as<true, float>(r);
    case STRATA_FP16:
        return run_halves<true, __half>(r);
    case STRATA_BF16:
        return run_halves<true, __nv_bfloat16>(r);
    case STRATA_FP64:
        return run_as<true, double>(r);
    case STRATA_INT8:
        return run_as<true, int8_t>(r);
    case STRATA_INT32:
        return run_as<true, int32_t>(r);
    case STRATA_INT64:
        return run_as<true, int64_t>(r);
    case STRATA_BOOL8:
        return run_as<true, bool>(r);
    default: /* FP8 is not reduced */
        return run_as<true, uint8_t>(r);
    }
}

static int last_run(const strata_run *r)
{
    const int status = copy_data(r);
    if (status != STRATA_OK)
        return status;
    switch (index_size(r->out[0].dtype)) {
    case 1:
        return run_last<uint8_t>(r);
    case 2:
        return run_last<uint16_t>(r);
    case 4:
        return run_last<uint32_t>(r);
    default:
        return run_last<uint64_t>(r);
    }
}

static int atomic_run(const strata_run *r)
{
    const strata_scatter *p = (const strata_scatter *)r->params;
    if (r->in[2].count == 0)
        return copy_data(r);
    if (p->reduction == STRATA_SCATTER_NONE)
        return last_run(r);
    switch (r->out[0].dtype) {
    case STRATA_FP32:
        return run_as<false, float>(r);
    case STRATA_FP16:
        return run_halves<false, __half>(r);
    case STRATA_BF16:
        return run_halves<false, __nv_bfloat16>(r);
    case STRATA_FP64:
        return run_as<false, double>(r);
    case STRATA_INT32:
        return run_as<false, int32_t>(r);
    default:
        return run_as<false, int64_t>(r);
    }
}

static int ordered_accept(const strata_node *n)
{
    const strata_scatter *p = (const strata_scatter *)n->params;
    const int32_t dtype = n->in[0].dtype;
    return p->reduction != STRATA_SCATTER_NONE &&
                   (dtype == STRATA_E4M3 || dtype == STRATA_E5M2)
               ? STRATA_FAIL(
                     n, STRATA_EUNSUPPORTED,
                     "FP8 is not reduced; a Cast before Scatter gives a wider type")
               : STRATA_OK;
}

/* Whether the order of updates may show in a result: in its rounding, or which zero or
 * NaN a maximum is. */
static bool rounds(const strata_node *n)
{
    const strata_scatter *p = (const strata_scatter *)n->params;
    const int32_t dtype = n->in[0].dtype;
    return p->reduction != STRATA_SCATTER_NONE &&
           dtype != STRATA_INT32 && dtype != STRATA_INT64;
}

static int positions_accept(const strata_node *n)
{
    const strata_scatter *p = (const strata_scatter *)n->params;
    if (n->in[2].count > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld updates; this impl takes less than 2^31",
                           (long long)n->in[2].count);
    if (p->reduction != STRATA_SCATTER_NONE && index_size(n->in[0].dtype) == 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "elements of a byte are not reduced atomically");
    return STRATA_OK;
}

static int atomic_accept(const strata_node *n)
{
    const int status = positions_accept(n);
    return status != STRATA_OK || !rounds(n)
               ? status
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "the order of updates of floats is left open by atomics");
}

static int unordered_accept(const strata_node *n)
{
    const int status = positions_accept(n);
    return status != STRATA_OK || rounds(n)
               ? status
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "reduces floats only");
}

static size_t atomic_workspace(const strata_node *n)
{
    const strata_scatter *p = (const strata_scatter *)n->params;
    return p->reduction == STRATA_SCATTER_NONE ? (size_t)n->out[0].count * sizeof(int32_t)
                                               : scatter_gather_size(n);
}

static const strata_row rows[] = {
    {{INDEX_LINEAR, INDEX_FORMATS, STRATA_SAME}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda_ordered",
     .rows = STRATA_ARRAY(rows),
     .accept = ordered_accept,
     .workspace = scatter_gather_size,
     .run = ordered_run,
     .bandwidth = 0.2},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda_atomic",
     .rows = STRATA_ARRAY(rows),
     .accept = atomic_accept,
     .workspace = atomic_workspace,
     .run = atomic_run,
     .bandwidth = 0.4},
    {.id = 3,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_NONDETERMINISTIC,
     .name = "cuda_unordered",
     .rows = STRATA_ARRAY(rows),
     .accept = unordered_accept,
     .workspace = scatter_gather_size,
     .run = atomic_run,
     .bandwidth = 0.4},
};

static const strata_extends scatter = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Scatter",
    .params_size = sizeof(strata_scatter),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&scatter};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Scatter", extends)
