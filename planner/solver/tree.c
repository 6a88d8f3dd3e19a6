/* SPDX-License-Identifier: Apache-2.0
 *
 * Minimum-cost conversion trees. With t labels wanted and L labels in all:
 *   best[S][v] = cheapest tree from v that reaches every wanted label of S;
 *   it either moves along one conversion, or splits S at v between two subtrees.
 * O(3^t L + 2^t L^2) steps; t is rarely over three.
 */
#include "planner/solver/plan.h"

#include <stdlib.h>
#include <string.h>

/* Distinct labels that the readers of one tensor may want; more are refused. */
enum { TREE_MAX_WANTED = 16 };

/* Labels are in the order of their formats here, so that what breaks a tie does not
 * depend on how the problem numbers them. Costs are scaled to count steps as well. */
struct tree {
    const struct plan_problem *problem;
    const int64_t *conversion;
    int64_t unit;
    int order[PLAN_MAX_LABELS]; /* place here -> label */
    int n_labels, n_wanted, root;
    int wanted[PLAN_MAX_LABELS];
    int64_t *best; /* [S][v] */
    int *via;      /* [S][v]: >= 0 move to that label; < 0 split off subset -via; NONE */
};
#define NONE INT32_MAX

static bool label_before(const struct plan_label *a, const struct plan_label *b)
{
    if (a->format != b->format)
        return a->format < b->format;
    if (a->stage != b->stage)
        return a->stage < b->stage;
    if (a->pad != b->pad)
        return a->pad < b->pad;
    if (a->precision != b->precision)
        return a->precision < b->precision;
    return a->range < b->range;
}

static void sort_labels(struct tree *t)
{
    const struct plan_label *labels = t->problem->labels;
    for (int l = 0; l < t->n_labels; l++) {
        int at = l;
        for (; at > 0 && label_before(&labels[l], &labels[t->order[at - 1]]); at--)
            t->order[at] = t->order[at - 1];
        t->order[at] = l;
    }
}

enum { TREE_UNIT = 4 * PLAN_MAX_LABELS };

static void choose_unit(struct tree *t)
{
    t->unit = TREE_UNIT;
    for (int i = 0; i < t->n_labels * t->n_labels; i++)
        if (t->conversion[i] < PLAN_INFINITE &&
            t->conversion[i] > PLAN_INFINITE / TREE_UNIT / TREE_UNIT)
            t->unit = 1;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

bool plan_keeps_precision(const struct plan_problem *p, int root, int u, int v)
{
    const struct plan_label *r = &p->labels[root], *a = &p->labels[u], *b = &p->labels[v];
    return a->precision >= least(r->precision, b->precision) &&
           a->range >= least(r->range, b->range);
}

static int64_t edge(const struct tree *t, int u, int v)
{
    int from = t->order[u], to = t->order[v];
    int64_t cost = t->conversion[from * t->n_labels + to];
    if (cost >= PLAN_INFINITE ||
        !plan_keeps_precision(t->problem, t->order[t->root], from, to))
        return PLAN_INFINITE;
    return t->unit > 1 ? cost * t->unit + 1 : cost;
}

/* Bellman-Ford over labels for one subset: moves along conversions. */
static void relax_moves(struct tree *t, size_t subset)
{
    int64_t *best = t->best + subset * (size_t)t->n_labels;
    int *via = t->via + subset * (size_t)t->n_labels;
    for (bool changed = true; changed;) {
        changed = false;
        for (int u = 0; u < t->n_labels; u++)
            for (int v = 0; v < t->n_labels; v++) {
                int64_t cost = edge(t, u, v);
                if (u == v || cost >= PLAN_INFINITE || best[v] >= PLAN_INFINITE ||
                    best[u] <= cost + best[v])
                    continue;
                best[u] = cost + best[v];
                via[u] = v;
                changed = true;
            }
    }
}

static void join_subsets(struct tree *t, size_t subset)
{
    size_t n = (size_t)t->n_labels;
    for (size_t part = (subset - 1) & subset; part > subset / 2;
         part = (part - 1) & subset)
        for (size_t v = 0; v < n; v++) {
            int64_t a = t->best[part * n + v], b = t->best[(subset ^ part) * n + v];
            if (a >= PLAN_INFINITE || b >= PLAN_INFINITE ||
                a + b >= t->best[subset * n + v])
                continue;
            t->best[subset * n + v] = a + b;
            t->via[subset * n + v] = -(int)part;
        }
}

static void fill(struct tree *t)
{
    size_t n = (size_t)t->n_labels, subsets = (size_t)1 << t->n_wanted;
    for (size_t i = 0; i < subsets * n; i++) {
        t->best[i] = i < n ? 0 : PLAN_INFINITE;
        t->via[i] = NONE;
    }
    for (int w = 0; w < t->n_wanted; w++)
        t->best[((size_t)1 << w) * n + (size_t)t->wanted[w]] = 0;
    for (size_t subset = 1; subset < subsets; subset++) {
        join_subsets(t, subset);
        relax_moves(t, subset);
    }
}

/* Two subtrees may share a conversion that the recurrence priced only once through a
 * zero-cost tie; a label is entered once. */
static void emit(const struct tree *t, int tensor, size_t subset, int v,
                 struct plan_step *steps, size_t *n_steps, uint64_t *made)
{
    while (subset) {
        int via = t->via[subset * (size_t)t->n_labels + (size_t)v];
        if (via == NONE)
            return;
        if (via < 0) {
            emit(t, tensor, (size_t)-via, v, steps, n_steps, made);
            subset ^= (size_t)-via;
            continue;
        }
        if (!(*made & UINT64_C(1) << via)) {
            int from = t->order[v], to = t->order[via];
            struct plan_step *step = &steps[(*n_steps)++];
            memset(step, 0, sizeof *step); /* padding too: plans compare as bytes */
            step->tensor = tensor;
            step->from = from;
            step->to = to;
            step->cost = t->conversion[from * t->n_labels + to];
            *made |= UINT64_C(1) << via;
        }
        v = via;
    }
}

static int64_t grown_tree(struct tree *t, int tensor, struct plan_step *steps,
                          size_t *n_steps)
{
    size_t all = ((size_t)1 << t->n_wanted) - 1, n = (size_t)t->n_labels;
    int64_t few[2 * PLAN_MAX_LABELS];
    int via[2 * PLAN_MAX_LABELS];
    bool many = t->n_wanted > 1; /* one label, the usual case, is done on the stack */
    int64_t cost = PLAN_INFINITE;
    uint64_t made = UINT64_C(1) << t->root;
    t->best = many ? malloc((all + 1) * n * sizeof *t->best) : few;
    t->via = many ? malloc((all + 1) * n * sizeof *t->via) : via;
    if (!t->best || !t->via)
        goto done;
    fill(t);
    cost = t->best[all * n + (size_t)t->root];
    if (steps && cost < PLAN_INFINITE)
        emit(t, tensor, all, t->root, steps, n_steps, &made);
    cost = cost < PLAN_INFINITE ? cost / t->unit : PLAN_INFINITE;
done:
    if (many) {
        free(t->best);
        free(t->via);
    }
    return cost;
}

int64_t plan_tree(const struct plan_problem *p, int tensor, int root, uint64_t wanted,
                  struct plan_step *steps, size_t *n_steps)
{
    struct tree t = {.problem = p,
                     .conversion = p->tensors[tensor].conversion,
                     .n_labels = p->n_labels};
    size_t none = 0;
    if (!n_steps)
        n_steps = &none;
    *n_steps = 0;
    wanted &= ~(UINT64_C(1) << root);
    if (!wanted)
        return 0;
    if (__builtin_popcountll(wanted) > TREE_MAX_WANTED)
        return PLAN_INFINITE;
    sort_labels(&t);
    choose_unit(&t);
    for (int v = 0; v < p->n_labels; v++) {
        if (t.order[v] == root)
            t.root = v;
        if (wanted & UINT64_C(1) << t.order[v])
            t.wanted[t.n_wanted++] = v;
    }
    return grown_tree(&t, tensor, steps, n_steps);
}
