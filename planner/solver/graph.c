/* SPDX-License-Identifier: Apache-2.0
 *
 * A planning problem as PBQP. An operation is a node whose labels are its choices. A
 * tensor with one reading operation is an edge of tree costs. A tensor with several is a
 * node of its own, whose labels are the sets of formats it may exist in: its producer
 * pays the set's tree, and a reader is impossible where the set lacks what it wants. The
 * trees are monotone in the set, so the optimum's set is what is wanted and no more:
 * exact.
 */
#include "planner/solver/private.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SETS = 2048 }; /* labels of a tensor's node; more are bounded, not searched */

struct builder {
    const struct plan_model *m;
    struct plan_graph *g;
    struct pbqp_search *s;
};

static bool is_member(const struct plan_model *m, int op)
{
    return !m->member || m->member[op];
}

static int64_t scaled(const struct plan_model *m, int64_t cost)
{
    if (cost >= PLAN_INFINITE)
        return PLAN_INFINITE;
    return m->feasibility ? 0 : cost << m->shift;
}

static struct pbqp_node *new_node(const struct builder *b, int name, int n)
{
    struct pbqp *pb = &b->g->pb;
    struct pbqp_node *node = &pb->nodes[pb->n_nodes];
    int *origin = scratch_get(&b->s->scratch, (size_t)n + 1, sizeof *origin);
    *node = (struct pbqp_node){.n = n, .head = -1, .dirty = true, .origin = origin};
    node->cost = scratch_get(&b->s->scratch, (size_t)n + 1, sizeof *node->cost);
    if (!origin || !node->cost)
        return NULL;
    memset(node->cost, 0, (size_t)n * sizeof *node->cost);
    b->g->names[pb->n_nodes++] = name;
    return node;
}

static int add_op(const struct builder *b, int op)
{
    const struct plan_model *m = b->m;
    const struct plan_op *o = &m->p.ops[op];
    const bool *banned = m->banned + m->first[op];
    int n = 0, at = 0;
    for (size_t k = 0; k < o->n_choices; k++)
        n += !banned[k];
    b->g->node_of_op[op] = b->g->pb.n_nodes;
    b->g->pb.infeasible |= n == 0;
    struct pbqp_node *node = new_node(b, op, n);
    if (!node)
        return error_no_memory(b->s->err, (size_t)n * 8, "the planner");
    int *origin = (int *)node->origin;
    for (size_t k = 0; k < o->n_choices; k++) {
        if (banned[k])
            continue;
        int64_t tie = m->feasibility ? 0 : m->tie[m->first[op] + k];
        node->cost[at] = scaled(m, o->choices[k].cost) + tie;
        origin[at++] = (int)k;
    }
    return STRATA_OK;
}

static const struct plan_choice *choice_of(const struct builder *b, int op, int label)
{
    const struct pbqp_node *n = &b->g->pb.nodes[b->g->node_of_op[op]];
    return &b->m->p.ops[op].choices[n->origin[label]];
}

/* Labels of a tensor that one choice of an operation wants, whose first entry among the
 * readers is this. */
static uint64_t wants(const struct plan_tensor *t, size_t reader,
                      const struct plan_choice *c)
{
    int op = t->readers[reader].op;
    uint64_t wanted = 0;
    for (size_t r = reader; r < t->n_readers && t->readers[r].op == op; r++)
        wanted |= UINT64_C(1) << plan_in_label(c, t->readers[r].port);
    return wanted;
}

/* Whether this is the first entry of its operation among the readers. */
static bool is_first(const struct plan_tensor *t, size_t reader)
{
    return reader == 0 || t->readers[reader - 1].op != t->readers[reader].op;
}

static int64_t *new_matrix(const struct builder *b, int rows, int cols)
{
    return scratch_get(&b->s->scratch, (size_t)rows * (size_t)cols + 1, sizeof(int64_t));
}

/* Producer to reader: the whole tree, or share 1/n of it as a bound, or whether it is. */
static int add_direct(const struct builder *b, int tensor, size_t reader, int64_t shares)
{
    const struct plan_model *m = b->m;
    const struct plan_tensor *t = &m->p.tensors[tensor];
    int op = t->readers[reader].op;
    int u = b->g->node_of_op[t->producer], v = b->g->node_of_op[op];
    int rows = b->g->pb.nodes[u].n, cols = b->g->pb.nodes[v].n;
    int64_t *matrix = new_matrix(b, rows, cols);
    if (!matrix)
        return error_no_memory(b->s->err, (size_t)(rows * cols) * 8, "the planner");
    for (int j = 0; j < cols; j++) {
        uint64_t wanted = wants(t, reader, choice_of(b, op, j));
        for (int i = 0; i < rows; i++) {
            int root = plan_out_label(choice_of(b, t->producer, i), t->port);
            int64_t cost =
                plan_forest_cost(m->forest[tensor], &m->p, tensor, root, wanted);
            cost = scaled(m, cost);
            matrix[i * cols + j] = cost < PLAN_INFINITE ? cost / shares : cost;
        }
    }
    return pbqp_connect(b->s, &b->g->pb, u, v, matrix);
}

static int connect_producer(const struct builder *b, int tensor, int sets)
{
    const struct plan_model *m = b->m;
    const struct plan_tensor *t = &m->p.tensors[tensor];
    const struct plan_forest *f = m->forest[tensor];
    int u = b->g->node_of_op[t->producer];
    int rows = b->g->pb.nodes[u].n, cols = b->g->pb.nodes[sets].n;
    int64_t *matrix = new_matrix(b, rows, cols);
    if (!matrix)
        return error_no_memory(b->s->err, (size_t)(rows * cols) * 8, "the planner");
    for (int i = 0; i < rows; i++) {
        int root = plan_out_label(choice_of(b, t->producer, i), t->port);
        const int64_t *tree = f->tree + (size_t)root * f->n_sets;
        int j = 0;
        for (size_t place = 0; place < f->n_sets; place++)
            if (f->whole[place])
                matrix[i * cols + j++] = scaled(m, tree[place]);
    }
    return pbqp_connect(b->s, &b->g->pb, u, sets, matrix);
}

static int connect_reader(const struct builder *b, int tensor, int sets, size_t reader)
{
    const struct plan_tensor *t = &b->m->p.tensors[tensor];
    const struct plan_forest *f = b->m->forest[tensor];
    int op = t->readers[reader].op, v = b->g->node_of_op[op];
    int rows = b->g->pb.nodes[sets].n, cols = b->g->pb.nodes[v].n;
    int64_t *matrix = new_matrix(b, rows, cols);
    if (!matrix)
        return error_no_memory(b->s->err, (size_t)(rows * cols) * 8, "the planner");
    for (int j = 0; j < cols; j++) {
        uint32_t set = plan_forest_set(f, wants(t, reader, choice_of(b, op, j)));
        for (int i = 0; i < rows; i++)
            matrix[i * cols + j] =
                set & ~(uint32_t)b->g->pb.nodes[sets].origin[i] ? PLAN_INFINITE : 0;
    }
    return pbqp_connect(b->s, &b->g->pb, sets, v, matrix);
}

static size_t reading_operations(const struct plan_model *m, const struct plan_tensor *t)
{
    size_t n = 0;
    for (size_t r = 0; r < t->n_readers; r++)
        n += is_first(t, r) && is_member(m, t->readers[r].op);
    return n;
}

static bool needs_sets(const struct plan_model *m, int tensor)
{
    return !m->feasibility && reading_operations(m, &m->p.tensors[tensor]) > 1 &&
           m->forest[tensor]->tree && m->forest[tensor]->n_whole <= MAX_SETS;
}

static int add_sets(const struct builder *b, int tensor)
{
    const struct plan_forest *f = b->m->forest[tensor];
    struct pbqp_node *node = new_node(b, (int)b->m->p.n_ops + tensor, (int)f->n_whole);
    int *origin = node ? (int *)node->origin : NULL, at = 0;
    if (!node)
        return error_no_memory(b->s->err, MAX_SETS, "the planner");
    node->is_set = true;
    for (size_t s = 0; s < f->n_sets; s++)
        if (f->whole[s])
            origin[at++] = (int)f->sets[s];
    return STRATA_OK;
}

static int connect_tensor(const struct builder *b, int tensor, int sets)
{
    const struct plan_model *m = b->m;
    const struct plan_tensor *t = &m->p.tensors[tensor];
    int status = STRATA_OK;
    size_t n = reading_operations(m, t);
    if (!is_member(m, t->producer))
        return STRATA_OK;
    if (sets >= 0)
        status = connect_producer(b, tensor, sets);
    for (size_t r = 0; r < t->n_readers && status == STRATA_OK; r++) {
        if (!is_first(t, r) || !is_member(m, t->readers[r].op))
            continue;
        status = sets >= 0 ? connect_reader(b, tensor, sets, r)
                           : add_direct(b, tensor, r, (int64_t)n);
    }
    return status;
}

/* A tensor's node follows its producer's: bounds are tighter along the network's order.
 */
static int add_nodes(const struct builder *b, int *sets)
{
    const struct plan_problem *p = &b->m->p;
    for (size_t t = 0; t < p->n_tensors; t++)
        sets[t] = -1;
    for (size_t op = 0; op < p->n_ops; op++) {
        const struct plan_op *o = &p->ops[op];
        if (!is_member(b->m, (int)op))
            continue;
        int status = add_op(b, (int)op);
        for (int i = 0; i < o->n_out && status == STRATA_OK; i++)
            if (needs_sets(b->m, o->out[i])) {
                sets[o->out[i]] = b->g->pb.n_nodes;
                status = add_sets(b, o->out[i]);
            }
        if (status != STRATA_OK)
            return status;
    }
    return STRATA_OK;
}

static int allocate(struct plan_graph *g, const struct plan_problem *p,
                    struct pbqp_search *s)
{
    size_t edges = p->n_tensors + 1, nodes = p->n_ops + p->n_tensors;
    for (size_t t = 0; t < p->n_tensors; t++)
        edges += p->tensors[t].n_readers;
    *g = (struct plan_graph){.pb.n_edges = (int)edges};
    g->pb.nodes = scratch_get(&s->scratch, nodes + 1, sizeof *g->pb.nodes);
    g->pb.edges = scratch_get(&s->scratch, edges, sizeof *g->pb.edges);
    g->names = zalloc(nodes, sizeof *g->names, "the planner", s->err);
    g->node_of_op = zalloc(p->n_ops, sizeof *g->node_of_op, "the planner", s->err);
    if (!g->pb.nodes || !g->pb.edges || !g->names || !g->node_of_op)
        return error_no_memory(s->err, edges * sizeof *g->pb.edges, "the planner");
    for (size_t e = 0; e < edges; e++)
        g->pb.edges[e].node[0] = -1;
    return STRATA_OK;
}

int plan_graph_build(struct plan_graph *g, const struct plan_model *m,
                     struct pbqp_search *s)
{
    struct builder b = {m, g, s};
    int status = allocate(g, &m->p, s);
    int *sets = zalloc(m->p.n_tensors, sizeof *sets, "the planner", s->err);
    if (!sets)
        status = STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = add_nodes(&b, sets);
    for (size_t t = 0; t < m->p.n_tensors && status == STRATA_OK; t++)
        status = connect_tensor(&b, (int)t, sets[t]);
    free(sets);
    s->names = g->names;
    return status;
}

bool plan_graph_is_relaxed(const struct plan_model *m)
{
    for (size_t t = 0; t < m->p.n_tensors && !m->feasibility; t++)
        if (reading_operations(m, &m->p.tensors[t]) > 1 && !needs_sets(m, (int)t))
            return true;
    return false;
}

bool plan_graph_is_large(const struct plan_model *m)
{
    for (size_t t = 0; t < m->p.n_tensors; t++)
        if (m->forest[t]->n_sets > 0 && m->forest[t]->n_slots > FOREST_FEW)
            return true;
    return false;
}

void plan_graph_close(struct plan_graph *g)
{
    free(g->names);
    free(g->node_of_op);
}
