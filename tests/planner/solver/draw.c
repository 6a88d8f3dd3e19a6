/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/planner/solver/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

void draw_seed(uint64_t seed)
{
    state = seed;
}

int draw(int n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static void draw_op(struct drawn *w, int i, const struct draw_shape *shape)
{
    struct plan_op *o = &w->ops[i];
    snprintf(w->name[i], sizeof w->name[i], "op%d", i);
    o->name = w->name[i];
    o->n_in = i == 0 ? 0 : i == 1 ? 1 : 1 + draw(draw(3) ? 2 : 3);
    for (int k = 0; k < o->n_in; k++)
        w->in[i][k] = draw(i);
    w->out[i] = i;
    o->n_out = 1;
    o->n_choices = (size_t)(1 + draw(shape->max_choices));
    for (size_t k = 0; k < o->n_choices; k++) {
        struct plan_choice *c = &w->choices[i][k];
        memset(c->in, draw(shape->n_labels), sizeof c->in);
        c->in[0] = (uint8_t)draw(shape->n_labels);
        memset(c->out, draw(shape->n_labels), sizeof c->out);
        c->cost = draw(shape->max_cost);
    }
}

void draw_network(struct drawn *w, const struct draw_shape *shape)
{
    int n = shape->n_labels;
    memset(w, 0, sizeof *w);
    w->p.n_labels = n;
    w->p.n_ops = w->p.n_tensors = (size_t)shape->n_ops;
    for (int l = 0; l < n; l++)
        w->p.labels[l] = (struct plan_label){
            .format = l, .precision = shape->precise && l % 2 ? 11 : 24};
    for (int i = 0; i < shape->n_ops; i++) {
        draw_op(w, i, shape);
        for (int e = 0; e < n * n; e++)
            w->conversion[i][e] = e / n == e % n               ? 0
                                  : draw(100) < shape->missing ? PLAN_INFINITE
                                                               : draw(shape->max_cost);
    }
    draw_relink(w);
}

void draw_relink(struct drawn *w)
{
    w->p.ops = w->ops;
    w->p.tensors = w->tensors;
    for (size_t i = 0; i < w->p.n_ops; i++) {
        w->ops[i].name = w->name[i];
        w->ops[i].in = w->in[i];
        w->ops[i].out = &w->out[i];
        w->ops[i].choices = w->choices[i];
        struct plan_tensor *t = &w->tensors[w->out[i]];
        t->name = "tensor";
        t->producer = (int)i;
        t->port = 0;
        t->readers = w->readers[w->out[i]];
        t->n_readers = 0;
        t->conversion = w->conversion[w->out[i]];
    }
    for (size_t i = 0; i < w->p.n_ops; i++)
        for (int k = 0; k < w->ops[i].n_in; k++) {
            struct plan_tensor *t = &w->tensors[w->in[i][k]];
            t->readers[t->n_readers++] = (struct plan_reader){(int)i, k};
        }
}

int64_t draw_tree(const struct plan_problem *p, int tensor, int root, uint64_t wanted)
{
    int64_t cost[1 << DRAW_LABELS], best = PLAN_INFINITE;
    const int64_t *conversion = p->tensors[tensor].conversion;
    for (unsigned set = 0; set < 1u << p->n_labels; set++) {
        cost[set] = set == 1u << root ? 0 : PLAN_INFINITE;
        for (int v = 0; v < p->n_labels; v++)
            for (int u = 0; u < p->n_labels; u++) {
                unsigned before = set & ~(1u << v);
                if (v == root || u == v || !(set >> v & 1) || !(before >> u & 1) ||
                    cost[before] >= PLAN_INFINITE)
                    continue;
                int root_bits = p->labels[root].precision;
                int at_u = p->labels[u].precision, at_v = p->labels[v].precision;
                if ((at_u < root_bits ? at_u : root_bits) <
                    (at_v < root_bits ? at_v : root_bits))
                    continue;
                int64_t step = conversion[u * p->n_labels + v];
                if (step < PLAN_INFINITE && cost[before] + step < cost[set])
                    cost[set] = cost[before] + step;
            }
        if (!(wanted & ~(uint64_t)set) && cost[set] < best)
            best = cost[set];
    }
    return best;
}

struct brute {
    const struct plan_problem *p;
    int64_t tree[DRAW_OPS][DRAW_LABELS][1 << DRAW_LABELS];
    size_t choices[DRAW_OPS];
    int64_t *costs;
    size_t n, capacity;
};

static void insert(struct brute *b, int64_t cost)
{
    size_t at = b->n < b->capacity ? b->n++ : b->n - 1;
    if (b->n == b->capacity && at == b->capacity - 1 && b->costs[at] <= cost)
        return;
    for (; at > 0 && b->costs[at - 1] > cost; at--)
        b->costs[at] = b->costs[at - 1];
    b->costs[at] = cost;
}

static void visit(struct brute *b)
{
    int64_t cost = 0;
    for (size_t op = 0; op < b->p->n_ops && cost < PLAN_INFINITE; op++)
        cost += plan_chosen(b->p, b->choices, (int)op)->cost;
    for (size_t t = 0; t < b->p->n_tensors && cost < PLAN_INFINITE; t++) {
        const struct plan_tensor *tensor = &b->p->tensors[t];
        int root = plan_chosen(b->p, b->choices, tensor->producer)->out[0];
        int64_t tree = b->tree[t][root][plan_wanted(b->p, b->choices, tensor)];
        cost = tree >= PLAN_INFINITE ? PLAN_INFINITE : cost + tree;
    }
    if (cost < PLAN_INFINITE)
        insert(b, cost);
}

size_t draw_brute_force(const struct plan_problem *p, int64_t *costs, size_t n)
{
    struct brute b = {.p = p, .costs = costs, .capacity = n};
    for (size_t t = 0; t < p->n_tensors; t++)
        for (int root = 0; root < p->n_labels; root++)
            for (uint64_t wanted = 0; wanted < 1u << p->n_labels; wanted++)
                b.tree[t][root][wanted] = -1;
    for (size_t i = 0; i < n; i++)
        costs[i] = PLAN_INFINITE;
    for (size_t t = 0; t < p->n_tensors; t++)
        for (int root = 0; root < p->n_labels; root++)
            for (uint64_t wanted = 0; wanted < 1u << p->n_labels; wanted++)
                b.tree[t][root][wanted] = draw_tree(p, (int)t, root, wanted);
    for (;;) {
        visit(&b);
        size_t op = 0;
        while (op < p->n_ops && ++b.choices[op] == p->ops[op].n_choices)
            b.choices[op++] = 0;
        if (op == p->n_ops)
            return b.n;
    }
}

int64_t draw_optimum(const struct plan_problem *p)
{
    int64_t cost;
    draw_brute_force(p, &cost, 1);
    return cost;
}
