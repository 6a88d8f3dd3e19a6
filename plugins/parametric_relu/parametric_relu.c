/* SPDX-License-Identifier: Apache-2.0
 *
 * ParametricReLU: y = x < 0 ? x*slope : x, the slope a weight that is broadcast to x.
 */
#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"

static int parametric_relu_shape(const strata_node *n)
{
    const strata_tensor *x = &n->in[0], *slope = &n->weight[0];
    const int32_t missing = x->rank - slope->rank;
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof n->out[0].dims);
    if (missing < 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "weight slope has rank %d, the input %d; a slope has the "
                           "input's rank at most",
                           (int)slope->rank, (int)x->rank);
    for (int32_t d = 0; d < slope->rank; d++)
        if (slope->dims[d] != 1 && slope->dims[d] != x->dims[d + missing])
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "dim %d of weight slope is %lld, the input's dim %d is "
                               "%lld; equal dims or 1 are needed",
                               (int)d, (long long)slope->dims[d], (int)(d + missing),
                               (long long)x->dims[d + missing]);
    return STRATA_OK;
}

/* One slope for each channel, where the network gives none. */
static int parametric_relu_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const int32_t rank = n->in[0].rank;
    if (n->weight[0].rank > 0)
        return STRATA_OK;
    expected[0].dtype = STRATA_FP32;
    expected[0].rank = rank > 1 ? rank - 1 : 1;
    for (int32_t d = 0; d < expected[0].rank; d++)
        expected[0].dims[d] = 1;
    if (rank > 1)
        expected[0].dims[0] = n->in[0].dims[1];
    return STRATA_OK;
}

static int parametric_relu_run(const strata_run *r)
{
    const struct pointwise_constants k = {0};
    pointwise_run_one(r, POINTWISE_PRELU, &k, &r->in[0]);
    return STRATA_OK;
}

static int parametric_relu_reference(const strata_node *n, const void *const *in,
                                     const void *const *weight, void *const *out)
{
    const struct pointwise_constants k = {0};
    return pointwise_reference(n, in, weight, out, POINTWISE_PRELU, &k);
}

static const void *parametric_relu_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     parametric_relu_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_weight weights[] = {
    {.name = "slope",
     .flags = STRATA_REQUIRED,
     .rank = -1,
     .doc = "factor of negative elements, broadcast to the input (C x 1 x 1: a channel)"},
};

static const strata_row rows[] = {{{POINTWISE_FLOATS | STRATA_F64_NCHW}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN |
              STRATA_PITCHED_OUT,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.16,
     .bandwidth = 0.65,
     .run = parametric_relu_run},
};

static const strata_layer parametric_relu = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "ParametricReLU",
    .doc = "Rectifier whose slope below zero is a weight",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = parametric_relu_shape,
    .weight_shape = parametric_relu_weight_shape,
    .extension = parametric_relu_extension,
};

static const strata_layer *const layers[] = {&parametric_relu};
STRATA_MODULE("core", "1.0.0", "ParametricReLU", layers)
