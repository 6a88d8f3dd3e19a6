/* SPDX-License-Identifier: Apache-2.0
 *
 * The two simple baselines, and the third's problem: a node for each operation, an edge
 * for each pair of operations that a tensor joins.
 */
#include "bench/plan/baseline.h"

#include <stdlib.h>

#include "bench/plan/edgewise.h"
#include "core/alloc.h"

int baseline_fastest(const struct plan_problem *p, size_t *choices, strata_error *err)
{
    (void)err;
    for (size_t op = 0; op < p->n_ops; op++) {
        choices[op] = 0;
        for (size_t k = 1; k < p->ops[op].n_choices; k++)
            if (p->ops[op].choices[k].cost < p->ops[op].choices[choices[op]].cost)
                choices[op] = k;
    }
    return STRATA_OK;
}

/* What choice k of an operation adds, given its producers' choices and the labels that
 * earlier readers want. */
static int64_t added_cost(const struct plan_problem *p, const size_t *choices,
                          const uint64_t *wanted, size_t op, size_t k)
{
    const struct plan_op *o = &p->ops[op];
    const struct plan_choice *c = &o->choices[k];
    int64_t total = c->cost;
    for (int i = 0; i < o->n_in; i++) {
        const struct plan_tensor *t = &p->tensors[o->in[i]];
        int root = plan_out_label(plan_chosen(p, choices, t->producer), t->port);
        uint64_t more = wanted[o->in[i]] | UINT64_C(1) << plan_in_label(c, i);
        int64_t after = plan_tree(p, o->in[i], root, more, NULL, NULL);
        if (after >= PLAN_INFINITE)
            return PLAN_INFINITE;
        total += after - plan_tree(p, o->in[i], root, wanted[o->in[i]], NULL, NULL);
    }
    return total;
}

int baseline_greedy(const struct plan_problem *p, size_t *choices, strata_error *err)
{
    uint64_t *wanted = zalloc(p->n_tensors, sizeof *wanted, "a baseline", err);
    if (!wanted)
        return STRATA_ENOMEM;
    for (size_t op = 0; op < p->n_ops; op++) {
        int64_t best = INT64_MAX;
        for (size_t k = 0; k < p->ops[op].n_choices; k++) {
            int64_t cost = added_cost(p, choices, wanted, op, k);
            if (cost < best) {
                best = cost;
                choices[op] = k;
            }
        }
        for (int i = 0; i < p->ops[op].n_in; i++) {
            const struct plan_choice *c = plan_chosen(p, choices, (int)op);
            wanted[p->ops[op].in[i]] |= UINT64_C(1) << plan_in_label(c, i);
        }
    }
    free(wanted);
    return STRATA_OK;
}

/* Shortest conversions between all pairs of labels of a tensor. */
static int64_t *shortest(const struct plan_problem *p, int tensor, strata_error *err)
{
    int n = p->n_labels;
    int64_t *paths = zalloc((size_t)(n * n), sizeof *paths, "a baseline", err);
    for (int from = 0; paths && from < n; from++)
        for (int to = 0; to < n; to++)
            paths[from * n + to] =
                plan_tree(p, tensor, from, UINT64_C(1) << to, NULL, NULL);
    return paths;
}

/* Conversions of one tensor for each of its readers by itself. */
static int add_readers(struct edgewise *q, const struct plan_problem *p,
                       const struct plan_tensor *t, const int64_t *paths,
                       strata_error *err)
{
    const struct plan_op *producer = &p->ops[t->producer];
    for (size_t r = 0; r < t->n_readers; r++) {
        const struct plan_op *reader = &p->ops[t->readers[r].op];
        int64_t *edge = zalloc(producer->n_choices * reader->n_choices, sizeof *edge,
                               "a baseline", err);
        if (!edge)
            return STRATA_ENOMEM;
        for (size_t i = 0; i < producer->n_choices; i++)
            for (size_t j = 0; j < reader->n_choices; j++) {
                int from = plan_out_label(&producer->choices[i], t->port);
                int to = plan_in_label(&reader->choices[j], t->readers[r].port);
                edge[i * reader->n_choices + j] = paths[from * p->n_labels + to];
            }
        int status = edgewise_add_edge(q, (size_t)t->producer, (size_t)t->readers[r].op,
                                       edge, err);
        free(edge);
        if (status != STRATA_OK)
            return status;
    }
    return STRATA_OK;
}

int baseline_edgewise(const struct plan_problem *p, size_t *choices, strata_error *err)
{
    struct edgewise q;
    int status = edgewise_open(&q, p->n_ops, err);
    for (size_t op = 0; op < p->n_ops && status == STRATA_OK; op++) {
        status = edgewise_set_node(&q, op, p->ops[op].n_choices, err);
        for (size_t k = 0; k < p->ops[op].n_choices && status == STRATA_OK; k++)
            q.nodes[op].cost[k] = p->ops[op].choices[k].cost;
    }
    for (size_t t = 0; t < p->n_tensors && status == STRATA_OK; t++) {
        int64_t *paths = shortest(p, (int)t, err);
        status = paths ? add_readers(&q, p, &p->tensors[t], paths, err) : STRATA_ENOMEM;
        free(paths);
    }
    if (status == STRATA_OK)
        status = edgewise_solve(&q, choices, err);
    edgewise_close(&q);
    return status;
}
