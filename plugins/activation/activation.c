/* SPDX-License-Identifier: Apache-2.0
 *
 * Activation: y = f(x), element by element, in any float format; may run in place.
 * Works on memory as it lies, pad lanes included, and then sets those to zero again:
 * f(0) is not 0 for every kind.
 */
#include <strata/layers.h>

#include "plugins/common/activation_attrs.h"
#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"
#include "plugins/common/walk.h"

#define CHUNK 4096 /* elements: 16 KiB of FP32 stay in the first-level cache */

static double activation_flops(const strata_node *n)
{
    const strata_activation *p = n->params;
    const int cheap = p->kind <= STRATA_CLIP || p->kind == STRATA_THRESHOLDED_RELU ||
                      p->kind == STRATA_SHRINK;
    return (cheap ? 1.0 : 10.0) * (double)n->out[0].count;
}

static void activation_chunk(const strata_activation *p, const strata_tensor *y,
                             const strata_tensor *x, int64_t begin, int64_t n)
{
    const int op = POINTWISE_ACTIVATION + p->kind;
    const struct pointwise_constants k = {.alpha = strata_activation_alpha(p),
                                          .beta = strata_activation_beta(p)};
    if (y->dtype == STRATA_FP32) {
        pointwise_float.apply(op, &k, (float *)y->data + begin,
                              (const float *)x->data + begin, NULL, NULL, n);
        return;
    }
    float row[CHUNK];
    pointwise_float.load(row, (const uint16_t *)x->data + begin, x->dtype, 1, n);
    pointwise_float.apply(op, &k, row, row, NULL, NULL, n);
    pointwise_float.store((uint16_t *)y->data + begin, y->dtype, 1, row, n);
}

static int activation_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    int64_t size = y->size;
#pragma omp parallel for schedule(static) if (size >= WALK_PARALLEL)
    for (int64_t begin = 0; begin < size; begin += CHUNK)
        activation_chunk(r->params, y, x, begin,
                         size - begin < CHUNK ? size - begin : CHUNK);
    walk_clear_pads(y);
    return STRATA_OK;
}

static int activation_reference(const strata_node *n, const double *const *in,
                                const double *const *weight, double *const *out)
{
    const strata_activation *p = n->params;
    double alpha = strata_activation_alpha(p), beta = strata_activation_beta(p);
    int64_t count = dense_count(&n->out[0]);
    (void)weight;
    for (int64_t i = 0; i < count; i++)
        out[0][i] = element_activate_exact(p->kind, in[0][i], alpha, beta);
    return STRATA_OK;
}

static const void *activation_extension(const char *id)
{
    static const strata_reference reference = {sizeof reference, 0, activation_reference};
    return dense_extension(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "kind",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_activation, kind),
     .def = STRATA_RELU,
     .choices = ACTIVATION_KINDS,
     .doc = "function"},
    {.name = "alpha",
     .type = STRATA_F64,
     .offset = offsetof(strata_activation, alpha),
     .def = STRATA_KIND_DEFAULT,
     .doc = "slope of leaky_relu (0.01) and hard_sigmoid (0.2), factor of elu (1), "
            "selu (1.6733), swish (1), celu (1) and scaled_tanh (1), lower bound of "
            "clip (none), threshold of thresholded_relu (1) and shrink (0.5); inf: the "
            "kind's own"},
    {.name = "beta",
     .type = STRATA_F64,
     .offset = offsetof(strata_activation, beta),
     .def = STRATA_KIND_DEFAULT,
     .doc = "offset of hard_sigmoid (0.5) and shrink (0), factor of selu (1.0507) and "
            "scaled_tanh (1), upper bound of clip (none); inf: the kind's own"},
};

static const strata_row rows[] = {{{WALK_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.2,
     .bandwidth = 0.4,
     .run = activation_run},
};

static const strata_layer activation = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Activation",
    .doc = "A function of each element",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_activation),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .flops = activation_flops,
    .extension = activation_extension,
};

static const strata_layer *const layers[] = {&activation};
STRATA_MODULE("core", "1.0.0", "Activation", layers)
