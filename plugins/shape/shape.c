/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape: dims of the input as numbers, as ONNX's Shape and TensorRT's. What a network
 * counts by, where a dim varies from run to run. The elements are never looked at.
 */
#include "plugins/shape/shape.h"

#include <string.h>

#include "plugins/common/dense.h"

static int shape_shape(const strata_node *n)
{
    const strata_shape *p = n->params;
    const strata_tensor *x = &n->in[0];
    const int64_t count = shape_count(p, x);
    for (int64_t k = 0; k < count; k++)
        if (shape_axis(p, k, x) < 0)
            return STRATA_FAIL(n, STRATA_EINVAL, "axes holds %lld; the input has rank %d",
                               (long long)p->axes.v[k], (int)x->rank);
    n->out[0].rank = 1;
    n->out[0].dims[0] = count;
    n->out[0].dtype = p->to == STRATA_SHAPE_I32 ? STRATA_INT32 : STRATA_INT64;
    return STRATA_OK;
}

static double shape_flops(const strata_node *n)
{
    (void)n;
    return 0;
}

static int shape_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    for (int64_t k = 0; k < y->dims[0]; k++) {
        const int64_t extent = x->dims[shape_axis(r->params, k, x)];
        if (y->dtype == STRATA_INT32)
            ((int32_t *)y->data)[k] = (int32_t)extent;
        else
            ((int64_t *)y->data)[k] = extent;
    }
    return STRATA_OK;
}

static int shape_reference(const strata_node *n, const void *const *in,
                           const void *const *weight, void *const *out)
{
    const strata_tensor *x = &n->in[0];
    (void)in;
    (void)weight;
    for (int64_t k = 0; k < n->out[0].dims[0]; k++)
        ((int64_t *)out[0])[k] = x->dims[shape_axis(n->params, k, x)];
    return STRATA_OK;
}

static const void *shape_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     shape_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "axes",
     .type = STRATA_INTS,
     .offset = offsetof(strata_shape, axes),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "which dims; empty: all; negative ones count from the end"},
    {.name = "to",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_shape, to),
     .choices = "i64|i32",
     .doc = "dtype of the output"},
};

static const strata_row rows[] = {
    {{SHAPE_FORMATS}, {STRATA_I32_NCHW | STRATA_I64_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .bandwidth = 0.7,
     .run = shape_run},
};

static const strata_layer shape = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Shape",
    .doc = "Dims of the input as numbers",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_shape),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = shape_shape,
    .flops = shape_flops,
    .extension = shape_extension,
};

static const strata_layer *const layers[] = {&shape};
STRATA_MODULE("core", "1.0.0", "Shape", layers)
