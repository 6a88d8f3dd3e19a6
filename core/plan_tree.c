/* SPDX-License-Identifier: Apache-2.0
 *
 * Minimum-cost conversion trees. With t labels wanted and L labels in all:
 *   best[S][v] = cheapest tree from v that reaches every wanted label of S;
 *   it either moves along one conversion, or splits S at v between two subtrees.
 * O(3^t L + 2^t L^2) steps; t is rarely over three.
 */
#include "core/plan.h"

#include <stdlib.h>
#include <string.h>

/* Distinct labels that the readers of one tensor may want; more are refused. */
enum { TREE_MAX_WANTED = 16 };

struct tree {
    const struct plan_problem *problem;
    const int64_t *conversion;
    int n_labels, n_wanted, root;
    int wanted[PLAN_MAX_LABELS];
    int64_t *best; /* [S][v] */
    int *via;      /* [S][v]: >= 0 move to that label; < 0 split off subset -via; NONE */
};
#define NONE INT32_MAX

/* What reaches a label has the least precision met on the way. A conversion u -> v is
 * legal if the content still has all that root and v can both hold. */
static bool keeps_precision(const struct tree *t, int u, int v)
{
    const struct plan_label *labels = t->problem->labels;
    int root = labels[t->root].precision;
    int at_u = labels[u].precision < root ? labels[u].precision : root;
    int at_v = labels[v].precision < root ? labels[v].precision : root;
    return at_u >= at_v;
}

static int64_t edge(const struct tree *t, int u, int v)
{
    int64_t cost = t->conversion[u * t->n_labels + v];
    return cost < PLAN_INFINITE && keeps_precision(t, u, v) ? cost : PLAN_INFINITE;
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
            steps[(*n_steps)++] =
                (struct plan_step){tensor, v, via, t->conversion[v * t->n_labels + via]};
            *made |= UINT64_C(1) << via;
        }
        v = via;
    }
}

/* One label wanted, the usual case: a shortest path, on the stack. */
static int64_t single_tree(const struct plan_problem *p, int tensor, int root,
                           uint64_t wanted, struct plan_step *steps, size_t *n_steps)
{
    int64_t best[2 * PLAN_MAX_LABELS];
    int via[2 * PLAN_MAX_LABELS];
    struct tree t = {.problem = p,
                     .conversion = p->tensors[tensor].conversion,
                     .n_labels = p->n_labels,
                     .n_wanted = 1,
                     .root = root,
                     .best = best,
                     .via = via};
    t.wanted[0] = __builtin_ctzll(wanted);
    fill(&t);
    int64_t cost = best[p->n_labels + root];
    uint64_t made = UINT64_C(1) << root;
    if (steps && cost < PLAN_INFINITE)
        emit(&t, tensor, 1, root, steps, n_steps, &made);
    return cost;
}

int64_t plan_tree(const struct plan_problem *p, int tensor, int root, uint64_t wanted,
                  struct plan_step *steps, size_t *n_steps)
{
    struct tree t = {.problem = p,
                     .conversion = p->tensors[tensor].conversion,
                     .n_labels = p->n_labels,
                     .root = root};
    size_t none = 0;
    if (!n_steps)
        n_steps = &none;
    *n_steps = 0;
    wanted &= ~(UINT64_C(1) << root);
    if (!wanted)
        return 0;
    if ((wanted & (wanted - 1)) == 0)
        return single_tree(p, tensor, root, wanted, steps, n_steps);
    for (int v = 0; v < p->n_labels; v++)
        if (wanted & UINT64_C(1) << v && t.n_wanted < TREE_MAX_WANTED)
            t.wanted[t.n_wanted++] = v;
    size_t cells = ((size_t)1 << t.n_wanted) * (size_t)t.n_labels;
    int64_t cost = PLAN_INFINITE;
    t.best = malloc(cells * sizeof *t.best);
    t.via = malloc(cells * sizeof *t.via);
    if (!t.best || !t.via || __builtin_popcountll(wanted) > TREE_MAX_WANTED)
        goto done;
    fill(&t);
    cost = t.best[cells - (size_t)t.n_labels + (size_t)root];
    uint64_t made = UINT64_C(1) << root;
    if (steps && cost < PLAN_INFINITE)
        emit(&t, tensor, ((size_t)1 << t.n_wanted) - 1, root, steps, n_steps, &made);
done:
    free(t.best);
    free(t.via);
    return cost;
}
