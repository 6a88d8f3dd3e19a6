/* SPDX-License-Identifier: Apache-2.0
 *
 * ElementWise: y = a op b, element by element in any float format, dims of 1 stretched.
 * Sum, product, max and min take more inputs, from left to right, rounded once at the
 * end. May run in place of the first input.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/common/walk.h"

#define MAX_INPUTS 8

static int elementwise_broadcast(const strata_node *n, int32_t k)
{
    const strata_tensor *in = &n->in[k];
    strata_tensor *out = &n->out[0];
    if (in->rank != out->rank)
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "input %d has rank %d, input 0 has rank %d; give both the same "
            "rank (dims of 1 stretch)",
            k, (int)in->rank, (int)out->rank);
    for (int32_t d = 0; d < in->rank; d++) {
        if (in->dims[d] != out->dims[d] && in->dims[d] != 1 && out->dims[d] != 1)
            return STRATA_FAIL(
                n, STRATA_EINVAL,
                "dim %d of input %d is %lld, before it %lld; equal dims or "
                "1 are needed",
                d, k, (long long)in->dims[d], (long long)out->dims[d]);
        if (out->dims[d] == 1)
            out->dims[d] = in->dims[d];
    }
    return STRATA_OK;
}

static int elementwise_shape(const strata_node *n)
{
    const strata_elementwise *p = n->params;
    strata_tensor *out = &n->out[0];
    if (n->n_in > 2 &&
        (p->op == STRATA_SUB || p->op == STRATA_DIV || p->op == STRATA_POW))
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "%d inputs; sub, div and pow take two (sum, product, max and min "
            "up to %d)",
            (int)n->n_in, MAX_INPUTS);
    out->rank = n->in[0].rank;
    memcpy(out->dims, n->in[0].dims, sizeof out->dims);
    for (int32_t k = 1; k < n->n_in; k++) {
        int status = elementwise_broadcast(n, k);
        if (status)
            return status;
    }
    return STRATA_OK;
}

static double elementwise_flops(const strata_node *n)
{
    return (double)(n->n_in - 1) * (double)n->out[0].count;
}

static size_t elementwise_workspace(const strata_node *n)
{
    return walk_memory(n->n_in + 1, n->out[0].dims, n->out[0].rank);
}

#define EACH(expression)                                                                 \
    for (int64_t i = 0; i < n; i++)                                                      \
        y[i] = (expression);                                                             \
    break

/* y may be a. A NaN of either is the larger and the smaller one. */
static void elementwise_combine(int32_t op, float *y, const float *a, const float *b,
                                int64_t n)
{
    switch (op) {
    case STRATA_SUM: EACH(a[i] + b[i]);
    case STRATA_SUB: EACH(a[i] - b[i]);
    case STRATA_PRODUCT: EACH(a[i] * b[i]);
    case STRATA_DIV: EACH(a[i] / b[i]);
    case STRATA_MAX: EACH(a[i] > b[i] || a[i] != a[i] ? a[i] : b[i]);
    case STRATA_MIN: EACH(a[i] < b[i] || a[i] != a[i] ? a[i] : b[i]);
    default: EACH(powf(a[i], b[i]));
    }
}

/* at: offset of the first element in each operand; operand 0 is y. The result of more
 * than two inputs is gathered in a buffer, as a later input may be y's memory too. */
static void elementwise_piece(const strata_run *r, const int64_t *step, const int64_t *at,
                              int64_t n)
{
    const strata_elementwise *p = r->params;
    float left[WALK_ROW], right[WALK_ROW], result[WALK_ROW];
    const float *a = walk_load(&r->in[0], at[1], step[1], n, left);
    float *y = r->n_in == 2 ? walk_target(&r->out[0], at[0], step[0], result) : result;
    for (int32_t k = 1; k < r->n_in; k++) {
        const float *b = walk_load(&r->in[k], at[k + 1], step[k + 1], n, right);
        elementwise_combine(p->op, y, a, b, n);
        a = y;
    }
    walk_stored(&r->out[0], at[0], step[0], y, result, n);
}

static void elementwise_row(const void *arg, const struct walk *w, const int64_t *base,
                            int64_t n)
{
    const struct walk_axis *inner = walk_inner(w);
    for (int64_t i = 0; i < inner->n; i++)
        for (int64_t j = 0; j < n; j += WALK_ROW) {
            int64_t at[MAX_INPUTS + 1];
            for (int k = 0; k < w->operands; k++)
                at[k] = base[k] + inner->at[k][i * inner->every] + j * w->step[k];
            elementwise_piece(arg, w->step, at, n - j < WALK_ROW ? n - j : WALK_ROW);
        }
}

static int elementwise_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    struct walk w;
    walk_over(&w, r->n_in + 1, y, y->dims, r->workspace);
    walk_map_all(&w, 0, y);
    for (int32_t k = 0; k < r->n_in; k++)
        walk_map_all(&w, k + 1, &r->in[k]);
    walk_run(&w, elementwise_row, r);
    walk_clear_pads(y);
    return STRATA_OK;
}

static double elementwise_exact(int32_t op, double a, double b)
{
    switch (op) {
    case STRATA_SUM: return a + b;
    case STRATA_SUB: return a - b;
    case STRATA_PRODUCT: return a * b;
    case STRATA_DIV: return a / b;
    case STRATA_MAX: return a > b || isnan(a) ? a : b;
    case STRATA_MIN: return a < b || isnan(a) ? a : b;
    default: return pow(a, b);
    }
}

static int elementwise_reference(const strata_node *n, const double *const *in,
                                 const double *const *weight, double *const *out)
{
    const strata_elementwise *p = n->params;
    int64_t count = dense_count(&n->out[0]), index[STRATA_MAX_RANK];
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        dense_index(&n->out[0], i, index);
        double y = in[0][dense_broadcast(&n->in[0], index)];
        for (int32_t k = 1; k < n->n_in; k++)
            y = elementwise_exact(p->op, y, in[k][dense_broadcast(&n->in[k], index)]);
        out[0][i] = y;
    }
    return STRATA_OK;
}

static const void *elementwise_extension(const char *id)
{
    static const strata_reference reference = {sizeof reference, 0,
                                               elementwise_reference};
    return dense_extension(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "op",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_elementwise, op),
     .def = STRATA_SUM,
     .choices = "sum|sub|product|div|max|min|pow",
     .doc = "operation"},
};

static const strata_row rows[] = {{{WALK_FLOATS, STRATA_SAME}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.16,
     .bandwidth = 0.65,
     .workspace = elementwise_workspace,
     .run = elementwise_run},
};

static const strata_layer elementwise = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "ElementWise",
    .doc = "Arithmetic on elements of two or more tensors, with broadcasting",
    .min_in = 2,
    .max_in = MAX_INPUTS,
    .n_out = 1,
    .params_size = sizeof(strata_elementwise),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = elementwise_shape,
    .flops = elementwise_flops,
    .extension = elementwise_extension,
};

static const strata_layer *const layers[] = {&elementwise};
STRATA_MODULE("core", "1.0.0", "ElementWise", layers)
