/* SPDX-License-Identifier: Apache-2.0
 *
 * Gather: elements, slices or sub-tensors of the data that indices choose, moved as they
 * are. An index outside of its dim gives zeros.
 */
#include <strata/layers.h>

#include <stdbool.h>

#include "plugins/common/dense.h"
#include "plugins/common/walk.h"
#include "plugins/gather/gather.h"

/* ---- shape ----------------------------------------------------------------------- */

static int same_batch(const strata_node *n, int32_t dims)
{
    const strata_tensor *x = &n->in[0], *index = &n->in[1];
    if (dims > x->rank || dims > index->rank)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "batch_dims is %d; data has rank %d, indices %d", (int)dims,
                           (int)x->rank, (int)index->rank);
    for (int32_t d = 0; d < dims; d++)
        if (x->dims[d] != index->dims[d])
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "dim %d is %lld in the data and %lld in the indices; the "
                               "first batch_dims = %d are equal",
                               (int)d, (long long)x->dims[d], (long long)index->dims[d],
                               (int)dims);
    return STRATA_OK;
}

/* The output is data[:head] + indices[batch:index_end] + data[tail:]. */
static int put_together(const strata_node *n, int32_t head, int32_t index_end,
                        int32_t tail)
{
    const strata_gather *p = n->params;
    const strata_tensor *x = &n->in[0], *index = &n->in[1];
    const int32_t batch = (int32_t)p->batch_dims;
    const int32_t rank = head + index_end - batch + x->rank - tail;
    int64_t *dims = n->out[0].dims;
    if (rank > STRATA_MAX_RANK)
        return STRATA_FAIL(n, STRATA_EINVAL, "the output would have rank %d, at most %d",
                           (int)rank, STRATA_MAX_RANK);
    for (int32_t d = 0; d < head; d++)
        *dims++ = x->dims[d];
    for (int32_t d = batch; d < index_end; d++)
        *dims++ = index->dims[d];
    for (int32_t d = tail; d < x->rank; d++)
        *dims++ = x->dims[d];
    if (rank == 0)
        *dims = 1;
    n->out[0].rank = rank ? rank : 1;
    return STRATA_OK;
}

static int shape_slices(const strata_node *n)
{
    const strata_gather *p = n->params;
    const int32_t axis = index_axis(p->axis, n->in[0].rank);
    if (axis < p->batch_dims)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "axis %lld lies before batch_dims = %lld; it follows them",
                           (long long)p->axis, (long long)p->batch_dims);
    return put_together(n, axis, n->in[1].rank, axis + 1);
}

static int shape_elements(const strata_node *n)
{
    const strata_gather *p = n->params;
    const strata_tensor *x = &n->in[0], *index = &n->in[1];
    const int32_t axis = index_axis(p->axis, x->rank);
    if (p->batch_dims != 0 || index->rank != x->rank)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "indices have rank %d, data %d, batch_dims is %lld; mode "
                           "elements takes equal ranks and no batch_dims",
                           (int)index->rank, (int)x->rank, (long long)p->batch_dims);
    for (int32_t d = 0; d < x->rank; d++)
        if (d != axis && index->dims[d] > x->dims[d])
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "dim %d of the indices is %lld, of the data %lld; it is "
                               "not larger except along axis",
                               (int)d, (long long)index->dims[d], (long long)x->dims[d]);
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, index->dims, sizeof index->dims);
    return STRATA_OK;
}

static int shape_nd(const strata_node *n)
{
    const strata_gather *p = n->params;
    const strata_tensor *x = &n->in[0], *index = &n->in[1];
    const int64_t depth = index->dims[index->rank - 1];
    if (p->batch_dims >= index->rank)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "batch_dims is %lld; indices of rank %d leave the last dim to "
                           "the tuples",
                           (long long)p->batch_dims, (int)index->rank);
    if (depth < 1 || depth > x->rank - p->batch_dims)
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "the last dim of the indices is %lld; 1 to %lld indices choose "
            "from data of rank %d",
            (long long)depth, (long long)(x->rank - p->batch_dims), (int)x->rank);
    return put_together(n, (int32_t)p->batch_dims, index->rank - 1,
                        (int32_t)(p->batch_dims + depth));
}

/* Indices into nothing have no element to give. */
static int check_nothing(const strata_node *n)
{
    const int64_t count = dense_count(&n->out[0]);
    if (count > 0 && dense_count(&n->in[0]) == 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%lld elements are to come from data that has none",
                           (long long)count);
    return STRATA_OK;
}

static int gather_shape(const strata_node *n)
{
    static int (*const shapes[])(const strata_node *) = {shape_slices, shape_elements,
                                                         shape_nd};
    const strata_gather *p = n->params;
    if (!index_is_integer(n->in[1].dtype))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "indices are of no integer type; i32 or i64 is needed: a Cast "
                           "gives one");
    if (p->mode != STRATA_GATHER_ND && index_axis(p->axis, n->in[0].rank) < 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "axis %lld is outside data of rank %d",
                           (long long)p->axis, (int)n->in[0].rank);
    int status = same_batch(n, (int32_t)p->batch_dims);
    if (status == STRATA_OK)
        status = shapes[p->mode](n);
    return status == STRATA_OK ? check_nothing(n) : status;
}

/* ---- running --------------------------------------------------------------------- */

static void run_rows(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const struct gather_rows g = gather_rows(r->params, x, &r->in[1]);
    const int64_t bytes = gather_row(r->params, x, &r->in[1]) * index_size(x->dtype);
    const int64_t rows = y->count * index_size(x->dtype) / bytes;
#pragma omp parallel for schedule(static) if (rows * bytes >= INDEX_PARALLEL)
    for (int64_t row = 0; row < rows; row++) {
        const int64_t outer = row / g.per;
        const int64_t from =
            gather_source(&g, outer / g.outer, outer % g.outer, row % g.per);
        index_copy_row((char *)y->data + row * bytes,
                       from < 0 ? NULL : (const char *)x->data + from * bytes, bytes);
    }
}

/* Whether n indices are at least 0 and below dim: the sign's bit of none is set, nor of
 * what it leaves to dim - 1. One look at all, for one at each stands between every two
 * loads. */
#define INSIDE(I)                                                                        \
    static bool inside_##I(const I *index, int64_t n, int64_t dim)                       \
    {                                                                                    \
        uint64_t signs = 0;                                                              \
        for (int64_t j = 0; j < n; j++) {                                                \
            const int64_t i = index[j];                                                  \
            signs |= (uint64_t)i | ((uint64_t)(dim - 1) - (uint64_t)i);                  \
        }                                                                                \
        return signs >> 63 == 0;                                                         \
    }
INSIDE(int32_t)
INSIDE(int64_t)
#undef INSIDE

#define INDICES 64 /* at a time */

/* Elements along the last of the joined dims, from offset `from` and index `at` on: with
 * the indices' dtype and the common steps known, a few instructions each. An index below
 * -dim may overflow nothing: `i` is only compared. */
#define CHOSEN(I, step, along)                                                           \
    for (int64_t begin = 0; begin < n; begin += INDICES) {                               \
        const int64_t end = n - begin < INDICES ? n : begin + INDICES;                   \
        const I *index = (const I *)g->index + at;                                       \
        if (inside_##I(index + begin, end - begin, dim))                                 \
            for (int64_t j = begin; j < end; j++)                                        \
                y[j] = data[index[j] * (step) + j * (along)];                            \
        else                                                                             \
            for (int64_t j = begin; j < end; j++) {                                      \
                const int64_t i = index[j] + (index[j] < 0 ? dim : 0);                   \
                y[j] = (uint64_t)i < (uint64_t)dim ? data[i * (step) + j * (along)] : 0; \
            }                                                                            \
    }
#define ELEMENTS(T)                                                                      \
    static void elements_##T(const struct index_elements *g, void *to, const void *x,    \
                             int64_t from, int64_t at)                                   \
    {                                                                                    \
        const int64_t step = g->stride[g->axis], n = g->n[g->rank - 1];                  \
        const int64_t along = g->axis == g->rank - 1 ? 0 : 1, dim = g->dim;              \
        const T *data = (const T *)x + from;                                             \
        T *y = (T *)to + at;                                                             \
        if (g->dtype == STRATA_INT64 && step == 1 && along == 0)                         \
            CHOSEN(int64_t, 1, 0)                                                        \
        else if (g->dtype == STRATA_INT64)                                               \
            CHOSEN(int64_t, step, along)                                                 \
        else                                                                             \
            CHOSEN(int32_t, step, along)                                                 \
    }
ELEMENTS(uint8_t)
ELEMENTS(uint16_t)
ELEMENTS(uint32_t)
ELEMENTS(uint64_t)
#undef ELEMENTS
#undef CHOSEN

static void run_elements(const strata_run *r)
{
    static void (*const each[])(const struct index_elements *, void *, const void *,
                                int64_t, int64_t) = {
        [1] = elements_uint8_t,
        [2] = elements_uint16_t,
        [4] = elements_uint32_t,
        [8] = elements_uint64_t,
    };
    const strata_gather *p = r->params;
    const strata_tensor *y = &r->out[0];
    const struct index_elements g =
        index_join(index_axis(p->axis, y->rank), &r->in[0], &r->in[1]);
    const int64_t length = g.n[g.rank - 1], lines = y->count / length;
    const int64_t size = index_size(y->dtype);
#pragma omp parallel for schedule(static) if (y->count * size >= INDEX_PARALLEL)
    for (int64_t line = 0; line < lines; line++) {
        int64_t from = 0, rest = line;
        for (int32_t d = g.rank - 2; d >= 0; d--) {
            from += d == g.axis ? 0 : rest % g.n[d] * g.stride[d];
            rest /= g.n[d];
        }
        each[size](&g, y->data, r->in[0].data, from, line * length);
    }
}

static int gather_run(const strata_run *r)
{
    const strata_gather *p = r->params;
    if (p->mode == STRATA_GATHER_ELEMENTS)
        run_elements(r);
    else
        run_rows(r);
    return STRATA_OK;
}

/* ---- reference ------------------------------------------------------------------- */

/* Position in the data of an output index, or -1. */
static int64_t source_of(const strata_node *n, const int64_t *index, const int64_t *at)
{
    const strata_gather *p = n->params;
    const strata_tensor *x = &n->in[0], *table = &n->in[1];
    const int32_t batch = (int32_t)p->batch_dims;
    int64_t from[STRATA_MAX_RANK], tuple[STRATA_MAX_RANK];
    int32_t axis = index_axis(p->axis, x->rank), chosen = 1, used = table->rank - batch;
    if (p->mode == STRATA_GATHER_ELEMENTS) {
        memcpy(from, at, sizeof from);
        from[axis] = index_wrapped(index[dense_offset(table, at)], x->dims[axis]);
        return from[axis] < 0 ? -1 : dense_offset(x, from);
    }
    if (p->mode == STRATA_GATHER_ND) {
        axis = batch;
        chosen = (int32_t)table->dims[table->rank - 1];
        used--;
    }
    memcpy(tuple, at, sizeof tuple);
    memcpy(tuple + batch, at + axis, (size_t)used * sizeof *at);
    memcpy(from, at, sizeof from);
    for (int32_t k = 0; k < chosen; k++) {
        if (p->mode == STRATA_GATHER_ND)
            tuple[table->rank - 1] = k;
        from[axis + k] =
            index_wrapped(index[dense_offset(table, tuple)], x->dims[axis + k]);
        if (from[axis + k] < 0)
            return -1;
    }
    for (int32_t d = axis + chosen; d < x->rank; d++)
        from[d] = at[d - chosen + used];
    return dense_offset(x, from);
}

static int gather_reference(const strata_node *n, const void *const *in,
                            const void *const *weight, void *const *out)
{
    const int64_t count = dense_count(&n->out[0]);
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        int64_t at[STRATA_MAX_RANK] = {0};
        dense_index(&n->out[0], i, at);
        const int64_t from = source_of(n, in[1], at);
        memset((char *)out[0] + i * 8, 0, 8); /* a double or an int64_t */
        if (from >= 0)
            memcpy((char *)out[0] + i * 8, (const char *)in[0] + from * 8, 8);
    }
    return STRATA_OK;
}

static const void *gather_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     gather_reference};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

/* ---- tables ---------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "mode",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_gather, mode),
     .def = STRATA_GATHER_SLICES,
     .choices = "slices|elements|nd",
     .doc = "what an index chooses: a slice across axis; one element, its place on axis; "
            "or, as a tuple along the indices' last dim, a sub-tensor"},
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_gather, axis),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim that is indexed; negative counts from the end; not used by nd"},
    {.name = "batch_dims",
     .type = STRATA_I64,
     .offset = offsetof(strata_gather, batch_dims),
     .min = 0,
     .max = STRATA_MAX_RANK - 1,
     .doc = "leading dims that data and indices share"},
};

static const strata_row rows[] = {{{INDEX_LINEAR, INDEX_FORMATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 1,
     .bandwidth = 0.6,
     .run = gather_run},
};

static const strata_layer gather = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Gather",
    .doc = "Elements, slices or sub-tensors that indices choose",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .params_size = sizeof(strata_gather),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = gather_shape,
    .flops = walk_no_flops,
    .extension = gather_extension,
};

static const strata_layer *const layers[] = {&gather};
STRATA_MODULE("core", "1.0.0", "Gather", layers)
