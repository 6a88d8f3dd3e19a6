/* SPDX-License-Identifier: Apache-2.0
 *
 * The checker's pairwise problem: a node for each operation and for the sets of formats
 * of each tensor that several operations read.
 */
#include "planner/certificate/check.h"

#include <stdlib.h>
#include <string.h>

/* ---- labels ------------------------------------------------------------------------ */

/* Wanted labels that become each other for nothing are one bit of a set; one that every
 * label becomes for nothing has none. */
struct merged {
    uint64_t wanted;
    int n, bit[PLAN_MAX_LABELS], label[PLAN_MAX_LABELS]; /* of a label; of a bit */
    bool any_free;
};

static bool is_same(const struct checker *k, int tensor, int a, int b)
{
    return a == b || (k->p->labels[a].precision == k->p->labels[b].precision &&
                      k->p->labels[a].range == k->p->labels[b].range &&
                      check_conversion(k, tensor, a, b) == 0 &&
                      check_conversion(k, tensor, b, a) == 0);
}

static bool is_free(const struct checker *k, int tensor, int label)
{
    for (int l = 0; l < k->p->n_labels; l++)
        if (check_conversion(k, tensor, l, label) != 0)
            return false;
    return k->p->labels[label].stage == PLAN_NONE;
}

static void merge(struct merged *m, const struct checker *k, int tensor, uint64_t wanted)
{
    *m = (struct merged){.wanted = wanted};
    for (int l = 0; l < k->p->n_labels; l++) {
        m->bit[l] = -1;
        if (!(wanted >> l & 1))
            continue;
        if (is_free(k, tensor, l)) {
            m->any_free = true;
            continue;
        }
        for (int i = 0; i < l && m->bit[l] < 0; i++)
            if (m->bit[i] >= 0 && is_same(k, tensor, i, l))
                m->bit[l] = m->bit[i];
        if (m->bit[l] < 0) {
            m->label[m->n] = l;
            m->bit[l] = m->n++;
        }
    }
}

static uint64_t pack(const struct merged *m, uint64_t wanted)
{
    uint64_t set = 0;
    for (int l = 0; l < PLAN_MAX_LABELS && wanted >> l; l++)
        if (wanted >> l & 1 && m->bit[l] >= 0)
            set |= UINT64_C(1) << m->bit[l];
    return set;
}

/* ---- trees ------------------------------------------------------------------------- */

enum { MAX_LABELS = 18 }; /* that matter at one tensor: trees are over all their sets */

/* Labels of a tensor that a tree from the root may hold: the root, those wanted, and
 * those that conversions enter and leave, as far as it reaches. */
struct growth {
    const struct checker *k;
    int tensor, n, largest; /* set to grow */
    int label[MAX_LABELS];
    /* Cheapest from label to label of those reached; of having a set, and maybe more. */
    int64_t path[PLAN_MAX_LABELS][PLAN_MAX_LABELS];
    int64_t cost[1 << MAX_LABELS];
};

static bool passes(const struct checker *k, int tensor, int label)
{
    bool in = false, out = false;
    for (int l = 0; l < k->p->n_labels; l++) {
        in |= l != label && check_conversion(k, tensor, l, label) < DEAD;
        out |= l != label && check_conversion(k, tensor, label, l) < DEAD &&
               k->p->labels[l].stage != PLAN_NONE;
    }
    return in && out;
}

static uint64_t reach(const struct checker *k, int tensor, int root)
{
    uint64_t reached = UINT64_C(1) << root, before = 0;
    while (reached != before) {
        uint64_t fresh = reached & ~before;
        before = reached;
        for (int u = 0; u < k->p->n_labels; u++)
            for (int v = 0; fresh >> u & 1 && v < k->p->n_labels; v++)
                if (u != v && check_conversion(k, tensor, u, v) < DEAD)
                    reached |= UINT64_C(1) << v;
    }
    return reached;
}

static void close_paths(struct growth *w, int root)
{
    const struct plan_problem *p = w->k->p;
    int n = 0, near[PLAN_MAX_LABELS];
    uint64_t reached = reach(w->k, w->tensor, root);
    for (int l = 0; l < p->n_labels; l++)
        if (reached >> l & 1)
            near[n++] = l;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            w->path[near[i]][near[j]] =
                check_keeps(p, root, near[i], near[j])
                    ? check_conversion(w->k, w->tensor, near[i], near[j])
                    : PLAN_INFINITE;
    for (int via = 0; via < n; via++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                int64_t *at = &w->path[near[i]][near[j]];
                int64_t cost =
                    plus(w->path[near[i]][near[via]], w->path[near[via]][near[j]]);
                *at = cost < *at ? cost : *at;
            }
}

/* The label's place, or that of one that is the same; -1: none. */
static int place_of(const struct growth *w, int label)
{
    for (int i = 0; i < w->n; i++)
        if (is_same(w->k, w->tensor, w->label[i], label))
            return i;
    return -1;
}

static bool find_labels(struct growth *w, const struct checker *k, int tensor,
                        const struct merged *m, int root)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    const uint64_t near = reach(k, tensor, root);
    w->k = k;
    w->tensor = tensor;
    w->largest = 2 * ((size_t)m->n < t->n_readers ? m->n : (int)t->n_readers);
    w->largest += w->largest == 0; /* the root, where only what is free is wanted */
    w->label[0] = root;
    w->n = 1;
    for (int l = 0; l < k->p->n_labels; l++) {
        bool wanted = m->bit[l] >= 0 && m->label[m->bit[l]] == l;
        if (!(near >> l & 1) || !(wanted || passes(k, tensor, l)) || place_of(w, l) >= 0)
            continue;
        if (w->n == MAX_LABELS)
            return false;
        w->label[w->n++] = l;
    }
    return true;
}

/* Cheapest set that ends in the growth by one of its own labels. */
static int64_t last_grown(const struct growth *w, unsigned set)
{
    int64_t least = PLAN_INFINITE;
    for (int v = 0; v < w->n; v++) {
        unsigned before = set & ~(1u << v);
        for (int u = 0; u < w->n && before != set; u++) {
            int64_t step = w->path[w->label[u]][w->label[v]];
            if (before >> u & 1 && plus(w->cost[before], step) < least)
                least = plus(w->cost[before], step);
        }
    }
    return least;
}

/* With paths for steps, a tree to n labels forks at fewer than n others: sets of root,
 * labels and forks are enough. */
static void grow_sets(struct growth *w, int root)
{
    unsigned all = (1u << w->n) - 1;
    close_paths(w, root);
    for (unsigned set = 0; set <= all; set++) {
        w->cost[set] = PLAN_INFINITE;
        if (__builtin_popcount(set) == 1 && w->label[__builtin_ctz(set)] == root)
            w->cost[set] = 0;
        else if (__builtin_popcount(set) <= w->largest)
            w->cost[set] = last_grown(w, set);
    }
    for (unsigned set = all + 1; set-- > 0;)
        for (int v = 0; v < w->n && __builtin_popcount(set) < w->largest; v++)
            if (!(set >> v & 1) && w->cost[set | 1u << v] < w->cost[set])
                w->cost[set] = w->cost[set | 1u << v];
}

static int64_t grown_cost(const struct growth *w, const struct merged *m, uint64_t wanted)
{
    unsigned set = 0;
    for (int b = 0; b < m->n; b++) {
        int place = wanted >> b & 1 ? place_of(w, m->label[b]) : 0;
        if (place < 0)
            return PLAN_INFINITE;
        set |= (unsigned)(wanted >> b & 1) << place;
    }
    return w->cost[set];
}

/* ---- the pairwise problem ---------------------------------------------------------- */

bool check_connect(struct state *g, int u, int v)
{
    struct near_list *a = &g->near[u], *b = &g->near[v];
    size_t cells = (size_t)g->labels[u] * (size_t)g->labels[v];
    if (edge_of(g, u, v))
        return true;
    int64_t *m = calloc(cells + 1, sizeof *m);
    if (!m || grow(&a->v, &a->capacity, a->n, sizeof *a->v, NULL) != STRATA_OK ||
        grow(&b->v, &b->capacity, b->n, sizeof *b->v, NULL) != STRATA_OK) {
        free(m);
        return false;
    }
    a->v[a->n++] = (struct near){v, (int)b->n, m};
    b->v[b->n++] = (struct near){u, (int)a->n - 1, m};
    return true;
}

static void take_out(struct state *g, int v, size_t place)
{
    struct near_list *list = &g->near[v];
    const struct near last = list->v[--list->n];
    if (place == list->n)
        return;
    list->v[place] = last;
    g->near[last.other].v[last.back].back = (int)place;
}

void check_drop(struct state *g, int v, size_t place)
{
    const struct near e = g->near[v].v[place];
    take_out(g, v, place);
    take_out(g, e.other, (size_t)e.back);
    free(e.m);
}

void state_free(struct state *g)
{
    for (int v = 0; g->cost && v < g->n; v++)
        free(g->cost[v]);
    for (int v = 0; g->near && v < g->n; v++) {
        for (size_t k = 0; k < g->near[v].n; k++)
            if (g->near[v].v[k].other < v)
                free(g->near[v].v[k].m);
        free(g->near[v].v);
    }
    free(g->labels);
    free(g->cost);
    free(g->near);
}

static bool add_node(struct state *g, int v, int labels)
{
    g->labels[v] = labels;
    g->cost[v] = calloc((size_t)labels + 1, sizeof **g->cost);
    return g->cost[v] != NULL;
}

static uint64_t wanted_by_any(const struct checker *k, const struct plan_tensor *t)
{
    uint64_t wanted = 0;
    for (size_t r = 0; r < t->n_readers; r++) {
        int op = t->readers[r].op, port = t->readers[r].port;
        for (size_t c = 0; c < k->p->ops[op].n_choices; c++)
            if (check_choice(k, op, c) < DEAD)
                wanted |= UINT64_C(1) << plan_in_label(&k->p->ops[op].choices[c], port);
    }
    return wanted;
}

/* Least cost to have the set, from each of the producer's choices, onto the edge u - v;
 * column j wants sets[j]. */
static bool add_trees(const struct checker *k, struct state *g, int tensor, int v,
                      const struct merged *m, const uint64_t *sets)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    struct growth *w = malloc(sizeof *w);
    int u = t->producer;
    bool fine = w && check_connect(g, u, v);
    for (int root = 0; fine && root < k->p->n_labels; root++) {
        bool grown = false;
        for (int i = 0; i < g->labels[u] && fine; i++) {
            if (plan_out_label(&k->p->ops[u].choices[i], t->port) != root)
                continue;
            if (!grown && (fine = find_labels(w, k, tensor, m, root)))
                grow_sets(w, root);
            grown = true;
            for (int j = 0; fine && j < g->labels[v]; j++) {
                int64_t *at = cell(g, u, i, v, j);
                *at = plus(*at, grown_cost(w, m, sets[j]));
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

/* The sets of a tensor's node and their edges to its readers. */
static bool add_sets(const struct checker *k, struct state *g, int tensor, int v,
                     const struct merged *m, uint64_t *sets)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    for (int j = 0; j < g->labels[v]; j++) {
        size_t size = (size_t)__builtin_popcount((unsigned)j);
        sets[j] = (uint64_t)j;
        if ((size == 0 && !m->any_free) || size > t->n_readers)
            g->cost[v][j] = PLAN_INFINITE; /* never exactly what is wanted */
    }
    for (size_t r = 0; r < t->n_readers; r++) {
        int reader = t->readers[r].op;
        if (!check_connect(g, v, reader))
            return false;
        for (int i = 0; i < g->labels[reader]; i++) {
            const struct plan_choice *c = &k->p->ops[reader].choices[i];
            uint64_t want = pack(m, UINT64_C(1) << plan_in_label(c, t->readers[r].port));
            for (int j = 0; j < g->labels[v]; j++)
                if (want & ~sets[j])
                    *cell(g, v, j, reader, i) = PLAN_INFINITE;
        }
    }
    return true;
}

static bool add_tensor(const struct checker *k, struct state *g, int tensor)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    int op = only_reader(t), v = op >= 0 ? op : (int)k->p->n_ops + tensor;
    struct merged m;
    if (op == -1)
        return add_node(g, (int)k->p->n_ops + tensor, 0);
    merge(&m, k, tensor, wanted_by_any(k, t));
    if (!add_node(g, (int)k->p->n_ops + tensor, op >= 0 ? 0 : 1 << m.n))
        return false;
    uint64_t *sets = calloc((size_t)g->labels[v] + 1, sizeof *sets);
    bool fine = sets != NULL;
    for (int j = 0; fine && op >= 0 && j < g->labels[v]; j++)
        sets[j] = pack(&m, check_wants(t, op, &k->p->ops[op].choices[j]));
    if (fine && op < 0)
        fine = add_sets(k, g, tensor, v, &m, sets);
    fine = fine && add_trees(k, g, tensor, v, &m, sets);
    free(sets);
    return fine;
}

static bool tensor_fits(const struct checker *k, struct growth *w, int tensor)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    const struct plan_op *o = &k->p->ops[t->producer];
    struct merged m;
    uint64_t roots = 0;
    merge(&m, k, tensor, wanted_by_any(k, t));
    for (size_t c = 0; c < o->n_choices; c++)
        roots |= UINT64_C(1) << plan_out_label(&o->choices[c], t->port);
    bool fits = only_reader(t) >= 0 || m.n < MAX_LABELS;
    for (int l = 0; l < k->p->n_labels && fits; l++)
        fits = !(roots >> l & 1) || find_labels(w, k, tensor, &m, l);
    return fits;
}

int check_fits(const struct checker *k)
{
    struct growth *w = malloc(sizeof *w);
    bool fits = true;
    if (!w)
        return error_no_memory(k->err, sizeof *w, "the checker");
    for (size_t t = 0; fits && t < k->p->n_tensors; t++)
        fits = tensor_fits(k, w, (int)t);
    free(w);
    return fits ? STRATA_OK
                : error_set(k->err, STRATA_EUNSUPPORTED,
                            "too many formats meet at one tensor to check its trees");
}

bool check_build(const struct checker *k, struct state *g)
{
    size_t n = k->p->n_ops + k->p->n_tensors;
    *g = (struct state){.n = (int)n, .stale = true};
    g->labels = calloc(n + 1, sizeof *g->labels);
    g->cost = calloc(n + 1, sizeof *g->cost);
    g->near = calloc(n + 1, sizeof *g->near);
    if (!g->labels || !g->cost || !g->near)
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
    to->near = calloc(n + 1, sizeof *to->near);
    if (!to->labels || !to->cost || !to->near)
        return false;
    memcpy(to->labels, g->labels, n * sizeof *g->labels);
    for (int v = 0; v < g->n; v++) {
        if (!add_node(to, v, g->labels[v]))
            return false;
        memcpy(to->cost[v], g->cost[v], (size_t)g->labels[v] * sizeof **g->cost);
        for (size_t e = 0; e < g->near[v].n; e++) {
            const struct near *edge = &g->near[v].v[e];
            int u = edge->other;
            if (u > v)
                continue;
            if (!check_connect(to, u, v))
                return false;
            memcpy(edge_of(to, u, v), edge->m,
                   (size_t)(g->labels[u] * g->labels[v]) * sizeof *edge->m);
        }
    }
    return true;
}
