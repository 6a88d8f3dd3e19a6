/* SPDX-License-Identifier: Apache-2.0
 *
 * PooledConvolution on Hopper's tensor cores, in one launch: an image of 1 to 4 channels
 * in planes, windows at every second pixel, to maxima in FP16 or 8 bits in channels-last
 * order.
 */
#include "plugins/common/quantized/quantized.h"
#include "plugins/convolution/cuda/stem/wgmma_host.cuh"
#include "plugins/pooled_convolution/shape.h"
#include "plugins/pooled_convolution/threes.cuh"

enum {
    BLOCKS = 3, /* of a multiprocessor */
    GROUPS = 3, /* where one block has all of it */
    BRIEF_THREADS = 1024
};

template <typename T, class S>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    pooled_kernel(const __grid_constant__ pooled_job job)
{
    extern __shared__ __align__(128) uint8_t memory[];
    const uint32_t filter = blockIdx.y * FILTERS, rows = job.stem.rows;
    const stem_tail tail(job.stem, filter + stem_filter<S>());
    const pooled_result<S> result(job);
    uint4 weight[S::Steps];
    stem_take<S>(weight, job.stem.weight);
    launch_next();
    wait_for_previous();
    uint32_t row = (uint32_t)((uint64_t)rows * blockIdx.x / gridDim.x);
    const uint32_t end = (uint32_t)((uint64_t)rows * (blockIdx.x + 1) / gridDim.x);
    while (row < end) {
        const pooled_row at(job, row);
        const int32_t last = min((int32_t)job.stem.high, at.h + (int32_t)(end - row));
        pooled_walk<T, S>(job, at, last, tail, result, weight, memory, filter);
        row += (uint32_t)(last - at.h);
    }
}

template <typename T, class S>
static __global__ void __launch_bounds__(THREADS *S::Groups, 1)
    three_kernel(const __grid_constant__ pooled_job job)
{
    extern __shared__ __align__(128) uint8_t memory[];
    const uint32_t filter = blockIdx.y * FILTERS, rows = job.stem.rows;
    const uint32_t group = __shfl_sync(0xffffffff, threadIdx.y, 0);
    const uint32_t share = group * gridDim.x + blockIdx.x, shares = gridDim.x * S::Groups;
    const stem_tail tail(job.stem, filter + stem_filter<S>());
    const pooled_result<S> result(job);
    three_take<S>(memory, job.stem.weight);
    launch_next();
    wait_for_previous();
    uint32_t row = (uint32_t)((uint64_t)rows * share / shares);
    const uint32_t end = (uint32_t)((uint64_t)rows * (share + 1) / shares);
    while (row < end) {
        const pooled_row at(job, row);
        const int32_t last = min((int32_t)job.stem.high, at.h + (int32_t)(end - row));
        three_walk<T, S>(job, at, last, tail, result, memory,
                         memory + S::First + group * S::Group, filter);
        row += (uint32_t)(last - at.h);
    }
}

/* ---- setting up -----------------------------------------------------------------------
 */

struct pooled_state {
    convolution_state convolution; /* whose params begin the layer's, with its weights */
    struct window pool;
    bool bytes;
    pooled_brief brief; /* where there are such */
};

typedef stem_launch<pooled_job> launch;

template <class S>
static const launch launch_of = {
    {pooled_kernel<float, S>, pooled_kernel<__half, S>},
    {S::Columns, S::Steps, S::PerRow, S::Down, S::Shared + S::Columns *THREADS}};

template <class S>
static const launch three_launch_of = {
    {three_kernel<float, S>, three_kernel<__half, S>},
    {S::Columns, S::Steps, S::PerRow, S::Down, S::Shared}};

static bool is_three(const pooled_state *s)
{
    const struct window *w = &s->convolution.w, *pool = &s->pool;
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (pool->kernel[d] != 3 || pool->stride[d] != 2)
            return false;
    return s->convolution.in_c <= CHANNELS && !stem_is_small(w) && pool->begin[2] <= 1;
}

/* Maxima of a tile of so many columns of results. */
static int64_t across_of(const pooled_state *s, int64_t columns)
{
    const struct window *pool = &s->pool;
    const bool three = is_three(s);
    if (pool->in[2] <= columns && (!three || 2 * pool->out[2] <= columns))
        return pool->out[2];
    return three ? columns / 2 - 1 : (columns - pool->kernel[2]) / pool->stride[2] + 1;
}

static int64_t tiles_of(const pooled_state *s, int64_t columns)
{
    const int64_t across = across_of(s, columns);
    return (s->pool.out[2] + across - 1) / across;
}

/* Launches that read the same weights, wide ones first; rounded: pooled_rounded, or as
 * the shape is. */
template <template <class> class Rounded>
static const launch *const *launches_to(const pooled_state *s)
{
    static const launch *const all[3][2] = {
        {&launch_of<Rounded<stem_shape<112, 7, 2>>>,
         &launch_of<Rounded<stem_shape<64, 7, 2>>>},
        {&launch_of<Rounded<stem_shape<112, 3, 1>>>,
         &launch_of<Rounded<stem_shape<64, 3, 1>>>},
        {&three_launch_of<Rounded<three_shape<112, GROUPS>>>,
         &three_launch_of<Rounded<three_shape<64, GROUPS>>>},
    };
    return all[is_three(s) ? 2 : stem_is_small(&s->convolution.w)];
}

template <class S>
using as_it_is = S;

static const launch *const *launches_of(const pooled_state *s)
{
    return s->bytes ? launches_to<pooled_rounded>(s) : launches_to<as_it_is>(s);
}

/* Columns that a multiprocessor makes of so many images, and COMMON for each row. */
static int64_t load_of(const pooled_state *s, const launch *l, int64_t images)
{
    enum { COMMON = 32 };
    const int64_t rows = images * tiles_of(s, l->sizes.columns) * s->pool.out[1];
    const int64_t most =
        (rows + s->convolution.multiprocessors - 1) / s->convolution.multiprocessors;
    return most * (l->sizes.columns + COMMON);
}

static const launch *launch_for(const pooled_state *s, int64_t images)
{
    const launch *const *l = launches_of(s);
    return l[load_of(s, l[1], images) < load_of(s, l[0], images)];
}

/* Each maximum's rows end below those of the one above. */
static bool ends_apart(const struct window *w)
{
    return w->out[1] < 2 ||
           (w->out[1] - 2) * w->stride[1] - w->begin[1] + w->kernel[1] < w->in[1];
}

static const char *refuse_pool(const struct window *w)
{
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (w->kernel[d] < 2 || w->kernel[d] > MOST_POOLED || w->dilation[d] != 1 ||
            w->stride[d] > w->kernel[d] || w->stride[d] < w->kernel[d] - 1)
            return "maxima are of windows of 2 or 3, as many apart or one less";
    if (window_has_empty(w))
        return "a maximum is of pads alone";
    return ends_apart(w) ? NULL : "two maxima end with the last row";
}

/* The layer's activation, where Convolution has an epilogue. */
static epilogue_args tail_of(const void *params)
{
    const strata_pooled_convolution *p = (const strata_pooled_convolution *)params;
    const strata_activation a = {p->activation - 1, 0, p->alpha, p->beta};
    epilogue_args e = {};
    e.activation.kind = a.kind;
    if (a.kind < 0)
        return e;
    e.activation.alpha = (float)strata_activation_alpha(&a);
    e.activation.beta = (float)strata_activation_beta(&a);
    return e;
}

static int pooled_resolve_all(const strata_node *n, pooled_state *s)
{
    struct pooled_shape shape;
    const int status = pooled_resolve(n, &shape);
    if (status != STRATA_OK)
        return status;
    s->pool = shape.pool;
    s->bytes = ((const strata_pooled_convolution *)n->params)->to != 0;
    return convolution_resolve(n, &s->convolution);
}

static int pooled_accept(const strata_node *n)
{
    pooled_state s = {};
    int status = stem_wgmma_check(n);
    if (status == STRATA_OK)
        status = pooled_resolve_all(n, &s);
    if (status != STRATA_OK)
        return status;
    const char *why = refuse_pool(&s.pool);
    if (!why && !convolution_bounds_of(tail_of(n->params)).plain)
        why = "its activations are none, relu, relu6 and a clip that has 0";
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

static int accept_floats(const strata_node *n)
{
    return ((const strata_pooled_convolution *)n->params)->to == 0
               ? pooled_accept(n)
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the output is of 8 bits");
}

static int accept_bytes(const strata_node *n)
{
    const strata_pooled_convolution *p = (const strata_pooled_convolution *)n->params;
    strata_quantized to = {};
    to.to = p->to;
    if (p->to == 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the output is a float");
    const int status = quantized_accept(n, &to);
    if (status == STRATA_OK && stored_channels(&n->out[0]) != n->out[0].dims[1])
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "channels of pads would not be 0");
    return status == STRATA_OK ? pooled_accept(n) : status;
}

static int prepare_bytes(const strata_node *n, pooled_state *s)
{
    const strata_pooled_convolution *p = (const strata_pooled_convolution *)n->params;
    const cudaStream_t stream = (cudaStream_t)n->stream;
    void *brief;
    const int status = quantized_pack(n, sizeof s->brief, &brief);
    if (status != STRATA_OK)
        return status;
    pooled_brief_kernel<<<1, BRIEF_THREADS, 0, stream>>>(
        (const float *)n->weight[POOLED_SCALE_OUT].data, (int32_t)p->zero_out,
        n->out[0].dtype == STRATA_UINT8, (pooled_brief *)brief);
    cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess) /* runs hand it to kernels as a constant */
        e = cudaMemcpyAsync(&s->brief, brief, sizeof s->brief, cudaMemcpyDeviceToHost,
                            stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(stream);
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "asking of halves: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

static int pooled_setup(const strata_node *n, void *state)
{
    pooled_state *s = (pooled_state *)state;
    int status = pooled_resolve_all(n, s);
    if (status == STRATA_OK && s->bytes)
        status = prepare_bytes(n, s);
    if (status != STRATA_OK)
        return status;
    const launch *const *l = launches_of(s);
    status = convolution_prepare(n, &s->convolution, (const void *)l[1]->of(&n->in[0]),
                                 l[1]->sizes.shared);
    if (status != STRATA_OK)
        return status;
    return stem_wgmma_prepare(n, &s->convolution, l[0]->sizes,
                              (const void *)l[0]->of(&n->in[0]),
                              is_three(s) ? three_pack_kernel : stem_wgmma_pack_kernel);
}

/* ---- running --------------------------------------------------------------------------
 */

static pooled_job job_of(const strata_run *r, const pooled_state *s, const launch *l)
{
    const struct window *w = &s->pool;
    const strata_pooled_convolution *p = (const strata_pooled_convolution *)r->params;
    pooled_job job = {};
    job.scale_out = (const float *)r->weight[POOLED_SCALE_OUT].data;
    job.zero_out = (int32_t)p->zero_out;
    job.is_unsigned = r->out[0].dtype == STRATA_UINT8;
    job.brief = s->brief;
    job.stem = stem_wgmma_job_of(r, tail_of(r->params));
    job.stem.high = (uint32_t)w->out[1];
    job.pitch = (uint32_t)pixel_pitch(&r->out[0]);
    job.wide = (int32_t)w->out[2];
    job.across = (int32_t)across_of(s, l->sizes.columns);
    job.kernel_h = (int32_t)w->kernel[1];
    job.stride_h = (int32_t)w->stride[1];
    job.begin_h = (int32_t)w->begin[1];
    job.kernel_w = (int32_t)w->kernel[2];
    job.stride_w = (int32_t)w->stride[2];
    job.begin_w = (int32_t)w->begin[2] * (1 + is_three(s)); /* there, of a tile */
    job.cut = (w->out[2] - 1) * w->stride[2] - w->begin[2] + w->kernel[2] > w->in[2];
    job.stem.across = (uint32_t)tiles_of(s, l->sizes.columns);
    job.stem.rows = (uint32_t)r->in[0].dims[0] * job.stem.across * job.stem.high;
    return job;
}

static int pooled_run(const strata_run *r)
{
    const pooled_state *s = (const pooled_state *)r->state;
    const launch *l = launch_for(s, r->in[0].dims[0]);
    const pooled_job job = job_of(r, s, l);
    const bool three = is_three(s);
    const uint32_t most =
        (uint32_t)s->convolution.multiprocessors * (three ? 1 : (uint32_t)BLOCKS);
    const dim3 grid(job.stem.rows < most ? job.stem.rows : most,
                    stem_blocks(job.stem.filters, l->sizes));
    if (job.stem.rows == 0)
        return STRATA_OK;
    launch_overlapped(l->of(&r->in[0]), grid, dim3(THREADS, three ? GROUPS : 1),
                      (size_t)l->sizes.shared, layer_stream(r), job);
    return layer_launched(r, "pooled convolution");
}

/* ---- the impl -------------------------------------------------------------------------
 */

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW}, {STRATA_F16_NHWC8 | STRATA_F16_NHWC}},
};

static const strata_row byte_rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW},
     {STRATA_I8_NHWC16 | STRATA_I8_NHWC | STRATA_U8_NHWC}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED | STRATA_PITCHED_OUT | STRATA_ROUNDS_IN,
     .min_sm = 90,
     .max_sm = 90,
     .name = "stem",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.7,
     .state_size = sizeof(pooled_state),
     .accept = accept_floats,
     .setup = pooled_setup,
     .run = pooled_run},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED | STRATA_ROUNDS_IN,
     .min_sm = 90,
     .max_sm = 90,
     .name = "stem_bytes",
     .rows = STRATA_ARRAY(byte_rows),
     .efficiency = 0.35, /* of products of bytes; its own are of FP16 */
     .state_size = sizeof(pooled_state),
     .accept = accept_bytes,
     .setup = pooled_setup,
     .run = pooled_run},
};

static const strata_extends pooled_convolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::PooledConvolution",
    .params_size = sizeof(strata_pooled_convolution),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&pooled_convolution};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::PooledConvolution", extends)
