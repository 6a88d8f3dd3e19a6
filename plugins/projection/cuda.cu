/* SPDX-License-Identifier: Apache-2.0
 *
 * Projection on CUDA, of few rows: MatrixMultiply's kernels, whose blocks find the
 * squares of A's rows on the way, and have columns of either half where they gate.
 */
#include "plugins/matrix_multiply/gemv_ring.cuh"

struct projection_state {
    gemv_state product;
    double *frequencies; /* angles of a head's pairs at position 1, if heads turn */
};

/* Of a node or a run: the product alone, whose second operand is no input. */
template <typename N>
static N product_of(const N *n)
{
    N product = *n;
    product.n_in = 1;
    return product;
}

static gemv_turn turn_of(const strata_run *r)
{
    const strata_projection *p = (const strata_projection *)r->params;
    const projection_state *s = (const projection_state *)r->state;
    const strata_tensor *y = &r->out[0];
    const strata_tensor *at = r->n_in > 1 && r->in[1].rank > 0 ? &r->in[1] : NULL;
    gemv_turn t = {};
    if (at) {
        t.positions = at->data;
        t.wide = at->dtype == STRATA_INT64;
        t.each = at->rank == 2;
    }
    t.length = (int32_t)y->dims[1];
    t.dim = (int32_t)(y->dims[2] / p->heads);
    t.turned = (int32_t)(p->turned ? p->turned * t.dim : y->dims[2]);
    t.interleaved = p->interleaved;
    t.frequencies = s->frequencies;
    return t;
}

static gemv_job job_of(const strata_run *r)
{
    const strata_projection *p = (const strata_projection *)r->params;
    const projection_state *s = (const projection_state *)r->state;
    const strata_run product = product_of(r);
    const strata_activation f = {p->kind, 0, p->alpha, p->beta};
    gemv_job g = {};
    g.j = matrix_job_of(&product, s->product.weight);
    g.j.alpha = 1;
    g.more.scale = r->weight[STRATA_PROJECTION_SCALE].rank > 0
                       ? (const float *)r->weight[STRATA_PROJECTION_SCALE].data
                       : NULL;
    g.more.epsilon = (float)p->epsilon;
    g.more.gate.kind = p->kind;
    g.more.gate.alpha = (float)strata_activation_alpha(&f);
    g.more.gate.beta = (float)strata_activation_beta(&f);
    if (p->heads > 0)
        g.more.turn = turn_of(r);
    return g;
}

template <class S>
static int launch(const strata_run *r, const gemv_job &g)
{
    const projection_state *s = (const projection_state *)r->state;
    if constexpr (S::Rows == 1)
        return ring_launch<S>(r, g, s->product, "projection");
    else
        return gemv_launch<S>(r, g, s->product.multiprocessors, s->product.overlaps,
                              "projection");
}

template <typename T, bool Normal, gemv_end End>
static int by_rows(const strata_run *r)
{
    const gemv_job g = job_of(r);
    return g.j.p.m == 1   ? launch<gemv_shape<T, 4, 1, Normal, End>>(r, g)
           : g.j.p.m == 2 ? launch<gemv_shape<T, 4, 2, Normal, End>>(r, g)
                          : launch<gemv_shape<T, 4, 4, Normal, End>>(r, g);
}

template <typename T, bool Normal>
static int by_end(const strata_run *r)
{
    const strata_projection *p = (const strata_projection *)r->params;
    return p->gated       ? by_rows<T, Normal, GEMV_GATED>(r)
           : p->heads > 0 ? by_rows<T, Normal, GEMV_TURNED>(r)
                          : by_rows<T, Normal, GEMV_PLAIN>(r);
}

template <typename T>
static int by_kind(const strata_run *r)
{
    const strata_projection *p = (const strata_projection *)r->params;
    return p->normalized ? by_end<T, true>(r) : by_end<T, false>(r);
}

static int projection_run(const strata_run *r)
{
    int status = STRATA_OK;
    layer_float(r->out[0].dtype, [&](auto t) { status = by_kind<decltype(t)>(r); });
    return status;
}

static int projection_accept(const strata_node *n)
{
    const strata_projection *p = (const strata_projection *)n->params;
    const int64_t width = n->out[0].dims[n->out[0].rank - 1];
    const strata_node product = product_of(n);
    const int status = gemv_takes(&product);
    if (status != STRATA_OK || p->heads == 0)
        return status;
    return width / p->heads % 4 == 0
               ? STRATA_OK
               : refuse(n, "it turns heads of a multiple of 4 elements");
}

static __global__ void frequencies_kernel(double *to, int32_t pairs, double base)
{
    const int32_t i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < pairs)
        to[i] = pow(base, -2.0 * i / (2 * pairs));
}

/* Once an engine: a power in FP64 takes longer than reading a small matrix. */
static int make_frequencies(const strata_node *n, projection_state *s)
{
    const strata_projection *p = (const strata_projection *)n->params;
    const strata_pack *host =
        n->host->extension ? (const strata_pack *)n->host->extension(STRATA_PACK_V1)
                           : NULL;
    const int64_t width = n->out[0].dims[n->out[0].rank - 1];
    const int32_t pairs = (int32_t)(width / p->heads / 2);
    void *memory = NULL;
    if (!host)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1
                           ", which this impl needs for its heads' frequencies");
    const int status = host->alloc(n, (size_t)pairs * sizeof(double), &memory);
    if (status != STRATA_OK)
        return status;
    s->frequencies = (double *)memory;
    frequencies_kernel<<<(unsigned)(pairs + THREADS - 1) / THREADS, THREADS, 0,
                         (cudaStream_t)n->stream>>>(s->frequencies, pairs, p->base);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "frequencies of heads: %s",
                                          cudaGetErrorString(e));
}

static int projection_setup(const strata_node *n, void *state)
{
    const strata_projection *p = (const strata_projection *)n->params;
    projection_state *s = (projection_state *)state;
    const int status = gemv_prepare(n, 1, &s->product);
    return status == STRATA_OK && p->heads > 0 ? make_frequencies(n, s) : status;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW,
                                    STRATA_I32_NCHW | STRATA_I64_NCHW},
                                   {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .name = "gemv",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.02,
     .state_size = sizeof(projection_state),
     .accept = projection_accept,
     .setup = projection_setup,
     .run = projection_run,
     .bandwidth = 0.9},
};

static const strata_extends projection = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Projection",
    .params_size = sizeof(strata_projection),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&projection};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Projection", extends)
