/* SPDX-License-Identifier: Apache-2.0
 *
 * Interpolation on the host, in any float format: for each row of the output the input
 * rows that share in it are added up in FP32, then that row is interpolated along itself.
 */
#include "plugins/resize/interpolate.h"

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "plugins/common/walk.h"
#include "plugins/resize/plan.h"

#define PIECE 512 /* elements of the buffers */

/* Taps of one resized axis: offsets in the input (of the row axis: in the row), weights;
 * the first offset is -1 where the output is the extrapolation value. */
struct taps {
    int64_t n; /* of an output index */
    int64_t *at;
    float *weight;
};

struct interpolation {
    const strata_run *run;
    struct resize_plan plan;
    struct taps taps[RESIZE_AXES];
    const struct resize_plan_axis *row; /* NULL: nothing is resized */
    int64_t row_in, row_out;            /* elements */
};

static int64_t threads_of(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

static int64_t thread_of(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/* Elements of an input row. */
static int64_t row_elements(const struct resize_plan *plan)
{
    return plan->lanes * (plan->n ? plan->axis[plan->n - 1].in : 1);
}

size_t resize_taps_workspace(const strata_node *n)
{
    const struct resize_plan plan = resize_plan(n->params, &n->in[0], &n->out[0]);
    size_t bytes, entries = 0;
    for (int32_t k = 0; k < plan.resized; k++) {
        size_t table;
        if (__builtin_mul_overflow((size_t)resize_taps(&plan.resize[k]),
                                   (size_t)plan.resize[k].out, &table) ||
            __builtin_add_overflow(entries, table, &entries))
            return SIZE_MAX;
    }
    if (__builtin_mul_overflow((size_t)row_elements(&plan), sizeof(float), &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)threads_of(), &bytes) ||
        __builtin_mul_overflow(entries, sizeof(int64_t) + sizeof(float), &entries) ||
        __builtin_add_overflow(bytes, entries + 64, &bytes)) /* 64: padding of tables */
        return SIZE_MAX;
    return bytes;
}

/* Tables of one axis at `memory`; returns the memory behind them. */
static char *make_taps(struct interpolation *c, const struct resize_plan_axis *axis,
                       char *memory)
{
    const struct resize_axis *a = &c->plan.resize[axis->taps];
    struct taps *t = &c->taps[axis->taps];
    const int64_t stride = axis == c->row ? c->plan.lanes : axis->from;
    t->n = resize_taps(a);
    t->at = (int64_t *)(void *)memory;
    t->weight = (float *)(void *)(t->at + t->n * a->out);
    for (int64_t i = 0; i < a->out; i++) {
        int64_t *at = t->at + i * t->n;
        const int inside = resize_weigh(c->run->params, a, i, at, t->weight + i * t->n);
        for (int64_t k = 0; k < t->n; k++)
            at[k] = inside ? at[k] * stride : -1;
    }
    return (char *)(t->weight + t->n * a->out + (t->n * a->out & 1));
}

/* sum += weight * n elements from `offset`. */
static void add_row(float *sum, const strata_tensor *x, int64_t offset, float weight,
                    int64_t n, int first)
{
    float buffer[PIECE];
    for (int64_t j = 0; j < n; j += PIECE) {
        const int64_t part = n - j < PIECE ? n - j : PIECE;
        const float *row = walk_load(x, offset + j, 1, part, buffer);
        float *to = sum + j;
        if (first)
            for (int64_t i = 0; i < part; i++)
                to[i] = weight * row[i];
        else
            for (int64_t i = 0; i < part; i++)
                to[i] += weight * row[i];
    }
}

/* Output row `index`: its place, and the input row in FP32 that it is made of: the
 * input's own or `sum`. NULL: the row is the extrapolation value. */
static const float *gather_row(const struct interpolation *c, int64_t index, float *sum,
                               int64_t *to)
{
    const strata_tensor *x = &c->run->in[0];
    const int32_t outer = c->plan.n - (c->row != NULL);
    const int64_t *at[RESIZE_AXES];
    const float *weight[RESIZE_AXES];
    int64_t from = 0, combinations = 1, n[RESIZE_AXES];
    int32_t axes = 0, first = 1;
    *to = 0;
    for (int32_t k = outer - 1; k >= 0; k--) {
        const struct resize_plan_axis *a = &c->plan.axis[k];
        const int64_t i = index % a->n;
        index /= a->n;
        *to += i * a->to;
        if (a->taps < 0) {
            from += i * a->from;
            continue;
        }
        const struct taps *t = &c->taps[a->taps];
        at[axes] = t->at + i * t->n;
        weight[axes] = t->weight + i * t->n;
        if (at[axes][0] < 0)
            return NULL;
        combinations *= n[axes++] = t->n;
    }
    for (int64_t m = 0; m < combinations; m++) {
        int64_t offset = from, rest = m;
        float w = 1;
        for (int32_t k = 0; k < axes; k++) {
            offset += at[k][rest % n[k]];
            w *= weight[k][rest % n[k]];
            rest /= n[k];
        }
        if (w == 0) /* a neighbour that has no share may be infinite */
            continue;
        if (w == 1 && x->dtype == STRATA_FP32)
            return (const float *)x->data + offset;
        add_row(sum, x, offset, w, c->row_in, first);
        first = 0;
    }
    if (first)
        memset(sum, 0, (size_t)c->row_in * sizeof *sum);
    return sum;
}

/* n outputs of one element each, from output index i on. */
static void along_pixels(const struct taps *t, int64_t i, const float *x, float value,
                         float *y, int64_t n)
{
    const int64_t *at = t->at + i * t->n;
    const float *weight = t->weight + i * t->n;
    for (int64_t j = 0; j < n; j++, at += t->n, weight += t->n) {
        float sum = 0;
        if (at[0] < 0)
            sum = value;
        else if (t->n == 2)
            sum = (weight[0] != 0 ? weight[0] * x[at[0]] : 0) +
                  (weight[1] != 0 ? weight[1] * x[at[1]] : 0);
        else
            for (int64_t k = 0; k < t->n; k++)
                sum += weight[k] != 0 ? weight[k] * x[at[k]] : 0;
        y[j] = sum;
    }
}

/* n lanes of output index i, from lane `lane` on. */
static void along_lanes(const struct taps *t, int64_t i, int64_t lane, const float *x,
                        float value, float *y, int64_t n)
{
    const int64_t *at = t->at + i * t->n;
    const float *weight = t->weight + i * t->n;
    for (int64_t j = 0; j < n; j++)
        y[j] = at[0] < 0 ? value : 0;
    for (int64_t k = 0; k < t->n && at[0] >= 0; k++) {
        const float w = weight[k], *row = x + at[k] + lane;
        for (int64_t j = 0; w != 0 && j < n; j++)
            y[j] += w * row[j];
    }
}

/* The row x, or the extrapolation value, to the output from `to` on. */
static void finish_row(const struct interpolation *c, const float *x, int64_t to)
{
    const strata_resize *p = c->run->params;
    const strata_tensor *y = &c->run->out[0];
    const struct taps *t = c->row ? &c->taps[c->row->taps] : NULL;
    const int64_t lanes = t ? c->plan.lanes : c->row_out;
    const float value = (float)p->extrapolation;
    float buffer[PIECE];
    for (int64_t j = 0, n; j < c->row_out; j += n) {
        const int64_t rest = lanes == 1 ? c->row_out - j : lanes - j % lanes;
        n = rest < PIECE ? rest : PIECE;
        float *row = walk_target(y, to + j, 1, buffer);
        if (!x)
            for (int64_t i = 0; i < n; i++)
                row[i] = value;
        else if (!t)
            memcpy(row, x + j, (size_t)n * sizeof *row);
        else if (lanes == 1)
            along_pixels(t, j, x, value, row, n);
        else
            along_lanes(t, j / lanes, j % lanes, x, value, row, n);
        walk_stored(y, to + j, 1, row, buffer, n);
    }
}

int resize_taps_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    struct interpolation c = {.run = r};
    char *memory = r->workspace;
    int64_t rows = 1;
    c.plan = resize_plan(r->params, &r->in[0], y);
    if (c.plan.n)
        c.row = &c.plan.axis[c.plan.n - 1];
    c.row_in = row_elements(&c.plan);
    c.row_out = c.plan.lanes * (c.row ? c.row->n : 1);
    for (int32_t k = 0; k < c.plan.n; k++) {
        if (c.plan.axis[k].taps >= 0)
            memory = make_taps(&c, &c.plan.axis[k], memory);
        rows *= &c.plan.axis[k] == c.row ? 1 : c.plan.axis[k].n;
    }
#pragma omp parallel for schedule(static) if (y->count >= WALK_PARALLEL)
    for (int64_t i = 0; i < rows; i++) {
        float *sum = (float *)(void *)memory + thread_of() * c.row_in;
        int64_t to;
        const float *x = gather_row(&c, i, sum, &to);
        finish_row(&c, x, to);
    }
    walk_clear_pads(y);
    return STRATA_OK;
}
