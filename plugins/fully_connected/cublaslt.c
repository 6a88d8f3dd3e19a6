/* SPDX-License-Identifier: Apache-2.0
 *
 * FullyConnected as one product: columns are images as they lie in memory, pad lanes and
 * all, which are zero in the input and have zero weights and bias in the output.
 */
#include "plugins/common/cublaslt/module.h"

#include "plugins/common/dense_weight.h"

struct state {
    struct cublaslt_plan plan;
    const void *weight;
};

static int describe(const strata_node *n, struct cublaslt_problem *p)
{
    int status = cublaslt_start(n, p);
    p->a_transposed = 1;
    p->m = p->ldd = dense_image_size(&n->out[0]);
    p->n = n->out[0].dims[0];
    p->k = p->lda = p->ldb = dense_image_size(&n->in[0]);
    return status;
}

static int setup_rank(const strata_node *n, void *state, int rank)
{
    const strata_fully_connected *params = n->params;
    struct state *s = state;
    struct cublaslt_problem p;
    void *weight = NULL, *bias = NULL;
    int status = describe(n, &p);
    if (status == STRATA_OK)
        status = dense_weight_pack(n, params->transposed, &weight);
    if (status == STRATA_OK && p.bias)
        status = dense_bias_pack(n, 1, p.m, &bias);
    s->weight = weight;
    return status == STRATA_OK ? cublaslt_plan(n, &p, rank, bias, &s->plan) : status;
}

static int run(const strata_run *r)
{
    const struct state *s = r->state;
    const strata_tensor *residual = r->epilogue->residual;
    return cublaslt_run(r, &s->plan, s->weight, r->in[0].data,
                        s->plan.addend ? residual->data : NULL, r->out[0].data);
}

CUBLASLT_RANK(0)
CUBLASLT_RANK(1)
CUBLASLT_RANK(2)
CUBLASLT_RANK(3)

static const strata_row rows[] = {
    {{STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NCHW |
      STRATA_BF16_NHWC | STRATA_BF16_NHWC8},
     {STRATA_SAME}}};

static const strata_impl impls[] = {
    CUBLASLT_IMPL(0, rows, struct state, run), CUBLASLT_IMPL(1, rows, struct state, run),
    CUBLASLT_IMPL(2, rows, struct state, run), CUBLASLT_IMPL(3, rows, struct state, run)};

const strata_extends cublaslt_fully_connected = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::FullyConnected",
    .params_size = sizeof(strata_fully_connected),
    .impls = STRATA_ARRAY(impls),
};
