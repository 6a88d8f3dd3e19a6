/* SPDX-License-Identifier: Apache-2.0
 *
 * The independent checker of plan certificates. It shares nothing with the solver but the
 * structs of plan.h: it builds the pairwise problem on its own, with trees grown one
 * label at a time, and follows the proof step by step. Each step is exact or a
 * reparametrisation (checked to leave every row and column of its edge a least entry of
 * 0), each dropped label and each leaf must be no better than the plan, and each branch
 * must be closed.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/plan.h"

enum { MAX_LABELS = 16 };
#define DEAD (PLAN_INFINITE / 2)

struct state {
    int n;
    int *labels;    /* of each node */
    int64_t **cost; /* of each label; DEAD and above: gone */
    int64_t **edge; /* [u * n + v], u < v, or NULL */
    int64_t constant, bound;
    bool stale;
};

struct checker {
    const struct plan_problem *p;
    const struct plan_options *o;
    const struct plan_certificate *c;
    int64_t penalty;
    struct state *stack; /* branches to be done; the last is at work */
    size_t depth, capacity;
    strata_error *err;
};

static int fail(const struct checker *k, const char *what)
{
    return error_set(k->err, STRATA_EMISMATCH, "the certificate does not hold: %s", what);
}

static int64_t plus(int64_t a, int64_t b)
{
    return a >= DEAD || b >= DEAD ? PLAN_INFINITE : a + b;
}

/* ---- costs, from the problem and the options --------------------------------------- */

static int64_t conversion(const struct checker *k, int tensor, int from, int to)
{
    int64_t cost = k->p->tensors[tensor].conversion[from * k->p->n_labels + to];
    for (size_t i = 0; k->o && i < k->o->n_bans; i++) {
        const struct plan_ban *b = &k->o->bans[i];
        bool here = b->kind != PLAN_BAN_CHOICE && (b->tensor < 0 || b->tensor == tensor);
        bool label = b->kind == PLAN_BAN_LABEL && (b->to == from || b->to == to);
        bool step = b->kind == PLAN_BAN_CONVERSION && (b->from < 0 || b->from == from) &&
                    (b->to < 0 || b->to == to) &&
                    (cost > 0 || (b->from >= 0 && b->to >= 0));
        if (here && (label || step))
            return PLAN_INFINITE;
    }
    return cost >= PLAN_INFINITE ? cost : cost > 0 ? cost + k->penalty : 0;
}

static bool has_label(const struct plan_op *o, const struct plan_choice *c,
                      const struct plan_ban *b)
{
    for (int i = 0; i < o->n_in; i++)
        if ((b->tensor < 0 || o->in[i] == b->tensor) && plan_in_label(c, i) == b->to)
            return true;
    for (int i = 0; i < o->n_out; i++)
        if ((b->tensor < 0 || o->out[i] == b->tensor) && plan_out_label(c, i) == b->to)
            return true;
    return false;
}

static int64_t choice_cost(const struct checker *k, int op, size_t choice)
{
    const struct plan_op *o = &k->p->ops[op];
    const struct plan_choice *c = &o->choices[choice];
    for (size_t i = 0; k->o && i < k->o->n_bans; i++) {
        const struct plan_ban *b = &k->o->bans[i];
        if (b->kind == PLAN_BAN_CHOICE && b->op == op && b->to == (int)choice)
            return PLAN_INFINITE;
        if (b->kind == PLAN_BAN_LABEL && has_label(o, c, b))
            return PLAN_INFINITE;
    }
    return c->cost < DEAD ? c->cost : PLAN_INFINITE;
}

static bool keeps(const struct plan_problem *p, int root, int u, int v)
{
    int bits = p->labels[root].precision;
    int at_v = p->labels[v].precision < bits ? p->labels[v].precision : bits;
    return p->labels[u].precision >= at_v;
}

/* out[set] = cheapest way from root to have all labels of set, and maybe more. */
static void grow_sets(const struct checker *k, int tensor, int root, int64_t *out)
{
    const struct plan_problem *p = k->p;
    unsigned all = (1u << p->n_labels) - 1;
    for (unsigned set = 0; set <= all; set++) {
        out[set] = set == 1u << root ? 0 : PLAN_INFINITE;
        for (int v = 0; v < p->n_labels; v++)
            for (int u = 0; u < p->n_labels && set >> v & 1 && v != root; u++) {
                unsigned before = set & ~(1u << v);
                if (!(before >> u & 1) || !keeps(p, root, u, v))
                    continue;
                int64_t cost = plus(out[before], conversion(k, tensor, u, v));
                out[set] = cost < out[set] ? cost : out[set];
            }
    }
    for (int v = 0; v < p->n_labels; v++)
        for (unsigned set = 0; set <= all; set++)
            if (!(set >> v & 1) && out[set | 1u << v] < out[set])
                out[set] = out[set | 1u << v];
}

static unsigned wants(const struct plan_tensor *t, int op, const struct plan_choice *c)
{
    unsigned wanted = 0;
    for (size_t r = 0; r < t->n_readers; r++)
        if (t->readers[r].op == op)
            wanted |= 1u << plan_in_label(c, t->readers[r].port);
    return wanted;
}

/* Above all costs that assignments can differ by. */
static int64_t weight_of_reformat(const struct plan_problem *p)
{
    int64_t total = 1;
    for (size_t op = 0; op < p->n_ops; op++) {
        int64_t most = 0;
        for (size_t c = 0; c < p->ops[op].n_choices; c++)
            if (p->ops[op].choices[c].cost < PLAN_INFINITE &&
                p->ops[op].choices[c].cost > most)
                most = p->ops[op].choices[c].cost;
        total = plus(total, most);
    }
    for (size_t t = 0; t < p->n_tensors; t++) {
        int64_t most = 0;
        for (int e = 0; e < p->n_labels * p->n_labels; e++)
            if (p->tensors[t].conversion[e] < PLAN_INFINITE &&
                p->tensors[t].conversion[e] > most)
                most = p->tensors[t].conversion[e];
        for (int l = 0; l < p->n_labels; l++)
            total = plus(total, most);
    }
    return total;
}

/* ---- the plan ---------------------------------------------------------------------- */

static int check_tree(const struct checker *k, size_t *at, int tensor, int64_t *total)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    const struct plan_choice *c =
        &k->p->ops[t->producer].choices[k->c->choices[t->producer]];
    int root = plan_out_label(c, t->port);
    unsigned made = 1u << root, wanted = 0;
    for (size_t r = 0; r < t->n_readers; r++) {
        int op = t->readers[r].op;
        wanted |= wants(t, op, &k->p->ops[op].choices[k->c->choices[op]]);
    }
    for (; *at < k->c->n_steps && k->c->steps[*at].tensor == tensor; ++*at) {
        const struct plan_step *s = &k->c->steps[*at];
        if (s->from < 0 || s->to < 0 || s->from >= k->p->n_labels ||
            s->to >= k->p->n_labels || !(made >> s->from & 1) || made >> s->to & 1 ||
            !keeps(k->p, root, s->from, s->to) ||
            s->cost != t->conversion[s->from * k->p->n_labels + s->to])
            return fail(k, "a step does not fit its tree");
        made |= 1u << s->to;
        *total = plus(*total, conversion(k, tensor, s->from, s->to));
    }
    return wanted & ~made ? fail(k, "a reader lacks its format") : STRATA_OK;
}

static int check_plan(const struct checker *k)
{
    int64_t total = 0;
    size_t at = 0;
    if (k->c->n_choices != k->p->n_ops)
        return fail(k, "it has another number of operations");
    for (size_t op = 0; op < k->p->n_ops; op++) {
        if (k->c->choices[op] >= k->p->ops[op].n_choices)
            return fail(k, "a choice does not exist");
        total = plus(total, choice_cost(k, (int)op, k->c->choices[op]));
    }
    for (size_t t = 0; t < k->p->n_tensors; t++) {
        int status = check_tree(k, &at, (int)t, &total);
        if (status != STRATA_OK)
            return status;
    }
    if (at != k->c->n_steps)
        return fail(k, "a step belongs to no tensor in order");
    return total >= DEAD || total != k->c->objective ? fail(k, "the plan's cost differs")
                                                     : STRATA_OK;
}

/* ---- the pairwise problem ---------------------------------------------------------- */

static int64_t *cell(const struct state *g, int u, int i, int v, int j)
{
    return u < v ? &g->edge[u * g->n + v][i * g->labels[v] + j]
                 : &g->edge[v * g->n + u][j * g->labels[u] + i];
}

static int64_t **edge_of(const struct state *g, int u, int v)
{
    return u < v ? &g->edge[u * g->n + v] : &g->edge[v * g->n + u];
}

static bool connect(struct state *g, int u, int v)
{
    int64_t **e = edge_of(g, u, v);
    size_t cells = (size_t)g->labels[u] * (size_t)g->labels[v];
    if (!*e)
        *e = calloc(cells + 1, sizeof **e);
    return *e != NULL;
}

static void drop(struct state *g, int u, int v)
{
    free(*edge_of(g, u, v));
    *edge_of(g, u, v) = NULL;
}

static void state_free(struct state *g)
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
static unsigned spread(unsigned packed, unsigned wanted)
{
    unsigned set = 0;
    for (; wanted; wanted &= wanted - 1, packed >>= 1)
        if (packed & 1)
            set |= wanted & -wanted;
    return set;
}

static unsigned wanted_by_any(const struct checker *k, const struct plan_tensor *t)
{
    unsigned wanted = 0;
    for (size_t r = 0; r < t->n_readers; r++) {
        int op = t->readers[r].op;
        for (size_t c = 0; c < k->p->ops[op].n_choices; c++)
            if (choice_cost(k, op, c) < DEAD)
                wanted |= wants(t, op, &k->p->ops[op].choices[c]);
    }
    return wanted;
}

/* Least cost to have the set, from each of the producer's choices, onto the edge u - v;
 * column j wants sets[j]. */
static bool add_trees(const struct checker *k, struct state *g, int tensor, int v,
                      const unsigned *sets)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    int64_t *grown = malloc(sizeof *grown << k->p->n_labels);
    int u = t->producer, last = -1;
    if (!grown || !connect(g, u, v)) {
        free(grown);
        return false;
    }
    for (int root = 0; root < k->p->n_labels; root++)
        for (int i = 0; i < g->labels[u]; i++) {
            if (plan_out_label(&k->p->ops[u].choices[i], t->port) != root)
                continue;
            if (last != root)
                grow_sets(k, tensor, root, grown);
            last = root;
            for (int j = 0; j < g->labels[v]; j++) {
                int64_t *at = cell(g, u, i, v, j);
                *at = plus(*at, grown[sets[j]]);
            }
        }
    free(grown);
    return true;
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
    unsigned wanted = wanted_by_any(k, t);
    int op = only_reader(t), v = op >= 0 ? op : (int)k->p->n_ops + tensor, n = 0;
    unsigned *sets = NULL;
    bool fine = op == -1;
    if (fine)
        return add_node(g, (int)k->p->n_ops + tensor, 0);
    if (op >= 0)
        n = g->labels[op];
    else
        n = 1 << __builtin_popcount(wanted);
    if (!add_node(g, (int)k->p->n_ops + tensor, op >= 0 ? 0 : n))
        return false;
    if (!(sets = calloc((size_t)n + 1, sizeof *sets)))
        return false;
    for (int j = 0; j < n; j++) {
        bool single = op >= 0;
        sets[j] = single ? wants(t, op, &k->p->ops[op].choices[j])
                         : spread((unsigned)j, wanted);
        int size = __builtin_popcount(sets[j]);
        if (!single && (size == 0 || (size_t)size > t->n_readers))
            g->cost[v][j] = PLAN_INFINITE; /* never exactly what is wanted */
    }
    fine = add_trees(k, g, tensor, v, sets);
    for (size_t r = 0; fine && op < 0 && r < t->n_readers; r++) {
        int reader = t->readers[r].op;
        if (!(fine = connect(g, v, reader)))
            break;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < g->labels[reader]; i++)
                if (wants(t, reader, &k->p->ops[reader].choices[i]) & ~sets[j])
                    *cell(g, v, j, reader, i) = PLAN_INFINITE;
    }
    free(sets);
    return fine;
}

static bool build(const struct checker *k, struct state *g)
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
            g->cost[op][c] = choice_cost(k, (int)op, c);
    }
    for (size_t t = 0; t < k->p->n_tensors; t++)
        if (!add_tensor(k, g, (int)t))
            return false;
    return true;
}

static bool copy_state(struct state *to, const struct state *g)
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
            if (!connect(to, u, v))
                return false;
            memcpy(to->edge[u * g->n + v], g->edge[u * g->n + v], bytes);
        }
    }
    return true;
}

/* ---- the steps --------------------------------------------------------------------- */

static bool alive(const struct state *g, int v, int i)
{
    return g->cost[v][i] < DEAD;
}

static int count_alive(const struct state *g, int v)
{
    int n = 0;
    for (int i = 0; i < g->labels[v]; i++)
        n += alive(g, v, i);
    return n;
}

static int64_t row_least(const struct state *g, int u, int i, int v)
{
    int64_t least = PLAN_INFINITE;
    for (int j = 0; j < g->labels[v]; j++)
        if (alive(g, v, j) && *cell(g, u, i, v, j) < least)
            least = *cell(g, u, i, v, j);
    return least;
}

static int64_t node_least(const struct state *g, int v)
{
    int64_t least = PLAN_INFINITE;
    for (int i = 0; i < g->labels[v]; i++)
        least = g->cost[v][i] < least ? g->cost[v][i] : least;
    return least;
}

static bool is_zero(const struct state *g, int u, int v)
{
    for (int i = 0; i < g->labels[u]; i++)
        for (int j = 0; j < g->labels[v]; j++)
            if (alive(g, u, i) && alive(g, v, j) && *cell(g, u, i, v, j) != 0)
                return false;
    return true;
}

/* Sum of the least costs of nodes and edges. */
static int64_t bound_of(struct state *g)
{
    if (!g->stale)
        return g->bound;
    int64_t bound = g->constant;
    for (int v = 0; v < g->n; v++) {
        if (g->labels[v])
            bound = plus(bound, node_least(g, v));
        for (int u = 0; u < v; u++) {
            int64_t least = PLAN_INFINITE;
            if (!g->edge[u * g->n + v])
                continue;
            for (int i = 0; i < g->labels[u]; i++)
                if (alive(g, u, i) && row_least(g, u, i, v) < least)
                    least = row_least(g, u, i, v);
            bound = plus(bound, least);
        }
    }
    g->stale = false;
    return g->bound = bound;
}

static void retire(struct state *g, int v)
{
    for (int u = 0; u < g->n; u++)
        if (u != v && *edge_of(g, u, v))
            drop(g, u, v);
    g->labels[v] = 0;
}

static int eliminate(const struct checker *k, struct state *g, const int64_t *w)
{
    int v = (int)w[0], near[3] = {-1, -1, -1}, n = 0, single = count_alive(g, v) == 1;
    for (int u = 0; u < g->n; u++) {
        if (u == v || !*edge_of(g, u, v))
            continue;
        if (is_zero(g, u, v))
            drop(g, u, v);
        else if (single)
            for (int j = 0; j < g->labels[u]; j++)
                g->cost[u][j] = plus(g->cost[u][j], row_least(g, u, j, v));
        else if (n < 3)
            near[n++] = u;
    }
    if (n > 2 || !g->labels[v])
        return fail(k, "a node with more than two neighbours is eliminated");
    int a = near[0], b = near[1];
    if (n == 2 && !connect(g, a, b))
        return error_no_memory(k->err, 0, "the checker");
    for (int i = 0; n > 0 && i < g->labels[a]; i++)
        for (int j = 0; j < (n > 1 ? g->labels[b] : 1); j++) {
            int64_t least = PLAN_INFINITE;
            for (int x = 0; x < g->labels[v]; x++) {
                int64_t cost = plus(g->cost[v][x], *cell(g, v, x, a, i));
                cost = n > 1 ? plus(cost, *cell(g, v, x, b, j)) : cost;
                least = cost < least ? cost : least;
            }
            int64_t *to = n > 1 ? cell(g, a, i, b, j) : &g->cost[a][i];
            *to = plus(*to, least);
        }
    if (n == 0)
        g->constant = plus(g->constant, node_least(g, v));
    retire(g, v);
    return STRATA_OK;
}

static void move_rows(struct state *g, int u, int v)
{
    for (int i = 0; i < g->labels[u]; i++) {
        int64_t least = alive(g, u, i) ? row_least(g, u, i, v) : 0;
        g->cost[u][i] = plus(g->cost[u][i], least);
        for (int j = 0; j < g->labels[v] && least < DEAD; j++)
            if (*cell(g, u, i, v, j) < DEAD)
                *cell(g, u, i, v, j) -= least;
    }
}

static int normalise(const struct checker *k, struct state *g, const int64_t *w)
{
    int u = (int)w[0], v = (int)w[1];
    if (u == v || !g->labels[u] || !g->labels[v])
        return fail(k, "an edge that does not exist is normalised");
    if (!*edge_of(g, u, v))
        return STRATA_OK; /* all zero */
    move_rows(g, u, v);
    move_rows(g, v, u);
    return STRATA_OK;
}

static int dominate(const struct checker *k, struct state *g, const int64_t *w)
{
    int v = (int)w[0], i = (int)w[1], by = (int)w[2];
    if (i == by || i >= g->labels[v] || by >= g->labels[v] || !alive(g, v, by))
        return fail(k, "a label is dominated by none");
    int64_t sum = g->cost[v][i] - g->cost[v][by];
    for (int u = 0; u < g->n && sum < DEAD; u++) {
        int64_t least = PLAN_INFINITE;
        if (u == v || !*edge_of(g, u, v))
            continue;
        for (int j = 0; j < g->labels[u]; j++) {
            int64_t a = *cell(g, v, i, u, j), b = *cell(g, v, by, u, j);
            if (!alive(g, u, j) || a >= DEAD)
                continue;
            if (b >= DEAD)
                return fail(k, "a dominating label is impossible where the other is not");
            least = a - b < least ? a - b : least;
        }
        sum = plus(sum, least);
    }
    if (sum < 0)
        return fail(k, "a dominated label is cheaper");
    g->cost[v][i] = PLAN_INFINITE;
    return STRATA_OK;
}

static int prune(const struct checker *k, struct state *g, const int64_t *w)
{
    int v = (int)w[0], i = (int)w[1];
    if (i >= g->labels[v] || !alive(g, v, i))
        return fail(k, "a label that is not there is pruned");
    if (bound_of(g) < DEAD &&
        bound_of(g) - node_least(g, v) + g->cost[v][i] < k->c->objective)
        return fail(k, "a pruned label is not bound to be as dear as the plan");
    g->cost[v][i] = PLAN_INFINITE;
    return STRATA_OK;
}

static int shift(const struct checker *k, struct state *g, const int64_t *w)
{
    int u = (int)w[0], v = (int)w[1], at[2] = {0, 0};
    if (u == v || !*edge_of(g, u, v) || count_alive(g, u) != w[2] ||
        count_alive(g, v) != w[3])
        return fail(k, "potentials do not fit their edge");
    for (int side = 0; side < 2; side++) {
        int x = side ? v : u, y = side ? u : v;
        const int64_t *by = w + 4 + (side ? w[2] : 0);
        for (int i = 0; i < g->labels[x]; i++) {
            if (!alive(g, x, i))
                continue;
            int64_t moved = by[at[side]++];
            if (moved >= DEAD / 16 || moved <= -DEAD / 16)
                return fail(k, "a potential is out of range");
            for (int j = 0; j < g->labels[y]; j++)
                if (*cell(g, x, i, y, j) < DEAD)
                    *cell(g, x, i, y, j) -= moved;
            g->cost[x][i] += moved;
        }
    }
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < g->labels[side ? v : u]; i++)
            if (alive(g, side ? v : u, i) && row_least(g, side ? v : u, i, side ? u : v))
                return fail(k, "an edge's potentials are not in normal form");
    return STRATA_OK;
}

/* The other labels wait below; this one is at work. */
static int branch(struct checker *k, const int64_t *w)
{
    int v = (int)w[0], i = (int)w[1];
    struct state *g = &k->stack[k->depth - 1];
    if (i >= g->labels[v] || !alive(g, v, i))
        return fail(k, "a branch takes a label that is not there");
    int status = grow(&k->stack, &k->capacity, k->depth, sizeof *k->stack, k->err);
    if (status != STRATA_OK)
        return status;
    g = &k->stack[k->depth - 1];
    k->depth++;
    if (!copy_state(g + 1, g))
        return error_no_memory(k->err, 0, "the checker");
    g->cost[v][i] = PLAN_INFINITE;
    g->stale = true;
    for (int j = 0; j < g->labels[v]; j++)
        if (j != i)
            k->stack[k->depth - 1].cost[v][j] = PLAN_INFINITE;
    return STRATA_OK;
}

static int close_leaf(struct checker *k, const int64_t *w)
{
    struct state *g = &k->stack[k->depth - 1];
    int64_t bound = bound_of(g);
    if (bound != w[0])
        return fail(k, "a leaf's bound differs");
    if (bound < k->c->objective)
        return fail(k, "a leaf may hold a better plan");
    state_free(g);
    k->depth--;
    return STRATA_OK;
}

static const struct {
    int nodes, words; /* words after the kind; nodes come first */
    int (*follow)(const struct checker *k, struct state *g, const int64_t *w);
} kinds[PLAN_PROOF_KINDS] = {
    [PLAN_PROOF_ELIMINATE] = {1, 1, eliminate},
    [PLAN_PROOF_NORMALISE] = {2, 2, normalise},
    [PLAN_PROOF_DOMINATE] = {1, 3, dominate},
    [PLAN_PROOF_PRUNE] = {1, 2, prune},
    [PLAN_PROOF_SHIFT] = {2, 4, shift},
    [PLAN_PROOF_BRANCH] = {1, 2, NULL},
    [PLAN_PROOF_LEAF] = {0, 1, NULL},
};

/* Words of the step at w, or 0 if it is malformed. */
static size_t step_words(const struct checker *k, const int64_t *w, size_t left)
{
    if (w[0] < 0 || w[0] >= PLAN_PROOF_KINDS || left < 1 + (size_t)kinds[w[0]].words)
        return 0;
    size_t words = 1 + (size_t)kinds[w[0]].words;
    for (int i = 1; i < (int)words; i++)
        if (w[0] != PLAN_PROOF_LEAF &&
            (w[i] < 0 || w[i] > INT32_MAX ||
             (i <= kinds[w[0]].nodes && w[i] >= k->stack[0].n)))
            return 0;
    if (w[0] == PLAN_PROOF_SHIFT)
        words += (size_t)w[3] + (size_t)w[4];
    return words <= left ? words : 0;
}

static int follow(struct checker *k)
{
    size_t words;
    for (size_t at = 0; at < k->c->n_proof; at += words) {
        const int64_t *w = k->c->proof + at;
        int status;
        if (k->depth == 0)
            return fail(k, "it goes on after the last leaf");
        if (!(words = step_words(k, w, k->c->n_proof - at)))
            return fail(k, "a step is malformed");
        struct state *g = &k->stack[k->depth - 1];
        if (w[0] == PLAN_PROOF_BRANCH)
            status = branch(k, w + 1);
        else if (w[0] == PLAN_PROOF_LEAF)
            status = close_leaf(k, w + 1);
        else
            status = kinds[w[0]].follow(k, g, w + 1);
        if (status != STRATA_OK)
            return status;
        if (kinds[w[0]].follow && w[0] != PLAN_PROOF_PRUNE)
            g->stale = true;
    }
    return k->depth ? fail(k, "a leaf is missing") : STRATA_OK;
}

int plan_check(const struct plan_problem *p, const struct plan_options *options,
               const struct plan_certificate *c, strata_error *err)
{
    struct checker k = {.p = p, .o = options, .c = c, .err = err};
    int status;
    if (p->n_labels > MAX_LABELS)
        return error_set(err, STRATA_EUNSUPPORTED, "%d formats are too many to check",
                         p->n_labels);
    if (options && options->objective == PLAN_FEWEST_REFORMATS)
        k.penalty = weight_of_reformat(p);
    if ((status = check_plan(&k)) != STRATA_OK)
        return status;
    status = grow(&k.stack, &k.capacity, 0, sizeof *k.stack, err);
    if (status != STRATA_OK)
        return status;
    k.depth = 1;
    status = build(&k, &k.stack[0]) ? follow(&k) : error_no_memory(err, 0, "the checker");
    while (k.depth > 0)
        state_free(&k.stack[--k.depth]);
    free(k.stack);
    return status;
}
