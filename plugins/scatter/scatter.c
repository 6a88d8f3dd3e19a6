/* SPDX-License-Identifier: Apache-2.0
 *
 * Scatter: the data with updates at their indices, in the order of the indices, so that
 * the last one wins where several meet; or added, multiplied, or the larger or smaller
 * one. Updates whose index is outside are left out. May run in place of the data.
 */
#include "plugins/scatter/scatter.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <strata/narrow.h>

#include "plugins/common/dense.h"
#include "plugins/common/element.h"
#include "plugins/common/walk.h"
#include "plugins/scatter/exact.h"
#include "plugins/scatter/replace.h"
#include "plugins/scatter/select.h"

#define PARTS 8 /* of the output, that threads take */

/* ---- shape ----------------------------------------------------------------------- */

static int shape_elements(const strata_node *n)
{
    const strata_scatter *p = n->params;
    const strata_tensor *x = &n->in[0], *index = &n->in[1], *update = &n->in[2];
    const int32_t axis = index_axis(p->axis, x->rank);
    if (axis < 0 || index->rank != x->rank || update->rank != x->rank)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "data, indices and updates have ranks %d, %d and %d, axis is "
                           "%lld; mode elements takes equal ranks and one of their dims",
                           (int)x->rank, (int)index->rank, (int)update->rank,
                           (long long)p->axis);
    for (int32_t d = 0; d < x->rank; d++)
        if (index->dims[d] != update->dims[d] ||
            (d != axis && index->dims[d] > x->dims[d]))
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "dim %d is %lld in the data, %lld in the indices and %lld "
                               "in the updates; the last two are equal, and not larger "
                               "than the data except along axis",
                               (int)d, (long long)x->dims[d], (long long)index->dims[d],
                               (long long)update->dims[d]);
    return STRATA_OK;
}

static int shape_nd(const strata_node *n)
{
    const strata_tensor *x = &n->in[0], *index = &n->in[1], *update = &n->in[2];
    const int64_t depth = index->dims[index->rank - 1];
    const int32_t outer = index->rank - 1;
    if (depth < 1 || depth > x->rank)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the last dim of the indices is %lld; 1 to %d indices choose "
                           "from data of that rank",
                           (long long)depth, (int)x->rank);
    int fits = update->rank == outer + x->rank - depth ||
               (outer + x->rank == depth && update->rank == 1 && update->dims[0] == 1);
    for (int32_t d = 0; fits && d < update->rank && outer + x->rank != depth; d++)
        fits =
            update->dims[d] == (d < outer ? index->dims[d] : x->dims[d - outer + depth]);
    if (!fits)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "updates of rank %d do not have the dims of the indices but "
                           "the last, then those of the data behind %lld",
                           (int)update->rank, (long long)depth);
    return STRATA_OK;
}

static int scatter_shape(const strata_node *n)
{
    const strata_scatter *p = n->params;
    const strata_tensor *x = &n->in[0];
    if (!index_is_integer(n->in[1].dtype))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "indices are of no integer type; i32 or i64 is needed: a Cast "
                           "gives one");
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof x->dims);
    return p->mode == STRATA_SCATTER_ND ? shape_nd(n) : shape_elements(n);
}

static int scatter_accept(const strata_node *n)
{
    const strata_scatter *p = n->params;
    const int32_t dtype = n->in[0].dtype;
    return p->reduction != STRATA_SCATTER_NONE &&
                   (dtype == STRATA_E4M3 || dtype == STRATA_E5M2)
               ? STRATA_FAIL(
                     n, STRATA_EUNSUPPORTED,
                     "FP8 is not reduced; a Cast before Scatter gives a wider type")
               : STRATA_OK;
}

/* ---- reductions ------------------------------------------------------------------ */

#define EACH(expression)                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                    \
        const compute a = LOAD(y[i]), b = LOAD(u[i]);                                    \
        y[i] = STORE(expression);                                                        \
    }                                                                                    \
    break

/* n updates u to neighbours y. NaN is the larger and the smaller one. */
#define REDUCE(name, type, work)                                                         \
    static void reduce_##name(int32_t reduction, void *to, const void *from, int64_t n)  \
    {                                                                                    \
        typedef work compute;                                                            \
        type *y = to;                                                                    \
        const type *u = from;                                                            \
        switch (reduction) {                                                             \
        case STRATA_SCATTER_ADD:                                                         \
            EACH(ADD(a, b));                                                             \
        case STRATA_SCATTER_MUL:                                                         \
            EACH(MUL(a, b));                                                             \
        case STRATA_SCATTER_MAX:                                                         \
            EACH(a > b || a != a ? a : b);                                               \
        case STRATA_SCATTER_MIN:                                                         \
            EACH(a < b || a != a ? a : b);                                               \
        default:                                                                         \
            memcpy(to, from, (size_t)n * sizeof *y);                                     \
            break;                                                                       \
        }                                                                                \
    }

/* Integers wrap; unsigned arithmetic does so without being undefined. */
#define LOAD(x) (x)
#define ADD(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define MUL(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define STORE(x) (int8_t)(x)
REDUCE(i8, int8_t, int64_t)
#undef STORE
#define STORE(x) (uint8_t)(x)
REDUCE(u8, uint8_t, int64_t)
#undef STORE
#define STORE(x) (int32_t)(x)
REDUCE(i32, int32_t, int64_t)
#undef STORE
#define STORE(x) (x)
REDUCE(i64, int64_t, int64_t)
#undef ADD
#undef MUL
#undef STORE
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define STORE(x) (x)
REDUCE(f32, float, float)
REDUCE(f64, double, double)
#undef STORE
#define STORE(x) ((x) != 0)
REDUCE(bool8, uint8_t, int32_t)
#undef LOAD
#undef STORE
#define LOAD(x) element_load(&(x), STRATA_FP16, 0)
#define STORE(x) element_to_half(x)
REDUCE(f16, uint16_t, float)
#undef LOAD
#undef STORE
#define LOAD(x) element_load(&(x), STRATA_BF16, 0)
#define STORE(x) strata_bfloat_of_float(x)
REDUCE(bf16, uint16_t, float)

/* FP32 sums, or products, of n halves. */
#define GATHER(name, dtype)                                                              \
    static void gather_##name(int32_t reduction, void *to, const void *from, int64_t n)  \
    {                                                                                    \
        float *y = to;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                \
            const float u = element_load(from, dtype, i);                                \
            y[i] = reduction == STRATA_SCATTER_ADD ? y[i] + u : y[i] * u;                \
        }                                                                                \
    }
GATHER(f16, STRATA_FP16)
GATHER(bf16, STRATA_BF16)

typedef void reduce(int32_t reduction, void *to, const void *from, int64_t n);

static reduce *reduce_of(int32_t dtype)
{
    static reduce *const reductions[STRATA_DTYPE_COUNT] = {
        [STRATA_FP32] = reduce_f32,    [STRATA_FP16] = reduce_f16,
        [STRATA_INT8] = reduce_i8,     [STRATA_UINT8] = reduce_u8,
        [STRATA_INT32] = reduce_i32,   [STRATA_INT64] = reduce_i64,
        [STRATA_BOOL8] = reduce_bool8, [STRATA_BF16] = reduce_bf16,
        [STRATA_E4M3] = reduce_u8,     [STRATA_E5M2] = reduce_u8,
        [STRATA_FP64] = reduce_f64,
    };
    return reductions[dtype];
}

/* ---- running --------------------------------------------------------------------- */

struct scatter_call {
    const strata_run *run;
    reduce *reduce;
    char *to; /* what updates join: the output, or the workspace's FP32 */
    int32_t reduction;
    int64_t size, to_size; /* bytes of an element of the updates, and of `to` */
};

/* Indices of one line along the axis and, inside it, n neighbours: the data's element
 * `to` and the indices' element `at` on; each: elements from one index to the next. */
static void scatter_line(const struct scatter_call *c, const struct index_elements *g,
                         int64_t to, int64_t at, int64_t each, int64_t n)
{
    const char *u = c->run->in[2].data;
    if (c->reduction == STRATA_SCATTER_NONE && c->size == 4 && c->to_size == 4) {
        replace_line((uint32_t *)(void *)c->to + to, (const uint32_t *)(const void *)u, g,
                     at, each, n);
        return;
    }
    for (int64_t k = 0; k < g->n[g->axis]; k++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t from = at + k * each + i;
            const int64_t j = index_at(g->index, g->dtype, from, g->dim);
            if (j >= 0)
                c->reduce(c->reduction,
                          c->to + (to + j * g->stride[g->axis] + i) * c->to_size,
                          u + from * c->size, 1);
        }
}

/* Lines never meet, so threads may take them; along one the order is kept. */
static void scatter_elements(const struct scatter_call *c)
{
    const strata_scatter *p = c->run->params;
    const strata_tensor *x = &c->run->in[0];
    const struct index_elements g =
        index_join(index_axis(p->axis, x->rank), x, &c->run->in[1]);
    const int32_t last = g.rank - 1;
    const int64_t n = last == g.axis ? 1 : g.n[last], count = c->run->in[1].count;
    const int64_t lines = count / n / g.n[g.axis];
    const int64_t parts = lines < PARTS && n >= 16 * PARTS ? PARTS : 1;
    int64_t each[STRATA_MAX_RANK] = {0};
    each[last] = 1;
    for (int32_t d = last; d > 0; d--)
        each[d - 1] = each[d] * g.n[d];
#pragma omp parallel for schedule(static) if (count * c->size >= INDEX_PARALLEL)
    for (int64_t item = 0; item < lines * parts; item++) {
        const int64_t begin = item % parts * n / parts,
                      end = (item % parts + 1) * n / parts;
        int64_t rest = item / parts, to = begin, at = begin;
        for (int32_t d = last; d >= 0; d--) {
            if (d == g.axis || (d == last && n > 1))
                continue;
            to += rest % g.n[d] * g.stride[d];
            at += rest % g.n[d] * each[d];
            rest /= g.n[d];
        }
        scatter_line(c, &g, to, at, each[g.axis], end - begin);
    }
}

static int64_t scatter_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/* A thread takes every so many-th row, or where there are few, a piece of each: rows in
 * the order in which the updates lie, whole ones where they can be. */
static void scatter_nd(const struct scatter_call *c)
{
    const struct scatter_rows s = scatter_rows(&c->run->in[0], &c->run->in[1]);
    const int64_t bytes = s.tuples * s.row * c->size;
    const int64_t parts = bytes >= INDEX_PARALLEL ? scatter_threads() : 1;
    const int pieces =
        s.row >= 16 * parts && c->run->in[0].count / s.row < 16 * parts;
#pragma omp parallel for schedule(static) if (parts > 1)
    for (int64_t part = 0; part < parts; part++) {
        const int64_t begin = pieces ? part * s.row / parts : 0,
                      end = pieces ? (part + 1) * s.row / parts : s.row;
        for (int64_t t = 0; t < s.tuples; t++) {
            const int64_t row = scatter_target(&s, t);
            if (row >= 0 && (pieces || row % parts == part))
                c->reduce(c->reduction, c->to + (row * s.row + begin) * c->to_size,
                          (const char *)c->run->in[2].data +
                              (t * s.row + begin) * c->size,
                          end - begin);
        }
    }
}

static void copy_data(const strata_run *r, int64_t size)
{
    const int64_t bytes = r->out[0].count * size;
    char *to = r->out[0].data;
    const char *from = r->in[0].data;
    if (to == from)
        return;
#pragma omp parallel for schedule(static) if (bytes >= INDEX_PARALLEL)
    for (int64_t part = 0; part < PARTS; part++) {
        const int64_t begin = part * bytes / PARTS, end = (part + 1) * bytes / PARTS;
        memcpy(to + begin, from + begin, (size_t)(end - begin));
    }
}

static void scatter_updates(const struct scatter_call *c)
{
    const strata_scatter *p = c->run->params;
    if (p->mode == STRATA_SCATTER_ND)
        scatter_nd(c);
    else
        scatter_elements(c);
}

/* The data as FP32, the updates, and the output rounded. */
static void gather_updates(const strata_run *r)
{
    const strata_scatter *p = r->params;
    const strata_tensor *y = &r->out[0];
    const uint16_t *from = r->in[0].data;
    uint16_t *to = y->data;
    float *sum = r->workspace;
    const struct scatter_call c = {.run = r,
                                   .reduce =
                                       y->dtype == STRATA_FP16 ? gather_f16 : gather_bf16,
                                   .to = r->workspace,
                                   .reduction = p->reduction,
                                   .size = sizeof *to,
                                   .to_size = sizeof *sum};
#pragma omp parallel for schedule(static) if (y->count * 4 >= INDEX_PARALLEL)
    for (int64_t part = 0; part < PARTS; part++) {
        const int64_t begin = part * y->count / PARTS,
                      end = (part + 1) * y->count / PARTS;
        element_widen_row(sum + begin, from + begin, y->dtype, end - begin);
    }
    scatter_updates(&c);
#pragma omp parallel for schedule(static) if (y->count * 4 >= INDEX_PARALLEL)
    for (int64_t part = 0; part < PARTS; part++) {
        const int64_t begin = part * y->count / PARTS,
                      end = (part + 1) * y->count / PARTS;
        element_narrow_row(to + begin, y->dtype, sum + begin, end - begin);
    }
}

static int scatter_run(const strata_run *r)
{
    const strata_scatter *p = r->params;
    const int32_t dtype = r->out[0].dtype;
    const int64_t size = index_size(dtype);
    const struct scatter_call c = {.run = r,
                                   .reduce = reduce_of(dtype),
                                   .to = r->out[0].data,
                                   .reduction = p->reduction,
                                   .size = size,
                                   .to_size = size};
    if (r->in[2].count == 0) {
        copy_data(r, size);
    } else if (scatter_gathers(p, dtype)) {
        gather_updates(r);
    } else if (r->out[0].data != r->in[0].data &&
               scatter_selects(p, &r->in[0], &r->in[1])) {
        select_rows(r, size);
    } else {
        copy_data(r, size);
        scatter_updates(&c);
    }
    return STRATA_OK;
}

/* ---- reference ------------------------------------------------------------------- */

static void exact_update(const strata_node *n, void *out, int64_t to, const void *update,
                         int64_t from)
{
    const strata_scatter *p = n->params;
    const int32_t dtype = n->in[0].dtype;
    int64_t *whole = (int64_t *)out + to;
    double *y = (double *)out + to;
    switch (dtype) {
    case STRATA_INT8:
    case STRATA_UINT8:
    case STRATA_INT32:
    case STRATA_INT64:
    case STRATA_BOOL8:
        *whole =
            exact_integer(p->reduction, dtype, *whole, ((const int64_t *)update)[from]);
        break;
    default:
        *y = exact_double(p->reduction, *y, ((const double *)update)[from]);
    }
}

static int scatter_reference(const strata_node *n, const void *const *in,
                             const void *const *weight, void *const *out)
{
    const strata_scatter *p = n->params;
    const strata_tensor *x = &n->in[0], *index = &n->in[1];
    const int32_t axis = index_axis(p->axis, x->rank);
    const int64_t *chosen = in[1], count = dense_count(&n->in[2]);
    const int64_t depth = index->dims[index->rank - 1];
    const int64_t row =
        p->mode == STRATA_SCATTER_ND ? index_count(x, (int32_t)depth, x->rank) : 1;
    (void)weight;
    memcpy(out[0], in[0], (size_t)dense_count(x) * 8);
    for (int64_t i = 0; i < count; i++) {
        int64_t at[STRATA_MAX_RANK] = {0}, to = 0;
        if (p->mode == STRATA_SCATTER_ELEMENTS) {
            dense_index(index, i, at);
            at[axis] = index_wrapped(chosen[i], x->dims[axis]);
            to = at[axis] < 0 ? -1 : dense_offset(x, at);
        }
        for (int32_t k = 0; k < depth && p->mode == STRATA_SCATTER_ND && to >= 0; k++) {
            at[k] = index_wrapped(chosen[i / row * depth + k], x->dims[k]);
            to = at[k] < 0 ? -1 : to * x->dims[k] + at[k];
        }
        if (to >= 0)
            exact_update(n, out[0],
                         p->mode == STRATA_SCATTER_ND ? to * row + i % row : to, in[2],
                         i);
    }
    return STRATA_OK;
}

static const void *scatter_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     scatter_reference};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

/* ---- tables ---------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "mode",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_scatter, mode),
     .def = STRATA_SCATTER_ELEMENTS,
     .choices = "elements|nd",
     .doc = "what an index chooses: one element, its place on axis; or, as a tuple along "
            "the indices' last dim, a sub-tensor"},
    {.name = "reduction",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_scatter, reduction),
     .def = STRATA_SCATTER_NONE,
     .choices = "none|add|mul|max|min",
     .doc = "how an update joins what is there; none takes its place, the last one where "
            "several meet"},
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_scatter, axis),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim that is indexed; negative counts from the end; not used by nd"},
};

static const strata_row rows[] = {
    {{INDEX_LINEAR, INDEX_FORMATS, STRATA_SAME}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.1,
     .bandwidth = 0.3,
     .accept = scatter_accept,
     .workspace = scatter_workspace,
     .run = scatter_run},
};

static const strata_layer scatter = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Scatter",
    .doc = "Updates at indices of a tensor",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .params_size = sizeof(strata_scatter),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = scatter_shape,
    .flops = walk_no_flops,
    .extension = scatter_extension,
};

static const strata_layer *const layers[] = {&scatter};
STRATA_MODULE("core", "1.0.0", "Scatter", layers)
