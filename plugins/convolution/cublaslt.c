/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution with a window of one pixel as a product. Channels last: pixels are columns
 * of all their channels; a stride leaves out columns, rows of pixels are then a batch.
 * Linear: an image is a column a channel, images are a batch, and the bias, which would
 * be one of columns, is a matrix added to the product. Inside a larger tensor columns, or
 * images, are as far apart as the larger one's.
 */
#include "plugins/common/cublaslt/module.h"

#include "plugins/common/dense_weight.h"
#include "plugins/common/window.h"

#define LINEAR (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW)

struct state {
    struct cublaslt_plan plan;
    const void *weight;
    const void *bias; /* as an addend, or NULL */
    int32_t linear;
};

static int is_linear(const strata_node *n)
{
    return (n->in[0].format & LINEAR) != 0;
}

/* The bias of a linear image is what is added. */
static int adds_bias(const strata_node *n)
{
    return is_linear(n) && n->weight[1].rank > 0;
}

static int check_window(const strata_node *n, struct window *w)
{
    const strata_convolution *params = n->params;
    int status =
        window_of_convolution(w, params, &n->in[0], &n->weight[0], n->host, n->err);
    int pointwise = params->groups == 1 && window_kernel_count(w) == 1;
    for (int d = 0; d < WINDOW_DIMS && status == STRATA_OK; d++)
        pointwise &= w->begin[d] == 0 && w->end[d] == 0;
    if (status != STRATA_OK || pointwise)
        return status;
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                       "computes windows of one pixel without pads or groups only");
}

static void describe_linear(const strata_node *n, const struct window *w,
                            struct cublaslt_problem *p)
{
    p->m = p->lda = p->ldd = window_out_count(w);
    p->n = n->out[0].dims[1];
    p->k = p->ldb = n->in[0].dims[1];
    p->batch = n->out[0].dims[0];
    p->a_stride = n->in[0].strides[0];
    p->d_stride = n->out[0].strides[0];
    p->c_stride = p->addend      ? n->epilogue->residual->strides[0]
                  : adds_bias(n) ? 0
                                 : p->m * p->n;
    p->pitched = p->a_stride != p->m * p->k || p->d_stride != p->m * p->n ||
                 (p->addend && p->c_stride != p->m * p->n);
    p->addend |= adds_bias(n);
    p->bias = 0;
}

/* From a pixel to the next. */
static int64_t pitch_of(const strata_tensor *t)
{
    return t->strides[t->rank - 1];
}

static void describe_last(const strata_node *n, struct cublaslt_problem *p)
{
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    p->a_transposed = 1;
    p->m = dense_channels(y);
    p->k = p->lda = dense_channels(x);
    p->n = y->dims[1] ? y->count / y->dims[1] : 0;
    p->ldb = pitch_of(x);
    p->ldd = pitch_of(y);
    p->ldc = p->addend ? pitch_of(n->epilogue->residual) : 0;
    p->pitched = p->ldb != p->k || p->ldd != p->m || (p->addend && p->ldc != p->m);
}

/* Rows of a strided view are a batch if they are evenly spaced over images too. */
static int describe_strided(const strata_node *n, const struct window *w,
                            struct cublaslt_problem *p)
{
    const int last = WINDOW_DIMS - 1;
    int even = w->in[last - 1] == w->out[last - 1] * w->stride[last - 1] ||
               n->out[0].dims[0] == 1;
    for (int d = 0; d < last - 1; d++)
        even &= w->out[d] == 1 && w->in[d] == 1;
    if (!even)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "rows of pixels at this stride are not evenly spaced");
    p->n = w->out[last];
    p->batch = n->out[0].dims[0] * w->out[last - 1];
    p->b_stride = p->ldb * w->in[last] * w->stride[last - 1];
    p->ldb *= w->stride[last];
    p->d_stride = p->ldd * p->n;
    p->c_stride = (p->addend ? p->ldc : p->m) * p->n;
    return STRATA_OK;
}

static int describe(const strata_node *n, struct cublaslt_problem *p)
{
    struct window w;
    int strided = 0, status = cublaslt_start(n, p);
    if (status == STRATA_OK)
        status = check_window(n, &w);
    if (status != STRATA_OK)
        return status;
    for (int d = 0; d < WINDOW_DIMS; d++)
        strided |= w.out[d] != w.in[d];
    if (is_linear(n) && (strided || (p->addend && adds_bias(n))))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           strided ? "a linear image is not a matrix at this stride"
                                   : "a linear image takes bias or residual, not both");
    if (is_linear(n)) {
        describe_linear(n, &w, p);
        return STRATA_OK;
    }
    describe_last(n, p);
    return strided ? describe_strided(n, &w, p) : STRATA_OK;
}

static int setup_rank(const strata_node *n, void *state, int rank)
{
    struct state *s = state;
    struct cublaslt_problem p;
    void *weight = NULL, *bias = NULL;
    int status = describe(n, &p);
    if (status == STRATA_OK)
        status = dense_channels_pack(n, &weight);
    if (status == STRATA_OK && adds_bias(n))
        status = dense_bias_pack(n, p.m, p.m * p.n, &bias);
    else if (status == STRATA_OK && p.bias)
        status = dense_bias_pack(n, 1, p.m, &bias);
    s->weight = weight;
    s->linear = is_linear(n);
    s->bias = adds_bias(n) ? bias : NULL;
    return status == STRATA_OK ? cublaslt_plan(n, &p, rank, bias, &s->plan) : status;
}

static int run(const strata_run *r)
{
    const struct state *s = r->state;
    const strata_epilogue *e = r->epilogue;
    const void *x = r->in[0].data, *residual = NULL;
    if (e->flags & STRATA_EPILOGUE_RESIDUAL)
        residual = e->residual->data;
    return cublaslt_run(r, &s->plan, s->linear ? x : s->weight, s->linear ? s->weight : x,
                        s->bias ? s->bias : residual, r->out[0].data);
}

CUBLASLT_RANK(0)
CUBLASLT_RANK(1)
CUBLASLT_RANK(2)
CUBLASLT_RANK(3)

static const strata_row rows[] = {{{STRATA_F16_NHWC8 | STRATA_F16_NHWC | STRATA_F32_NHWC |
                                    STRATA_BF16_NHWC8 | STRATA_BF16_NHWC | LINEAR},
                                   {STRATA_SAME}}};

#define IMPL(R)                                                                          \
    CUBLASLT_FLAGGED_IMPL(, 1, R, rows, struct state, run,                               \
                          STRATA_PITCHED_IN | STRATA_PITCHED_OUT |                       \
                              STRATA_PITCHED_RESIDUAL)
static const strata_impl impls[] = {IMPL(0), IMPL(1), IMPL(2), IMPL(3)};

const strata_extends cublaslt_convolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Convolution",
    .params_size = sizeof(strata_convolution),
    .impls = STRATA_ARRAY(impls),
};
