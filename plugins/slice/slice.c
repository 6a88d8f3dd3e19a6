/* SPDX-License-Identifier: Apache-2.0
 *
 * Slice: out[i] = in[begin + i*step] in each dim, as in ONNX, in any format. Steps may be
 * negative.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/slice/slice.h"
#include "plugins/common/walk.h"

static int slice_check(const strata_node *n)
{
    const strata_slice *p = n->params;
    int32_t rank = n->in[0].rank;
    uint32_t seen = 0;
    int64_t count = p->begin.n, axes = p->axes.n ? p->axes.n : rank;
    if (p->end.n != count || (p->step.n && p->step.n != count) || axes != count)
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "begin has %lld values, end %lld, step %lld; needed are %lld of "
            "each (one per axis; step may be left out)",
            (long long)count, (long long)p->end.n, (long long)p->step.n, (long long)axes);
    for (int64_t k = 0; k < count; k++) {
        int32_t d = slice_axis(p, k, rank);
        if (d < 0 || (seen >> d & 1))
            return STRATA_FAIL(
                n, STRATA_EINVAL,
                "axes holds %lld; needed are different dims of a tensor of "
                "rank %d",
                (long long)p->axes.v[k], (int)rank);
        if (p->step.n && p->step.v[k] == 0)
            return STRATA_FAIL(n, STRATA_EINVAL, "step is 0 in dim %d", (int)d);
        seen |= 1u << d;
    }
    return STRATA_OK;
}

static int slice_shape(const strata_node *n)
{
    struct slice_range ranges[STRATA_MAX_RANK];
    const strata_tensor *x = &n->in[0];
    int status = slice_check(n);
    if (status)
        return status;
    slice_ranges(n->params, x, ranges);
    n->out[0].rank = x->rank;
    for (int32_t d = 0; d < x->rank; d++) {
        if (ranges[d].n == 0)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "nothing is left of dim %d, which has %lld elements",
                               (int)d, (long long)x->dims[d]);
        n->out[0].dims[d] = ranges[d].n;
    }
    return STRATA_OK;
}

static int slice_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct slice_range ranges[STRATA_MAX_RANK];
    struct walk w;
    slice_ranges(r->params, x, ranges);
    walk_over(&w, 2, y, y->dims, r->workspace);
    for (int32_t d = 0; d < y->rank; d++) {
        walk_map(&w, 0, d, y, 0, 1);
        walk_map(&w, 1, d, x, ranges[d].begin, ranges[d].step);
    }
    walk_copy(&w, y, x);
    walk_clear_pads(y);
    return STRATA_OK;
}

static int slice_reference(const strata_node *n, const double *const *in,
                           const double *const *weight, double *const *out)
{
    struct slice_range ranges[STRATA_MAX_RANK];
    int64_t count = dense_count(&n->out[0]), index[STRATA_MAX_RANK];
    (void)weight;
    slice_ranges(n->params, &n->in[0], ranges);
    for (int64_t i = 0; i < count; i++) {
        dense_index(&n->out[0], i, index);
        for (int32_t d = 0; d < n->out[0].rank; d++)
            index[d] = ranges[d].begin + index[d] * ranges[d].step;
        out[0][i] = in[0][dense_offset(&n->in[0], index)];
    }
    return STRATA_OK;
}

static const void *slice_extension(const char *id)
{
    static const strata_reference reference = {sizeof reference, 0, slice_reference};
    return dense_extension(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "axes",
     .type = STRATA_INTS,
     .offset = offsetof(strata_slice, axes),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dims that are cut; empty: all; negative ones count from the end"},
    {.name = "begin",
     .type = STRATA_INTS,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(strata_slice, begin),
     .doc = "first element, per axis; negative counts from the end"},
    {.name = "end",
     .type = STRATA_INTS,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(strata_slice, end),
     .doc = "element after the last, per axis; negative counts from the end, beyond the "
            "dim means to its end"},
    {.name = "step",
     .type = STRATA_INTS,
     .offset = offsetof(strata_slice, step),
     .min = -0x1p31,
     .max = 0x1p31,
     .doc = "distance of elements taken, per axis, not 0; empty: 1"},
};

static const strata_row rows[] = {{{WALK_ALL}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 1,
     .bandwidth = 0.9,
     .workspace = walk_pair_memory,
     .run = slice_run},
};

static const strata_layer slice = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Slice",
    .doc = "Elements at regular steps from a range of each dim",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_slice),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = slice_shape,
    .flops = walk_no_flops,
    .extension = slice_extension,
};

static const strata_layer *const layers[] = {&slice};
STRATA_MODULE("core", "1.0.0", "Slice", layers)
