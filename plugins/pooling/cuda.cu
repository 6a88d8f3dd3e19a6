/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling on CUDA: one kernel for windows in every layout, others for whole planes, and a
 * plain one for p-norms and indices.
 */
#include "plugins/pooling/fixed.cuh"
#include "plugins/pooling/maxima.cuh"
#include "plugins/pooling/plain.cuh"
#include "plugins/pooling/whole.cuh"

/* Kernels read the first element in place of one outside, so there must be one. */
static int pooling_accept(const strata_node *n)
{
    if (n->in[0].count == 0 && n->out[0].count > 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the input is empty, and the output, of pads alone, is not; "
                           "the host has an impl for that");
    return STRATA_OK;
}

static int pooling_setup(const strata_node *n, void *state)
{
    const strata_pooling *p = (const strata_pooling *)n->params;
    pooling *pool = (pooling *)state;
    pool->kind = p->kind;
    pool->count_include_pad = p->count_include_pad;
    pool->p = (float)p->p;
    return window_of_pooling(&pool->w, p, &n->in[0], n->host, n->err);
}

/* Partial results of slices. */
static size_t pooling_workspace(const strata_node *n)
{
    struct window w;
    const strata_tensor *x = &n->in[0];
    if (window_of_pooling(&w, (const strata_pooling *)n->params, x, n->host, n->err) !=
            STRATA_OK ||
        window_out_count(&w) != 1)
        return 0;
    const int slices = whole_slices(x, window_in_count(&w));
    return slices > 1 ? (size_t)slices * (size_t)n->out[0].size * sizeof(float) : 0;
}

template <typename T, int N, bool Last, int Rows, bool Max>
static void pool_window_of(const pool_job &job, cudaStream_t stream)
{
    if (!pool_fixed<T, N, Last, Rows, Max>(job, stream))
        pool_window_launch<T, N, Last, Rows, Max>(job, stream);
}

template <typename T, int N, bool Last, bool Max>
static void pool_window_as(const strata_run *r)
{
    int rows;
    const pool_job job = pool_job_of(r, N, &rows);
    if (rows == 1)
        pool_window_of<T, N, Last, 1, Max>(job, layer_stream(r));
    else
        pool_window_of<T, N, Last, POOL_ROWS, Max>(job, layer_stream(r));
}

template <typename T, int N, bool Last>
static void pool_window(const strata_run *r)
{
    if (((const pooling *)r->state)->kind == STRATA_POOL_MAX)
        pool_window_as<T, N, Last, true>(r);
    else
        pool_window_as<T, N, Last, false>(r);
}

/* Whether n channels of a channels-last tensor can move as one word. */
static inline bool pool_aligned(const strata_tensor *t, int64_t n, size_t word)
{
    bool fits = t->strides[1] == (t->vector > 1 ? t->vector : 1) &&
                (uintptr_t)t->data % word == 0;
    for (int d = 0; d < t->rank; d++)
        fits = fits && (d == 1 || t->strides[d] % n == 0);
    return fits && (t->vector % n == 0 || t->dims[1] % n == 0);
}

template <typename T>
static void pool_windows(const strata_run *r)
{
    const int N = 16 / (int)sizeof(T);
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const bool last = y->rank > 2 && y->strides[1] <= y->strides[y->rank - 1] &&
                      (y->vector == 8 || y->strides[1] == 1);
    if (y->vector == 2)
        pool_window<__half, 2, false>(r); /* of FP16 alone */
    else if (last && pool_aligned(x, N, 16) && pool_aligned(y, N, 16))
        pool_window<T, N, true>(r);
    else if (last)
        pool_window<T, 1, true>(r);
    else
        pool_window<T, 1, false>(r);
}

template <typename T>
static void pooling_launch(const strata_run *r)
{
    const pooling *pool = (const pooling *)r->state;
    if (pool->kind == STRATA_POOL_LP || r->n_out > 1)
        pool_plain<T>(r);
    else if (!whole_fits(r, &pool->w))
        pool_windows<T>(r);
    else if (pool->kind == STRATA_POOL_MAX)
        whole_planes_of<T, true>(r);
    else
        whole_planes_of<T, false>(r);
}

static int pooling_run(const strata_run *r)
{
    layer_float(r->out[0].dtype, [&](auto t) { pooling_launch<decltype(t)>(r); });
    return layer_launched(r, "pooling");
}

/* ---- maxima of bytes ------------------------------------------------------------- */

static int bytes_accept(const strata_node *n)
{
    const strata_pooling *p = (const strata_pooling *)n->params;
    if (p->kind != STRATA_POOL_MAX || p->indices)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "of bytes it takes maxima alone, without their indices");
    return pooling_accept(n);
}

template <typename T>
static void bytes_windows(const strata_run *r)
{
    const int N = 8; /* as many sums as of FP16 fit in registers */
    if (pool_aligned(&r->in[0], N, N) && pool_aligned(&r->out[0], N, N))
        pool_window_as<T, N, true, true>(r);
    else
        pool_window_as<T, 1, true, true>(r);
}

static int bytes_run(const strata_run *r)
{
    if (r->out[0].dtype == STRATA_INT8)
        bytes_windows<int8_t>(r);
    else
        bytes_windows<uint8_t>(r);
    return layer_launched(r, "pooling");
}

/* Indices, where they are asked for, are linear. */
static const strata_row rows[] = {{{CUDA_FLOATS}, {STRATA_SAME, STRATA_I64_NCHW}}};

static const strata_row bytes_rows[] = {
    {{STRATA_I8_NHWC | STRATA_U8_NHWC | STRATA_I8_NHWC16}, {STRATA_SAME}}};

static const strata_row maxima_rows[] = {
    {{STRATA_I8_NHWC | STRATA_U8_NHWC | STRATA_I8_NHWC16 | STRATA_I8_NC32HW32 |
      STRATA_U8_NC32HW32},
     {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT |
              STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .state_size = sizeof(pooling),
     .accept = pooling_accept,
     .workspace = pooling_workspace,
     .setup = pooling_setup,
     .run = pooling_run},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda_bytes",
     .rows = STRATA_ARRAY(bytes_rows),
     .state_size = sizeof(pooling),
     .accept = bytes_accept,
     .setup = pooling_setup,
     .run = bytes_run},
    {.id = 3,
     .device = STRATA_CUDA,
     .name = "cuda_maxima",
     .rows = STRATA_ARRAY(maxima_rows),
     .state_size = sizeof(maxima),
     .accept = maxima_accept,
     .setup = maxima_setup,
     .run = maxima_run,
     .bandwidth = 0.85},
};

static const strata_extends pooling_extends = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Pooling",
    .params_size = sizeof(strata_pooling),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&pooling_extends};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Pooling", extends)
