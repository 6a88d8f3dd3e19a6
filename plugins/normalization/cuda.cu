/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalization on CUDA. Rows that lie in one piece of memory (layer, rms; lp, instance
 * and group of linear tensors) are held by a warp, a block or a cluster; longer ones, few
 * long ones and channels that lie side by side go in pieces.
 */
#include "kernels/counting.cuh"
#include "plugins/normalization/pieces.cuh"
#include "plugins/normalization/rows.cuh"

#define HELD_ROW (NORM_ROW_THREADS * NORM_HELD) /* elements a block holds */
#define FEW_ROWS 32                             /* too few for a block each */
#define MUCH_ROW 8192                           /* elements, to which that applies */
#define NORM_COUNTED 8192                       /* above it rows are handed out */

/* How a node's memory lies. */
struct norm_shape {
    bool in_rows;                 /* sets of elements are rows in one piece */
    int64_t rows, cols;           /* then */
    int64_t blocks, depth, lanes; /* else */
    int64_t padded, channels, groups;
};

static norm_shape norm_shape_of(const strata_normalization *p, const strata_tensor *x)
{
    norm_shape s = {};
    const bool lp = p->kind == STRATA_NORMALIZATION_LP;
    if (norm_by_rows(p) || lp) {
        const int32_t axis = norm_axis(p, x->rank);
        s.blocks = norm_span(x, 0, axis);
        s.depth = x->dims[axis];
        s.lanes = s.padded = s.channels = s.groups = norm_span(x, axis + 1, x->rank);
        s.in_rows = !lp || s.lanes == 1;
        s.rows = s.blocks;
        s.cols = s.depth * s.lanes;
        return s;
    }
    const int64_t plane = norm_span(x, 2, x->rank);
    s.channels = x->dims[1];
    s.groups = norm_groups(p, x);
    s.padded = (s.channels + x->vector - 1) / x->vector * x->vector;
    const bool last = x->rank == 2 || x->strides[x->rank - 1] == s.padded;
    s.lanes = last ? s.padded : x->vector;
    s.blocks = x->dims[0] * s.padded / s.lanes;
    s.depth = plane;
    s.in_rows = s.lanes == 1;
    s.rows = x->dims[0] * s.groups;
    s.cols = s.channels / s.groups * plane;
    return s;
}

static norm_job norm_job_of(const strata_run *r)
{
    const strata_normalization *p = (const strata_normalization *)r->params;
    const norm_shape s = norm_shape_of(p, &r->in[0]);
    const int at = norm_mean_output(p);
    norm_job job = {};
    job.y = r->out[0].data;
    job.sum = p->sum ? r->out[norm_sum_output(p)].data : NULL;
    job.x = r->in[0].data;
    job.residual = r->n_in > 1 && r->in[1].rank > 0 ? r->in[1].data : NULL;
    const float **weights[NORM_WEIGHTS] = {&job.scale, &job.bias, &job.means,
                                           &job.variances};
    for (int k = 0; k < NORM_WEIGHTS; k++)
        *weights[k] = r->weight[k].rank ? (const float *)r->weight[k].data : NULL;
    job.mean = at < 0 ? NULL : (float *)r->out[at].data;
    job.inverse = at < 0 ? NULL : (float *)r->out[at + 1].data;
    job.rows = s.rows;
    job.cols = s.cols;
    job.elements = (float)s.cols;
    job.measure = p->kind == STRATA_NORMALIZATION_RMS  ? NORM_SQUARES
                  : p->kind == STRATA_NORMALIZATION_LP ? NORM_POWERS
                                                       : NORM_CENTRED;
    job.power = (int32_t)p->p;
    job.epsilon = (float)p->epsilon;
    job.by_channel = !norm_by_rows(p) && p->kind != STRATA_NORMALIZATION_LP;
    job.batch = p->kind == STRATA_NORMALIZATION_BATCH;
    job.groups = s.groups;
    job.each = s.groups ? s.channels / s.groups : 1;
    job.plane = s.depth;
    job.activation = epilogue_of(r).activation;
    return job;
}

/* Elements of one access: as many as 16 bytes have, if rows or lanes begin at multiples.
 */
static int norm_width(const norm_shape &s, int32_t dtype)
{
    const int most = dtype == STRATA_FP32 ? 4 : 8;
    const int64_t run = s.in_rows ? s.cols : s.lanes;
    return run % most == 0 ? most : !s.in_rows && run % 2 == 0 ? 2 : 1;
}

static norm_pieces norm_pieces_of(const norm_shape &s, int width)
{
    norm_pieces m = s.in_rows ? norm_cut(s.rows, s.cols / width, width, width)
                              : norm_cut(s.blocks, s.depth, s.lanes, width);
    if (s.in_rows) {
        m.groups = 1;
        m.sets = s.rows;
        m.each = m.padded = m.channels = width;
    } else {
        m.padded = s.padded;
        m.channels = s.channels;
        m.groups = s.groups;
        m.each = s.channels / s.groups;
        m.sets = s.blocks * s.lanes / s.padded * s.groups;
    }
    return m;
}

/* Whether rows are held rather than cut; by a block at most without clusters. */
static bool norm_holds(const norm_shape &s, bool batch, bool clusters)
{
    const int64_t most = clusters ? (int64_t)NORM_CLUSTER * HELD_ROW : HELD_ROW;
    return s.in_rows && !batch && s.cols <= most &&
           (clusters || s.rows >= FEW_ROWS || s.cols < MUCH_ROW) && s.rows < 1 << 27;
}

static size_t norm_workspace(const strata_node *n)
{
    const strata_normalization *p = (const strata_normalization *)n->params;
    if (n->in[0].count == 0) /* run is not called */
        return 0;
    const norm_shape s = norm_shape_of(p, &n->in[0]);
    if (norm_holds(s, p->kind == STRATA_NORMALIZATION_BATCH, false))
        return 0;
    const int width = norm_width(s, n->in[0].dtype);
    return norm_pieces_memory(norm_pieces_of(s, width));
}

template <typename T, int N>
static void norm_launch(const strata_run *r)
{
    const norm_job job = norm_job_of(r);
    const norm_shape s =
        norm_shape_of((const strata_normalization *)r->params, &r->in[0]);
    if (N != 2 && norm_holds(s, job.batch, false)) {
        row_launch<T, N>(job, layer_stream(r));
        return;
    }
    norm_pieces m = norm_pieces_of(s, N);
    m.part = (float2 *)r->workspace;
    m.result = m.part + m.blocks * m.pieces * m.lanes;
    pieces_launch<T, N>(job, m, s.in_rows, layer_stream(r));
}

template <typename T>
static void norm_choose(const strata_run *r)
{
    const norm_shape s =
        norm_shape_of((const strata_normalization *)r->params, &r->in[0]);
    switch (norm_width(s, r->in[0].dtype)) {
    case 1:
        norm_launch<T, 1>(r);
        break;
    case 2:
        norm_launch<T, 2>(r);
        break;
    default:
        norm_launch<T, 16 / (int)sizeof(T)>(r);
        break;
    }
}

/* By the kernels that read memory once, where it lies as they want it. */
static bool norm_once(const strata_run *r)
{
    norm_job job = norm_job_of(r);
    job.counters = (uint32_t *)counting_of(r);
    const norm_shape s =
        norm_shape_of((const strata_normalization *)r->params, &r->in[0]);
    const int32_t dtype = r->in[0].dtype;
    if (s.in_rows)
        return norm_holds(s, job.batch, false) &&
               norm_ring(job, dtype, NORM_BLOCK, layer_stream(r));
    return job.by_channel && s.lanes == s.channels &&
           norm_slab_run(job, dtype, s.blocks, s.channels, layer_stream(r));
}

/* Of long rows alone, which long.cu hands out one by one. */
static int norm_ctx_open(const strata_node *n, const void *, void *ctx)
{
    const strata_normalization *p = (const strata_normalization *)n->params;
    const bool counted = n->in[0].count > 0 && n->in[0].dtype != STRATA_FP32 &&
                         p->kind == STRATA_NORMALIZATION_LAYER &&
                         norm_shape_of(p, &n->in[0]).cols > NORM_COUNTED;
    return counted ? counting_open(n, ctx, 2 * sizeof(uint32_t)) : STRATA_OK;
}

static int norm_run(const strata_run *r)
{
    if (norm_once(r))
        return layer_launched(r, "normalization");
    layer_float(r->in[0].dtype, [&](auto t) { norm_choose<decltype(t)>(r); });
    return layer_launched(r, "normalization");
}

static int norm_beside_open(const strata_node *n, const void *, void *ctx)
{
    return counting_open(n, ctx, 2 * sizeof(uint32_t));
}

static int norm_beside_run(const strata_run *r)
{
    norm_job job = norm_job_of(r);
    job.counters = (uint32_t *)counting_of(r);
    if (norm_ring(job, r->in[0].dtype, NORM_BESIDE, layer_stream(r)))
        return layer_launched(r, "normalization beside");
    return norm_run(r); /* tensors that do not begin at multiples of 16 bytes */
}

template <typename T>
static void norm_cluster(const strata_run *r)
{
    const norm_job job = norm_job_of(r);
    if (job.cols % (16 / (int)sizeof(T)) == 0)
        cluster_launch<T, 16 / (int)sizeof(T)>(job, layer_stream(r));
    else
        cluster_launch<T, 1>(job, layer_stream(r));
}

static int norm_cluster_run(const strata_run *r)
{
    if (norm_ring(norm_job_of(r), r->in[0].dtype, NORM_CLUSTERS, layer_stream(r)))
        return layer_launched(r, "normalization cluster");
    layer_float(r->in[0].dtype, [&](auto t) { norm_cluster<decltype(t)>(r); });
    return layer_launched(r, "normalization cluster");
}

/* ---- tables ------------------------------------------------------------------------ */

static int norm_accept(const strata_node *n)
{
    const strata_normalization *p = (const strata_normalization *)n->params;
    const bool linear = n->in[0].format & NORM_LINEAR;
    const bool lines = norm_by_rows(p) || p->kind == STRATA_NORMALIZATION_LP;
    if (lines && !linear)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "rows and lines take linear formats alone");
    if ((n->row == 1) != (p->statistics && !p->sum))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "another row has these outputs");
    if (n->in[0].count == 0)
        return STRATA_OK;
    const norm_shape s = norm_shape_of(p, &n->in[0]);
    const norm_pieces m = norm_pieces_of(s, norm_width(s, n->in[0].dtype));
    if (m.blocks * m.pieces * m.spans > 0x7fffffff)
        return STRATA_FAIL(
            n, STRATA_EUNSUPPORTED,
            "%lld rows or blocks of channels; a launch has at most 2^31 - 1",
            (long long)m.blocks);
    return STRATA_OK;
}

static int norm_cluster_accept(const strata_node *n)
{
    const strata_normalization *p = (const strata_normalization *)n->params;
    if (n->in[0].count == 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "an empty tensor needs no cluster");
    const norm_shape s = norm_shape_of(p, &n->in[0]);
    const bool batch = p->kind == STRATA_NORMALIZATION_BATCH;
    if (s.cols <= NORM_ROW_THREADS * NORM_HELD / 4 || !norm_holds(s, batch, true))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "rows of %lld elements; from %d to %d are for a cluster",
                           (long long)s.cols, HELD_ROW / 4 + 1, NORM_CLUSTER * HELD_ROW);
    return norm_accept(n);
}

static int norm_beside_refuse(const strata_node *n)
{
    const strata_normalization *p = (const strata_normalization *)n->params;
    if (n->in[0].count == 0 || !norm_by_rows(p))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "rows of layer or rms norm are for it");
    if (p->sum || (n->n_in > 1 && n->in[1].rank > 0))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "a second input; rows of one input are for it");
    if (p->kind == STRATA_NORMALIZATION_RMS && n->weight[NORM_BIAS].rank > 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "an rms norm with a bias; those without are for it");
    return STRATA_OK;
}

static int norm_beside_accept(const strata_node *n)
{
    const strata_normalization *p = (const strata_normalization *)n->params;
    const int status = norm_beside_refuse(n);
    if (status != STRATA_OK)
        return status;
    const bool centred = p->kind == STRATA_NORMALIZATION_LAYER;
    const norm_shape s = norm_shape_of(p, &n->in[0]);
    const int64_t least = norm_beside_rows(n->in[0].dtype, centred, s.cols);
    if (!least)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "rows of %lld elements; multiples of 8 halves from 4096 to "
                           "%d, or of 4 floats from 4096 to %d, are for it",
                           (long long)s.cols, centred ? 10752 : 16384,
                           centred ? 7680 : 16384);
    if (s.rows < least)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld rows of %lld elements; %lld or more are for it",
                           (long long)s.rows, (long long)s.cols, (long long)least);
    return norm_accept(n);
}

static const strata_row rows[] = {
    {{CUDA_FLOATS, STRATA_SAME}, {STRATA_SAME, STRATA_SAME, STRATA_F32_NCHW}, {0}, {0}},
    {{CUDA_FLOATS, STRATA_SAME}, {STRATA_SAME, STRATA_F32_NCHW}, {0}, {0}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .epilogues = STRATA_EPILOGUE_ACTIVATION,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .ctx_size = sizeof(counting_context),
     .accept = norm_accept,
     .workspace = norm_workspace,
     .ctx_open = norm_ctx_open,
     .ctx_close = counting_close,
     .run = norm_run,
     .bandwidth = 0.9},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .min_sm = 90,
     .epilogues = STRATA_EPILOGUE_ACTIVATION,
     .name = "cluster",
     .rows = STRATA_ARRAY(rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .accept = norm_cluster_accept,
     .run = norm_cluster_run,
     .bandwidth = 0.85},
    {.id = 3,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .min_sm = 90,
     .name = "beside",
     .rows = STRATA_ARRAY(rows),
     .ctx_size = sizeof(counting_context),
     .accept = norm_beside_accept,
     .workspace = norm_workspace,
     .ctx_open = norm_beside_open,
     .ctx_close = counting_close,
     .run = norm_beside_run,
     .bandwidth = 0.95},
};

static const strata_extends normalization = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Normalization",
    .params_size = sizeof(strata_normalization),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&normalization};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Normalization", extends)
