/* SPDX-License-Identifier: Apache-2.0
 *
 * Storage of a partitioned boolean quadratic problem: nodes with a cost per label, edges
 * with a cost per pair. Copies share matrices until one is written.
 */
#include "planner/solver/private.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16, ALIGN = 16 };

static struct arena_chunk *new_chunk(size_t bytes)
{
    size_t size = bytes > CHUNK ? bytes : CHUNK;
    struct arena_chunk *c = malloc(sizeof *c + ALIGN + size);
    if (c)
        *c = (struct arena_chunk){NULL, size, 0};
    return c;
}

static void *chunk_take(struct arena_chunk *c, size_t bytes)
{
    size_t header = (sizeof *c + ALIGN - 1) / ALIGN * ALIGN;
    void *block = (char *)c + header + c->used;
    c->used += bytes;
    return block;
}

void *scratch_get(struct scratch *s, size_t n, size_t size)
{
    if (n > (SIZE_MAX / 2 - ALIGN) / size)
        return NULL;
    size_t bytes = (n * size + ALIGN - 1) / ALIGN * ALIGN;
    struct arena_chunk **at = s->current ? &s->current : &s->first;
    while (*at && (*at)->size - (*at)->used < bytes) {
        at = &(*at)->next;
        if (*at)
            (*at)->used = 0;
    }
    if (!*at && !(*at = new_chunk(bytes)))
        return NULL;
    s->current = *at;
    return chunk_take(*at, bytes);
}

struct scratch_mark scratch_mark(const struct scratch *s)
{
    return (struct scratch_mark){s->current, s->current ? s->current->used : 0};
}

void scratch_release(struct scratch *s, struct scratch_mark mark)
{
    s->current = mark.chunk ? mark.chunk : s->first;
    if (s->current)
        s->current->used = mark.used;
}

void scratch_free(struct scratch *s)
{
    for (struct arena_chunk *c = s->first, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *s = (struct scratch){0};
}

int pbqp_record(struct pbqp_search *s, int n, const int64_t *words)
{
    for (int i = 0; s->record && i < n; i++) {
        int status =
            grow(&s->proof, &s->proof_capacity, s->n_proof, sizeof *s->proof, s->err);
        if (status != STRATA_OK)
            return status;
        s->proof[s->n_proof++] = words[i];
    }
    return STRATA_OK;
}

/* Of eliminating a node; 0 where it is nothing to its neighbours but a cost, -1 where it
 * has too many. */
static int64_t elimination_work(const struct pbqp *pb, int v)
{
    const struct pbqp_node *node = &pb->nodes[v];
    int64_t work = node->n;
    if (node->n == 0 || (node->n > 1 && node->degree > 2))
        return -1;
    if (node->n == 1 || node->degree < 2)
        return 0;
    PBQP_EACH(pb, half, v)
    {
        work *= pb->nodes[pb->edges[half >> 1].node[!(half & 1)]].n;
    }
    return work;
}

void pbqp_requeue(struct pbqp *pb, int v)
{
    if (pb->queue)
        pbqp_queue_set(pb->queue, v, elimination_work(pb, v));
}

void pbqp_touch(struct pbqp *pb, int v)
{
    pb->nodes[v].dirty = true;
    pbqp_requeue(pb, v);
    PBQP_EACH(pb, half, v)
    {
        int other = pb->edges[half >> 1].node[!(half & 1)];
        pb->nodes[other].dirty = true;
        pbqp_requeue(pb, other);
    }
}

int pbqp_find(const struct pbqp *pb, int u, int v)
{
    int from = pb->nodes[u].degree <= pb->nodes[v].degree ? u : v, to = u + v - from;
    PBQP_EACH(pb, half, from)
    {
        if (pb->edges[half >> 1].node[!(half & 1)] == to)
            return half >> 1;
    }
    return -1;
}

static void link_half(struct pbqp *pb, int edge, int side)
{
    struct pbqp_edge *e = &pb->edges[edge];
    struct pbqp_node *n = &pb->nodes[e->node[side]];
    e->next[side] = n->head;
    e->previous[side] = -1;
    if (n->head >= 0)
        pb->edges[n->head >> 1].previous[n->head & 1] = 2 * edge + side;
    n->head = 2 * edge + side;
    n->degree++;
}

static void unlink_half(struct pbqp *pb, int edge, int side)
{
    const struct pbqp_edge *e = &pb->edges[edge];
    struct pbqp_node *n = &pb->nodes[e->node[side]];
    int next = e->next[side], previous = e->previous[side];
    if (previous >= 0)
        pb->edges[previous >> 1].next[previous & 1] = next;
    else
        n->head = next;
    if (next >= 0)
        pb->edges[next >> 1].previous[next & 1] = previous;
    n->degree--;
}

void pbqp_disconnect(struct pbqp *pb, int edge)
{
    for (int side = 0; side < 2; side++) {
        int v = pb->edges[edge].node[side];
        unlink_half(pb, edge, side);
        pb->nodes[v].dirty = true;
        pbqp_requeue(pb, v);
    }
    pb->edges[edge].node[0] = -1;
    pb->free_from = edge < pb->free_from ? edge : pb->free_from;
}

int pbqp_writable(struct pbqp_search *s, struct pbqp *pb, int edge)
{
    struct pbqp_edge *e = &pb->edges[edge];
    if (e->level == pb->level)
        return STRATA_OK;
    size_t cells = (size_t)pb->nodes[e->node[0]].n * (size_t)pb->nodes[e->node[1]].n;
    int64_t *m = scratch_get(&s->scratch, cells, sizeof *m);
    if (!m)
        return error_no_memory(s->err, cells * sizeof *m, "the planner");
    memcpy(m, e->m, cells * sizeof *m);
    e->m = m;
    e->level = pb->level;
    return STRATA_OK;
}

static int64_t add(int64_t a, int64_t b)
{
    return pbqp_dead(a) || pbqp_dead(b) ? PLAN_INFINITE : a + b;
}

static int merge(struct pbqp_search *s, struct pbqp *pb, int edge, int u,
                 const int64_t *m)
{
    int status = pbqp_writable(s, pb, edge);
    const struct pbqp_edge *e = &pb->edges[edge];
    size_t rows = (size_t)pb->nodes[e->node[0]].n, cols = (size_t)pb->nodes[e->node[1]].n;
    bool turned = e->node[0] != u;
    for (size_t i = 0; status == STRATA_OK && i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            e->m[i * cols + j] =
                add(e->m[i * cols + j], turned ? m[j * rows + i] : m[i * cols + j]);
    return status;
}

int pbqp_connect(struct pbqp_search *s, struct pbqp *pb, int u, int v, int64_t *m)
{
    int edge = pbqp_find(pb, u, v);
    if (edge >= 0)
        return merge(s, pb, edge, u, m);
    for (edge = pb->free_from; edge < pb->n_edges && pb->edges[edge].node[0] >= 0;)
        edge++;
    if (edge == pb->n_edges)
        return error_set(s->err, STRATA_EINTERNAL, "the planner's edges do not fit");
    pb->edges[edge] = (struct pbqp_edge){.node = {u, v}, .m = m, .level = pb->level};
    link_half(pb, edge, 0);
    link_half(pb, edge, 1);
    pb->free_from = edge + 1;
    pbqp_requeue(pb, u);
    pbqp_requeue(pb, v);
    return STRATA_OK;
}

int pbqp_copy(struct pbqp_search *s, struct pbqp *to, const struct pbqp *from)
{
    size_t n = (size_t)from->n_nodes, m = (size_t)from->n_edges;
    *to = *from;
    to->level = from->level + 1;
    to->nodes = scratch_get(&s->scratch, n, sizeof *to->nodes);
    to->edges = scratch_get(&s->scratch, m, sizeof *to->edges);
    if (!to->nodes || !to->edges)
        return error_no_memory(s->err, n * sizeof *to->nodes, "the planner");
    memcpy(to->nodes, from->nodes, n * sizeof *to->nodes);
    memcpy(to->edges, from->edges, m * sizeof *to->edges);
    for (size_t v = 0; v < n; v++) {
        struct pbqp_node *node = &to->nodes[v];
        if (node->n == 0)
            continue;
        node->cost = scratch_get(&s->scratch, (size_t)node->n, sizeof *node->cost);
        if (!node->cost)
            return error_no_memory(s->err, n * sizeof *node->cost, "the planner");
        memcpy(node->cost, from->nodes[v].cost, (size_t)node->n * sizeof *node->cost);
    }
    return STRATA_OK;
}

/* Keep the rows (side 0) or columns whose cost is finite. */
static int shrink_edge(struct pbqp_search *s, struct pbqp *pb, int half, int left)
{
    struct pbqp_edge *e = &pb->edges[half >> 1];
    const struct pbqp_node *rows = &pb->nodes[e->node[0]], *cols = &pb->nodes[e->node[1]];
    int side = half & 1, other = side ? rows->n : cols->n;
    const int64_t *cost = side ? cols->cost : rows->cost;
    int64_t *m = scratch_get(&s->scratch, (size_t)left * (size_t)other, sizeof *m);
    int64_t *next = m;
    if (!m)
        return error_no_memory(s->err, sizeof *m, "the planner");
    for (int i = 0; i < rows->n; i++)
        for (int j = 0; j < cols->n; j++)
            if (!pbqp_dead(cost[side ? j : i]))
                *next++ = e->m[i * cols->n + j];
    e->m = m;
    e->level = pb->level;
    return STRATA_OK;
}

int pbqp_compact(struct pbqp_search *s, struct pbqp *pb, int v)
{
    struct pbqp_node *node = &pb->nodes[v];
    int left = 0, at = 0;
    for (int i = 0; i < node->n; i++)
        left += !pbqp_dead(node->cost[i]);
    if (left == node->n)
        return STRATA_OK;
    if (left == 0) {
        pb->infeasible = true;
        return STRATA_OK;
    }
    PBQP_EACH(pb, half, v)
    {
        int status = shrink_edge(s, pb, half, left);
        if (status != STRATA_OK)
            return status;
    }
    int *origin = scratch_get(&s->scratch, (size_t)left, sizeof *origin);
    int64_t *cost = scratch_get(&s->scratch, (size_t)left, sizeof *cost);
    if (!origin || !cost)
        return error_no_memory(s->err, sizeof *cost, "the planner");
    for (int i = 0; i < node->n; i++)
        if (!pbqp_dead(node->cost[i])) {
            origin[at] = node->origin[i];
            cost[at++] = node->cost[i];
        }
    node->n = left;
    node->origin = origin;
    node->cost = cost;
    pbqp_touch(pb, v);
    return STRATA_OK;
}

void pbqp_search_close(struct pbqp_search *s)
{
    scratch_free(&s->scratch);
    pbqp_queue_close(&s->queue);
    free(s->eliminated);
    free(s->frames);
    free(s->labels);
    free(s->trial);
    free(s->proof);
}
