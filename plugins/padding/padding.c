/* SPDX-License-Identifier: Apache-2.0
 *
 * Padding: elements added before and after each dim, in any format: a constant, the
 * mirrored inside without the border (reflect), the border repeated (edge), or the other
 * end's elements (wrap). Negative amounts take elements away first.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/common/fill.h"
#include "plugins/common/walk.h"
#include "plugins/padding/padding.h"

static int padding_dim(const strata_node *n, int32_t d)
{
    const strata_padding *p = n->params;
    const int32_t rank = n->in[0].rank;
    const int64_t dim = n->in[0].dims[d], begin = padding_entry(p->begin, d, rank),
                  end = padding_entry(p->end, d, rank),
                  kept = padding_kept(p, d, rank, dim);
    if (kept < 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "begin %lld and end %lld take more than the %lld elements of "
                           "dim %d",
                           (long long)begin, (long long)end, (long long)dim, (int)d);
    if (kept == 0 && p->mode != STRATA_PADDING_CONSTANT && (begin > 0 || end > 0))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "dim %d has no elements to repeat; mode constant needs none",
                           (int)d);
    if (__builtin_add_overflow(kept, begin > 0 ? begin : 0, &n->out[0].dims[d]) ||
        __builtin_add_overflow(n->out[0].dims[d], end > 0 ? end : 0, &n->out[0].dims[d]))
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

/* Axis d: the output indices that copy an input element, and which. */
static void padding_map(struct walk *w, int32_t d, const strata_padding *p,
                        const strata_tensor *y, const strata_tensor *x)
{
    struct walk_axis *a = &w->axis[d];
    int64_t n = 0;
    for (int64_t i = 0; i < y->dims[d]; i++) {
        int64_t from = padding_source(p, d, x->rank, i, x->dims[d]);
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
        fill_memory(y, p->value);
    walk_copy(&w, y, x);
    walk_clear_pads(y);
    return STRATA_OK;
}

static int padding_reference(const strata_node *n, const void *const *in,
                             const void *const *weight, void *const *out)
{
    const strata_padding *p = n->params;
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    int64_t count = dense_count(y), index[STRATA_MAX_RANK];
    char value[8];
    (void)weight;
    fill_reference(y->dtype, p->value, value);
    for (int64_t i = 0; i < count; i++) {
        int inside = 1;
        dense_index(y, i, index);
        for (int32_t d = 0; d < x->rank; d++) {
            index[d] = padding_source(p, d, x->rank, index[d], x->dims[d]);
            inside = inside && index[d] >= 0;
        }
        const char *from =
            inside ? (const char *)in[0] + dense_offset(x, index) * 8 : value;
        memcpy((char *)out[0] + i * 8, from, 8);
    }
    return STRATA_OK;
}

static const void *padding_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     padding_reference};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

static const strata_attr attrs[] = {
    {.name = "mode",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_padding, mode),
     .def = STRATA_PADDING_CONSTANT,
     .choices = "constant|reflect|edge|wrap",
     .doc = "what is added"},
    {.name = "begin",
     .type = STRATA_INTS,
     .offset = offsetof(strata_padding, begin),
     .min = INT32_MIN,
     .max = INT32_MAX,
     .doc = "elements before each dim, or before the last dims when fewer; negative: to "
            "take away"},
    {.name = "end",
     .type = STRATA_INTS,
     .offset = offsetof(strata_padding, end),
     .min = INT32_MIN,
     .max = INT32_MAX,
     .doc = "elements after each dim, or after the last dims when fewer; negative: to "
            "take away"},
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
    .doc = "Elements added before and after dims, or taken away",
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
