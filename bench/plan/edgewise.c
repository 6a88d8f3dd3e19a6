/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes are eliminated one by one, those of degree 0 first, then 1, then 2, whose costs
 * move exactly into their neighbours' (RI) or the edge between these (RII). With none
 * left, the node of highest degree is fixed to the label that looks best from it (RN).
 * Then labels are given in reverse order.
 */
#include "bench/plan/edgewise.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* An eliminated node with the edges it had. */
struct elimination {
    size_t node, neighbours[2];
    int64_t *edges[2]; /* rows: the node's labels */
    size_t n;
    size_t fixed; /* RN: the label, else SIZE_MAX */
};

static int64_t add(int64_t a, int64_t b)
{
    return a >= PLAN_INFINITE || b >= PLAN_INFINITE || a + b >= PLAN_INFINITE
               ? PLAN_INFINITE
               : a + b;
}

static int64_t **edge_at(const struct edgewise *q, size_t a, size_t b)
{
    return a < b ? &q->edges[a * q->n + b] : &q->edges[b * q->n + a];
}

static int64_t edge_cost(const struct edgewise *q, size_t a, size_t i, size_t b, size_t j)
{
    const int64_t *edge = *edge_at(q, a, b);
    return a < b ? edge[i * q->nodes[b].n + j] : edge[j * q->nodes[a].n + i];
}

int edgewise_open(struct edgewise *q, size_t n_nodes, strata_error *err)
{
    q->n = n_nodes;
    q->nodes = zalloc(n_nodes, sizeof *q->nodes, "a baseline", err);
    q->edges = zalloc(n_nodes * n_nodes, sizeof *q->edges, "a baseline", err);
    return q->nodes && q->edges ? STRATA_OK : STRATA_ENOMEM;
}

void edgewise_close(struct edgewise *q)
{
    for (size_t i = 0; q->nodes && i < q->n; i++)
        free(q->nodes[i].cost);
    for (size_t i = 0; q->edges && i < q->n * q->n; i++)
        free(q->edges[i]);
    free(q->nodes);
    free(q->edges);
}

int edgewise_set_node(struct edgewise *q, size_t node, size_t n_labels, strata_error *err)
{
    q->nodes[node].n = n_labels;
    q->nodes[node].cost = zalloc(n_labels, sizeof(int64_t), "a baseline", err);
    return q->nodes[node].cost ? STRATA_OK : STRATA_ENOMEM;
}

static void drop_edge(struct edgewise *q, size_t a, size_t b)
{
    free(*edge_at(q, a, b));
    *edge_at(q, a, b) = NULL;
    q->nodes[a].degree--;
    q->nodes[b].degree--;
}

/* Move what every label of b pays into a's own costs. */
static void move_minima(struct edgewise *q, size_t a, size_t b)
{
    int64_t *edge = *edge_at(q, a, b);
    size_t row = a < b ? q->nodes[b].n : 1, column = a < b ? 1 : q->nodes[a].n;
    for (size_t i = 0; i < q->nodes[a].n; i++) {
        int64_t least = PLAN_INFINITE;
        for (size_t j = 0; j < q->nodes[b].n; j++) {
            int64_t cost = edge[i * row + j * column];
            least = cost < least ? cost : least;
        }
        for (size_t j = 0; j < q->nodes[b].n; j++) {
            int64_t *cost = &edge[i * row + j * column];
            *cost = least >= PLAN_INFINITE   ? 0
                    : *cost >= PLAN_INFINITE ? PLAN_INFINITE
                                             : *cost - least;
        }
        q->nodes[a].cost[i] = add(q->nodes[a].cost[i], least);
    }
}

/* An edge of zeros joins nothing. */
static void normalise(struct edgewise *q, size_t a, size_t b)
{
    move_minima(q, a, b);
    move_minima(q, b, a);
    const int64_t *edge = *edge_at(q, a, b);
    for (size_t i = 0; i < q->nodes[a].n * q->nodes[b].n; i++)
        if (edge[i])
            return;
    drop_edge(q, a, b);
}

int edgewise_add_edge(struct edgewise *q, size_t a, size_t b, const int64_t *costs,
                      strata_error *err)
{
    int64_t **edge = edge_at(q, a, b);
    size_t rows = q->nodes[a].n, columns = q->nodes[b].n;
    if (!*edge) {
        *edge = zalloc(rows * columns, sizeof **edge, "a baseline", err);
        if (!*edge)
            return STRATA_ENOMEM;
        q->nodes[a].degree++;
        q->nodes[b].degree++;
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            int64_t *cost = &(*edge)[a < b ? i * columns + j : j * rows + i];
            *cost = add(*cost, costs[i * columns + j]);
        }
    normalise(q, a, b);
    return STRATA_OK;
}

/* The node to eliminate next, q->n when all are. */
static size_t next_node(const struct edgewise *q)
{
    size_t low = q->n, high = q->n;
    for (size_t i = 0; i < q->n; i++) {
        if (q->nodes[i].done)
            continue;
        if (low == q->n || q->nodes[i].degree < q->nodes[low].degree)
            low = i;
        if (high == q->n || q->nodes[i].degree > q->nodes[high].degree)
            high = i;
    }
    return low == q->n || q->nodes[low].degree <= 2 ? low : high;
}

/* Neighbours after `from`; q->n if there is none. */
static size_t neighbour(const struct edgewise *q, size_t node, size_t from)
{
    for (size_t i = from; i < q->n; i++)
        if (i != node && !q->nodes[i].done && *edge_at(q, node, i))
            return i;
    return q->n;
}

/* RI and RII: what the node adds at best for each label (pair of labels) around it. */
static int64_t best_around(const struct edgewise *q, const struct elimination *e,
                           const size_t *labels)
{
    const struct edgewise_node *x = &q->nodes[e->node];
    int64_t best = PLAN_INFINITE;
    for (size_t k = 0; k < x->n; k++) {
        int64_t cost = x->cost[k];
        for (size_t i = 0; i < e->n; i++)
            cost = add(cost, e->edges[i][k * q->nodes[e->neighbours[i]].n + labels[i]]);
        best = cost < best ? cost : best;
    }
    return best;
}

static int reduce_two(struct edgewise *q, const struct elimination *e, strata_error *err)
{
    size_t a = e->neighbours[0], b = e->neighbours[1], columns = q->nodes[b].n;
    int64_t *costs = zalloc(q->nodes[a].n * columns, sizeof *costs, "a baseline", err);
    if (!costs)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < q->nodes[a].n; i++)
        for (size_t j = 0; j < columns; j++)
            costs[i * columns + j] = best_around(q, e, (size_t[]){i, j});
    int status = edgewise_add_edge(q, a, b, costs, err);
    free(costs);
    return status;
}

static int reduce(struct edgewise *q, const struct elimination *e, strata_error *err)
{
    if (e->n == 2)
        return reduce_two(q, e, err);
    for (size_t i = 0; e->n == 1 && i < q->nodes[e->neighbours[0]].n; i++) {
        int64_t *cost = &q->nodes[e->neighbours[0]].cost[i];
        *cost = add(*cost, best_around(q, e, &i));
    }
    return STRATA_OK;
}

/* Take the node's edges out of the graph. */
static int detach(struct edgewise *q, struct elimination *e, strata_error *err)
{
    size_t x = e->node;
    for (size_t y; (y = neighbour(q, x, 0)) < q->n; e->n++) {
        size_t rows = q->nodes[x].n, columns = q->nodes[y].n;
        int64_t *edge = zalloc(rows * columns, sizeof *edge, "a baseline", err);
        if (!edge)
            return STRATA_ENOMEM;
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++)
                edge[i * columns + j] = edge_cost(q, x, i, y, j);
        drop_edge(q, x, y);
        e->neighbours[e->n] = y;
        e->edges[e->n] = edge;
    }
    return STRATA_OK;
}

/* RN: the label with the least sum of its own cost and each neighbour's answer to it. */
static void fix(struct edgewise *q, struct elimination *e)
{
    size_t x = e->node;
    int64_t best = INT64_MAX;
    for (size_t k = 0; k < q->nodes[x].n; k++) {
        int64_t cost = q->nodes[x].cost[k];
        for (size_t y = 0; (y = neighbour(q, x, y)) < q->n; y++) {
            int64_t answer = PLAN_INFINITE;
            for (size_t j = 0; j < q->nodes[y].n; j++) {
                int64_t c = add(q->nodes[y].cost[j], edge_cost(q, x, k, y, j));
                answer = c < answer ? c : answer;
            }
            cost = add(cost, answer);
        }
        if (cost < best) {
            best = cost;
            e->fixed = k;
        }
    }
    for (size_t y = 0; (y = neighbour(q, x, y)) < q->n; y++) {
        for (size_t j = 0; j < q->nodes[y].n; j++)
            q->nodes[y].cost[j] =
                add(q->nodes[y].cost[j], edge_cost(q, x, e->fixed, y, j));
        drop_edge(q, x, y);
    }
}

static size_t label_of(const struct edgewise *q, const struct elimination *e,
                       const size_t *labels)
{
    const struct edgewise_node *x = &q->nodes[e->node];
    int64_t best = INT64_MAX;
    size_t label = 0;
    if (e->fixed != SIZE_MAX)
        return e->fixed;
    for (size_t k = 0; k < x->n; k++) {
        int64_t cost = x->cost[k];
        for (size_t i = 0; i < e->n; i++) {
            size_t y = e->neighbours[i];
            cost = add(cost, e->edges[i][k * q->nodes[y].n + labels[y]]);
        }
        if (cost < best) {
            best = cost;
            label = k;
        }
    }
    return label;
}

int edgewise_solve(struct edgewise *q, size_t *labels, strata_error *err)
{
    int status = STRATA_OK;
    size_t n = 0;
    struct elimination *order = zalloc(q->n, sizeof *order, "a baseline", err);
    if (!order)
        return STRATA_ENOMEM;
    for (size_t x; status == STRATA_OK && (x = next_node(q)) < q->n;) {
        struct elimination *e = &order[n++];
        e->node = x;
        e->fixed = SIZE_MAX;
        if (q->nodes[x].degree > 2)
            fix(q, e);
        else if ((status = detach(q, e, err)) == STRATA_OK)
            status = reduce(q, e, err);
        q->nodes[x].done = true;
    }
    for (size_t i = n; i-- > 0 && status == STRATA_OK;)
        labels[order[i].node] = label_of(q, &order[i], labels);
    for (size_t i = 0; i < n; i++) {
        free(order[i].edges[0]);
        free(order[i].edges[1]);
    }
    free(order);
    return status;
}
