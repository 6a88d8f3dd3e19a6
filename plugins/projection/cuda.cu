/* SPDX-License-Identifier: Apache-2.0
 *
 * Projection on CUDA, of few rows: MatrixMultiply's kernels, whose blocks find the
 * squares of A's rows on the way, and have columns of either half where they gate.
 */
#include "plugins/matrix_multiply/gemv.cuh"

static gemv_job job_of(const strata_run *r)
{
    const strata_projection *p = (const strata_projection *)r->params;
    const gemv_state *s = (const gemv_state *)r->state;
    const strata_activation f = {p->kind, 0, p->alpha, p->beta};
    gemv_job g = {};
    g.j = matrix_job_of(r, s->weight);
    g.j.alpha = 1;
    g.more.scale = r->weight[STRATA_PROJECTION_SCALE].rank > 0
                       ? (const float *)r->weight[STRATA_PROJECTION_SCALE].data
                       : NULL;
    g.more.epsilon = (float)p->epsilon;
    g.more.gate.kind = p->kind;
    g.more.gate.alpha = (float)strata_activation_alpha(&f);
    g.more.gate.beta = (float)strata_activation_beta(&f);
    return g;
}

template <class S>
static int launch(const strata_run *r, const gemv_job &g)
{
    const gemv_state *s = (const gemv_state *)r->state;
    return gemv_launch<S>(r, g, s->multiprocessors, s->overlaps, "projection");
}

template <typename T, bool Normal, bool Gated>
static int by_rows(const strata_run *r)
{
    const gemv_job g = job_of(r);
    return g.j.p.m == 1   ? launch<gemv_shape<T, 4, 1, Normal, Gated>>(r, g)
           : g.j.p.m == 2 ? launch<gemv_shape<T, 4, 2, Normal, Gated>>(r, g)
                          : launch<gemv_shape<T, 4, 4, Normal, Gated>>(r, g);
}

template <typename T>
static int by_kind(const strata_run *r)
{
    const strata_projection *p = (const strata_projection *)r->params;
    if (p->normalized)
        return p->gated ? by_rows<T, true, true>(r) : by_rows<T, true, false>(r);
    return p->gated ? by_rows<T, false, true>(r) : by_rows<T, false, false>(r);
}

static int projection_run(const strata_run *r)
{
    int status = STRATA_OK;
    layer_float(r->out[0].dtype, [&](auto t) { status = by_kind<decltype(t)>(r); });
    return status;
}

static int projection_setup(const strata_node *n, void *state)
{
    return gemv_prepare(n, (gemv_state *)state);
}

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .name = "gemv",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.02,
     .state_size = sizeof(gemv_state),
     .accept = gemv_takes,
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
