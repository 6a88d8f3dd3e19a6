/* SPDX-License-Identifier: Apache-2.0
 *
 * Reduce: sums, products, extremes and norms over some dims. The host gathers stretches
 * of memory as they lie; where outputs are few, what is behind them is cut into pieces
 * that are joined in their order, so that results depend on sizes alone.
 */
#include "plugins/reduce/product.h"

#include "plugins/common/dense.h"
#include "plugins/common/walk.h"

#define PIECE_TERMS 32768 /* elements a piece has at least */
#define PIECES 64         /* at most */
#define CHUNK 4096        /* columns at once */

static const char *const ops[] = {"sum", "mean", "max",        "min",     "prod",
                                  "l1",  "l2",   "sum_square", "log_sum", "log_sum_exp"};

/* ---- the layer -------------------------------------------------------------------- */

static int reduce_refuse(const strata_node *n)
{
    const strata_reduce *p = n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t dims = reduce_dims(p, x->rank);
    if (dims == -1)
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "an axis is outside a tensor of rank %d; give axes from %d to %d",
            (int)x->rank, -(int)x->rank, (int)x->rank - 1);
    if (dims == -2)
        return STRATA_FAIL(n, STRATA_EINVAL, "an axis is given twice; leave one out");
    if (x->dtype == STRATA_BOOL8 && p->op != STRATA_REDUCE_MAX &&
        p->op != STRATA_REDUCE_MIN)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "op = %s of bool; max and min take it, a Cast makes numbers",
                           ops[p->op]);
    if (!dense_is_real(x->dtype) &&
        (p->op == STRATA_REDUCE_L2 || p->op >= STRATA_REDUCE_LOG_SUM))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "op = %s of integers; put a Cast to a float before it",
                           ops[p->op]);
    return STRATA_OK;
}

static int reduce_shape(const strata_node *n)
{
    const strata_reduce *p = n->params;
    const strata_tensor *x = &n->in[0];
    strata_tensor *out = &n->out[0];
    const int status = reduce_refuse(n);
    const int32_t dims = reduce_dims(p, x->rank);
    if (status != STRATA_OK)
        return status;
    out->rank = 0;
    for (int32_t d = 0; d < x->rank; d++)
        if (!(dims >> d & 1) || p->keep_dims)
            out->dims[out->rank++] = dims >> d & 1 ? 1 : x->dims[d];
    if (out->rank == 0) /* a scalar */
        out->dims[out->rank++] = 1;
    return STRATA_OK;
}

static double reduce_flops(const strata_node *n)
{
    return 2.0 * (double)n->in[0].count;
}

/* ---- the definition --------------------------------------------------------------- */

static enum gather reduce_gather(int32_t op)
{
    switch (op) {
    case STRATA_REDUCE_MAX:
        return GATHER_MAX;
    case STRATA_REDUCE_MIN:
        return GATHER_MIN;
    case STRATA_REDUCE_PROD:
        return GATHER_PRODUCT;
    case STRATA_REDUCE_L1:
        return GATHER_ABS;
    case STRATA_REDUCE_L2:
    case STRATA_REDUCE_SUM_SQUARE:
        return GATHER_SQUARE;
    case STRATA_REDUCE_LOG_SUM_EXP:
        return GATHER_EXP;
    default:
        return GATHER_SUM;
    }
}

/* The output element that input element i is behind. */
static int64_t reduce_place(const strata_node *n, int64_t i)
{
    const strata_reduce *p = n->params;
    const int32_t dims = reduce_dims(p, n->in[0].rank);
    int64_t index[STRATA_MAX_RANK], place = 0;
    dense_index(&n->in[0], i, index);
    for (int32_t d = 0; d < n->in[0].rank; d++)
        if (!(dims >> d & 1))
            place = place * n->in[0].dims[d] + index[d];
    return place;
}

static void reduce_define_integers(const strata_node *n, const int64_t *x, int64_t *y)
{
    const strata_reduce *p = n->params;
    const enum gather g = reduce_gather(p->op);
    const int64_t count = dense_count(&n->in[0]), outputs = dense_count(&n->out[0]);
    integer_start(g, n->in[0].dtype, y, outputs);
    for (int64_t i = 0; i < count; i++) {
        int64_t *a = &y[reduce_place(n, i)];
        *a = integer_step(g, *a, x[i]);
    }
    integer_finish(p->op, y, NULL, reduce_terms(p, &n->in[0]), outputs);
    for (int64_t i = 0; i < outputs; i++)
        y[i] = dense_wrap(n->out[0].dtype, y[i]);
}

static void reduce_define(const strata_node *n, const double *x, double *y)
{
    const strata_reduce *p = n->params;
    const enum gather g = reduce_gather(p->op);
    const int64_t count = dense_count(&n->in[0]), outputs = dense_count(&n->out[0]);
    double most = -INFINITY;
    for (int64_t i = 0; i < count; i++) /* one shift is enough in FP64, if not too far */
        most = x[i] > most ? x[i] : most;
    const double shift = isfinite(most) ? most : 0;
    for (int64_t i = 0; i < outputs; i++)
        y[i] = (double)gather_start(g);
    for (int64_t i = 0; i < count; i++) {
        double *a = &y[reduce_place(n, i)];
        *a = double_step(g, *a, x[i], shift);
    }
    for (int64_t i = 0; i < outputs; i++)
        y[i] = reduce_finish(p->op, y[i], shift, reduce_terms(p, &n->in[0]));
}

static int reduce_define_products(const strata_node *n, const double *x, double *y)
{
    const int64_t count = dense_count(&n->in[0]), outputs = dense_count(&n->out[0]);
    int64_t *exponent = calloc((size_t)(outputs ? outputs : 1), sizeof *exponent);
    if (!exponent)
        return STRATA_FAIL(n, STRATA_ENOMEM, "no memory for %lld exponents",
                           (long long)outputs);
    for (int64_t i = 0; i < outputs; i++)
        y[i] = 1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = reduce_place(n, i);
        y[at] = product_split(y[at] * product_split(x[i], &exponent[at]), &exponent[at]);
    }
    for (int64_t i = 0; i < outputs; i++)
        y[i] = product_close(y[i], exponent[i]);
    free(exponent);
    return STRATA_OK;
}

static int reduce_reference(const strata_node *n, const void *const *in,
                            const void *const *weight, void *const *out)
{
    (void)weight;
    const strata_reduce *p = n->params;
    if (dense_is_real(n->in[0].dtype) && p->op == STRATA_REDUCE_PROD)
        return reduce_define_products(n, in[0], out[0]);
    if (dense_is_real(n->in[0].dtype))
        reduce_define(n, in[0], out[0]);
    else
        reduce_define_integers(n, in[0], out[0]);
    return STRATA_OK;
}

static const void *reduce_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     reduce_reference};
    return dense_extension_typed(id, &reference);
}

/* ---- the host's ------------------------------------------------------------------- */

struct reduce_call {
    const strata_run *run;
    int32_t op;
    enum gather gather;
    const struct reduce_number *number;
    struct reduce_plan plan;
    int64_t terms;         /* behind an output element */
    int64_t chunk, chunks; /* columns that are gathered at once */
    bool converts;         /* stretches are made into numbers first */
    bool shifts;           /* outputs have a shift, or an exponent */
    int64_t pieces;        /* of what is behind an output element */
};

static void reduce_prepare(struct reduce_call *c, const strata_reduce *p,
                           const strata_tensor *x, const strata_tensor *y)
{
    c->op = p->op;
    c->gather = reduce_gather(p->op);
    const bool product = c->gather == GATHER_PRODUCT && dense_is_real(x->dtype);
    c->number = product ? &product_number : reduce_number_of(x->dtype);
    c->shifts = product || c->gather == GATHER_EXP;
    c->converts = product || (x->dtype != STRATA_FP32 && x->dtype != STRATA_FP64 &&
                              x->dtype != STRATA_INT64);
    c->plan = reduce_plan_of(p, x, y, CHUNK);
    c->terms = reduce_terms(p, x);
    c->chunk = c->plan.width < CHUNK ? c->plan.width : CHUNK;
    c->chunks = c->chunk ? (c->plan.width + c->chunk - 1) / c->chunk : 0;
    const int64_t items = c->plan.kept * c->chunks, rows = c->plan.run * c->plan.gone;
    c->pieces = items < 8 && items > 0 ? rows * c->chunk / PIECE_TERMS : 1;
    c->pieces = c->pieces > PIECES ? PIECES : c->pieces;
    c->pieces = c->pieces > rows ? rows : c->pieces;
    c->pieces = c->pieces < 1 ? 1 : c->pieces;
}

/* What pieces gather, and their shifts. */
static size_t reduce_workspace(const strata_node *n)
{
    struct reduce_call c = {0};
    reduce_prepare(&c, n->params, &n->in[0], &n->out[0]);
    if (c.pieces == 1)
        return 0;
    return (size_t)(c.pieces * c.plan.kept * c.plan.width) * 2 * c.number->size;
}

/* i/n, and what is left of i. A row of a few hundred elements takes no longer than one
 * division of 64 bits, so those that need none are left out. */
static int64_t reduce_split(int64_t i, int64_t n, int64_t *rest)
{
    *rest = 0;
    if (n == 1)
        return i;
    *rest = i;
    if (i < n)
        return 0;
    *rest = i % n;
    return i / n;
}

static int64_t reduce_offset(const struct reduce_axis *axis, int32_t n, int64_t i,
                             bool out)
{
    int64_t at = 0, index;
    for (int32_t d = 0; d < n; d++) {
        i = reduce_split(i, axis[d].n, &index);
        at += index * (out ? axis[d].out : axis[d].in);
    }
    return at;
}

/* Columns of one kept position. */
struct reduce_item {
    int64_t kept, column, n;
};

static int64_t rows_of(const struct reduce_call *c)
{
    return c->plan.run * c->plan.gone;
}

static void reduce_gather_rows(const struct reduce_call *c, const struct reduce_item *i,
                               enum gather g, void *a, void *shift, int64_t from,
                               int64_t to)
{
    const struct reduce_plan *p = &c->plan;
    const int64_t most = c->converts ? REDUCE_STRETCH / i->n : rows_of(c);
    const int64_t first = reduce_offset(p->keep, p->n_kept, i->kept, false) + i->column;
    double buffer[REDUCE_STRETCH];
    for (int64_t row = from, rows; row < to; row += rows) {
        int64_t in_run;
        const int64_t place = reduce_split(row, p->run, &in_run);
        rows = p->run - in_run < to - row ? p->run - in_run : to - row;
        rows = rows < most ? rows : most;
        const int64_t at =
            first + reduce_offset(p->go, p->n_gone, place, false) + in_run * p->width;
        const void *x = c->number->load(&c->run->in[0], at, rows * i->n, buffer);
        c->number->lanes(g, a, x, shift, i->n, rows * i->n);
    }
}

static void reduce_piece(const struct reduce_call *c, const struct reduce_item *i,
                         int64_t piece, void *a, void *shift)
{
    const int64_t rows = rows_of(c);
    const int64_t from = piece == 0 ? 0 : rows * piece / c->pieces;
    const int64_t to = piece + 1 == c->pieces ? rows : rows * (piece + 1) / c->pieces;
    const int32_t dtype = c->run->in[0].dtype;
    if (c->gather == GATHER_EXP) {
        c->number->start(GATHER_MAX, dtype, shift, i->n);
        reduce_gather_rows(c, i, GATHER_MAX, shift, NULL, from, to);
        c->number->shift(shift, i->n);
    } else if (c->shifts) {
        memset(shift, 0, (size_t)i->n * c->number->size);
    }
    c->number->start(c->gather, dtype, a, i->n);
    reduce_gather_rows(c, i, c->gather, a, shift, from, to);
}

static void reduce_close(const struct reduce_call *c, const struct reduce_item *i,
                         void *a, const void *shift)
{
    const int64_t at = reduce_offset(c->plan.keep, c->plan.n_kept, i->kept, true);
    c->number->finish(c->op, a, c->shifts ? shift : NULL, c->terms, i->n);
    c->number->store(&c->run->out[0], at + i->column * c->plan.step, c->plan.step, a,
                     i->n);
}

static struct reduce_item reduce_item_at(const struct reduce_call *c, int64_t at)
{
    struct reduce_item i = {.n = c->chunk};
    i.kept = reduce_split(at, c->chunks, &i.column);
    i.column *= c->chunk;
    if (i.n > c->plan.width - i.column)
        i.n = c->plan.width - i.column;
    return i;
}

/* Where a piece keeps what it gathers, or its shifts. */
static void *reduce_part(const struct reduce_call *c, const struct reduce_item *i,
                         int64_t piece, bool shift)
{
    const int64_t outputs = c->plan.kept * c->plan.width;
    const int64_t at =
        (piece * 2 + shift) * outputs + i->kept * c->plan.width + i->column;
    return (char *)c->run->workspace + at * (int64_t)c->number->size;
}

static void reduce_join(const struct reduce_call *c, const struct reduce_item *i)
{
    void *a = reduce_part(c, i, 0, false), *shift = reduce_part(c, i, 0, true);
    for (int64_t piece = 1; piece < c->pieces; piece++)
        c->number->join(c->gather, a, shift, reduce_part(c, i, piece, false),
                        reduce_part(c, i, piece, true), i->n);
    reduce_close(c, i, a, shift);
}

static void reduce_item_run(const struct reduce_call *c, int64_t at)
{
    double a[CHUNK], shift[CHUNK];
    int64_t piece;
    const struct reduce_item i = reduce_item_at(c, reduce_split(at, c->pieces, &piece));
    if (c->pieces > 1) {
        reduce_piece(c, &i, piece, reduce_part(c, &i, piece, false),
                     reduce_part(c, &i, piece, true));
        return;
    }
    reduce_piece(c, &i, 0, a, shift);
    reduce_close(c, &i, a, shift);
}

/* Outputs are FP32 rows in one piece each. */
static bool reduce_is_rows(const struct reduce_call *c)
{
    return c->number == &float_number && !c->converts && !c->shifts && c->pieces == 1 &&
           c->plan.width == 1 && c->plan.n_gone == 0;
}

static void reduce_rows_run(const struct reduce_call *c)
{
    const struct reduce_plan *p = &c->plan;
    const struct gather_code *code = gather_choose();
    const float *x = c->run->in[0].data;
    float *y = c->run->out[0].data;
#pragma omp parallel for schedule(static) if (c->run->in[0].size >= WALK_PARALLEL)
    for (int64_t i = 0; i < p->kept; i++) {
        const float *row = x + reduce_offset(p->keep, p->n_kept, i, false);
        float a = code->row(c->gather, row, p->run, 0);
        c->number->finish(c->op, &a, NULL, c->terms, 1);
        y[reduce_offset(p->keep, p->n_kept, i, true)] = a;
    }
}

static int reduce_run(const strata_run *r)
{
    struct reduce_call c = {.run = r};
    reduce_prepare(&c, r->params, &r->in[0], &r->out[0]);
    if (reduce_is_rows(&c)) {
        reduce_rows_run(&c);
        walk_clear_pads(&r->out[0]);
        return STRATA_OK;
    }
    const int64_t items = c.plan.kept * c.chunks;
#pragma omp parallel for schedule(static) if (r->in[0].size >= WALK_PARALLEL)
    for (int64_t i = 0; i < items * c.pieces; i++)
        reduce_item_run(&c, i);
    for (int64_t i = 0; i < items && c.pieces > 1; i++) {
        const struct reduce_item item = reduce_item_at(&c, i);
        reduce_join(&c, &item);
    }
    walk_clear_pads(&r->out[0]);
    return STRATA_OK;
}

/* ---- tables ------------------------------------------------------------------------ */

/* Channels of vectors stay where they are. */
static int reduce_accept(const strata_node *n)
{
    const strata_reduce *p = n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t dims = reduce_dims(p, x->rank);
    if (x->vector_dim >= 0 && (dims >> 1 & 1 || (dims & 1 && !p->keep_dims)))
        return STRATA_FAIL(
            n, STRATA_EUNSUPPORTED,
            "reduces channels, or the batch without keep_dims; formats with "
            "vectors take spatial dims");
    return STRATA_OK;
}

static const strata_attr attrs[] = {
    {.name = "op",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_reduce, op),
     .choices = "sum|mean|max|min|prod|l1|l2|sum_square|log_sum|log_sum_exp",
     .doc = "what is made of the elements"},
    {.name = "axes",
     .type = STRATA_INTS,
     .offset = offsetof(strata_reduce, axes),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dims that are reduced, in any order; none: all"},
    {.name = "keep_dims",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_reduce, keep_dims),
     .def = 1,
     .doc = "leave reduced dims as dims of 1"},
};

#define LINEAR                                                                           \
    (STRATA_F64_NCHW | STRATA_I32_NCHW | STRATA_I64_NCHW | STRATA_U8_NCHW |              \
     STRATA_I8_NCHW | STRATA_BOOL_NCHW)

static const strata_row rows[] = {{{WALK_FLOATS | LINEAR}, {STRATA_SAME}, {0}, {0}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.1,
     .bandwidth = 0.6,
     .accept = reduce_accept,
     .workspace = reduce_workspace,
     .run = reduce_run},
};

static const strata_layer reduce = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Reduce",
    .doc = "Sum, mean, extreme, product or norm over some dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_reduce),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = reduce_shape,
    .flops = reduce_flops,
    .extension = reduce_extension,
};

static const strata_layer *const layers[] = {&reduce};
STRATA_MODULE("core", "1.0.0", "Reduce", layers)
