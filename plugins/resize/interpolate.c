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

#include "plugins/common/pointwise/taps.h"
#include "plugins/common/walk.h"
#include "plugins/resize/plan.h"
#include "plugins/resize/windows.h"

#define PIECE 512 /* elements of the buffers */
#define BLOCK 16  /* rows that a thread takes at once */

/* Taps of one resized axis: offsets in the input (of the row axis: in the row), weights;
 * tap k of output i is k*pitch + i. The first offset is -1, and no weight is there, where
 * the output is the extrapolation value. */
struct axis_taps {
    int64_t n, pitch; /* n: of an output index */
    int64_t *at;
    float *weight;
    int outside; /* some are */
    struct windows windows;
    int has_windows;
};

struct interpolation {
    const strata_run *run;
    struct resize_plan plan;
    struct axis_taps taps[RESIZE_AXES];
    const struct taps_code *code;
    const struct resize_plan_axis *row; /* NULL: nothing is resized */
    int64_t row_in, row_out;            /* elements */
    int lists;                          /* rows go the way of windows.h */
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

/* Outputs of an axis, an even number: behind floats lie offsets. */
static int64_t pitch_of(const struct resize_axis *a)
{
    return a->out + (a->out & 1);
}

static int32_t outer_axes(const struct interpolation *c)
{
    return c->plan.n - (c->row != NULL);
}

/* Elements of an input row. */
static int64_t row_elements(const struct resize_plan *plan)
{
    return plan->lanes * (plan->n ? plan->axis[plan->n - 1].in : 1);
}

size_t resize_taps_workspace(const strata_node *n)
{
    const struct resize_plan plan = resize_plan(n->params, &n->in[0], &n->out[0]);
    const size_t entry = sizeof(int64_t) + sizeof(float) + sizeof(int32_t);
    size_t bytes, entries = 0;
    for (int32_t k = 0; k < plan.resized; k++) {
        size_t table;
        if (__builtin_mul_overflow((size_t)resize_taps(&plan.resize[k]) + 1,
                                   (size_t)pitch_of(&plan.resize[k]), &table) ||
            __builtin_add_overflow(entries, table, &entries))
            return SIZE_MAX;
    }
    if (__builtin_mul_overflow((size_t)row_elements(&plan), sizeof(float), &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)threads_of(), &bytes) ||
        __builtin_mul_overflow(entries, entry, &entries) ||
        __builtin_add_overflow(bytes, entries, &bytes))
        return SIZE_MAX;
    return bytes;
}

/* Tables of one axis at `memory`; returns the memory behind them. */
static char *make_taps(struct interpolation *c, const struct resize_plan_axis *axis,
                       char *memory)
{
    const struct resize_axis *a = &c->plan.resize[axis->taps];
    struct axis_taps *t = &c->taps[axis->taps];
    const int64_t stride = axis == c->row ? c->plan.lanes : axis->from;
    t->n = resize_taps(a);
    t->pitch = pitch_of(a);
    t->at = (int64_t *)(void *)memory;
    t->weight = (float *)(void *)(t->at + t->n * t->pitch);
    for (int64_t i = 0; i < a->out; i++) {
        int64_t *at = t->at + i;
        float *weight = t->weight + i;
        const int inside = resize_weigh(c->run->params, a, i, t->pitch, at, weight);
        for (int64_t k = 0; k < t->n * t->pitch; k += t->pitch) {
            at[k] = inside ? at[k] * stride : -1;
            weight[k] = inside ? weight[k] : 0;
        }
        t->outside |= !inside;
    }
    t->windows.lane = (int32_t *)(void *)(t->weight + t->n * t->pitch);
    t->windows.base = t->windows.lane + t->n * t->pitch;
    t->has_windows = axis == c->row && c->plan.lanes == 1 && !t->outside &&
                     windows_make(&t->windows, t->at, t->n, t->pitch, a->out);
    return (char *)(t->windows.base + t->pitch);
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

/* One after the other all combinations of taps of a few axes: tap k[i] of axis i. */
static int next_combination(int64_t *k, const struct axis_taps *const *taps, int32_t axes)
{
    for (int32_t i = 0; i < axes; i++) {
        if (++k[i] < taps[i]->n)
            return 1;
        k[i] = 0;
    }
    return 0;
}

/* An output row: where it goes, where its first input row begins, and the outer axes that
 * have taps, with its index on each. */
struct row_place {
    int64_t to, from;
    int32_t axes;
    const struct axis_taps *taps[RESIZE_AXES];
    int64_t own[RESIZE_AXES];
};

/* 0: the row is the extrapolation value. */
static int place_row(const struct interpolation *c, const struct resize_place *place,
                     struct row_place *p)
{
    p->to = p->from = p->axes = 0;
    for (int32_t k = outer_axes(c) - 1; k >= 0; k--) {
        const struct resize_plan_axis *a = &c->plan.axis[k];
        const int64_t i = place->index[k];
        p->to += i * a->to;
        if (a->taps < 0)
            p->from += i * a->from;
    }
    for (int32_t k = outer_axes(c) - 1; k >= 0; k--) {
        const struct resize_plan_axis *a = &c->plan.axis[k];
        if (a->taps < 0)
            continue;
        p->taps[p->axes] = &c->taps[a->taps];
        p->own[p->axes] = place->index[k];
        if (p->taps[p->axes]->at[p->own[p->axes]] < 0)
            return 0;
        p->axes++;
    }
    return 1;
}

/* The input row that taps `tap` of the outer axes choose, and its share. */
static int64_t share_of(const struct row_place *p, const int64_t *tap, float *weight)
{
    int64_t offset = p->from;
    *weight = 1;
    for (int32_t k = 0; k < p->axes; k++) {
        const int64_t at = tap[k] * p->taps[k]->pitch + p->own[k];
        offset += p->taps[k]->at[at];
        *weight *= p->taps[k]->weight[at];
    }
    return offset;
}

/* The input row in FP32 that an output row is made of: the input's own or `sum`. */
static const float *gather_row(const struct interpolation *c, const struct row_place *p,
                               float *sum)
{
    const strata_tensor *x = &c->run->in[0];
    int64_t tap[RESIZE_AXES] = {0};
    int32_t first = 1;
    do {
        float w;
        const int64_t offset = share_of(p, tap, &w);
        if (w == 0) /* a neighbour that has no share may be infinite */
            continue;
        if (w == 1 && x->dtype == STRATA_FP32)
            return (const float *)x->data + offset;
        add_row(sum, x, offset, w, c->row_in, first);
        first = 0;
    } while (next_combination(tap, p->taps, p->axes));
    if (first)
        memset(sum, 0, (size_t)c->row_in * sizeof *sum);
    return sum;
}

/* The same as rows that are still to be added up; FP32. */
static void list_rows(const struct interpolation *c, const struct row_place *p,
                      struct windows_rows *rows)
{
    const float *x = c->run->in[0].data;
    int64_t tap[RESIZE_AXES] = {0};
    rows->n = 0;
    do {
        float w;
        const int64_t offset = share_of(p, tap, &w);
        if (w == 0)
            continue;
        rows->row[rows->n] = x + offset;
        rows->weight[rows->n++] = w;
    } while (next_combination(tap, p->taps, p->axes));
}

/* n outputs of one element each, from output index i on. */
static void along_pixels(const struct interpolation *c, const struct axis_taps *t,
                         int64_t i, const float *x, float value, float *y, int64_t n)
{
    const struct taps taps = {t->at + i, t->weight + i, t->n, t->pitch};
    if (!t->outside) {
        c->code->sum(y, &taps, x, n);
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        y[j] = t->at[i + j] < 0 ? value : 0;
        for (int64_t k = i + j; k < t->n * t->pitch; k += t->pitch)
            y[j] += t->weight[k] != 0 ? t->weight[k] * x[t->at[k]] : 0;
    }
}

/* n lanes of output index i, from lane `lane` on. */
static void along_lanes(const struct axis_taps *t, int64_t i, int64_t lane,
                        const float *x, float value, float *y, int64_t n)
{
    const int64_t *at = t->at + i;
    const float *weight = t->weight + i;
    for (int64_t j = 0; j < n; j++)
        y[j] = at[0] < 0 ? value : 0;
    for (int64_t k = 0; k < t->n * t->pitch && at[0] >= 0; k += t->pitch) {
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
    const struct axis_taps *t = c->row ? &c->taps[c->row->taps] : NULL;
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
            along_pixels(c, t, j, x, value, row, n);
        else
            along_lanes(t, j / lanes, j % lanes, x, value, row, n);
        walk_stored(y, to + j, 1, row, buffer, n);
    }
}

/* A whole row at once, where its taps allow it. */
static void windows_row(const struct interpolation *c, const struct row_place *p)
{
    const struct axis_taps *t = &c->taps[c->row->taps];
    float *y = (float *)c->run->out[0].data + p->to;
    struct windows_rows rows;
    list_rows(c, p, &rows);
    windows_sum(y, &t->windows, t->weight, &rows, c->row_in, c->row_out);
}

/* Whether rows are such, and of so few input rows that they can be listed. */
static int lists_rows(const struct interpolation *c)
{
    int64_t rows = 1;
    for (int32_t k = 0; k < outer_axes(c) && rows <= WINDOWS_ROWS; k++)
        if (c->plan.axis[k].taps >= 0)
            rows *= c->taps[c->plan.axis[k].taps].n;
    return c->row && c->taps[c->row->taps].has_windows && rows <= WINDOWS_ROWS &&
           c->run->in[0].dtype == STRATA_FP32 && c->run->out[0].dtype == STRATA_FP32;
}

static void run_row(const struct interpolation *c, const struct resize_place *place,
                    float *sum)
{
    struct row_place p;
    if (!place_row(c, place, &p))
        finish_row(c, NULL, p.to);
    else if (c->lists)
        windows_row(c, &p);
    else
        finish_row(c, gather_row(c, &p, sum), p.to);
}

int resize_taps_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    struct interpolation c = {.run = r, .code = taps_choose()};
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
    c.lists = lists_rows(&c);
#pragma omp parallel for schedule(static) if (y->count >= WALK_PARALLEL)
    for (int64_t block = 0; block < rows; block += BLOCK) {
        float *sum = (float *)(void *)memory + thread_of() * c.row_in;
        struct resize_place place = resize_place_of(&c.plan, outer_axes(&c), block);
        for (int64_t i = block; i < rows && i < block + BLOCK; i++) {
            run_row(&c, &place, sum);
            resize_advance(&place, &c.plan, outer_axes(&c));
        }
    }
    walk_clear_pads(y);
    return STRATA_OK;
}
