/* SPDX-License-Identifier: Apache-2.0
 *
 * Gated: y = f(a)*b, a and b the halves of the input along an axis (SwiGLU, GeGLU), in
 * any float format.
 */
#include "plugins/gated/gated.h"

#include "plugins/common/activation_attrs.h"
#include "plugins/common/dense.h"
#include "plugins/common/element.h"
#include "plugins/common/pointwise.h"

static int gated_shape(const strata_node *n)
{
    const strata_tensor *x = &n->in[0];
    const int32_t axis = gated_axis(n->params, x->rank);
    if (axis < 0 || axis >= x->rank)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "axis %lld of an input of rank %d; -%d to %d are there",
                           (long long)((const strata_gated *)n->params)->axis,
                           (int)x->rank, (int)x->rank, (int)x->rank - 1);
    if (x->dims[axis] % 2 != 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "dim %d of the input is %lld; an even one is needed, for it "
                           "is halved",
                           (int)axis, (long long)x->dims[axis]);
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof x->dims);
    n->out[0].dims[axis] = x->dims[axis] / 2;
    return STRATA_OK;
}

static double gated_flops(const strata_node *n)
{
    return 9.0 * (double)n->out[0].count;
}

static int gated_run(const strata_run *r)
{
    const strata_gated *p = r->params;
    const strata_tensor *x = &r->in[0];
    const strata_activation f = gated_activation(p);
    const int32_t axis = gated_axis(p, x->rank);
    const strata_tensor a = gated_half(x, axis, 0), b = gated_half(x, axis, 1);
    const struct pointwise_constants k = {.alpha = strata_activation_alpha(&f),
                                          .beta = strata_activation_beta(&f)};
    const struct pointwise_pass pass = {
        .values = pointwise_class_of(x->dtype),
        .out = &r->out[0],
        .in = {&a, &b},
        .n_in = 2,
        .n_steps = 2,
        .step = {{POINTWISE_ACTIVATION + p->kind, 2, 0, 0, 0, k},
                 {POINTWISE_ELEMENTWISE + STRATA_PRODUCT, POINTWISE_RESULT, 2, 1, 0, k}},
    };
    pointwise_pass_run(&pass);
    return STRATA_OK;
}

static int gated_reference(const strata_node *n, const void *const *in,
                           const void *const *weight, void *const *out)
{
    const strata_gated *p = n->params;
    const strata_tensor *x = &n->in[0];
    const strata_activation f = gated_activation(p);
    const double alpha = strata_activation_alpha(&f), beta = strata_activation_beta(&f);
    const int32_t axis = gated_axis(p, x->rank);
    const double *from = in[0];
    double *y = out[0];
    int64_t inner = 1, count = dense_count(&n->out[0]);
    (void)weight;
    for (int32_t d = axis; d < x->rank; d++)
        inner *= n->out[0].dims[d];
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = i / inner * 2 * inner + i % inner;
        y[i] = element_activate_exact(p->kind, from[at], alpha, beta) * from[at + inner];
    }
    return STRATA_OK;
}

static const void *gated_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     gated_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "kind",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_gated, kind),
     .def = STRATA_SILU,
     .choices = ACTIVATION_KINDS,
     .doc = "function of the first half, as in Activation"},
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_gated, axis),
     .def = -1,
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim that is halved; negative counts from the end"},
    ACTIVATION_NUMBER("alpha", offsetof(strata_gated, alpha)),
    ACTIVATION_NUMBER("beta", offsetof(strata_gated, beta)),
};

static const strata_row rows[] = {{{POINTWISE_FLOATS | STRATA_F64_NCHW}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.2,
     .bandwidth = 0.65,
     .accept = gated_accept,
     .run = gated_run},
};

static const strata_layer gated = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Gated",
    .doc = "One half of a tensor times a function of the other",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_gated),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = gated_shape,
    .flops = gated_flops,
    .extension = gated_extension,
};

static const strata_layer *const layers[] = {&gated};
STRATA_MODULE("core", "1.0.0", "Gated", layers)
