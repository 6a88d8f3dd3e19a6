/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that can be eliminated, the least work first and of equals the first: a binary
 * heap that knows where each node is, so that its work can change.
 */
#include "planner/solver/private.h"

#include <stdlib.h>
#include <string.h>

int pbqp_queue_open(struct pbqp_queue *q, int n_nodes, strata_error *err)
{
    size_t n = (size_t)n_nodes;
    *q = (struct pbqp_queue){0};
    q->heap = zalloc(n, sizeof *q->heap, "the planner", err);
    q->place = zalloc(n, sizeof *q->place, "the planner", err);
    q->work = zalloc(n, sizeof *q->work, "the planner", err);
    if (!q->heap || !q->place || !q->work)
        return STRATA_ENOMEM;
    memset(q->place, -1, n * sizeof *q->place);
    return STRATA_OK;
}

void pbqp_queue_close(struct pbqp_queue *q)
{
    free(q->heap);
    free(q->place);
    free(q->work);
}

void pbqp_queue_clear(struct pbqp_queue *q)
{
    while (q->n > 0)
        q->place[q->heap[--q->n]] = -1;
}

static bool before(const struct pbqp_queue *q, int u, int v)
{
    return q->work[u] != q->work[v] ? q->work[u] < q->work[v] : u < v;
}

static void put(struct pbqp_queue *q, int at, int v)
{
    q->heap[at] = v;
    q->place[v] = at;
}

static void rise(struct pbqp_queue *q, int at, int v)
{
    for (int up; at > 0 && before(q, v, q->heap[up = (at - 1) / 2]); at = up)
        put(q, at, q->heap[up]);
    put(q, at, v);
}

static void sink(struct pbqp_queue *q, int at, int v)
{
    for (int down; (down = 2 * at + 1) < q->n; at = down) {
        if (down + 1 < q->n && before(q, q->heap[down + 1], q->heap[down]))
            down++;
        if (!before(q, q->heap[down], v))
            break;
        put(q, at, q->heap[down]);
    }
    put(q, at, v);
}

static void take_out(struct pbqp_queue *q, int v)
{
    int at = q->place[v], last = q->heap[--q->n];
    q->place[v] = -1;
    if (last == v)
        return;
    rise(q, at, last);
    sink(q, q->place[last], last);
}

void pbqp_queue_set(struct pbqp_queue *q, int v, int64_t work)
{
    int at = q->place[v];
    if (work < 0) {
        if (at >= 0)
            take_out(q, v);
        return;
    }
    q->work[v] = work;
    rise(q, at < 0 ? q->n++ : at, v);
    sink(q, q->place[v], v);
}

int pbqp_queue_take(struct pbqp_queue *q)
{
    if (q->n == 0)
        return -1;
    int v = q->heap[0];
    take_out(q, v);
    return v;
}
