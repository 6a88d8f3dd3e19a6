/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax: y = exp(x - max)/sum(exp(x - max)) along one axis, in any float format, or its
 * logarithm. A tile of neighbouring lines goes through three passes together: maximum,
 * sum, result; so memory is read along its own order whatever the axis. The sum is FP32
 * over FP32 exponentials. A line of FP32 that lies in one piece, as classes mostly do, goes
 * through them alone, and each exponential is taken once. FP64 goes line by line, in FP64.
 */
#include <strata/layers.h>

#include <stdbool.h>

#include "plugins/common/dense.h"
#include "plugins/common/lines.h"
#include "plugins/common/walk.h"
#include "plugins/softmax/rows.h"

#define TILE 256 /* lines: 1 KiB of each row goes through at a time */

struct softmax_call {
    const strata_run *run;
    const struct walk_axis *axis; /* along which lines go */
    bool one_piece;               /* lines are FP32, element behind element */
    const struct softmax_rows *rows;
};

/* The axis counted from the front, or -1. */
static int32_t softmax_axis(const void *params, int32_t rank)
{
    const strata_softmax *p = params;
    int64_t axis = p->axis < 0 ? p->axis + rank : p->axis;
    return axis < 0 || axis >= rank ? -1 : (int32_t)axis;
}

static int softmax_shape(const strata_node *n)
{
    const strata_softmax *p = n->params;
    const strata_tensor *x = &n->in[0];
    if (softmax_axis(p, x->rank) < 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "axis %lld is outside a tensor of rank %d",
                           (long long)p->axis, (int)x->rank);
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof x->dims);
    return STRATA_OK;
}

static double softmax_flops(const strata_node *n)
{
    return 12.0 * (double)n->out[0].count;
}

/* n lines that begin at `to` and `from`, neighbours a step apart. */
static void softmax_tile(const struct softmax_call *c, int64_t to, int64_t from,
                         const int64_t *step, int64_t n)
{
    const strata_softmax *p = c->run->params;
    const strata_tensor *in = &c->run->in[0], *out = &c->run->out[0];
    const int64_t *at = c->axis->at[1];
    float maximum[TILE], sum[TILE], buffer[TILE], result[TILE];
    for (int64_t j = 0; j < n; j++) {
        maximum[j] = -INFINITY;
        sum[j] = 0;
    }
    for (int64_t i = 0; i < c->axis->n; i++)
        c->rows->maximum(maximum, walk_load(in, from + at[i], step[1], n, buffer), n);
    for (int64_t i = 0; i < c->axis->n; i++)
        c->rows->sum(sum, walk_load(in, from + at[i], step[1], n, buffer), maximum, n);
    for (int64_t j = 0; j < n; j++)
        sum[j] = p->log ? logf(sum[j]) : 1 / sum[j];
    for (int64_t i = 0; i < c->axis->n; i++) {
        const int64_t place = to + c->axis->at[0][i];
        float *y = walk_target(out, place, step[0], result);
        c->rows->result(y, walk_load(in, from + at[i], step[1], n, buffer), maximum, sum,
                        n, p->log != 0);
        walk_stored(out, place, step[0], y, result, n);
    }
}

static void softmax_pieces(const struct softmax_call *c, const int64_t *step, int64_t to,
                           int64_t from, int64_t n)
{
    const strata_softmax *p = c->run->params;
    float *y = c->run->out[0].data;
    const float *x = c->run->in[0].data;
    to += c->axis->at[0][0];
    from += c->axis->at[1][0];
    for (int64_t j = 0; j < n; j++)
        c->rows->line(y + to + j * step[0], x + from + j * step[1], c->axis->n,
                      p->log != 0);
}

static bool softmax_in_one_piece(const struct softmax_call *c)
{
    if (c->run->in[0].dtype != STRATA_FP32 || c->run->out[0].dtype != STRATA_FP32)
        return false;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < c->axis->n; i++)
            if (c->axis->at[k][i] != c->axis->at[k][0] + i)
                return false;
    return c->axis->n > 0;
}

static void softmax_row(const void *arg, const struct walk *w, const int64_t *base,
                        int64_t n)
{
    const struct softmax_call *call = arg;
    const struct walk_axis *inner = walk_inner(w);
    for (int64_t i = 0; i < inner->n; i++) {
        int64_t to = base[0] + inner->at[0][i * inner->every];
        int64_t from = base[1] + inner->at[1][i * inner->every];
        if (call->one_piece)
            softmax_pieces(call, w->step, to, from, n);
        for (int64_t j = 0; j < n && !call->one_piece; j += TILE)
            softmax_tile(call, to + j * w->step[0], from + j * w->step[1], w->step,
                         n - j < TILE ? n - j : TILE);
    }
}

/* Elements of a line lie `step` apart; y may be x. */
static void softmax_doubles(double *y, const double *x, int64_t n, int64_t step,
                            bool logarithm)
{
    double maximum = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        maximum = x[i * step] > maximum ? x[i * step] : maximum;
    for (int64_t i = 0; i < n; i++) {
        const double shifted = x[i * step] - maximum, power = exp(shifted);
        sum += power;
        y[i * step] = logarithm ? shifted : power;
    }
    const double log_sum = log(sum);
    for (int64_t i = 0; i < n; i++)
        y[i * step] = logarithm ? y[i * step] - log_sum : y[i * step] / sum;
}

static void softmax_fp64(const strata_run *r, int32_t axis)
{
    const strata_softmax *p = r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const struct lines l = lines_of(x, axis);
#pragma omp parallel for schedule(static) if (x->count >= WALK_PARALLEL)
    for (int64_t i = 0; i < l.outer * l.inner; i++) {
        const int64_t from = lines_start(i, l.length, l.inner);
        softmax_doubles((double *)y->data + from, (const double *)x->data + from,
                        l.length, l.inner, p->log != 0);
    }
}

static int softmax_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    int32_t axis = softmax_axis(r->params, x->rank);
    struct walk w;
    if (x->dtype == STRATA_FP64) {
        softmax_fp64(r, axis);
        return STRATA_OK;
    }
    walk_over(&w, 2, y, y->dims, r->workspace);
    walk_map_all(&w, 0, y);
    walk_map_all(&w, 1, x);
    struct walk_axis line = w.axis[axis];
    struct softmax_call call = {.run = r, .axis = &line, .rows = softmax_rows_choose()};
    call.one_piece = softmax_in_one_piece(&call);
    walk_drop(&w, axis);
    walk_run(&w, softmax_row, &call);
    walk_clear_pads(y);
    return STRATA_OK;
}

static void softmax_line(double *y, const double *x, int64_t n, int64_t stride, int log_)
{
    double maximum = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        maximum = fmax(maximum, x[i * stride]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i * stride] - maximum);
    for (int64_t i = 0; i < n; i++) {
        double d = x[i * stride] - maximum;
        y[i * stride] = log_ ? d - log(sum) : exp(d) / sum;
    }
}

static int softmax_reference(const strata_node *n, const double *const *in,
                             const double *const *weight, double *const *out)
{
    const strata_softmax *p = n->params;
    const strata_tensor *x = &n->in[0];
    int32_t axis = softmax_axis(p, x->rank);
    int64_t stride = 1, length = x->dims[axis], count = dense_count(x);
    (void)weight;
    for (int d = axis + 1; d < x->rank; d++)
        stride *= x->dims[d];
    for (int64_t i = 0; i < count; i++)
        if (i / stride % length == 0)
            softmax_line(out[0] + i, in[0] + i, length, stride, p->log);
    return STRATA_OK;
}

static const void *softmax_extension(const char *id)
{
    static const strata_reference reference = {sizeof reference, 0, softmax_reference};
    return dense_extension(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_softmax, axis),
     .def = 1,
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim whose elements sum to one; negative counts from the end"},
    {.name = "log",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_softmax, log),
     .doc = "give the logarithm"},
};

static const strata_row rows[] = {{{WALK_FLOATS | STRATA_F64_NCHW}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.2,
     .bandwidth = 0.3,
     .workspace = walk_pair_memory,
     .run = softmax_run},
};

static const strata_layer softmax = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Softmax",
    .doc = "Exponentials along an axis, divided by their sum",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_softmax),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = softmax_shape,
    .flops = softmax_flops,
    .extension = softmax_extension,
};

static const strata_layer *const layers[] = {&softmax};
STRATA_MODULE("core", "1.0.0", "Softmax", layers)
