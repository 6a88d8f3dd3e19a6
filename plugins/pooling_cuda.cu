/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling on CUDA: one kernel for windows in every layout, others for whole planes.
 */
#include "plugins/pooling_whole.cuh"

static int pooling_setup(const strata_node *n, void *state)
{
    const strata_pooling *p = (const strata_pooling *)n->params;
    pooling *pool = (pooling *)state;
    pool->kind = p->kind;
    pool->count_include_pad = p->count_include_pad;
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

template <typename T>
static void pooling_launch(const strata_run *r)
{
    const pooling *pool = (const pooling *)r->state;
    if (!whole_fits(r, &pool->w))
        pool_windows<T>(r);
    else if (pool->kind == STRATA_POOL_MAX)
        whole_planes_of<T, true>(r);
    else
        whole_planes_of<T, false>(r);
}

static int pooling_run(const strata_run *r)
{
    r->out[0].dtype == STRATA_FP16 ? pooling_launch<__half>(r) : pooling_launch<float>(r);
    return layer_launched(r, "pooling");
}

static const strata_row rows[] = {{{CUDA_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .state_size = sizeof(pooling),
     .workspace = pooling_workspace,
     .setup = pooling_setup,
     .run = pooling_run},
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
