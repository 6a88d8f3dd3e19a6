/* SPDX-License-Identifier: Apache-2.0
 *
 * Unary: y = op(x), element by element, of floats in any format and of linear integers
 * and truths; may run in place.
 */
#include "plugins/unary/unary.h"

#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"

static int unary_shape(const strata_node *n)
{
    const strata_unary *p = n->params;
    n->out[0].rank = n->in[0].rank;
    memcpy(n->out[0].dims, n->in[0].dims, sizeof n->out[0].dims);
    if (unary_tests(p->op))
        n->out[0].dtype = STRATA_BOOL8;
    return unary_check(n);
}

static double unary_flops(const strata_node *n)
{
    const strata_unary *p = n->params;
    const int simple = unary_takes(p->op) != UNARY_FLOATS || p->op == STRATA_UNARY_SQRT ||
                       p->op == STRATA_UNARY_RECIPROCAL;
    return (simple ? 1.0 : 8.0) * (double)n->out[0].count;
}

static struct pointwise_constants unary_constants(const void *params)
{
    const strata_unary *p = params;
    return (struct pointwise_constants){.alpha = p->negative, .beta = p->positive};
}

static int unary_run(const strata_run *r)
{
    const strata_unary *p = r->params;
    const struct pointwise_constants k = unary_constants(p);
    pointwise_run_one(r, POINTWISE_UNARY + p->op, &k, &r->in[0]);
    return STRATA_OK;
}

static int unary_reference(const strata_node *n, const void *const *in,
                           const void *const *weight, void *const *out)
{
    const strata_unary *p = n->params;
    const struct pointwise_constants k = unary_constants(p);
    return pointwise_reference(n, in, weight, out, POINTWISE_UNARY + p->op, &k);
}

static const void *unary_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     unary_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "op",
     .type = STRATA_ENUM,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(strata_unary, op),
     .choices = "abs|neg|exp|log|sqrt|reciprocal|sign|floor|ceil|round|sin|cos|tan|asin|"
                "acos|atan|sinh|cosh|tanh|asinh|acosh|atanh|erf|not|bit_not|is_nan|"
                "is_inf",
     .doc = "operation"},
    {.name = "negative",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_unary, negative),
     .def = 1,
     .doc = "is_inf counts negative infinity"},
    {.name = "positive",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_unary, positive),
     .def = 1,
     .doc = "is_inf counts positive infinity"},
};

static const strata_row rows[] = {
    {{POINTWISE_FLOATS | STRATA_F64_NCHW | POINTWISE_INTEGERS | STRATA_BOOL_NCHW},
     {STRATA_SAME}},
    {{POINTWISE_LINEAR_FLOATS | STRATA_F64_NCHW | POINTWISE_INTEGERS},
     {STRATA_BOOL_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN |
              STRATA_PITCHED_OUT,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.2,
     .bandwidth = 0.65,
     .accept = unary_accept,
     .run = unary_run},
};

static const strata_layer unary = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Unary",
    .doc = "A mathematical function of each element",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_unary),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = unary_shape,
    .flops = unary_flops,
    .extension = unary_extension,
};

static const strata_layer *const layers[] = {&unary};
STRATA_MODULE("core", "1.0.0", "Unary", layers)
