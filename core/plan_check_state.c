/* SPDX-License-Identifier: Apache-2.0
 *
 * The checker's pairwise problem: a node for each operation and for the sets of formats
 * of each tensor that several operations read.
 */
#include "core/plan_check.h"

#include <stdlib.h>
#include <string.h>

/* ---- trees ------------------------------------------------------------------------- */

enum { MAX_LABELS = 16 }; /* that matter at one tensor: trees are over all their sets */

/* Labels of a tensor that a tree from some root may hold: those written, those wanted,
 * and those that conversions enter and leave. */
struct growth {
    const struct checker *k;
    int tensor, n;
    int label[MAX_LABELS];
    int64_t cost[1 << MAX_LABELS]; /* to have a set, and maybe more */
};

static bool passes(const struct checker *k, int tensor, int label)
{
    bool in = false, out = false;
    for (int l = 0; l < k->p->n_labels; l++) {
        in |= l != label && check_conversion(k, tensor, l, label) < DEAD;
        out |= l != label && check_conversion(k, tensor, label, l) < DEAD;
    }
    return in && out;
}

static bool find_labels(struct growth *w, const struct checker *k, int tensor,
                        uint64_t wanted)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    const struct plan_op *o = &k->p->ops[t->producer];
    w->k = k;
    w->tensor = tensor;
    w->n = 0;
    for (size_t c = 0; c < o->n_choices; c++)
        wanted |= UINT64_C(1) << plan_out_label(&o->choices[c], t->port);
    for (int l = 0; l < k->p->n_labels; l++) {
        if (!(wanted >> l & 1) && !passes(k, tensor, l))
            continue;
        if (w->n == MAX_LABELS)
            return false;
        w->label[w->n++] = l;
    }
    return true;
}

static void grow_sets(struct growth *w, int root)
{
    const struct plan_problem *p = w->k->p;
    unsigned all = (1u << w->n) - 1;
    int64_t step[MAX_LABELS][MAX_LABELS];
    for (int u = 0; u < w->n; u++)
        for (int v = 0; v < w->n; v++)
            step[u][v] = check_keeps(p, root, w->label[u], w->label[v])
                             ? check_conversion(w->k, w->tensor, w->label[u], w->label[v])
                             : PLAN_INFINITE;
    for (unsigned set = 0; set <= all; set++) {
        w->cost[set] = PLAN_INFINITE;
        for (int v = 0; v < w->n; v++) {
            unsigned before = set & ~(1u << v);
            if (set == 1u << v && w->label[v] == root)
                w->cost[set] = 0;
            for (int u = 0; u < w->n && before != set; u++)
                if (before >> u & 1 && plus(w->cost[before], step[u][v]) < w->cost[set])
                    w->cost[set] = plus(w->cost[before], step[u][v]);
        }
    }
    for (int v = 0; v < w->n; v++)
        for (unsigned set = 0; set <= all; set++)
            if (!(set >> v & 1) && w->cost[set | 1u << v] < w->cost[set])
                w->cost[set] = w->cost[set | 1u << v];
}

static int64_t grown_cost(const struct growth *w, uint64_t wanted)
{
    unsigned set = 0;
    for (int i = 0; i < w->n; i++)
        set |= (unsigned)(wanted >> w->label[i] & 1) << i;
    return w->cost[set];
}

/* ---- the pairwise problem ---------------------------------------------------------- */

bool check_connect(struct state *g, int u, int v)
{
    int64_t **e = edge_of(g, u, v);
    size_t cells = (size_t)g->labels[u] * (size_t)g->labels[v];
    if (!*e)
        *e = calloc(cells + 1, sizeof **e);
    return *e != NULL;
}

void state_free(struct state *g)
{
    for (int v = 0; g->cost && v < g->n; v++)
        free(g->cost[v]);
    for (int e = 0; g->edge && e < g->n * g->n; e++)
        free(g->edge[e]);
    free(g->labels);
    free(g->cost);
    free(g->edge);
}

static bool add_node(struct state *g, int v, int labels)
{
    g->labels[v] = labels;
    g->cost[v] = calloc((size_t)labels + 1, sizeof **g->cost);
    return g->cost[v] != NULL;
}

/* Sets of a tensor's node, packed over the labels that any allowed choice wants. */
static uint64_t spread(unsigned packed, uint64_t wanted)
{
    uint64_t set = 0;
    for (; wanted; wanted &= wanted - 1, packed >>= 1)
        if (packed & 1)
            set |= wanted & -wanted;
    return set;
}

static uint64_t wanted_by_any(const struct checker *k, const struct plan_tensor *t)
{
    uint64_t wanted = 0;
    for (size_t r = 0; r < t->n_readers; r++) {
        int op = t->readers[r].op;
        for (size_t c = 0; c < k->p->ops[op].n_choices; c++)
            if (check_choice(k, op, c) < DEAD)
                wanted |= check_wants(t, op, &k->p->ops[op].choices[c]);
    }
    return wanted;
}

/* Least cost to have the set, from each of the producer's choices, onto the edge u - v;
 * column j wants sets[j]. */
static bool add_trees(const struct checker *k, struct state *g, int tensor, int v,
                      const uint64_t *sets)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    struct growth *w = malloc(sizeof *w);
    int u = t->producer;
    bool fine =
        w && find_labels(w, k, tensor, wanted_by_any(k, t)) && check_connect(g, u, v);
    for (int root = 0; fine && root < k->p->n_labels; root++) {
        bool grown = false;
        for (int i = 0; i < g->labels[u]; i++) {
            if (plan_out_label(&k->p->ops[u].choices[i], t->port) != root)
                continue;
            if (!grown)
                grow_sets(w, root);
            grown = true;
            for (int j = 0; j < g->labels[v]; j++) {
                int64_t *at = cell(g, u, i, v, j);
                *at = plus(*at, grown_cost(w, sets[j]));
            }
        }
    }
    free(w);
    return fine;
}

static int only_reader(const struct plan_tensor *t)
{
    int op = t->n_readers ? t->readers[0].op : -1;
    for (size_t r = 1; r < t->n_readers; r++)
        op = t->readers[r].op == op ? op : -2;
    return op;
}

static bool add_tensor(const struct checker *k, struct state *g, int tensor)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    uint64_t wanted = wanted_by_any(k, t);
    int op = only_reader(t), v = op >= 0 ? op : (int)k->p->n_ops + tensor, n = 0;
    uint64_t *sets = NULL;
    bool fine = op == -1;
    if (fine)
        return add_node(g, (int)k->p->n_ops + tensor, 0);
    if (op >= 0)
        n = g->labels[op];
    else
        n = 1 << __builtin_popcountll(wanted);
    if (!add_node(g, (int)k->p->n_ops + tensor, op >= 0 ? 0 : n))
        return false;
    if (!(sets = calloc((size_t)n + 1, sizeof *sets)))
        return false;
    for (int j = 0; j < n; j++) {
        bool single = op >= 0;
        sets[j] = single ? check_wants(t, op, &k->p->ops[op].choices[j])
                         : spread((unsigned)j, wanted);
        int size = __builtin_popcountll(sets[j]);
        if (!single && (size == 0 || (size_t)size > t->n_readers))
            g->cost[v][j] = PLAN_INFINITE; /* never exactly what is wanted */
    }
    fine = add_trees(k, g, tensor, v, sets);
    for (size_t r = 0; fine && op < 0 && r < t->n_readers; r++) {
        int reader = t->readers[r].op;
        if (!(fine = check_connect(g, v, reader)))
            break;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < g->labels[reader]; i++)
                if (check_wants(t, reader, &k->p->ops[reader].choices[i]) & ~sets[j])
                    *cell(g, v, j, reader, i) = PLAN_INFINITE;
    }
    free(sets);
    return fine;
}

bool check_fits(const struct checker *k)
{
    struct growth *w = malloc(sizeof *w);
    bool fits = w != NULL;
    for (size_t t = 0; fits && t < k->p->n_tensors; t++) {
        uint64_t wanted = wanted_by_any(k, &k->p->tensors[t]);
        fits = find_labels(w, k, (int)t, wanted) &&
               __builtin_popcountll(wanted) < MAX_LABELS;
    }
    free(w);
    return fits;
}

bool check_build(const struct checker *k, struct state *g)
{
    size_t n = k->p->n_ops + k->p->n_tensors;
    *g = (struct state){.n = (int)n, .stale = true};
    g->labels = calloc(n + 1, sizeof *g->labels);
    g->cost = calloc(n + 1, sizeof *g->cost);
    g->edge = calloc(n * n + 1, sizeof *g->edge);
    if (!g->labels || !g->cost || !g->edge)
        return false;
    for (size_t op = 0; op < k->p->n_ops; op++) {
        if (!add_node(g, (int)op, (int)k->p->ops[op].n_choices))
            return false;
        for (size_t c = 0; c < k->p->ops[op].n_choices; c++)
            g->cost[op][c] = check_choice(k, (int)op, c);
    }
    for (size_t t = 0; t < k->p->n_tensors; t++)
        if (!add_tensor(k, g, (int)t))
            return false;
    return true;
}

bool check_copy(struct state *to, const struct state *g)
{
    size_t n = (size_t)g->n;
    *to = *g;
    to->labels = calloc(n + 1, sizeof *to->labels);
    to->cost = calloc(n + 1, sizeof *to->cost);
    to->edge = calloc(n * n + 1, sizeof *to->edge);
    if (!to->labels || !to->cost || !to->edge)
        return false;
    memcpy(to->labels, g->labels, n * sizeof *g->labels);
    for (int v = 0; v < g->n; v++) {
        if (!add_node(to, v, g->labels[v]))
            return false;
        memcpy(to->cost[v], g->cost[v], (size_t)g->labels[v] * sizeof **g->cost);
        for (int u = 0; u < v; u++) {
            size_t bytes = (size_t)(g->labels[u] * g->labels[v]) * sizeof **g->edge;
            if (!g->edge[u * g->n + v])
                continue;
            if (!check_connect(to, u, v))
                return false;
            memcpy(to->edge[u * g->n + v], g->edge[u * g->n + v], bytes);
        }
    }
    return true;
}
