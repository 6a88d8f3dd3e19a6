/* SPDX-License-Identifier: Apache-2.0
 *
 * ArgMax: the index of the largest or smallest element along an axis. The host looks for
 * the extreme first, in vectors, and then for its place: a line that lies in one piece
 * alone, columns side by side together.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/common/lines.h"
#include "plugins/common/reduce/reduce.h"
#include "plugins/common/walk.h"

#define COLUMNS 1024 /* that are looked at together */

static int arg_shape(const strata_node *n)
{
    const strata_arg_max *p = n->params;
    const strata_tensor *x = &n->in[0];
    strata_tensor *out = &n->out[0];
    const int32_t axis = lines_axis(p->axis, x->rank);
    if (axis < 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "axis %lld is outside a tensor of rank %d",
                           (long long)p->axis, (int)x->rank);
    if (x->dims[axis] == 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "dim %d is 0; an index needs an element to point at",
                           (int)axis);
    if (x->dims[axis] > INT32_MAX && p->index == STRATA_INDEX_I32)
        return STRATA_FAIL(n, STRATA_EINVAL, "dim %d is %lld; index = i64 is needed",
                           (int)axis, (long long)x->dims[axis]);
    out->rank = 0;
    for (int32_t d = 0; d < x->rank; d++)
        if (d != axis || p->keep_dims)
            out->dims[out->rank++] = d == axis ? 1 : x->dims[d];
    if (out->rank == 0) /* a scalar */
        out->dims[out->rank++] = 1;
    out->dtype = p->index == STRATA_INDEX_I32 ? STRATA_INT32 : STRATA_INT64;
    return STRATA_OK;
}

/* The extreme is looked for and then its place. In a line that lies in one piece each
 * comparison waits for the one before, which takes the time of four. */
static double arg_flops(const strata_node *n)
{
    const strata_arg_max *p = n->params;
    const strata_tensor *x = &n->in[0];
    const bool line = lines_of(x, lines_axis(p->axis, x->rank)).inner == 1;
    return (line ? 8.0 : 2.0) * (double)x->count;
}

/* ---- the definition ---------------------------------------------------------------- */

static bool arg_better(const strata_arg_max *p, double x, double best)
{
    if (isnan(x) || isnan(best))
        return isnan(x) && (!isnan(best) || p->ties == STRATA_TIES_LAST);
    return (p->op == STRATA_ARG_MAX ? x > best : x < best) ||
           (x == best && p->ties == STRATA_TIES_LAST);
}

static bool arg_better_integer(const strata_arg_max *p, int64_t x, int64_t best)
{
    return (p->op == STRATA_ARG_MAX ? x > best : x < best) ||
           (x == best && p->ties == STRATA_TIES_LAST);
}

static int arg_reference(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_arg_max *p = n->params;
    const struct lines l = lines_of(&n->in[0], lines_axis(p->axis, n->in[0].rank));
    const double *reals = dense_is_real(n->in[0].dtype) ? in[0] : NULL;
    const int64_t *whole = in[0];
    (void)weight;
    for (int64_t i = 0; i < l.outer * l.inner; i++) {
        const int64_t from = lines_start(i, l.length, l.inner);
        int64_t best = 0;
        for (int64_t j = 1; j < l.length; j++) {
            const int64_t x = from + j * l.inner, b = from + best * l.inner;
            if (reals ? arg_better(p, reals[x], reals[b])
                      : arg_better_integer(p, whole[x], whole[b]))
                best = j;
        }
        ((int64_t *)out[0])[i] = best;
    }
    return STRATA_OK;
}

static const void *arg_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, arg_reference};
    return dense_extension_typed(id, &reference);
}

/* ---- the host's -------------------------------------------------------------------- */

struct arg_call {
    const strata_run *run;
    const strata_arg_max *params;
    struct lines lines;
};

static void arg_store(const struct arg_call *c, int64_t i, int64_t index)
{
    if (c->params->index == STRATA_INDEX_I32)
        ((int32_t *)c->run->out[0].data)[i] = (int32_t)index;
    else
        ((int64_t *)c->run->out[0].data)[i] = index;
}

/* Place of `best` in x, or -1; a NaN is found as one. */
static int64_t arg_find(const float *x, int64_t n, float best, bool last)
{
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = last ? n - 1 - k : k;
        if (x[i] == best || (x[i] != x[i] && best != best))
            return i;
    }
    return -1;
}

/* A line of floats in one piece. */
static int64_t arg_line(const struct arg_call *c, int64_t from)
{
    const strata_arg_max *p = c->params;
    const enum gather g = p->op == STRATA_ARG_MAX ? GATHER_MAX : GATHER_MIN;
    const bool last = p->ties == STRATA_TIES_LAST;
    const struct gather_code *code = gather_choose();
    const int64_t n = c->lines.length;
    float buffer[GATHER_STRETCH], best = gather_start(g);
    int64_t at = 0; /* stretch with the extreme */
    for (int64_t j = 0; j < n; j += GATHER_STRETCH) {
        const int64_t part = n - j < GATHER_STRETCH ? n - j : GATHER_STRETCH;
        const float *x = gather_load(&c->run->in[0], from + j, part, buffer);
        const float most = code->row(g, x, part, 0);
        const bool better = most != most      ? best == best || last
                            : best != best    ? false
                            : g == GATHER_MAX ? most > best
                                              : most < best;
        if (better || (most == best && last)) {
            best = most;
            at = j;
        }
    }
    const int64_t part = n - at < GATHER_STRETCH ? n - at : GATHER_STRETCH;
    const float *x = gather_load(&c->run->in[0], from + at, part, buffer);
    return at + arg_find(x, part, best, last);
}

/* One more element of each column, all of which are `at`; best is negated for the least.
 * Written with bit operations, so that it becomes vector code. */
GATHER_INLINE void arg_step_of(bool least, bool last, float *best, int32_t *place,
                               const float *x, int32_t at, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const float a = least ? -x[i] : x[i], b = best[i];
        const int nan = a != a, number = b == b;
        const int over = a > b, same = a == b;
        const int take = last ? over | same | nan : over | (nan & number);
        best[i] = take ? a : b;
        place[i] = take ? at : place[i];
    }
}

typedef void arg_step(bool least, bool last, float *best, int32_t *place, const float *x,
                      int32_t at, int64_t n);

#define ARG_STEP(name, target)                                                           \
    target static void arg_step_##name(bool least, bool last, float *best,               \
                                       int32_t *place, const float *x, int32_t at,       \
                                       int64_t n)                                        \
    {                                                                                    \
        if (least)                                                                       \
            last ? arg_step_of(true, true, best, place, x, at, n)                        \
                 : arg_step_of(true, false, best, place, x, at, n);                      \
        else                                                                             \
            last ? arg_step_of(false, true, best, place, x, at, n)                       \
                 : arg_step_of(false, false, best, place, x, at, n);                     \
    }
ARG_STEP(plain, )
#ifdef ELEMENT_X86
ARG_STEP(avx2, __attribute__((target("avx2,fma"))))
#endif

static arg_step *arg_step_choose(void)
{
#ifdef ELEMENT_X86
    if (element_has_f16c())
        return arg_step_avx2;
#endif
    return arg_step_plain;
}

/* n <= COLUMNS columns of floats, the first line being `line`. */
static void arg_columns(const struct arg_call *c, int64_t line, int64_t n)
{
    const strata_arg_max *p = c->params;
    const bool least = p->op == STRATA_ARG_MIN;
    const int64_t from = lines_start(line, c->lines.length, c->lines.inner);
    arg_step *const step = arg_step_choose();
    float best[COLUMNS], buffer[GATHER_STRETCH];
    int32_t place[COLUMNS] = {0};
    const float *first = gather_load(&c->run->in[0], from, n, buffer);
    for (int64_t i = 0; i < n; i++)
        best[i] = least ? -first[i] : first[i];
    for (int64_t j = 1; j < c->lines.length; j++)
        step(least, p->ties == STRATA_TIES_LAST, best, place,
             gather_load(&c->run->in[0], from + j * c->lines.inner, n, buffer),
             (int32_t)j, n);
    for (int64_t i = 0; i < n; i++)
        arg_store(c, line + i, place[i]);
}

static void arg_floats(const struct arg_call *c, int64_t line, int64_t n)
{
    if (c->lines.inner > 1 && c->lines.length <= INT32_MAX)
        arg_columns(c, line, n);
    else
        for (int64_t i = 0; i < n; i++)
            arg_store(c, line + i,
                      arg_line(c, lines_start(line + i, c->lines.length, 1)));
}

#define ARG_EACH(type)                                                                   \
    for (int64_t j = 1; j < c->lines.length; j++)                                        \
        if (arg_better_integer(p, (int64_t)((const type *)data)[from + j * step],        \
                               (int64_t)((const type *)data)[from + best * step]))       \
            best = j;                                                                    \
    break

static void arg_integers(const struct arg_call *c, int64_t line, int64_t n)
{
    const strata_arg_max *p = c->params;
    const void *data = c->run->in[0].data;
    const int64_t step = c->lines.inner;
    for (int64_t i = line; i < line + n; i++) {
        const int64_t from = lines_start(i, c->lines.length, step);
        int64_t best = 0;
        switch (c->run->in[0].dtype) {
        case STRATA_INT8:
            ARG_EACH(int8_t);
        case STRATA_INT32:
            ARG_EACH(int32_t);
        case STRATA_INT64:
            ARG_EACH(int64_t);
        default:
            ARG_EACH(uint8_t);
        }
        arg_store(c, i, best);
    }
}

static void arg_doubles(const struct arg_call *c, int64_t line, int64_t n)
{
    const double *x = c->run->in[0].data;
    for (int64_t i = line; i < line + n; i++) {
        const double *from = x + lines_start(i, c->lines.length, c->lines.inner);
        int64_t best = 0;
        for (int64_t j = 1; j < c->lines.length; j++)
            if (arg_better(c->params, from[j * c->lines.inner],
                           from[best * c->lines.inner]))
                best = j;
        arg_store(c, i, best);
    }
}

/* channels-last memory is linear once the channels, which go, are its last dim. */
static struct lines arg_lines(const strata_arg_max *p, const strata_tensor *x)
{
    const int32_t axis = lines_axis(p->axis, x->rank);
    struct lines l = lines_of(x, axis);
    if (x->format & (STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NHWC)) {
        l.outer *= l.inner;
        l.inner = 1;
    }
    return l;
}

static int arg_run(const strata_run *r)
{
    const struct arg_call c = {r, r->params, arg_lines(r->params, &r->in[0])};
    const int32_t dtype = r->in[0].dtype;
    const int64_t at_once = c.lines.inner > 1 ? COLUMNS : 1;
    const int64_t spans = (c.lines.inner + at_once - 1) / at_once;
#pragma omp parallel for schedule(static) if (r->in[0].count >= WALK_PARALLEL)
    for (int64_t i = 0; i < c.lines.outer * spans; i++) {
        const int64_t column = i % spans * at_once, rest = c.lines.inner - column;
        const int64_t line = i / spans * c.lines.inner + column;
        const int64_t n = rest < at_once ? rest : at_once;
        if (dtype == STRATA_FP64)
            arg_doubles(&c, line, n);
        else if (dense_is_real(dtype))
            arg_floats(&c, line, n);
        else
            arg_integers(&c, line, n);
    }
    return STRATA_OK;
}

/* ---- tables ------------------------------------------------------------------------ */

static int arg_accept(const strata_node *n)
{
    const strata_arg_max *p = n->params;
    if (n->row == 1 && lines_axis(p->axis, n->in[0].rank) != 1)
        return STRATA_FAIL(
            n, STRATA_EUNSUPPORTED,
            "axis %lld is not the channels'; other dims take linear formats",
            (long long)p->axis);
    return STRATA_OK;
}

static const strata_attr attrs[] = {
    {.name = "op",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_arg_max, op),
     .choices = "max|min",
     .doc = "which element the index is of"},
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_arg_max, axis),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim that is looked along; negative counts from the end"},
    {.name = "keep_dims",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_arg_max, keep_dims),
     .def = 1,
     .doc = "leave the dim as a dim of 1"},
    {.name = "ties",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_arg_max, ties),
     .choices = "first|last",
     .doc = "which of equal elements"},
    {.name = "index",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_arg_max, index),
     .choices = "i64|i32",
     .doc = "dtype of the output"},
};

#define LINEAR                                                                           \
    (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F64_NCHW |            \
     STRATA_I32_NCHW | STRATA_I64_NCHW | STRATA_U8_NCHW | STRATA_I8_NCHW)

static const strata_row rows[] = {
    {{LINEAR}, {STRATA_I64_NCHW | STRATA_I32_NCHW}, {0}, {0}},
    {{STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NHWC},
     {STRATA_I64_NCHW | STRATA_I32_NCHW},
     {0},
     {0}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = 0,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.1,
     .bandwidth = 0.5,
     .accept = arg_accept,
     .run = arg_run},
};

static const strata_layer arg_max = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "ArgMax",
    .doc = "Index of the largest or smallest element along a dim",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_arg_max),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = arg_shape,
    .flops = arg_flops,
    .extension = arg_extension,
};

static const strata_layer *const layers[] = {&arg_max};
STRATA_MODULE("core", "1.0.0", "ArgMax", layers)
