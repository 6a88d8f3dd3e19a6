/* SPDX-License-Identifier: Apache-2.0
 *
 * ElementWise: y = a op b, element by element, with broadcasting: floats in any format,
 * linear integers and truths. Sum, product, max, min and mean take more inputs, from left
 * to right, rounded once at the end. May run in place of the first input.
 */
#include "plugins/elementwise/elementwise.h"

#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"

static int takes_many(int32_t op)
{
    return op == STRATA_SUM || op == STRATA_PRODUCT || op == STRATA_MAX ||
           op == STRATA_MIN || op == STRATA_MEAN;
}

static int elementwise_shape(const strata_node *n)
{
    const strata_elementwise *p = n->params;
    if (n->n_in > 2 && !takes_many(p->op))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%d inputs; this op takes two (sum, product, max, min and "
                           "mean up to %d)",
                           (int)n->n_in, ELEMENTWISE_INPUTS);
    int status = elementwise_check(n);
    return status ? status : pointwise_shape(n);
}

static double elementwise_flops(const strata_node *n)
{
    return (double)(n->n_in - 1) * (double)n->out[0].count;
}

static int elementwise_accept(const strata_node *n)
{
    int status = elementwise_check(n);
    return status ? status : pointwise_accept(n);
}

/* A power of two classes is computed in one that holds both. */
static const struct pointwise_class *elementwise_values(const strata_run *r)
{
    const struct pointwise_class *a = pointwise_class_of(r->in[0].dtype);
    const struct pointwise_class *b = pointwise_class_of(r->in[1].dtype);
    const int floats = dense_is_real(r->in[0].dtype) || dense_is_real(r->in[1].dtype);
    return a == b ? a : floats ? &pointwise_double : &pointwise_int64;
}

static int elementwise_run(const strata_run *r)
{
    const strata_elementwise *p = r->params;
    const struct pointwise_constants k = elementwise_constants(r->in[0].dtype);
    const int op = elementwise_operation(p);
    const uint8_t partial = POINTWISE_INPUTS;
    struct pointwise_pass pass = {.values = elementwise_values(r), .out = &r->out[0]};
    for (int32_t i = 0; i < r->n_in; i++)
        pass.in[pass.n_in++] = &r->in[i];
    for (int32_t i = 1; i < r->n_in; i++) {
        const uint8_t left = i > 1 ? partial : 0;
        pass.step[pass.n_steps++] =
            (struct pointwise_step){op, partial, left, (uint8_t)i, 0, k};
    }
    if (p->op == STRATA_MEAN)
        pass.step[pass.n_steps++] = (struct pointwise_step){
            POINTWISE_AFFINE, 0, partial, 0, 0, {.alpha = 1.0 / r->n_in}};
    pass.step[pass.n_steps - 1].to = POINTWISE_RESULT;
    pointwise_pass_run(&pass);
    return STRATA_OK;
}

static int elementwise_reference(const strata_node *n, const void *const *in,
                                 const void *const *weight, void *const *out)
{
    const strata_elementwise *p = n->params;
    const struct pointwise_constants k = elementwise_constants(n->in[0].dtype);
    const int64_t count = dense_count(&n->out[0]);
    int status = pointwise_reference(n, in, weight, out, elementwise_operation(p), &k);
    for (int64_t i = 0; p->op == STRATA_MEAN && i < count; i++)
        ((double *)out[0])[i] /= n->n_in;
    return status;
}

static const void *elementwise_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     elementwise_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "op",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_elementwise, op),
     .def = STRATA_SUM,
     .choices = "sum|sub|product|div|max|min|pow|mod|and|or|xor|bit_and|bit_or|bit_xor|"
                "shift_left|shift_right|mean",
     .doc = "operation"},
    {.name = "fmod",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_elementwise, fmod),
     .doc = "mod has the sign of the dividend, as in C, not of the divisor"},
};

#define BASES (POINTWISE_LINEAR_FLOATS | STRATA_F64_NCHW)
static const strata_row rows[] = {
    {{POINTWISE_FLOATS | STRATA_F64_NCHW | POINTWISE_INTEGERS | STRATA_BOOL_NCHW,
      STRATA_SAME},
     {STRATA_SAME}},
    /* Powers of two dtypes. */
    {{BASES, POINTWISE_INTEGERS}, {STRATA_SAME}},
    {{POINTWISE_INTEGERS, BASES}, {STRATA_SAME}},
    {{STRATA_I32_NCHW, STRATA_I64_NCHW}, {STRATA_SAME}},
    {{STRATA_I64_NCHW, STRATA_I32_NCHW}, {STRATA_SAME}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN |
              STRATA_PITCHED_OUT,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.16,
     .bandwidth = 0.65,
     .accept = elementwise_accept,
     .run = elementwise_run},
};

static const strata_layer elementwise = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "ElementWise",
    .doc = "Arithmetic on elements of two or more tensors, with broadcasting",
    .min_in = 2,
    .max_in = ELEMENTWISE_INPUTS,
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
