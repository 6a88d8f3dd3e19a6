/* SPDX-License-Identifier: Apache-2.0
 *
 * Compare: y = a op b as truths, with broadcasting. Only not_equal holds of a NaN.
 */
#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"

static int compare_shape(const strata_node *n)
{
    n->out[0].dtype = STRATA_BOOL8;
    if (n->in[0].dtype != n->in[1].dtype)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the inputs have two dtypes; put a Cast before one of them");
    return pointwise_shape(n);
}

static int compare_run(const strata_run *r)
{
    const strata_compare *p = r->params;
    const struct pointwise_constants k = {0};
    pointwise_run_one(r, POINTWISE_COMPARE + p->op, &k, &r->in[0]);
    return STRATA_OK;
}

static int compare_reference(const strata_node *n, const void *const *in,
                             const void *const *weight, void *const *out)
{
    const strata_compare *p = n->params;
    const struct pointwise_constants k = {0};
    return pointwise_reference(n, in, weight, out, POINTWISE_COMPARE + p->op, &k);
}

static const void *compare_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     compare_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "op",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_compare, op),
     .def = STRATA_COMPARE_EQUAL,
     .choices = "equal|not_equal|less|less_equal|greater|greater_equal",
     .doc = "relation"},
};

static const strata_row rows[] = {
    {{POINTWISE_LINEAR_FLOATS | STRATA_F64_NCHW | POINTWISE_INTEGERS | STRATA_BOOL_NCHW,
      STRATA_SAME},
     {STRATA_BOOL_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.16,
     .bandwidth = 0.65,
     .run = compare_run},
};

static const strata_layer compare = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Compare",
    .doc = "A relation between elements of two tensors, with broadcasting",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .params_size = sizeof(strata_compare),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = compare_shape,
    .extension = compare_extension,
};

static const strata_layer *const layers[] = {&compare};
STRATA_MODULE("core", "1.0.0", "Compare", layers)
