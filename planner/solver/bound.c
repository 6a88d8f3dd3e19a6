/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequential tree-reweighted message passing (Kolmogorov 2006), in integers: each node in
 * turn collects what its edges to the side already passed can give, and hands even shares
 * of its costs to the edges ahead. Shares are rounded down and every shift moves exact
 * amounts between a node and an edge, so whatever the rounding, the bound is rigorous.
 */
#include "planner/solver/private.h"

#include <string.h>

struct messages {
    struct pbqp_search *s;
    struct pbqp *pb;
    int64_t **shift[2]; /* [side][edge][label]: taken from the edge, given to the node */
    int64_t *theta;     /* a node's cost with its shifts */
};

static int messages_open(struct messages *t)
{
    const struct pbqp *pb = t->pb;
    int most = 1;
    for (int side = 0; side < 2; side++) {
        t->shift[side] =
            scratch_get(&t->s->scratch, (size_t)pb->n_edges, sizeof **t->shift);
        for (int e = 0; t->shift[side] && e < pb->n_edges; e++) {
            if (pb->edges[e].node[0] < 0)
                continue;
            int n = pb->nodes[pb->edges[e].node[side]].n;
            most = n > most ? n : most;
            t->shift[side][e] =
                scratch_get(&t->s->scratch, (size_t)n, sizeof ***t->shift);
            if (!t->shift[side][e])
                return error_no_memory(t->s->err, (size_t)n * 8, "the planner's bound");
            memset(t->shift[side][e], 0, (size_t)n * sizeof ***t->shift);
        }
    }
    t->theta = scratch_get(&t->s->scratch, (size_t)most, sizeof *t->theta);
    if (!t->shift[0] || !t->shift[1] || !t->theta)
        return error_no_memory(t->s->err, (size_t)most * 8, "the planner's bound");
    return STRATA_OK;
}

/* out[i] = least of E(i, .) - shift(.), the most that row i can give. */
static void collect_rows(const struct pbqp_edge *e, int rows, int cols,
                         const int64_t *restrict shift, int64_t *restrict out)
{
    const int64_t *row = e->m;
    for (int i = 0; i < rows; i++, row += cols) {
        int64_t least = PLAN_INFINITE;
        for (int j = 0; j < cols; j++) {
            int64_t cell = row[j] - shift[j];
            least = cell < least ? cell : least;
        }
        out[i] = least;
    }
}

static void collect_columns(const struct pbqp_edge *e, int rows, int cols,
                            const int64_t *restrict shift, int64_t *restrict out)
{
    const int64_t *row = e->m;
    for (int j = 0; j < cols; j++)
        out[j] = PLAN_INFINITE;
    for (int i = 0; i < rows; i++, row += cols) {
        int64_t s = shift[i];
        for (int j = 0; j < cols; j++) {
            int64_t cell = row[j] - s;
            out[j] = cell < out[j] ? cell : out[j];
        }
    }
}

static void collect(const struct messages *t, int half)
{
    const struct pbqp_edge *e = &t->pb->edges[half >> 1];
    int rows = t->pb->nodes[e->node[0]].n, cols = t->pb->nodes[e->node[1]].n;
    int64_t *a = t->shift[0][half >> 1], *b = t->shift[1][half >> 1];
    if (half & 1)
        collect_columns(e, rows, cols, a, b);
    else
        collect_rows(e, rows, cols, b, a);
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* One node of a pass; ahead: the neighbours yet to come are those of a higher index. */
static int64_t pass_node(struct messages *t, int v, bool forward)
{
    const struct pbqp_node *node = &t->pb->nodes[v];
    int64_t n_ahead = 0, n_behind = 0, least = PLAN_INFINITE;
    memcpy(t->theta, node->cost, (size_t)node->n * sizeof *t->theta);
    PBQP_EACH(t->pb, half, v)
    {
        int other = t->pb->edges[half >> 1].node[!(half & 1)];
        if ((other > v) == forward) {
            n_ahead++;
        } else {
            n_behind++;
            collect(t, half);
        }
        for (int i = 0; i < node->n; i++)
            t->theta[i] += t->shift[half & 1][half >> 1][i];
    }
    int64_t shares = n_ahead > n_behind ? n_ahead : n_behind;
    for (int i = 0; i < node->n; i++) {
        int64_t share = shares ? floor_divide(t->theta[i], shares) : 0;
        int64_t kept = t->theta[i] - n_ahead * share;
        least = kept < least ? kept : least;
        t->theta[i] = share;
    }
    PBQP_EACH(t->pb, half, v)
    {
        if ((t->pb->edges[half >> 1].node[!(half & 1)] > v) == forward)
            for (int i = 0; i < node->n; i++)
                t->shift[half & 1][half >> 1][i] -= t->theta[i];
    }
    return least;
}

/* After a backward pass every edge's least entry is 0: nodes alone make the bound. */
static int64_t sweep(struct messages *t)
{
    int64_t bound = t->pb->constant;
    for (int v = 0; v < t->pb->n_nodes; v++)
        if (t->pb->nodes[v].n > 0)
            pass_node(t, v, true);
    for (int v = t->pb->n_nodes - 1; v >= 0; v--)
        if (t->pb->nodes[v].n > 0)
            bound += pass_node(t, v, false);
    return bound;
}

/* What is left of rows and columns once the shifts are taken goes to the nodes too. */
static void round_off(const struct messages *t, int edge, int side)
{
    const struct pbqp_edge *e = &t->pb->edges[edge];
    int rows = t->pb->nodes[e->node[0]].n, cols = t->pb->nodes[e->node[1]].n;
    if (side)
        collect_columns(e, rows, cols, t->shift[0][edge], t->shift[1][edge]);
    else
        collect_rows(e, rows, cols, t->shift[1][edge], t->shift[0][edge]);
}

static int record_shift(const struct messages *t, int edge)
{
    const struct pbqp_edge *e = &t->pb->edges[edge];
    int n = t->pb->nodes[e->node[0]].n, m = t->pb->nodes[e->node[1]].n;
    const int64_t words[] = {PLAN_PROOF_SHIFT, t->s->names[e->node[0]],
                             t->s->names[e->node[1]], n, m};
    int status = pbqp_record(t->s, 5, words);
    if (status == STRATA_OK)
        status = pbqp_record(t->s, n, t->shift[0][edge]);
    if (status == STRATA_OK)
        status = pbqp_record(t->s, m, t->shift[1][edge]);
    return status;
}

static int apply_edge(const struct messages *t, int edge)
{
    struct pbqp *pb = t->pb;
    struct pbqp_edge *e = &pb->edges[edge];
    int status = pbqp_writable(t->s, pb, edge);
    const int64_t *a = t->shift[0][edge], *b = t->shift[1][edge];
    int rows = pb->nodes[e->node[0]].n, cols = pb->nodes[e->node[1]].n;
    if (status != STRATA_OK || (status = record_shift(t, edge)) != STRATA_OK)
        return status;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            if (!pbqp_dead(e->m[i * cols + j]))
                e->m[i * cols + j] -= a[i] + b[j];
    for (int i = 0; i < rows; i++)
        pb->nodes[e->node[0]].cost[i] += a[i];
    for (int j = 0; j < cols; j++)
        pb->nodes[e->node[1]].cost[j] += b[j];
    return STRATA_OK;
}

static int64_t apply_nodes(struct pbqp *pb)
{
    int64_t bound = pb->constant;
    for (int v = 0; v < pb->n_nodes; v++) {
        int64_t least = PLAN_INFINITE;
        for (int i = 0; i < pb->nodes[v].n; i++)
            least = pb->nodes[v].cost[i] < least ? pb->nodes[v].cost[i] : least;
        bound += pb->nodes[v].n > 0 ? least : 0;
    }
    return bound;
}

int pbqp_tighten(struct pbqp_search *s, struct pbqp *pb, int sweeps, int64_t *bound)
{
    struct messages t = {.s = s, .pb = pb};
    int status = messages_open(&t);
    int64_t last = INT64_MIN;
    for (int i = 0; status == STRATA_OK && i < sweeps; i++) {
        *bound = sweep(&t);
        int64_t gap = s->best - *bound;
        if (gap <= 0 || (i > 4 && *bound - last < gap / 512))
            break;
        last = *bound;
    }
    for (int e = 0; status == STRATA_OK && e < pb->n_edges; e++)
        if (pb->edges[e].node[0] >= 0) {
            round_off(&t, e, 0);
            round_off(&t, e, 1);
            status = apply_edge(&t, e);
        }
    *bound = apply_nodes(pb);
    return status;
}
