/* SPDX-License-Identifier: Apache-2.0
 *
 * The checker's own view of a problem; nothing here is shared with the solver.
 */
#ifndef PLANNER_CERTIFICATE_CHECK_H
#define PLANNER_CERTIFICATE_CHECK_H

#include "core/alloc.h"
#include "planner/certificate/certificate.h"

#define DEAD (PLAN_INFINITE / 2)

/* An edge as one of its nodes has it. */
struct near {
    int other, back; /* the other node, and where the edge is in its list */
    int64_t *m;      /* both have the same; a row is a label of the lower node */
};

struct near_list {
    struct near *v;
    size_t n, capacity;
};

struct state {
    int n;
    int *labels;            /* of each node */
    int64_t **cost;         /* of each label; DEAD and above: gone */
    struct near_list *near; /* of each node */
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

/* The problem as the options leave it (price.c). */
int64_t check_conversion(const struct checker *k, int tensor, int from, int to);
int64_t check_choice(const struct checker *k, int op, size_t choice);
bool check_keeps(const struct plan_problem *p, int root, int u, int v);
uint64_t check_wants(const struct plan_tensor *t, int op, const struct plan_choice *c);

/* The pairwise problem (state.c). */
/* STRATA_EUNSUPPORTED: too many labels matter at a tensor. */
int check_fits(const struct checker *k);
bool check_build(const struct checker *k, struct state *g);
bool check_copy(struct state *to, const struct state *g);
bool check_connect(struct state *g, int u, int v);
/* The edge at a place in a node's list; the last one takes its place. */
void check_drop(struct state *g, int v, size_t place);
void state_free(struct state *g);

/* The proof, step by step (proof.c). */
int check_proof(struct checker *k);

/* Returns EMISMATCH. */
static inline int check_fail(const struct checker *k, const char *what)
{
    return error_set(k->err, STRATA_EMISMATCH, "the certificate does not hold: %s", what);
}

static inline int64_t plus(int64_t a, int64_t b)
{
    return a >= DEAD || b >= DEAD ? PLAN_INFINITE : a + b;
}

/* NULL: there is no edge. */
static inline int64_t *edge_of(const struct state *g, int u, int v)
{
    const struct near_list *a = &g->near[u], *b = &g->near[v];
    const struct near_list *list = a->n <= b->n ? a : b;
    int other = list == a ? v : u;
    for (size_t k = 0; k < list->n; k++)
        if (list->v[k].other == other)
            return list->v[k].m;
    return NULL;
}

/* Of an edge that exists. */
static inline int64_t *cell(const struct state *g, int u, int i, int v, int j)
{
    return edge_of(g, u, v) + (u < v ? i * g->labels[v] + j : j * g->labels[u] + i);
}

#endif /* PLANNER_CERTIFICATE_CHECK_H */
