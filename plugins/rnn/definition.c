/* SPDX-License-Identifier: Apache-2.0
 *
 * A sequence at a time, a step at a time, as the formulas stand in docs/layers.md.
 */
#include "plugins/rnn/definition.h"

#include "plugins/common/element.h"

#define CELL_REAL double
#define CELL_FUNCTION static
CELL_FUNCTION void cell_activate(const strata_activation *f, double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = element_activate_exact(f->kind, x[i], f->alpha, f->beta);
}
#include "plugins/rnn/cell.h"

/* One direction of one layer. */
struct line {
    const struct rnn_plan *p;
    const struct rnn_rule *rule;
    const double *w, *r, *b, *peephole; /* its own; NULL: absent */
    int64_t depth;
    double *z, *after, *reset, *next; /* gates, and three rows of H */
    double *h, *c;
};

int64_t rnn_definition_memory(const struct rnn_plan *p)
{
    int64_t between, total;
    if (__builtin_mul_overflow(p->steps, p->batch, &between) ||
        __builtin_mul_overflow(between, 2 * p->directions * p->hidden, &between) ||
        __builtin_add_overflow(between, (RNN_MOST_GATES + 5) * p->hidden, &total))
        return -1;
    return total;
}

static double product(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Sums of all gates that do not wait for the reset. */
static void sum_gates(const struct line *l, const double *x)
{
    const struct rnn_plan *p = l->p;
    const int64_t n = p->hidden, rows = p->gates * n;
    for (int64_t i = 0; i < rows; i++) {
        const int late = p->op == STRATA_RNN_GRU && i / n == RNN_CANDIDATE;
        const double *r = l->r + i * n, bias = l->b ? l->b[rows + i] : 0;
        l->z[i] = (l->w ? product(l->w + i * l->depth, x, l->depth) : x[i % n]) +
                  (l->b ? l->b[i] : 0);
        if (!late)
            l->z[i] += product(r, l->h, n) + bias;
        else if (p->reset_after)
            l->after[i % n] = product(r, l->h, n) + bias;
        else
            l->z[i] += bias;
    }
}

static void move_gru(const struct line *l)
{
    const struct rnn_plan *p = l->p;
    const int64_t n = p->hidden;
    cell_gru_gates(l->rule, l->z, n, n);
    if (!p->reset_after) {
        const double *r = l->r + RNN_CANDIDATE * n * n;
        for (int64_t i = 0; i < n; i++)
            l->reset[i] = l->z[RNN_RESET * n + i] * l->h[i];
        for (int64_t i = 0; i < n; i++)
            l->z[RNN_CANDIDATE * n + i] += product(r + i * n, l->reset, n);
    }
    cell_gru(l->rule, l->z, n, p->reset_after ? l->after : NULL, l->h, l->next, n);
}

static void move(const struct line *l, const double *x)
{
    const int64_t n = l->p->hidden;
    sum_gates(l, x);
    if (l->p->op == STRATA_RNN_LSTM)
        cell_lstm(l->rule, l->z, n, l->peephole, n, l->c, l->next, n);
    else if (l->p->op == STRATA_RNN_GRU)
        move_gru(l);
    else
        cell_simple(l->rule, l->z, l->next, n);
    memcpy(l->h, l->next, (size_t)n * sizeof *l->h);
}

static const double *part(const double *all, int64_t i, int64_t size)
{
    return all ? all + i * size : NULL;
}

static void begin(double *state, const double *given, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        state[i] = given ? given[i] : 0;
}

/* Where the layers' inputs and outputs lie: element (t, row) of direction 0. */
struct place {
    double *data;
    int64_t step, row, direction;
};

static void run_line(struct line *l, const struct rnn_doubles *v, int layer,
                     int direction, const struct place *x, const struct place *y)
{
    const struct rnn_plan *p = l->p;
    const int64_t n = p->hidden, first = (layer * p->directions + direction) * p->batch;
    for (int64_t row = 0; row < p->batch; row++) {
        const int64_t given = v->lengths ? v->lengths[row] : p->steps;
        const int64_t length = given < 0 ? 0 : given < p->steps ? given : p->steps;
        double *to = y->data + row * y->row + direction * y->direction;
        begin(l->h, part(v->h0, first + row, n), n);
        begin(l->c, part(v->c0, first + row, n), n);
        for (int64_t t = length; t < p->steps; t++)
            memset(to + t * y->step, 0, (size_t)n * sizeof *to);
        for (int64_t i = 0; i < length; i++) {
            const int64_t t = rnn_time(p, direction, length, i);
            move(l, x->data + t * x->step + row * x->row);
            memcpy(to + t * y->step, l->h, (size_t)n * sizeof *to);
        }
        memcpy(v->hn + (first + row) * n, l->h, (size_t)n * sizeof *l->h);
        if (v->cn)
            memcpy(v->cn + (first + row) * n, l->c, (size_t)n * sizeof *l->c);
    }
}

void rnn_definition(const struct rnn_plan *p, const struct rnn_doubles *v, double *memory)
{
    const int64_t n = p->hidden, wide = p->directions * n, rows = p->gates * n;
    const int64_t between = p->steps * p->batch * wide;
    struct line l = {.p = p, .z = memory, .after = memory + RNN_MOST_GATES * n};
    struct place x = {(double *)v->x, p->x_step, p->x_row, 0};
    l.reset = l.after + n;
    l.next = l.reset + n;
    l.h = l.next + n;
    l.c = l.h + n;
    for (int layer = 0; layer < p->layers; layer++) {
        struct place y = {v->y, p->y_step, p->y_row, p->y_direction};
        if (layer + 1 < p->layers)
            y = (struct place){l.c + n + layer % 2 * between, p->batch * wide, wide, n};
        l.depth = rnn_depth(p, layer);
        for (int d = 0; d < p->directions; d++) {
            const int64_t i = layer * p->directions + d, upper = i - p->directions;
            l.rule = &p->rule[d];
            l.w = layer ? part(v->u, upper, rows * l.depth)
                        : part(p->skip ? NULL : v->w, d, rows * l.depth);
            l.r = part(v->r, i, rows * n);
            l.b = part(v->b, i, 2 * rows);
            l.peephole = part(v->p, i, 3 * n);
            run_line(&l, v, layer, d, &x, &y);
        }
        x = y;
    }
}
