/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant: the weight `value` as a tensor, in any format; a float is any of the floats
 * that networks compute with, all else keeps its dtype.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/common/walk.h"

static int constant_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_constant *p = n->params;
    if (p->shape.n > STRATA_MAX_RANK)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "shape has %lld dims; at most %d are allowed",
                           (long long)p->shape.n, STRATA_MAX_RANK);
    expected[0].rank = (int32_t)p->shape.n;
    for (int64_t d = 0; d < p->shape.n; d++)
        expected[0].dims[d] = p->shape.v[d];
    return STRATA_OK;
}

static int constant_shape(const strata_node *n)
{
    const strata_constant *p = n->params;
    strata_tensor *out = &n->out[0];
    if (n->weight[0].rank == 0 && p->shape.n == 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "neither the weight `value` nor `shape` tells the shape; give "
                           "one, such as shape = 1x3x8x8");
    out->dtype = n->weight[0].rank > 0 ? n->weight[0].dtype : STRATA_FP32;
    out->rank = n->weight[0].rank;
    memcpy(out->dims, n->weight[0].dims, sizeof out->dims);
    if (p->shape.n > 0) {
        out->rank = (int32_t)p->shape.n;
        for (int64_t d = 0; d < p->shape.n; d++)
            out->dims[d] = p->shape.v[d];
    }
    return STRATA_OK;
}

/* value is dense whatever the strides of its descriptor say for dims of 1. */
static void constant_map(struct walk *w, const strata_tensor *y)
{
    int64_t stride = 1;
    for (int32_t d = y->rank - 1; d >= 0; d--) {
        for (int64_t i = 0; i < y->dims[d]; i++)
            w->axis[d].at[1][i] = i * stride;
        stride *= y->dims[d];
    }
}

static void constant_row(const void *arg, const struct walk *w, const int64_t *base,
                         int64_t n)
{
    const strata_run *r = arg;
    const strata_tensor *y = &r->out[0];
    const struct walk_axis *inner = walk_inner(w);
    for (int64_t i = 0; i < inner->n; i++)
        for (int64_t j = 0; j < n; j += WALK_ROW) {
            int64_t to = base[0] + inner->at[0][i * inner->every] + j * w->step[0];
            int64_t from = base[1] + inner->at[1][i * inner->every] + j * w->step[1];
            int64_t length = n - j < WALK_ROW ? n - j : WALK_ROW;
            float buffer[WALK_ROW];
            const float *row = walk_load(&r->weight[0], from, w->step[1], length, buffer);
            element_store_row(y->data, y->dtype, to, w->step[0], row, length);
        }
}

static int constant_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    struct walk w;
    walk_over(&w, 2, y, y->dims, r->workspace);
    walk_map_all(&w, 0, y);
    constant_map(&w, y);
    if (y->dtype == r->weight[0].dtype)
        walk_copy(&w, y, &r->weight[0]);
    else
        walk_run(&w, constant_row, r);
    walk_clear_pads(y);
    return STRATA_OK;
}

/* Values of any dtype are 8 bytes here. */
static int constant_reference(const strata_node *n, const void *const *in,
                              const void *const *weight, void *const *out)
{
    (void)in;
    memcpy(out[0], weight[0], (size_t)dense_count(&n->out[0]) * sizeof(int64_t));
    return STRATA_OK;
}

static const void *constant_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     constant_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "shape",
     .type = STRATA_INTS,
     .offset = offsetof(strata_constant, shape),
     .min = 0,
     .max = INT32_MAX,
     .doc = "dims; empty: the weight's own"},
};

/* FP16 and BF16 come as FP32: the plan says which of the three the output is. */
#define BIT(dtype_) (UINT64_C(1) << STRATA_##dtype_)
#define CONSTANT_DTYPES                                                                  \
    (BIT(FP32) | BIT(INT8) | BIT(UINT8) | BIT(INT32) | BIT(INT64) | BIT(BOOL8) |         \
     BIT(E4M3) | BIT(E5M2) | BIT(FP64))

static const strata_weight weights[] = {
    {.name = "value",
     .flags = STRATA_REQUIRED,
     .rank = -1,
     .doc = "the elements",
     .dtypes = CONSTANT_DTYPES},
};

static const strata_row rows[] = {{{0}, {WALK_ALL}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 1,
     .bandwidth = 0.9,
     .workspace = walk_pair_memory,
     .run = constant_run},
};

static const strata_layer constant = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Constant",
    .doc = "A weight as a tensor",
    .min_in = 0,
    .max_in = 0,
    .n_out = 1,
    .params_size = sizeof(strata_constant),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = constant_shape,
    .weight_shape = constant_weight_shape,
    .flops = walk_no_flops,
    .extension = constant_extension,
};

static const strata_layer *const layers[] = {&constant};
STRATA_MODULE("core", "1.0.0", "Constant", layers)
