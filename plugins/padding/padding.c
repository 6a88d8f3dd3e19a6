/* SPDX-License-Identifier: Apache-2.0
 *
 * Padding: elements added before and after each dim, in any format: a constant, the
 * mirrored inside without the border (reflect), or the border repeated (edge).
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/padding/padding.h"
#include "plugins/common/walk.h"

static int padding_dim(const strata_node *n, int32_t d)
{
    const strata_padding *p = n->params;
    int32_t rank = n->in[0].rank;
    int64_t dim = n->in[0].dims[d];
    int64_t begin = padding_entry(p->begin, d, rank),
            end = padding_entry(p->end, d, rank);
    int64_t limit = p->mode == STRATA_PADDING_REFLECT ? dim - 1 : INT64_MAX;
    if (begin > limit || end > limit)
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "dim %d of %lld elements cannot be mirrored over %lld; reflect "
            "takes at most %lld there",
            (int)d, (long long)dim, (long long)(begin > limit ? begin : end),
            (long long)limit);
    if (p->mode == STRATA_PADDING_EDGE && dim == 0 && begin + end > 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "dim %d has no edge to repeat", (int)d);
    if (__builtin_add_overflow(dim, begin + end, &n->out[0].dims[d]))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "the padded dim %d does not fit", (int)d);
    return STRATA_OK;
}

static int padding_shape(const strata_node *n)
{
    const strata_padding *p = n->params;
    int32_t rank = n->in[0].rank;
    if (p->begin.n > rank || p->end.n > rank)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "begin has %lld values, end %lld, for an input of rank %d",
                           (long long)p->begin.n, (long long)p->end.n, (int)rank);
    n->out[0].rank = rank;
    for (int32_t d = 0; d < rank; d++) {
        int status = padding_dim(n, d);
        if (status)
            return status;
    }
    return STRATA_OK;
}

static void padding_fill(const strata_tensor *y, double value)
{
    const uint32_t bits = padding_bits(y->dtype, value);
    const size_t bytes = (size_t)y->size * walk_element_size(y->dtype);
    size_t i = 0;
    for (; i + sizeof bits <= bytes; i += sizeof bits)
        memcpy((char *)y->data + i, &bits, sizeof bits);
    memcpy((char *)y->data + i, &bits, bytes - i);
}

/* Axis d: the output indices that copy an input element, and which. */
static void padding_map(struct walk *w, int32_t d, const strata_padding *p,
                        const strata_tensor *y, const strata_tensor *x)
{
    struct walk_axis *a = &w->axis[d];
    int64_t begin = padding_entry(p->begin, d, x->rank), n = 0;
    for (int64_t i = 0; i < y->dims[d]; i++) {
        int64_t from = padding_source(p, i, begin, x->dims[d]);
        if (from < 0)
            continue;
        a->at[0][n] = walk_offset(y, d, i);
        a->at[1][n++] = walk_offset(x, d, from);
    }
    a->n = n;
}

static int padding_run(const strata_run *r)
{
    const strata_padding *p = r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct walk w;
    walk_over(&w, 2, y, y->dims, r->workspace);
    for (int32_t d = 0; d < y->rank; d++)
        padding_map(&w, d, p, y, x);
    if (p->mode == STRATA_PADDING_CONSTANT)
        padding_fill(y, p->value);
    walk_copy(&w, y, x);
    walk_clear_pads(y);
    return STRATA_OK;
}

static int padding_reference(const strata_node *n, const double *const *in,
                             const double *const *weight, double *const *out)
{
    const strata_padding *p = n->params;
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    int64_t count = dense_count(y), index[STRATA_MAX_RANK];
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        int inside = 1;
        dense_index(y, i, index);
        for (int32_t d = 0; d < x->rank; d++) {
            int64_t begin = padding_entry(p->begin, d, x->rank);
            index[d] = padding_source(p, index[d], begin, x->dims[d]);
            inside = inside && index[d] >= 0;
        }
        out[0][i] = inside ? in[0][dense_offset(x, index)] : p->value;
    }
    return STRATA_OK;
}

static const void *padding_extension(const char *id)
{
    static const strata_reference reference = {sizeof reference, 0, padding_reference};
    return dense_extension(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "mode",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_padding, mode),
     .def = STRATA_PADDING_CONSTANT,
     .choices = "constant|reflect|edge",
     .doc = "what is added"},
    {.name = "begin",
     .type = STRATA_INTS,
     .offset = offsetof(strata_padding, begin),
     .min = 0,
     .max = INT32_MAX,
     .doc = "elements before each dim, or before the last dims when fewer"},
    {.name = "end",
     .type = STRATA_INTS,
     .offset = offsetof(strata_padding, end),
     .min = 0,
     .max = INT32_MAX,
     .doc = "elements after each dim, or after the last dims when fewer"},
    {.name = "value",
     .type = STRATA_F64,
     .offset = offsetof(strata_padding, value),
     .doc = "the constant; limited to the range of integer elements"},
};

static const strata_row rows[] = {{{WALK_ALL}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 1,
     .bandwidth = 0.5,
     .workspace = walk_pair_memory,
     .run = padding_run},
};

static const strata_layer padding = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Padding",
    .doc = "Elements added before and after dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_padding),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = padding_shape,
    .flops = walk_no_flops,
    .extension = padding_extension,
};

static const strata_layer *const layers[] = {&padding};
STRATA_MODULE("core", "1.0.0", "Padding", layers)
