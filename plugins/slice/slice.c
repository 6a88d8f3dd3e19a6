/* SPDX-License-Identifier: Apache-2.0
 *
 * Slice: out[i] = in[begin + i*step] in each dim, as in ONNX, in any format. Steps may be
 * negative. Or the input cut along one axis into several outputs.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/slice/slice.h"
#include "plugins/common/walk.h"

/* Lists that say how far a range goes: an entry for each axis, or none at all. */
static int check_lists(const strata_node *n)
{
    const strata_slice *p = n->params;
    const int64_t count = slice_count(p), axes = p->axes.n ? p->axes.n : n->in[0].rank;
    const int like = p->like.n > 0;
    if (like != (n->n_in > 1) || (like && (p->end.n || p->step.n)))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "like goes with a second input, and without end and step");
    if (axes != count || (p->begin.n && p->begin.n != count) ||
        (p->end.n && p->end.n != count) || (p->step.n && p->step.n != count))
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "begin has %lld values, end %lld, step %lld, like %lld; needed are %lld of "
            "each (one per axis; end and step, or with like begin may be left out)",
            (long long)p->begin.n, (long long)p->end.n, (long long)p->step.n,
            (long long)p->like.n, (long long)axes);
    return STRATA_OK;
}

/* The range of dim d that the second input says. */
static int check_like(const strata_node *n, int64_t k, int32_t d)
{
    const strata_slice *p = n->params;
    const int64_t dim = n->in[0].dims[d];
    if (slice_like(p, k, &n->in[1]) < 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "like holds %lld; the second input has rank %d",
                           (long long)p->like.v[k], (int)n->in[1].rank);
    const struct slice_range range = slice_entry(p, k, n->in, dim);
    if (range.begin < 0 || range.begin > dim || range.n > dim - range.begin)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "dim %d has %lld elements; the second input asks for %lld "
                           "from %lld on",
                           (int)d, (long long)dim, (long long)range.n,
                           (long long)range.begin);
    return STRATA_OK;
}

static int check_ranges(const strata_node *n)
{
    const strata_slice *p = n->params;
    const int32_t rank = n->in[0].rank;
    uint32_t seen = 0;
    int status = check_lists(n);
    for (int64_t k = 0; k < slice_count(p) && status == STRATA_OK; k++) {
        const int32_t d = slice_axis(p, k, rank);
        if (d < 0 || (seen >> d & 1))
            return STRATA_FAIL(
                n, STRATA_EINVAL,
                "axes holds %lld; needed are different dims of a tensor of "
                "rank %d",
                (long long)(p->axes.n ? p->axes.v[k] : k), (int)rank);
        if (p->step.n && p->step.v[k] == 0)
            return STRATA_FAIL(n, STRATA_EINVAL, "step is 0 in dim %d", (int)d);
        seen |= 1u << d;
        if (p->like.n)
            status = check_like(n, k, d);
    }
    return status;
}

static int check_parts(const strata_node *n)
{
    const strata_slice *p = n->params;
    const strata_tensor *x = &n->in[0];
    const int64_t axis = p->axis < 0 ? p->axis + x->rank : p->axis;
    int64_t sum = 0;
    if ((p->split.n && p->parts) || p->begin.n || p->end.n || p->step.n || p->axes.n ||
        p->like.n || n->n_in > 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%s stands beside split or parts; these take nothing but axis",
                           p->split.n && p->parts ? "parts" : "a range");
    if (axis < 0 || axis >= x->rank)
        return STRATA_FAIL(n, STRATA_EINVAL, "axis %lld is outside a tensor of rank %d",
                           (long long)p->axis, (int)x->rank);
    for (int64_t k = 0; k < p->split.n; k++)
        if (__builtin_add_overflow(sum, p->split.v[k], &sum))
            return STRATA_FAIL(n, STRATA_EOVERFLOW, "the sum of split does not fit");
    if (p->split.n && sum != x->dims[axis])
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "split adds up to %lld; dim %lld has %lld elements",
                           (long long)sum, (long long)axis, (long long)x->dims[axis]);
    return STRATA_OK;
}

static int slice_shape(const strata_node *n)
{
    struct slice_range ranges[STRATA_MAX_RANK];
    const strata_tensor *x = &n->in[0];
    int status = slice_parts(n->params) ? check_parts(n) : check_ranges(n);
    if (status)
        return status;
    for (int32_t port = 0; port < n->n_out; port++) {
        slice_ranges(n->params, n->in, port, ranges);
        n->out[port].rank = x->rank;
        n->out[port].dtype = x->dtype;
        for (int32_t d = 0; d < x->rank; d++)
            n->out[port].dims[d] = ranges[d].n;
        if (dense_count(&n->out[0]) == 0 && dense_count(&n->out[port]) > 0)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "output 0 is empty and output %d is not; put empty parts "
                               "last",
                               (int)port);
    }
    return STRATA_OK;
}

static int slice_outputs(const void *params)
{
    const int64_t parts = slice_parts(params);
    return parts == 0 ? 1 : parts < INT32_MAX ? (int)parts : INT32_MAX;
}

static size_t slice_workspace(const strata_node *n)
{
    size_t most = 0;
    for (int32_t port = 0; port < n->n_out; port++) {
        const size_t bytes = walk_memory(2, n->out[port].dims, n->out[port].rank);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void slice_port(const strata_run *r, int32_t port)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[port];
    struct slice_range ranges[STRATA_MAX_RANK];
    struct walk w;
    slice_ranges(r->params, r->in, port, ranges);
    walk_over(&w, 2, y, y->dims, r->workspace);
    for (int32_t d = 0; d < y->rank; d++) {
        walk_map(&w, 0, d, y, 0, 1);
        walk_map(&w, 1, d, x, ranges[d].begin, ranges[d].step);
    }
    walk_copy(&w, y, x);
    walk_clear_pads(y);
}

static int slice_run(const strata_run *r)
{
    for (int32_t port = 0; port < r->n_out; port++)
        if (r->out[port].count > 0)
            slice_port(r, port);
    return STRATA_OK;
}

static int slice_reference(const strata_node *n, const void *const *in,
                           const void *const *weight, void *const *out)
{
    struct slice_range ranges[STRATA_MAX_RANK];
    int64_t index[STRATA_MAX_RANK];
    (void)weight;
    for (int32_t port = 0; port < n->n_out; port++) {
        const strata_tensor *y = &n->out[port];
        const int64_t count = dense_count(y);
        slice_ranges(n->params, n->in, port, ranges);
        for (int64_t i = 0; i < count; i++) {
            dense_index(y, i, index);
            for (int32_t d = 0; d < y->rank; d++)
                index[d] = ranges[d].begin + index[d] * ranges[d].step;
            /* a double or an int64_t */
            memcpy((char *)out[port] + i * 8,
                   (const char *)in[0] + dense_offset(&n->in[0], index) * 8, 8);
        }
    }
    return STRATA_OK;
}

static const void *slice_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     slice_reference};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
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
     .offset = offsetof(strata_slice, begin),
     .doc = "first element, per axis; negative counts from the end; empty with like: 0"},
    {.name = "end",
     .type = STRATA_INTS,
     .offset = offsetof(strata_slice, end),
     .doc = "element after the last, per axis; negative counts from the end, beyond the "
            "dim means to its end; empty: as far as there are elements"},
    {.name = "step",
     .type = STRATA_INTS,
     .offset = offsetof(strata_slice, step),
     .min = -0x1p31,
     .max = 0x1p31,
     .doc = "distance of elements taken, per axis, not 0; empty: 1"},
    {.name = "split",
     .type = STRATA_INTS,
     .offset = offsetof(strata_slice, split),
     .min = 0,
     .max = 0x1p53,
     .doc = "in place of a range: elements along axis of each output"},
    {.name = "parts",
     .type = STRATA_I64,
     .offset = offsetof(strata_slice, parts),
     .min = 0,
     .max = 1024,
     .doc = "the same: number of outputs, of equal size but for a shorter last one"},
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_slice, axis),
     .def = 1,
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim that split or parts cut; negative counts from the end"},
    {.name = "like",
     .type = STRATA_INTS,
     .offset = offsetof(strata_slice, like),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dims of a second input, per axis, that tell how many elements are taken"},
};

static const strata_row rows[] = {{{WALK_ALL, WALK_ALL}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 1,
     .bandwidth = 0.9,
     .workspace = slice_workspace,
     .run = slice_run},
};

static const strata_layer slice = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Slice",
    .doc = "Elements at regular steps from a range of each dim, or a dim cut in parts",
    .min_in = 1,
    .max_in = 2,
    .n_out = -1,
    .params_size = sizeof(strata_slice),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = slice_shape,
    .flops = walk_no_flops,
    .outputs = slice_outputs,
    .extension = slice_extension,
};

static const strata_layer *const layers[] = {&slice};
STRATA_MODULE("core", "1.0.0", "Slice", layers)
