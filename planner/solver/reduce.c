/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact reductions (Scholz and Eckstein 2002; Goldstein 1994 for dominance):
 *   a node of one label, or of at most two neighbours, is minimised out;
 *   an edge whose rows and columns carry no more than their minima is taken away;
 *   a label that is never cheaper than another one of its node is taken away.
 */
#include "planner/solver/private.h"

#include <string.h>

static int64_t add(int64_t a, int64_t b)
{
    return pbqp_dead(a) || pbqp_dead(b) ? PLAN_INFINITE : a + b;
}

/* ---- normalisation ----------------------------------------------------------------- */

/* Move the least entry of each row (side 0) or column to its node; true if any moved. */
static bool move_minima(struct pbqp *pb, int edge, int side)
{
    struct pbqp_edge *e = &pb->edges[edge];
    struct pbqp_node *own = &pb->nodes[e->node[side]];
    int n = pb->nodes[e->node[!side]].n;
    size_t own_stride = pbqp_stride(pb, e, side), stride = pbqp_stride(pb, e, !side);
    bool moved = false;
    for (int i = 0; i < own->n; i++) {
        int64_t *row = e->m + (size_t)i * own_stride, least = PLAN_INFINITE;
        for (int j = 0; j < n; j++)
            least = row[(size_t)j * stride] < least ? row[(size_t)j * stride] : least;
        if (least == 0)
            continue;
        moved = true;
        own->cost[i] = add(own->cost[i], least);
        for (int j = 0; j < n && !pbqp_dead(least); j++)
            if (!pbqp_dead(row[(size_t)j * stride]))
                row[(size_t)j * stride] -= least;
    }
    return moved;
}

static bool has_minima(const struct pbqp *pb, int edge)
{
    const struct pbqp_edge *e = &pb->edges[edge];
    int rows = pb->nodes[e->node[0]].n, cols = pb->nodes[e->node[1]].n;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? cols : rows); i++) {
            int64_t least = PLAN_INFINITE;
            for (int j = 0; j < (side ? rows : cols); j++) {
                int64_t cell = side ? e->m[j * cols + i] : e->m[i * cols + j];
                least = cell < least ? cell : least;
            }
            if (least != 0)
                return true;
        }
    return false;
}

static bool is_zero(const struct pbqp *pb, int edge)
{
    const struct pbqp_edge *e = &pb->edges[edge];
    size_t cells = (size_t)pb->nodes[e->node[0]].n * (size_t)pb->nodes[e->node[1]].n;
    for (size_t i = 0; i < cells; i++)
        if (e->m[i] != 0)
            return false;
    return true;
}

static int normalise(struct pbqp_search *s, struct pbqp *pb, int edge, bool *changed)
{
    struct pbqp_edge *e = &pb->edges[edge];
    int u = e->node[0], v = e->node[1], n = pb->nodes[u].n + pb->nodes[v].n, status;
    if (has_minima(pb, edge)) {
        if ((status = pbqp_writable(s, pb, edge)) != STRATA_OK)
            return status;
        move_minima(pb, edge, 0);
        move_minima(pb, edge, 1);
        const int64_t words[] = {PLAN_PROOF_NORMALISE, s->names[u], s->names[v]};
        if ((status = pbqp_record(s, 3, words)) != STRATA_OK)
            return status;
    }
    if (is_zero(pb, edge)) {
        pbqp_disconnect(pb, edge);
        *changed = true;
    }
    if ((status = pbqp_compact(s, pb, u)) != STRATA_OK ||
        (status = pbqp_compact(s, pb, v)) != STRATA_OK)
        return status;
    *changed |= pb->nodes[u].n + pb->nodes[v].n != n;
    return STRATA_OK;
}

/* ---- elimination ------------------------------------------------------------------- */

static struct pbqp_view view_of(const struct pbqp *pb, int half)
{
    const struct pbqp_edge *e = &pb->edges[half >> 1];
    int side = half & 1, other = e->node[!side];
    return (struct pbqp_view){.node = other,
                              .n = pb->nodes[other].n,
                              .origin = pb->nodes[other].origin,
                              .m = e->m,
                              .own_stride = pbqp_stride(pb, e, side),
                              .other_stride = pbqp_stride(pb, e, !side)};
}

/* A node of one label: what it costs its neighbours is theirs. */
static int fold_into_neighbours(struct pbqp_search *s, struct pbqp *pb, int v)
{
    while (pb->nodes[v].head >= 0) {
        int edge = pb->nodes[v].head >> 1;
        struct pbqp_view w = view_of(pb, pb->nodes[v].head);
        int64_t *cost = pb->nodes[w.node].cost;
        for (int j = 0; j < w.n; j++)
            cost[j] = add(cost[j], w.m[(size_t)j * w.other_stride]);
        pbqp_disconnect(pb, edge);
        int status = pbqp_compact(s, pb, w.node);
        if (status != STRATA_OK)
            return status;
    }
    pb->constant = add(pb->constant, pb->nodes[v].cost[0]);
    return STRATA_OK;
}

static int64_t least_over(const struct pbqp_eliminated *x, size_t j, size_t k)
{
    const struct pbqp_view *a = &x->view[0], *b = &x->view[1];
    int64_t least = PLAN_INFINITE;
    for (int i = 0; i < x->n; i++) {
        int64_t cost = x->cost[i];
        if (x->n_views > 0)
            cost += a->m[(size_t)i * a->own_stride + j * a->other_stride];
        if (x->n_views > 1)
            cost += b->m[(size_t)i * b->own_stride + k * b->other_stride];
        least = cost < least ? cost : least;
    }
    return pbqp_dead(least) ? PLAN_INFINITE : least;
}

static int minimise_out(struct pbqp_search *s, struct pbqp *pb, int v,
                        const struct pbqp_eliminated *x)
{
    const struct pbqp_view *a = &x->view[0], *b = &x->view[1];
    while (pb->nodes[v].head >= 0)
        pbqp_disconnect(pb, pb->nodes[v].head >> 1);
    if (x->n_views == 0)
        pb->constant = add(pb->constant, least_over(x, 0, 0));
    if (x->n_views == 1) {
        int64_t *cost = pb->nodes[a->node].cost;
        for (int j = 0; j < a->n; j++)
            cost[j] = add(cost[j], least_over(x, (size_t)j, 0));
        return pbqp_compact(s, pb, a->node);
    }
    if (x->n_views < 2)
        return STRATA_OK;
    size_t rows = (size_t)a->n, cols = (size_t)b->n;
    int64_t *m = scratch_get(&s->scratch, rows * cols, sizeof *m);
    if (!m)
        return error_no_memory(s->err, rows * cols * sizeof *m, "the planner");
    for (size_t j = 0; j < rows; j++)
        for (size_t k = 0; k < cols; k++)
            m[j * cols + k] = least_over(x, j, k);
    bool changed = false;
    int status = pbqp_connect(s, pb, a->node, b->node, m);
    return status == STRATA_OK
               ? normalise(s, pb, pbqp_find(pb, a->node, b->node), &changed)
               : status;
}

static int eliminate(struct pbqp_search *s, struct pbqp *pb, int v)
{
    struct pbqp_node *node = &pb->nodes[v];
    struct pbqp_eliminated x = {v, node->n, 0, node->cost, node->origin, {{0}}};
    const int64_t words[] = {PLAN_PROOF_ELIMINATE, s->names[v]};
    int status = grow(&s->eliminated, &s->eliminated_capacity, s->n_eliminated,
                      sizeof *s->eliminated, s->err);
    if (status != STRATA_OK || (status = pbqp_record(s, 2, words)) != STRATA_OK)
        return status;
    if (x.n > 1)
        PBQP_EACH(pb, half, v)
        {
            x.view[x.n_views++] = view_of(pb, half);
        }
    s->eliminated[s->n_eliminated++] = x;
    status = x.n == 1 ? fold_into_neighbours(s, pb, v) : minimise_out(s, pb, v, &x);
    node->n = 0;
    pbqp_requeue(pb, v);
    return status;
}

/* ---- dominance --------------------------------------------------------------------- */

/* Least of E(i, .) - E(k, .); below -PBQP_DEAD where k is impossible and i is not. */
static int64_t least_difference(const struct pbqp *pb, int half, int i, int k)
{
    const struct pbqp_edge *e = &pb->edges[half >> 1];
    int side = half & 1, n = pb->nodes[e->node[!side]].n;
    size_t stride = pbqp_stride(pb, e, !side), own = pbqp_stride(pb, e, side);
    const int64_t *a = e->m + (size_t)i * own, *b = e->m + (size_t)k * own;
    int64_t least = PLAN_INFINITE;
    for (int j = 0; j < n; j++, a += stride, b += stride) {
        if (pbqp_dead(*a))
            continue;
        int64_t difference = pbqp_dead(*b) ? -PLAN_INFINITE : *a - *b;
        if (difference < least)
            least = difference;
        if (least <= -PBQP_DEAD)
            break;
    }
    return least;
}

static bool dominates(const struct pbqp *pb, int v, int k, int i)
{
    int64_t sum = pb->nodes[v].cost[i] - pb->nodes[v].cost[k];
    PBQP_EACH(pb, half, v)
    {
        int64_t least = least_difference(pb, half, i, k);
        if (least <= -PBQP_DEAD)
            return false;
        sum = least >= PBQP_DEAD || sum >= PBQP_DEAD ? PLAN_INFINITE : sum + least;
    }
    return sum >= 0;
}

static int remove_dominated(struct pbqp_search *s, struct pbqp *pb, int v)
{
    struct pbqp_node *node = &pb->nodes[v];
    for (int i = node->n - 1; i >= 0; i--)
        for (int k = 0; k < node->n && !pbqp_dead(node->cost[i]); k++) {
            if (k == i || pbqp_dead(node->cost[k]) || !dominates(pb, v, k, i))
                continue;
            const int64_t words[] = {PLAN_PROOF_DOMINATE, s->names[v], node->origin[i],
                                     node->origin[k]};
            int status = pbqp_record(s, 4, words);
            if (status != STRATA_OK)
                return status;
            node->cost[i] = PLAN_INFINITE;
        }
    return pbqp_compact(s, pb, v);
}

/* ---- to a fixed point -------------------------------------------------------------- */

/* The least work first. */
static int eliminate_all(struct pbqp_search *s, struct pbqp *pb)
{
    int status = STRATA_OK;
    pb->queue = &s->queue;
    for (int v = 0; v < pb->n_nodes; v++)
        pbqp_requeue(pb, v);
    for (int v; status == STRATA_OK && !pb->infeasible &&
                (v = pbqp_queue_take(pb->queue)) >= 0;)
        status = eliminate(s, pb, v);
    pbqp_queue_clear(pb->queue);
    pb->queue = NULL;
    return status;
}

static int normalise_all(struct pbqp_search *s, struct pbqp *pb, bool *changed)
{
    for (int edge = 0; edge < pb->n_edges && !pb->infeasible; edge++)
        if (pb->edges[edge].node[0] >= 0) {
            int status = normalise(s, pb, edge, changed);
            if (status != STRATA_OK)
                return status;
        }
    return STRATA_OK;
}

static int dominate_all(struct pbqp_search *s, struct pbqp *pb, bool *changed)
{
    for (int v = 0; v < pb->n_nodes && !pb->infeasible; v++) {
        int n = pb->nodes[v].n;
        if (n < 2 || !pb->nodes[v].dirty)
            continue;
        pb->nodes[v].dirty = false;
        int status = remove_dominated(s, pb, v);
        if (status != STRATA_OK)
            return status;
        *changed |= pb->nodes[v].n != n;
    }
    return STRATA_OK;
}

int pbqp_reduce(struct pbqp_search *s, struct pbqp *pb)
{
    for (bool changed = true; changed && !pb->infeasible;) {
        int status;
        changed = false;
        if ((status = eliminate_all(s, pb)) != STRATA_OK ||
            (status = normalise_all(s, pb, &changed)) != STRATA_OK ||
            (status = dominate_all(s, pb, &changed)) != STRATA_OK)
            return status;
    }
    return STRATA_OK;
}
