/* SPDX-License-Identifier: Apache-2.0
 *
 * Following a proof. Each step is exact or a reparametrisation (which must leave every
 * row and column of its edge a least entry of 0), each dropped label and each leaf must
 * be no better than the plan, and each branch must be closed.
 */
#include "planner/certificate/check.h"

#include <stdlib.h>

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
        for (size_t e = 0; e < g->near[v].n; e++) {
            int64_t least = PLAN_INFINITE;
            int u = g->near[v].v[e].other;
            if (u > v)
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
    while (g->near[v].n > 0)
        check_drop(g, v, g->near[v].n - 1);
    g->labels[v] = 0;
}

static int eliminate(const struct checker *k, struct state *g, const int64_t *w)
{
    int v = (int)w[0], near[3] = {-1, -1, -1}, n = 0, single = count_alive(g, v) == 1;
    for (size_t e = g->near[v].n; e-- > 0;) {
        int u = g->near[v].v[e].other;
        if (is_zero(g, u, v))
            check_drop(g, v, e);
        else if (single)
            for (int j = 0; j < g->labels[u]; j++)
                g->cost[u][j] = plus(g->cost[u][j], row_least(g, u, j, v));
        else if (n < 3)
            near[n++] = u;
    }
    if (n > 2 || !g->labels[v])
        return check_fail(k, "a node with more than two neighbours is eliminated");
    int a = near[0], b = near[1];
    if (n == 2 && !check_connect(g, a, b))
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
        return check_fail(k, "an edge that does not exist is normalised");
    if (!edge_of(g, u, v))
        return STRATA_OK; /* all zero */
    move_rows(g, u, v);
    move_rows(g, v, u);
    return STRATA_OK;
}

static int dominate(const struct checker *k, struct state *g, const int64_t *w)
{
    int v = (int)w[0], i = (int)w[1], by = (int)w[2];
    if (i == by || i >= g->labels[v] || by >= g->labels[v] || !alive(g, v, by))
        return check_fail(k, "a label is dominated by none");
    int64_t sum = g->cost[v][i] - g->cost[v][by];
    for (size_t e = 0; e < g->near[v].n && sum < DEAD; e++) {
        int64_t least = PLAN_INFINITE;
        int u = g->near[v].v[e].other;
        for (int j = 0; j < g->labels[u]; j++) {
            int64_t a = *cell(g, v, i, u, j), b = *cell(g, v, by, u, j);
            if (!alive(g, u, j) || a >= DEAD)
                continue;
            if (b >= DEAD)
                return check_fail(
                    k, "a dominating label is impossible where the other is not");
            least = a - b < least ? a - b : least;
        }
        sum = plus(sum, least);
    }
    if (sum < 0)
        return check_fail(k, "a dominated label is cheaper");
    g->cost[v][i] = PLAN_INFINITE;
    return STRATA_OK;
}

static int prune(const struct checker *k, struct state *g, const int64_t *w)
{
    int v = (int)w[0], i = (int)w[1];
    if (i >= g->labels[v] || !alive(g, v, i))
        return check_fail(k, "a label that is not there is pruned");
    if (bound_of(g) < DEAD &&
        bound_of(g) - node_least(g, v) + g->cost[v][i] < k->c->objective)
        return check_fail(k, "a pruned label is not bound to be as dear as the plan");
    g->cost[v][i] = PLAN_INFINITE;
    return STRATA_OK;
}

static int shift(const struct checker *k, struct state *g, const int64_t *w)
{
    int u = (int)w[0], v = (int)w[1], at[2] = {0, 0};
    if (u == v || !edge_of(g, u, v) || count_alive(g, u) != w[2] ||
        count_alive(g, v) != w[3])
        return check_fail(k, "potentials do not fit their edge");
    for (int side = 0; side < 2; side++) {
        int x = side ? v : u, y = side ? u : v;
        const int64_t *by = w + 4 + (side ? w[2] : 0);
        for (int i = 0; i < g->labels[x]; i++) {
            if (!alive(g, x, i))
                continue;
            int64_t moved = by[at[side]++];
            if (moved >= DEAD / 16 || moved <= -DEAD / 16)
                return check_fail(k, "a potential is out of range");
            for (int j = 0; j < g->labels[y]; j++)
                if (*cell(g, x, i, y, j) < DEAD)
                    *cell(g, x, i, y, j) -= moved;
            g->cost[x][i] += moved;
        }
    }
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < g->labels[side ? v : u]; i++)
            if (alive(g, side ? v : u, i) && row_least(g, side ? v : u, i, side ? u : v))
                return check_fail(k, "an edge's potentials are not in normal form");
    return STRATA_OK;
}

/* The other labels wait below; this one is at work. */
static int branch(struct checker *k, const int64_t *w)
{
    int v = (int)w[0], i = (int)w[1];
    struct state *g = &k->stack[k->depth - 1];
    if (i >= g->labels[v] || !alive(g, v, i))
        return check_fail(k, "a branch takes a label that is not there");
    int status = grow(&k->stack, &k->capacity, k->depth, sizeof *k->stack, k->err);
    if (status != STRATA_OK)
        return status;
    g = &k->stack[k->depth - 1];
    k->depth++;
    if (!check_copy(g + 1, g))
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
        return check_fail(k, "a leaf's bound differs");
    if (bound < k->c->objective)
        return check_fail(k, "a leaf may hold a better plan");
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

int check_proof(struct checker *k)
{
    size_t words;
    for (size_t at = 0; at < k->c->n_proof; at += words) {
        const int64_t *w = k->c->proof + at;
        int status;
        if (k->depth == 0)
            return check_fail(k, "it goes on after the last leaf");
        if (!(words = step_words(k, w, k->c->n_proof - at)))
            return check_fail(k, "a step is malformed");
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
    return k->depth ? check_fail(k, "a leaf is missing") : STRATA_OK;
}
