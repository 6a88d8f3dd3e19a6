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

#define PADDING_BAND 64 /* rows that a thread takes at once */

/* Rows whose elements lie side by side: what of a row is inside is one piece. */
struct padding_rows {
    const strata_tensor *x, *y;
    const int64_t
        *source[STRATA_MAX_RANK]; /* input index under each output index, or -1 */
    int64_t first, kept;          /* the piece */
    size_t size;
    uint64_t value;
};

static int padding_has_rows(const strata_tensor *x, const strata_tensor *y)
{
    const int32_t last = y->rank - 1;
    return y->vector == 1 && x->strides[last] == 1 && y->strides[last] == 1;
}

/* Elements begin .. end - 1 of a row; x NULL: a row of nothing but the constant. */
#define PADDING_EDGE(type)                                                               \
    static void padding_edge_##type(const struct padding_rows *p, type *y,               \
                                    const type *x, int64_t begin, int64_t end)           \
    {                                                                                    \
        const int64_t *source = p->source[p->y->rank - 1];                               \
        type value;                                                                      \
        memcpy(&value, &p->value, sizeof value);                                         \
        for (int64_t i = begin; i < end; i++)                                            \
            y[i] = x && source[i] >= 0 ? x[source[i]] : value;                           \
    }

PADDING_EDGE(uint8_t)
PADDING_EDGE(uint16_t)
PADDING_EDGE(uint32_t)
PADDING_EDGE(uint64_t)

static void padding_edge(const struct padding_rows *p, void *y, const void *x,
                         int64_t begin, int64_t end)
{
    if (p->size == 4)
        padding_edge_uint32_t(p, y, x, begin, end);
    else if (p->size == 2)
        padding_edge_uint16_t(p, y, x, begin, end);
    else if (p->size == 1)
        padding_edge_uint8_t(p, y, x, begin, end);
    else
        padding_edge_uint64_t(p, y, x, begin, end);
}

/* x NULL: a row of nothing but the constant. */
static void padding_row(const struct padding_rows *p, char *y, const char *x)
{
    const int32_t last = p->y->rank - 1;
    const int64_t n = p->y->dims[last], after = p->first + p->kept;
    if (!x || p->kept == 0) {
        padding_edge(p, y, x, 0, n);
        return;
    }
    padding_edge(p, y, x, 0, p->first);
    memcpy(y + (size_t)p->first * p->size,
           x + (size_t)p->source[last][p->first] * p->size, (size_t)p->kept * p->size);
    padding_edge(p, y, x, after, n);
}

/* Rows begin .. end - 1 of the last dim but one, at a position of those before it. */
static void padding_band(const struct padding_rows *p, int64_t position, int64_t begin,
                         int64_t end)
{
    const int32_t across = p->y->rank - 2;
    int64_t to = 0, from = 0, inside = 1;
    for (int32_t d = across - 1; d >= 0; d--) {
        const int64_t i = position % p->y->dims[d], source = p->source[d][i];
        position /= p->y->dims[d];
        inside = inside && source >= 0;
        to += i * p->y->strides[d];
        from += source * p->x->strides[d];
    }
    for (int64_t i = begin; i < end; i++) {
        const int64_t source = across < 0 ? 0 : p->source[across][i];
        const int64_t y = to + (across < 0 ? 0 : i * p->y->strides[across]);
        const int64_t x = from + (across < 0 ? 0 : source * p->x->strides[across]);
        padding_row(p, (char *)p->y->data + (size_t)y * p->size,
                    inside && source >= 0 ? (const char *)p->x->data + (size_t)x * p->size
                                          : NULL);
    }
}

static void padding_tables(struct padding_rows *rows, const strata_padding *p,
                           int64_t *table)
{
    const strata_tensor *x = rows->x, *y = rows->y;
    for (int32_t d = 0; d < y->rank; d++) {
        rows->source[d] = table;
        for (int64_t i = 0; i < y->dims[d]; i++)
            *table++ = padding_source(p, d, x->rank, i, x->dims[d]);
    }
}

static void padding_run_rows(const strata_run *r)
{
    const strata_padding *p = r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const int32_t last = y->rank - 1;
    const int64_t begin = padding_entry(p->begin, last, x->rank);
    const int64_t rows = last > 0 ? y->dims[last - 1] : 1;
    const int64_t bands = (rows + PADDING_BAND - 1) / PADDING_BAND;
    struct padding_rows all = {.x = x, .y = y, .first = begin > 0 ? begin : 0};
    all.kept = padding_kept(p, last, x->rank, x->dims[last]);
    all.size = walk_element_size(y->dtype);
    all.value = fill_bits(y->dtype, p->value);
    padding_tables(&all, p, r->workspace);
    const int64_t items = y->count / y->dims[last] / rows * bands;
#pragma omp parallel for schedule(static) if (y->count >= WALK_PARALLEL)
    for (int64_t i = 0; i < items; i++) {
        const int64_t from = i % bands * PADDING_BAND, to = from + PADDING_BAND;
        padding_band(&all, i / bands, from, to < rows ? to : rows);
    }
}

static int padding_run(const strata_run *r)
{
    const strata_padding *p = r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct walk w;
    if (padding_has_rows(x, y)) {
        padding_run_rows(r);
        return STRATA_OK;
    }
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
