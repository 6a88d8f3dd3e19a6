/* SPDX-License-Identifier: Apache-2.0
 *
 * Concatenation: inputs one after another along an axis, all in one format. Along the
 * channels of a blocked format, inputs that begin at a block's first lane are copied in
 * whole runs; the others lane by lane. Short dense rows are written one after the other,
 * each from all inputs.
 */
#include <strata/layers.h>

#include "plugins/concatenation/concatenation.h"
#include "plugins/common/dense.h"
#include "plugins/common/walk.h"

#define CONCATENATION_RUN 256   /* bytes that are worth a call */
#define CONCATENATION_ROW 65536 /* of the output, at most: threads share rows */

static int concatenation_shape(const strata_node *n)
{
    const strata_concatenation *p = n->params;
    const strata_tensor *first = &n->in[0];
    strata_tensor *out = &n->out[0];
    int32_t axis = concatenation_axis(p, first->rank);
    if (axis < 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "axis %lld is outside a tensor of rank %d",
                           (long long)p->axis, (int)first->rank);
    out->rank = first->rank;
    memcpy(out->dims, first->dims, sizeof out->dims);
    for (int32_t k = 1; k < n->n_in; k++) {
        const strata_tensor *in = &n->in[k];
        if (in->rank != first->rank || in->dtype != first->dtype)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "input %d differs in rank or element type from input 0",
                               k);
        for (int32_t d = 0; d < in->rank; d++)
            if (d != axis && in->dims[d] != first->dims[d])
                return STRATA_FAIL(n, STRATA_EINVAL,
                                   "dim %d of input %d is %lld, of input 0 %lld; only "
                                   "dim %d (the axis) may differ",
                                   d, k, (long long)in->dims[d],
                                   (long long)first->dims[d], axis);
        if (__builtin_add_overflow(out->dims[axis], in->dims[axis], &out->dims[axis]))
            return STRATA_FAIL(n, STRATA_EOVERFLOW, "the sum of dim %d does not fit",
                               axis);
    }
    return STRATA_OK;
}

/* Elements of t from dim `axis` on, which lie together, as do those before it; -1: they
 * lie otherwise. */
static int64_t concatenation_run_of(const strata_tensor *t, int32_t axis)
{
    int64_t step = 1, run = 1;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        if (t->vector > 1 || (t->dims[d] > 1 && t->strides[d] != step))
            return -1;
        step *= t->dims[d];
        run = d == axis ? step : run;
    }
    return run;
}

/* Whether all tensors are rows of runs that are worth a call each, and short enough for
 * threads to have rows of their own. */
static int concatenation_is_rows(const strata_run *r, int32_t axis, size_t size)
{
    const int64_t pitch = concatenation_run_of(&r->out[0], axis);
    int rows = pitch > 0 && pitch * (int64_t)size <= CONCATENATION_ROW;
    for (int32_t k = 0; k < r->n_in; k++) {
        const int64_t run = concatenation_run_of(&r->in[k], axis);
        rows = rows && run * (int64_t)size >= CONCATENATION_RUN;
    }
    return rows;
}

/* The output is written once from its begin to its end. */
static void concatenation_rows(const strata_run *r, int32_t axis, size_t size)
{
    const strata_tensor *y = &r->out[0];
    const int64_t pitch = concatenation_run_of(y, axis);
    const int64_t rows = dense_count(y) / pitch;
    const int parallel = rows * pitch >= WALK_PARALLEL;
#pragma omp parallel for schedule(static) if (parallel)
    for (int64_t i = 0; i < rows; i++) {
        char *to = (char *)y->data + (size_t)(i * pitch) * size;
        for (int32_t k = 0; k < r->n_in; k++) {
            const size_t bytes = (size_t)concatenation_run_of(&r->in[k], axis) * size;
            memcpy(to, (const char *)r->in[k].data + (size_t)i * bytes, bytes);
            to += bytes;
        }
    }
    (void)parallel; /* unused without OpenMP */
}

static int concatenation_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    int32_t axis = concatenation_axis(r->params, y->rank);
    int64_t begin = 0;
    const size_t size = dtype_size(y->dtype);
    if (concatenation_is_rows(r, axis, size)) {
        concatenation_rows(r, axis, size);
        return STRATA_OK;
    }
    for (int32_t k = 0; k < r->n_in; k++) {
        const strata_tensor *x = &r->in[k];
        struct walk w;
        walk_over(&w, 2, y, x->dims, r->workspace);
        for (int32_t d = 0; d < y->rank; d++) {
            walk_map(&w, 0, d, y, d == axis ? begin : 0, 1);
            walk_map(&w, 1, d, x, 0, 1);
        }
        walk_copy(&w, y, x);
        begin += x->dims[axis];
    }
    walk_clear_pads(y);
    return STRATA_OK;
}

/* Values of any dtype are 8 bytes here. */
static int concatenation_reference(const strata_node *n, const void *const *in,
                                   const void *const *weight, void *const *out)
{
    int64_t *y = out[0];
    int32_t axis = concatenation_axis(n->params, n->out[0].rank);
    int64_t begin = 0, index[STRATA_MAX_RANK];
    (void)weight;
    for (int32_t k = 0; k < n->n_in; k++) {
        const int64_t *x = in[k], count = dense_count(&n->in[k]);
        for (int64_t i = 0; i < count; i++) {
            dense_index(&n->in[k], i, index);
            index[axis] += begin;
            y[dense_offset(&n->out[0], index)] = x[i];
        }
        begin += n->in[k].dims[axis];
    }
    return STRATA_OK;
}

static const void *concatenation_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     concatenation_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_concatenation, axis),
     .def = 1,
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim along which the inputs are joined; negative counts from the end"},
};

static const strata_row rows[] = {{{WALK_ALL, STRATA_SAME}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 1,
     .bandwidth = 0.9,
     .workspace = walk_pair_memory,
     .run = concatenation_run},
};

static const strata_layer concatenation = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Concatenation",
    .doc = "Inputs one after another along an axis",
    .min_in = 1,
    .max_in = -1,
    .n_out = 1,
    .params_size = sizeof(strata_concatenation),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = concatenation_shape,
    .flops = walk_no_flops,
    .extension = concatenation_extension,
};

static const strata_layer *const layers[] = {&concatenation};
STRATA_MODULE("core", "1.0.0", "Concatenation", layers)
