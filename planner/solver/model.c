/* SPDX-License-Identifier: Apache-2.0
 *
 * A problem as options leave it: bans applied, reformats weighted by the objective, tree
 * costs in tables, ties given an order of their own.
 */
#include "planner/solver/private.h"

#include <stdlib.h>
#include <string.h>

#include "core/checked.h"
#include "planner/solver/buckets.h"

enum { COST_BITS = 57, TIE_BITS = 24 };  /* sums stay under 2^57, far from PBQP_DEAD */
enum { FORMAT_BITS = 6, HASH_BITS = 7 }; /* of a choice's part in a tie; at least */

static uint64_t bit(int label)
{
    return UINT64_C(1) << label;
}

static size_t cells(const struct plan_problem *p)
{
    return (size_t)p->n_labels * (size_t)p->n_labels;
}

/* ---- what cannot be exceeded ------------------------------------------------------- */

static int64_t dearest_conversion(const struct plan_problem *p, const int64_t *matrix)
{
    int64_t most = 0;
    for (size_t i = 0; i < cells(p); i++)
        if (matrix[i] < PLAN_INFINITE && matrix[i] > most)
            most = matrix[i];
    return most;
}

/* Above the cost of any assignment. */
static bool ceiling(const struct plan_problem *p, int64_t *out)
{
    int64_t total = 1;
    for (size_t op = 0; op < p->n_ops; op++) {
        int64_t most = 0;
        for (size_t k = 0; k < p->ops[op].n_choices; k++) {
            int64_t cost = p->ops[op].choices[k].cost;
            if (cost < 0)
                return false;
            most = cost < PLAN_INFINITE && cost > most ? cost : most;
        }
        if (!checked_add(total, most, &total))
            return false;
    }
    for (size_t t = 0; t < p->n_tensors; t++) {
        int64_t most = dearest_conversion(p, p->tensors[t].conversion);
        if (!checked_mul_add(most, p->n_labels, total, &total))
            return false;
    }
    *out = total;
    return total < INT64_C(1) << COST_BITS;
}

/* ---- options ----------------------------------------------------------------------- */

/* A matrix of the tensor's own. */
static int64_t *own_matrix(struct plan_model *m, int tensor, strata_error *err)
{
    struct plan_tensor *t = &m->p.tensors[tensor];
    int64_t *matrix = zalloc(cells(&m->p), sizeof *matrix, "conversions", err);
    if (!matrix)
        return NULL;
    memcpy(matrix, t->conversion, cells(&m->p) * sizeof *matrix);
    m->matrices[m->n_matrices++] = matrix;
    t->conversion = matrix;
    return matrix;
}

/* By where it is: nothing is decided by it but which are compared. */
static uint64_t hash_matrix(const int64_t *matrix)
{
    return buckets_mix(0, (uint64_t)(uintptr_t)matrix);
}

/* The first of the tensors that have the matrix, or -1. */
static int same_matrix(const struct plan_model *m, const struct buckets *tensors,
                       const int64_t *matrix)
{
    int i = buckets_find(tensors, hash_matrix(matrix));
    while (i >= 0 && m->original->tensors[i].conversion != matrix)
        i = tensors->before[i];
    return i;
}

static int weigh_tensors(struct plan_model *m, struct buckets *weighed, strata_error *err)
{
    for (size_t i = 0; i < m->p.n_tensors; i++) {
        const int64_t *was = m->original->tensors[i].conversion;
        int j = same_matrix(m, weighed, was);
        if (j >= 0) {
            m->p.tensors[i].conversion = m->p.tensors[j].conversion;
            continue;
        }
        buckets_add(weighed, hash_matrix(was), (int)i);
        int64_t *matrix = own_matrix(m, (int)i, err);
        if (!matrix)
            return STRATA_ENOMEM;
        for (size_t c = 0; c < cells(&m->p); c++)
            if (matrix[c] > 0 && matrix[c] < PLAN_INFINITE)
                matrix[c] += m->penalty;
    }
    return STRATA_OK;
}

static int weigh_reformats(struct plan_model *m, strata_error *err)
{
    struct buckets weighed = {0};
    int status = buckets_open(&weighed, m->p.n_tensors, "conversions", err);
    if (status == STRATA_OK)
        status = weigh_tensors(m, &weighed, err);
    buckets_close(&weighed);
    return status;
}

static void ban_label_at(struct plan_model *m, const struct plan_op *o, int tensor,
                         int label)
{
    size_t op = (size_t)(o - m->p.ops);
    for (size_t k = 0; k < o->n_choices; k++) {
        const struct plan_choice *c = &o->choices[k];
        for (int i = 0; i < o->n_in; i++)
            if (o->in[i] == tensor && plan_in_label(c, i) == label)
                m->banned[m->first[op] + k] = true;
        for (int i = 0; i < o->n_out; i++)
            if (o->out[i] == tensor && plan_out_label(c, i) == label)
                m->banned[m->first[op] + k] = true;
    }
}

static void ban_in_matrix(const struct plan_model *m, int64_t *matrix,
                          const struct plan_ban *b)
{
    int n = m->p.n_labels;
    bool label = b->kind == PLAN_BAN_LABEL, exact = label || (b->from >= 0 && b->to >= 0);
    for (int u = 0; u < n; u++)
        for (int v = 0; v < n; v++) {
            bool from = b->from < 0 || b->from == u, to = b->to < 0 || b->to == v;
            bool hit = label ? u == b->to || v == b->to : from && to;
            if (hit && u != v && (exact || matrix[u * n + v] > 0))
                matrix[u * n + v] = PLAN_INFINITE;
        }
}

static int apply_ban(struct plan_model *m, const struct plan_ban *b, strata_error *err)
{
    const struct plan_problem *p = &m->p;
    int n = p->n_labels;
    if (b->kind == PLAN_BAN_CHOICE) {
        if (b->op < 0 || (size_t)b->op >= p->n_ops || b->to < 0 ||
            (size_t)b->to >= p->ops[b->op].n_choices)
            return error_set(err, STRATA_EINVAL, "a ban names choice %d of operation %d",
                             b->to, b->op);
        m->banned[m->first[b->op] + (size_t)b->to] = true;
        return STRATA_OK;
    }
    if (b->tensor >= (int)p->n_tensors || b->from >= n || b->to >= n ||
        (b->kind == PLAN_BAN_LABEL && b->to < 0))
        return error_set(err, STRATA_EINVAL, "a ban names tensor %d, labels %d and %d",
                         b->tensor, b->from, b->to);
    for (int t = 0; t < (int)p->n_tensors; t++) {
        if (b->tensor >= 0 && b->tensor != t)
            continue;
        int64_t *matrix = own_matrix(m, t, err);
        if (!matrix)
            return STRATA_ENOMEM;
        ban_in_matrix(m, matrix, b);
        if (b->kind != PLAN_BAN_LABEL)
            continue;
        ban_label_at(m, &p->ops[p->tensors[t].producer], t, b->to);
        for (size_t r = 0; r < p->tensors[t].n_readers; r++)
            ban_label_at(m, &p->ops[p->tensors[t].readers[r].op], t, b->to);
    }
    return STRATA_OK;
}

static int apply_options(struct plan_model *m, const struct plan_options *o,
                         strata_error *err)
{
    int64_t total;
    int status = STRATA_OK;
    if (!ceiling(&m->p, &total))
        return error_set(err, STRATA_EOVERFLOW,
                         "the planner's costs are negative or too large to sum");
    if (o && o->objective == PLAN_FEWEST_REFORMATS) {
        m->penalty = total;
        if ((status = weigh_reformats(m, err)) != STRATA_OK)
            return status;
    }
    if (!ceiling(&m->p, &total))
        return error_set(err, STRATA_EOVERFLOW,
                         "costs are too large to count reformats first");
    for (size_t i = 0; o && i < o->n_bans && status == STRATA_OK; i++)
        status = apply_ban(m, &o->bans[i], err);
    return status;
}

/* ---- ties -------------------------------------------------------------------------- */

static uint64_t hash_port(const struct plan_problem *p, uint64_t hash, int label)
{
    hash = buckets_mix(hash, (uint64_t)p->labels[label].format);
    return buckets_mix(hash,
                       (uint64_t)(p->labels[label].pad + 2 * p->labels[label].stage));
}

/* By what a choice is, not by its place in a list. */
static uint64_t hash_choice(const struct plan_problem *p, const struct plan_op *o,
                            const struct plan_choice *c)
{
    uint64_t hash = 0;
    for (const char *at = o->name ? o->name : ""; *at; at++)
        hash = buckets_mix(hash, (unsigned char)*at);
    for (int i = 0; i < o->n_in; i++)
        hash = hash_port(p, hash, plan_in_label(c, i));
    for (int i = 0; i < o->n_out; i++)
        hash = hash_port(p, hash, plan_out_label(c, i));
    return buckets_mix(hash, (uint64_t)c->cost);
}

/* Of equals, earlier formats of the table first: neighbours then tend to agree. */
static uint32_t tie_of(const struct plan_problem *p, const struct plan_op *o,
                       const struct plan_choice *c, int bits)
{
    uint64_t hash = hash_choice(p, o, c), format = 0;
    if (bits <= FORMAT_BITS + HASH_BITS)
        return (uint32_t)(hash >> (64 - bits));
    if (o->n_in)
        format += (uint64_t)p->labels[plan_in_label(c, 0)].format;
    if (o->n_out)
        format += (uint64_t)p->labels[plan_out_label(c, 0)].format;
    format = format < 1 << FORMAT_BITS ? format : (1 << FORMAT_BITS) - 1;
    return (uint32_t)(format << (bits - FORMAT_BITS) | hash >> (64 + FORMAT_BITS - bits));
}

static int bits_of(int64_t n)
{
    return n > 0 ? 64 - __builtin_clzll((unsigned long long)n) : 0;
}

static void order_ties(struct plan_model *m)
{
    int64_t total = 0;
    if (!ceiling(&m->p, &total))
        return;
    int bits = COST_BITS - bits_of(total), each;
    bits = bits < TIE_BITS ? bits : TIE_BITS;
    each = bits - bits_of((int64_t)m->p.n_ops);
    if (each <= 0)
        return;
    m->shift = bits;
    for (size_t op = 0; op < m->p.n_ops; op++)
        for (size_t k = 0; k < m->p.ops[op].n_choices; k++)
            m->tie[m->first[op] + k] =
                tie_of(&m->p, &m->p.ops[op], &m->p.ops[op].choices[k], each);
}

/* ---- trees ------------------------------------------------------------------------- */

static uint64_t wanted_by_any(const struct plan_model *m, const struct plan_tensor *t)
{
    uint64_t wanted = 0;
    for (size_t r = 0; r < t->n_readers; r++) {
        const struct plan_op *o = &m->p.ops[t->readers[r].op];
        for (size_t k = 0; k < o->n_choices; k++)
            if (!m->banned[m->first[t->readers[r].op] + k])
                wanted |= bit(plan_in_label(&o->choices[k], t->readers[r].port));
    }
    return wanted;
}

static uint64_t hash_forest(const struct plan_forest *f)
{
    uint64_t hash = buckets_mix(hash_matrix(f->conversion), f->wanted);
    hash = buckets_mix(hash, f->n_sets * 2 + f->many);
    return buckets_mix(hash, f->n_whole);
}

/* by_hash: the forests there are. */
static int grow_forest(struct plan_model *m, size_t tensor, struct buckets *by_hash,
                       strata_error *err)
{
    const struct plan_tensor *t = &m->p.tensors[tensor];
    struct plan_forest *next = &m->forests[m->n_forests++];
    *next = (struct plan_forest){.conversion = t->conversion,
                                 .wanted = wanted_by_any(m, t),
                                 .many = t->n_readers > 1};
    int status = plan_forest_open(next, m, (int)tensor, err);
    if (status != STRATA_OK)
        return status;
    const uint64_t hash = hash_forest(next);
    for (int i = buckets_find(by_hash, hash); i >= 0; i = by_hash->before[i])
        if (plan_forest_same(&m->forests[i], next)) {
            plan_forest_free(next);
            m->n_forests--;
            m->forest[tensor] = &m->forests[i];
            return STRATA_OK;
        }
    buckets_add(by_hash, hash, (int)m->n_forests - 1);
    m->forest[tensor] = next;
    return plan_forest_grow(next, &m->p, err);
}

static int grow_forests(struct plan_model *m, strata_error *err)
{
    struct buckets by_hash = {0};
    int status = buckets_open(&by_hash, m->p.n_tensors, "conversion trees", err);
    for (size_t t = 0; t < m->p.n_tensors && status == STRATA_OK; t++)
        status = grow_forest(m, t, &by_hash, err);
    buckets_close(&by_hash);
    return status;
}

/* ---- public ------------------------------------------------------------------------ */

static int allocate(struct plan_model *m, const struct plan_options *o, strata_error *err)
{
    struct plan_problem *p = &m->p;
    const struct plan_tensor *tensors = p->tensors;
    size_t n = 0, matrices = p->n_tensors * (2 + (o ? o->n_bans : 0));
    p->tensors = zalloc(p->n_tensors, sizeof *tensors, "the planner", err);
    m->first = zalloc(p->n_ops + 1, sizeof *m->first, "the planner", err);
    if (!p->tensors || !m->first)
        return STRATA_ENOMEM;
    memcpy(p->tensors, tensors, p->n_tensors * sizeof *tensors);
    for (size_t op = 0; op < p->n_ops; op++) {
        m->first[op] = n;
        n += p->ops[op].n_choices;
    }
    m->first[p->n_ops] = n;
    m->banned = zalloc(n, sizeof *m->banned, "the planner", err);
    m->tie = zalloc(n, sizeof *m->tie, "the planner", err);
    m->matrices = zalloc(matrices, sizeof *m->matrices, "the planner", err);
    m->forest = zalloc(p->n_tensors, sizeof *m->forest, "the planner", err);
    m->forests = zalloc(p->n_tensors, sizeof *m->forests, "the planner", err);
    return m->banned && m->tie && m->matrices && m->forest && m->forests ? STRATA_OK
                                                                         : STRATA_ENOMEM;
}

int plan_model_open(struct plan_model *m, const struct plan_problem *p,
                    const struct plan_options *options, strata_error *err)
{
    *m = (struct plan_model){.p = *p, .original = p};
    int status = allocate(m, options, err);
    for (size_t op = 0; status == STRATA_OK && op < p->n_ops; op++)
        for (size_t k = 0; k < p->ops[op].n_choices; k++)
            m->banned[m->first[op] + k] = p->ops[op].choices[k].cost >= PLAN_INFINITE;
    if (status == STRATA_OK)
        status = apply_options(m, options, err);
    if (status != STRATA_OK)
        return status;
    order_ties(m);
    return grow_forests(m, err);
}

void plan_model_close(struct plan_model *m)
{
    for (size_t i = 0; i < m->n_forests; i++)
        plan_forest_free(&m->forests[i]);
    for (size_t i = 0; i < m->n_matrices; i++)
        free(m->matrices[i]);
    if (m->original && m->p.tensors != m->original->tensors)
        free(m->p.tensors);
    free(m->first);
    free(m->banned);
    free(m->tie);
    free(m->forest);
    free(m->forests);
    free(m->matrices);
}

int64_t plan_model_cost(const struct plan_model *m, const size_t *choices)
{
    int64_t total = 0;
    for (size_t op = 0; op < m->p.n_ops; op++) {
        if (m->banned[m->first[op] + choices[op]])
            return PLAN_INFINITE;
        total += plan_chosen(&m->p, choices, (int)op)->cost;
    }
    for (size_t i = 0; i < m->p.n_tensors; i++) {
        const struct plan_tensor *t = &m->p.tensors[i];
        int root = plan_out_label(plan_chosen(&m->p, choices, t->producer), t->port);
        int64_t cost = plan_forest_cost(m->forest[i], &m->p, (int)i, root,
                                        plan_wanted(&m->p, choices, t));
        if (cost >= PLAN_INFINITE)
            return PLAN_INFINITE;
        total += cost;
    }
    return total;
}

int64_t plan_model_scaled(const struct plan_model *m, const size_t *choices)
{
    int64_t cost = plan_model_cost(m, choices);
    if (cost >= PLAN_INFINITE)
        return PLAN_INFINITE;
    cost <<= m->shift;
    for (size_t op = 0; op < m->p.n_ops; op++)
        cost += m->tie[m->first[op] + choices[op]];
    return cost;
}
