/* SPDX-License-Identifier: Apache-2.0
 *
 * SelfAttention: rows times a constant matrix are queries, keys and values of an
 * Attention. A plan makes it of a MatrixMultiply and the Attention that alone reads it;
 * impls write nothing between the two.
 */
#include "plugins/self_attention/self_attention.h"

#include <math.h>
#include <stdlib.h>

#include "plugins/attention/layer.h"
#include "plugins/common/dense.h"
#include "plugins/common/element.h"

enum { B = STRATA_SELF_ATTENTION_B, BIAS = STRATA_SELF_ATTENTION_BIAS };

/* ---- shapes ---------------------------------------------------------------------- */

static int self_attention_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_self_attention *p = n->params;
    strata_tensor product = {0};
    const int status = self_attention_product(n, &product);
    if (status != STRATA_OK)
        return status;
    expected[B].rank = 2;
    expected[B].dims[p->product.transpose_b ? 1 : 0] = n->in[0].dims[2];
    expected[B].dims[p->product.transpose_b ? 0 : 1] = product.dims[2];
    expected[BIAS].rank = 1;
    expected[BIAS].dims[0] = product.dims[2];
    return STRATA_OK;
}

static int self_attention_shape(const strata_node *n)
{
    const strata_self_attention *params = n->params;
    strata_node shapeless = *n;
    struct attention_plan p;
    shapeless.n_out = 0; /* the output has no shape yet */
    const int status = params->attention.heads > 0
                           ? self_attention_plan(&p, &shapeless)
                           : STRATA_FAIL(n, STRATA_EINVAL, "give heads = N");
    if (status != STRATA_OK)
        return status;
    n->out[0].rank = 3;
    n->out[0].dims[0] = p.batch;
    n->out[0].dims[1] = p.length;
    n->out[0].dims[2] = p.heads * p.v_dim;
    return STRATA_OK;
}

static double self_attention_flops(const strata_node *n)
{
    strata_tensor product = {0};
    struct attention_plan p;
    if (self_attention_product(n, &product) != STRATA_OK ||
        self_attention_plan(&p, n) != STRATA_OK)
        return 0;
    const double rows = (double)(p.batch * p.length);
    return 2 * rows * (double)n->in[0].dims[2] * (double)product.dims[2] +
           4 * rows * (double)p.heads * (double)p.keys * (double)p.dim *
               (p.causal ? 0.5 : 1);
}

/* ---- plain C --------------------------------------------------------------------- */

struct job {
    const strata_self_attention *params;
    struct attention_plan plan;
    const float *x, *b, *bias; /* x: its rows in FP32 */
    float *product;            /* queries, keys and values of all rows */
    float *scratch;            /* of each head of a sequence: scores, then an output */
    const strata_tensor *y;
    int64_t rows, depth, units;
};

static int64_t scratch_each(const struct attention_plan *p)
{
    return p->keys + p->dim;
}

static size_t self_attention_workspace(const strata_node *n)
{
    strata_tensor product = {0};
    struct attention_plan p;
    if (self_attention_product(n, &product) != STRATA_OK ||
        self_attention_plan(&p, n) != STRATA_OK)
        return 0;
    int64_t count, rows = n->in[0].dims[0] * n->in[0].dims[1];
    size_t bytes;
    return __builtin_mul_overflow(rows, n->in[0].dims[2] + product.dims[2], &count) ||
                   __builtin_add_overflow(count, p.batch * p.heads * scratch_each(&p),
                                          &count) ||
                   __builtin_mul_overflow((size_t)count, sizeof(float), &bytes)
               ? SIZE_MAX
               : bytes;
}

static void multiply_row(const struct job *j, int64_t row)
{
    const float *x = j->x + row * j->depth;
    float *y = j->product + row * j->units;
    for (int64_t i = 0; i < j->units; i++)
        y[i] = j->bias ? j->bias[i] : 0;
    if (j->params->product.transpose_b)
        for (int64_t i = 0; i < j->units; i++) {
            const float *b = j->b + i * j->depth;
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t k = 0; k < j->depth; k++)
                sum += x[k] * b[k];
            y[i] += sum;
        }
    else
        for (int64_t k = 0; k < j->depth; k++)
            for (int64_t i = 0; i < j->units; i++)
                y[i] += x[k] * j->b[k * j->units + i];
}

static const float *head_row(const struct job *j, const struct attention_view *v,
                             int64_t b, int64_t h, int64_t i)
{
    return j->product + v->begin + b * v->batch + h * v->head + i * v->row;
}

/* Scores of keys [begin, end) to exponentials, and what these add up to. */
static float soften(const struct job *j, int64_t b, int64_t h, int64_t i, float *score,
                    int64_t begin, int64_t end)
{
    const struct attention_plan *p = &j->plan;
    const float *q = head_row(j, &p->q, b, h, i);
    float most = -INFINITY, sum = 0;
    for (int64_t k = begin; k < end; k++) {
        const float *key = head_row(j, &p->k, b, h / p->group, k);
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int64_t d = 0; d < p->dim; d++)
            s += q[d] * key[d];
        s *= (float)p->scale;
        if (p->softcap > 0)
            s = (float)p->softcap * tanhf(s / (float)p->softcap);
        score[k] = s;
        most = s > most || isnan(s) ? s : most;
    }
    for (int64_t k = begin; k < end; k++) {
        score[k] = expf(score[k] - most);
        sum += score[k];
    }
    return sum;
}

/* A head of a sequence. */
static void attend(const struct job *j, int64_t b, int64_t h)
{
    const struct attention_plan *p = &j->plan;
    const struct attention_reach reach = attention_reach_of(p, 0);
    float *score = j->scratch + (b * p->heads + h) * scratch_each(p);
    float *out = score + p->keys;
    for (int64_t i = 0; i < p->length; i++) {
        int64_t begin, end;
        attention_bounds(p, &reach, i, &begin, &end);
        const float sum = soften(j, b, h, i, score, begin, end);
        for (int64_t d = 0; d < p->dim; d++)
            out[d] = 0;
        for (int64_t k = begin; k < end; k++) {
            const float *value = head_row(j, &p->v, b, h / p->group, k);
            for (int64_t d = 0; d < p->dim; d++)
                out[d] += score[k] * value[d];
        }
        for (int64_t d = 0; d < p->dim && begin < end; d++)
            out[d] /= sum;
        element_store_row(j->y->data, j->y->dtype,
                          (b * p->length + i) * p->heads * p->dim + h * p->dim, 1, out,
                          p->dim);
    }
}

static int self_attention_run(const strata_run *r)
{
    const strata_tensor *in = &r->in[0];
    struct job j = {.params = r->params, .b = r->weight[B].data, .y = &r->out[0]};
    float *x = r->workspace;
    const int status = self_attention_plan_run(&j.plan, r);
    if (status != STRATA_OK)
        return status;
    j.bias = r->weight[BIAS].rank > 0 ? r->weight[BIAS].data : NULL;
    j.rows = in->dims[0] * in->dims[1];
    j.depth = in->dims[2];
    j.units = (j.plan.heads + 2 * j.plan.kv_heads) * j.plan.dim;
    j.x = x;
    j.product = x + j.rows * j.depth;
    j.scratch = j.product + j.rows * j.units;
    for (int64_t row = 0; row < j.rows; row++)
        element_load_row(x + row * j.depth, in->data, in->dtype, row * j.depth, 1,
                         j.depth);
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < j.rows; row++)
        multiply_row(&j, row);
    const int64_t tasks = j.plan.batch * j.plan.heads;
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < tasks; task++)
        attend(&j, task / j.plan.heads, task % j.plan.heads);
    return STRATA_OK;
}

/* ---- the definition -------------------------------------------------------------- */

/* A row of the product, whichever way b lies along its own rows. */
static void reference_row(const strata_node *n, const double *x, const double *b,
                          const double *bias, int64_t units, double *y)
{
    const strata_self_attention *p = n->params;
    const int64_t depth = n->in[0].dims[2];
    for (int64_t i = 0; i < units; i++)
        y[i] = bias ? bias[i] : 0;
    if (p->product.transpose_b)
        for (int64_t i = 0; i < units; i++)
            for (int64_t k = 0; k < depth; k++)
                y[i] += x[k] * b[i * depth + k];
    else
        for (int64_t k = 0; k < depth; k++)
            for (int64_t i = 0; i < units; i++)
                y[i] += x[k] * b[k * units + i];
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    strata_tensor product = {0};
    int status = self_attention_product(n, &product);
    if (status != STRATA_OK)
        return status;
    const strata_node behind = self_attention_behind(n, &product);
    const int64_t count = dense_count(&product);
    double *values = malloc((size_t)(count ? count : 1) * sizeof *values);
    if (!values)
        return STRATA_FAIL(n, STRATA_ENOMEM, "no memory for %lld values",
                           (long long)count);
    const void *inputs[] = {values};
    for (int64_t row = 0; row < n->in[0].dims[0] * n->in[0].dims[1]; row++)
        reference_row(n, (const double *)in[0] + row * n->in[0].dims[2], weight[B],
                      n->weight[BIAS].rank > 0 ? weight[BIAS] : NULL, product.dims[2],
                      values + row * product.dims[2]);
    dense_hold(n, values, count);
    status = attention_reference_run(&behind, inputs, NULL, out);
    free(values);
    return status;
}

static const void *self_attention_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_HELD_WITHIN,
                                                     reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables ---------------------------------------------------------------------- */

#define LONGEST 9007199254740992.0 /* 2^53 */
#define OF(field) offsetof(strata_self_attention, field)

static const strata_attr attrs[] = {
    {.name = "units",
     .type = STRATA_I64,
     .offset = OF(product.units),
     .max = 1e15,
     .doc = "columns of the product; 0: from the weight"},
    {.name = "transpose_b",
     .type = STRATA_BOOL,
     .offset = OF(product.transpose_b),
     .doc = "b is units x depth instead of depth x units"},
    {.name = "heads",
     .type = STRATA_I64,
     .offset = OF(attention.heads),
     .max = 1 << 24,
     .doc = "of the queries; needed"},
    {.name = "kv_heads",
     .type = STRATA_I64,
     .offset = OF(attention.kv_heads),
     .max = 1 << 24,
     .doc = "of the keys and of the values; 0: as many as of the queries"},
    {.name = "scale",
     .type = STRATA_F64,
     .offset = OF(attention.scale),
     .doc = "as in Attention; 0: 1/sqrt(elements of a head)"},
    {.name = "softcap",
     .type = STRATA_F64,
     .offset = OF(attention.softcap),
     .max = LONGEST,
     .doc = "as in Attention; 0: none"},
    {.name = "window_left",
     .type = STRATA_I64,
     .offset = OF(attention.window_left),
     .def = -1,
     .min = -1,
     .max = LONGEST,
     .doc = "as in Attention; -1: all"},
    {.name = "window_right",
     .type = STRATA_I64,
     .offset = OF(attention.window_right),
     .def = -1,
     .min = -1,
     .max = LONGEST,
     .doc = "as in Attention; -1: all"},
    {.name = "causal",
     .type = STRATA_BOOL,
     .offset = OF(attention.causal),
     .doc = "a query sees no key behind its own place"},
};

static const strata_weight weights[] = {
    {.name = "b",
     .rank = 2,
     .flags = STRATA_REQUIRED,
     .doc = "depth x units, or units x depth"},
    {.name = "bias", .rank = 1, .doc = "one a unit"},
};

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.05,
     .bandwidth = 0.1,
     .workspace = self_attention_workspace,
     .run = self_attention_run},
};

static const strata_layer self_attention = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "SelfAttention",
    .doc = "Attention of queries, keys and values that are a product by a constant.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_self_attention),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = self_attention_shape,
    .weight_shape = self_attention_weight_shape,
    .flops = self_attention_flops,
    .extension = self_attention_extension,
};

static const strata_layer *const layers[] = {&self_attention};
STRATA_MODULE("core", "1.0.0", "SelfAttention", layers)
