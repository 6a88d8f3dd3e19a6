/* SPDX-License-Identifier: Apache-2.0
 *
 * The solver:
 *   1. a start by dynamic programming: forward, the cheapest way to have each choice of
 *      each operation, a producer's cost being split between its readers; backward, each
 *      operation takes the choice that is cheapest for the readers already decided;
 *   2. for each label, another start that favours it, because a chain changes layout at
 *      a profit only as a whole;
 *   3. each start is improved by changing one operation, or one and a reader of it, as
 *      long as the exact cost falls; the cheapest is kept, the earliest on a tie;
 *   4. if all end with a conversion missing, backtracking finds a start without, or
 *      proves that there is none;
 *   5. the conversion trees of the result become the plan's steps.
 * Where every operation feeds at most one reader, step 1 alone is exact.
 */
#include "core/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* Costs of a partial or broken assignment compare by what is missing first. */
struct score {
    int broken; /* tensors without a conversion */
    int64_t cost;
};

struct solver {
    const struct plan_problem *p;
    const int64_t **paths; /* per tensor: L x L shortest conversions, shared by shape */
    int64_t **owned;       /* the distinct ones */
    size_t n_owned;
    int64_t **forward; /* per operation and choice */
    size_t *choices, *best;
};

static int make_paths(struct solver *s, strata_error *err)
{
    const struct plan_problem *p = s->p;
    size_t n = (size_t)p->n_labels;
    for (size_t i = 0; i < p->n_tensors; i++) {
        for (size_t j = 0; j < i && !s->paths[i]; j++)
            if (p->tensors[j].conversion == p->tensors[i].conversion)
                s->paths[i] = s->paths[j];
        if (s->paths[i])
            continue;
        int64_t *path = zalloc(n * n, sizeof *path, "conversion paths", err);
        if (!path)
            return STRATA_ENOMEM;
        for (size_t from = 0; from < n; from++)
            for (size_t to = 0; to < n; to++)
                path[from * n + to] =
                    plan_tree(p, (int)i, (int)from, UINT64_C(1) << to, NULL, NULL);
        s->paths[i] = s->owned[s->n_owned++] = path;
    }
    return STRATA_OK;
}

/* Tree from `root`; the single-label case comes from the table of paths. */
static int64_t tree_cost(const struct solver *s, int tensor, int root, uint64_t wanted)
{
    wanted &= ~(UINT64_C(1) << root);
    if (!wanted)
        return 0;
    if ((wanted & (wanted - 1)) == 0)
        return s->paths[tensor][root * s->p->n_labels + __builtin_ctzll(wanted)];
    return plan_tree(s->p, tensor, root, wanted, NULL, NULL);
}

static void add_tensor(const struct solver *s, struct score *score, int tensor)
{
    const struct plan_tensor *t = &s->p->tensors[tensor];
    int root = plan_out_label(plan_chosen(s->p, s->choices, t->producer), t->port);
    int64_t cost = tree_cost(s, tensor, root, plan_wanted(s->p, s->choices, t));
    if (cost >= PLAN_INFINITE)
        score->broken++;
    else
        score->cost += cost;
}

static bool less(struct score a, struct score b)
{
    return a.broken != b.broken ? a.broken < b.broken : a.cost < b.cost;
}

static struct score full_score(const struct solver *s)
{
    struct score score = {0, 0};
    for (size_t op = 0; op < s->p->n_ops; op++)
        score.cost += plan_chosen(s->p, s->choices, (int)op)->cost;
    for (size_t t = 0; t < s->p->n_tensors; t++)
        add_tensor(s, &score, (int)t);
    return score;
}

/* The part of the score that depends on one operation, or on two: each tensor once. */
static struct score local_score(const struct solver *s, int a, int b)
{
    struct score score = {0, 0};
    int tensors[64], n = 0;
    const int ops[2] = {a, b};
    for (int k = 0; k < (b < 0 ? 1 : 2); k++) {
        const struct plan_op *o = &s->p->ops[ops[k]];
        score.cost += plan_chosen(s->p, s->choices, ops[k])->cost;
        for (int i = 0; i < o->n_in + o->n_out; i++) {
            int t = i < o->n_in ? o->in[i] : o->out[i - o->n_in];
            bool seen = false;
            for (int j = 0; j < n; j++)
                seen |= tensors[j] == t;
            if (seen)
                continue;
            add_tensor(s, &score, t);
            if (n < (int)ARRAY_LENGTH(tensors))
                tensors[n++] = t;
        }
    }
    return score;
}

/* Cheapest way to have choice k of an operation, as if its inputs had no other reader
 * than their share. */
static int64_t forward_cost(const struct solver *s, int op, size_t k)
{
    const struct plan_op *o = &s->p->ops[op];
    int64_t total = o->choices[k].cost;
    for (int i = 0; i < o->n_in; i++) {
        const struct plan_tensor *t = &s->p->tensors[o->in[i]];
        const struct plan_op *producer = &s->p->ops[t->producer];
        int64_t best = PLAN_INFINITE;
        int to = plan_in_label(&o->choices[k], i);
        for (size_t j = 0; j < producer->n_choices; j++) {
            int from = plan_out_label(&producer->choices[j], t->port);
            int64_t path = s->paths[o->in[i]][from * s->p->n_labels + to];
            int64_t made = s->forward[t->producer][j];
            if (path >= PLAN_INFINITE || made >= PLAN_INFINITE)
                continue;
            int64_t cost = made / (int64_t)t->n_readers + path;
            best = cost < best ? cost : best;
        }
        if (best >= PLAN_INFINITE || total + best >= PLAN_INFINITE)
            return PLAN_INFINITE;
        total += best;
    }
    return total;
}

/* Readers of an operation come after it, so they are decided when it is. */
static void decide_backward(struct solver *s)
{
    for (size_t op = s->p->n_ops; op-- > 0;) {
        const struct plan_op *o = &s->p->ops[op];
        struct score best = {INT32_MAX, 0};
        for (size_t k = 0; k < o->n_choices; k++) {
            struct score score = {0, s->forward[op][k]};
            if (score.cost >= PLAN_INFINITE)
                score = (struct score){1, o->choices[k].cost};
            for (int i = 0; i < o->n_out; i++) {
                int root = plan_out_label(&o->choices[k], i);
                const struct plan_tensor *t = &s->p->tensors[o->out[i]];
                int64_t cost =
                    tree_cost(s, o->out[i], root, plan_wanted(s->p, s->choices, t));
                if (cost >= PLAN_INFINITE)
                    score.broken++;
                else
                    score.cost += cost;
            }
            if (less(score, best)) {
                best = score;
                s->choices[op] = k;
            }
        }
    }
}

static void start_dynamic(struct solver *s)
{
    for (size_t op = 0; op < s->p->n_ops; op++)
        for (size_t k = 0; k < s->p->ops[op].n_choices; k++)
            s->forward[op][k] = forward_cost(s, (int)op, k);
    decide_backward(s);
}

static bool touches(const struct plan_op *o, const struct plan_choice *c, int label)
{
    for (int i = 0; i < o->n_in; i++)
        if (plan_in_label(c, i) != label)
            return false;
    for (int i = 0; i < o->n_out; i++)
        if (plan_out_label(c, i) != label)
            return false;
    return true;
}

static void start_favouring(struct solver *s, int label)
{
    for (size_t op = 0; op < s->p->n_ops; op++) {
        const struct plan_op *o = &s->p->ops[op];
        size_t best = 0;
        for (size_t k = 1; k < o->n_choices; k++) {
            bool was = touches(o, &o->choices[best], label);
            bool is = touches(o, &o->choices[k], label);
            if ((is && !was) || (is == was && o->choices[k].cost < o->choices[best].cost))
                best = k;
        }
        s->choices[op] = best;
    }
}

static bool improve_one(struct solver *s, int op)
{
    struct score best = local_score(s, op, -1);
    size_t keep = s->choices[op];
    bool better = false;
    for (size_t k = 0; k < s->p->ops[op].n_choices; k++) {
        s->choices[op] = k;
        struct score score = local_score(s, op, -1);
        if (less(score, best)) {
            best = score;
            keep = k;
            better = true;
        }
    }
    s->choices[op] = keep;
    return better;
}

static bool improve_pair(struct solver *s, int a, int b)
{
    struct score best = local_score(s, a, b);
    size_t keep_a = s->choices[a], keep_b = s->choices[b];
    bool better = false;
    for (size_t i = 0; i < s->p->ops[a].n_choices; i++)
        for (size_t j = 0; j < s->p->ops[b].n_choices; j++) {
            s->choices[a] = i;
            s->choices[b] = j;
            struct score score = local_score(s, a, b);
            if (less(score, best)) {
                best = score;
                keep_a = i;
                keep_b = j;
                better = true;
            }
        }
    s->choices[a] = keep_a;
    s->choices[b] = keep_b;
    return better;
}

static bool improve_with_readers(struct solver *s, int op)
{
    const struct plan_op *o = &s->p->ops[op];
    bool better = false;
    for (int i = 0; i < o->n_out; i++) {
        const struct plan_tensor *t = &s->p->tensors[o->out[i]];
        for (size_t r = 0; r < t->n_readers; r++)
            better |= improve_pair(s, op, t->readers[r].op);
    }
    return better;
}

/* Each change lowers the score, so this ends; the sweeps are bounded all the same. */
static void improve(struct solver *s)
{
    bool better = true;
    for (int sweep = 0; better && sweep < 32; sweep++) {
        better = false;
        for (size_t op = 0; op < s->p->n_ops; op++)
            better |= improve_one(s, (int)op);
        for (size_t op = 0; op < s->p->n_ops && !better; op++)
            better |= improve_with_readers(s, (int)op);
    }
}

static bool reachable(const struct solver *s, int op)
{
    const struct plan_op *o = &s->p->ops[op];
    const struct plan_choice *c = plan_chosen(s->p, s->choices, op);
    for (int i = 0; i < o->n_in; i++) {
        const struct plan_tensor *t = &s->p->tensors[o->in[i]];
        int from = plan_out_label(plan_chosen(s->p, s->choices, t->producer), t->port);
        if (s->paths[o->in[i]][from * s->p->n_labels + plan_in_label(c, i)] >=
            PLAN_INFINITE)
            return false;
    }
    return true;
}

/* Any assignment without a missing conversion, by backtracking over the operations in
 * order: a tree exists exactly where each of its readers can be reached. */
static bool start_feasible(struct solver *s)
{
    size_t op = 0;
    if (s->p->n_ops == 0)
        return true;
    for (s->choices[0] = 0;;) {
        if (s->choices[op] == s->p->ops[op].n_choices) {
            if (op-- == 0)
                return false;
            s->choices[op]++;
        } else if (!reachable(s, (int)op)) {
            s->choices[op]++;
        } else if (++op == s->p->n_ops) {
            return true;
        } else {
            s->choices[op] = 0;
        }
    }
}

static struct score keep_best(struct solver *s, struct score best)
{
    improve(s);
    struct score score = full_score(s);
    if (!less(score, best))
        return best;
    memcpy(s->best, s->choices, s->p->n_ops * sizeof *s->best);
    return score;
}

static void search(struct solver *s)
{
    struct score best = {INT32_MAX, 0};
    start_dynamic(s);
    best = keep_best(s, best);
    for (int label = 0; label < s->p->n_labels; label++) {
        start_favouring(s, label);
        best = keep_best(s, best);
    }
    if (best.broken && start_feasible(s))
        keep_best(s, best);
    memcpy(s->choices, s->best, s->p->n_ops * sizeof *s->best);
}

static bool is_forest(const struct plan_problem *p)
{
    for (size_t op = 0; op < p->n_ops; op++) {
        size_t readers = 0;
        for (int i = 0; i < p->ops[op].n_out; i++)
            readers += p->tensors[p->ops[op].out[i]].n_readers;
        if (readers > 1)
            return false;
    }
    return true;
}

static int explain_broken(const struct solver *s, strata_error *err)
{
    for (size_t i = 0; i < s->p->n_tensors; i++) {
        struct score score = {0, 0};
        const struct plan_tensor *t = &s->p->tensors[i];
        add_tensor(s, &score, (int)i);
        if (score.broken && t->n_readers > 0)
            return error_set(err, STRATA_EPLAN,
                             "tensor '%s': no format that '%s' writes can be converted "
                             "to one that '%s' reads; allow more formats for one of them",
                             t->name, s->p->ops[t->producer].name,
                             s->p->ops[t->readers[0].op].name);
    }
    return error_set(err, STRATA_EPLAN, "no assignment of formats satisfies the network");
}

static int make_steps(const struct solver *s, struct plan *plan, strata_error *err)
{
    size_t capacity = 0;
    for (size_t i = 0; i < s->p->n_tensors; i++) {
        const struct plan_tensor *t = &s->p->tensors[i];
        struct plan_step tree[PLAN_MAX_LABELS];
        size_t n = 0;
        int root = plan_out_label(plan_chosen(s->p, s->choices, t->producer), t->port);
        plan_tree(s->p, (int)i, root, plan_wanted(s->p, s->choices, t), tree, &n);
        for (size_t k = 0; k < n; k++) {
            int status =
                grow(&plan->steps, &capacity, plan->n_steps, sizeof *plan->steps, err);
            if (status != STRATA_OK)
                return status;
            plan->steps[plan->n_steps++] = tree[k];
            plan->conversion_cost += tree[k].cost;
        }
    }
    return STRATA_OK;
}

static int solver_open(struct solver *s, const struct plan_problem *p, strata_error *err)
{
    s->p = p;
    s->paths = zalloc(p->n_tensors, sizeof *s->paths, "the planner", err);
    s->owned = zalloc(p->n_tensors, sizeof *s->owned, "the planner", err);
    s->forward = zalloc(p->n_ops, sizeof *s->forward, "the planner", err);
    s->choices = zalloc(p->n_ops, sizeof *s->choices, "the planner", err);
    s->best = zalloc(p->n_ops, sizeof *s->best, "the planner", err);
    if (!s->paths || !s->owned || !s->forward || !s->choices || !s->best)
        return STRATA_ENOMEM;
    for (size_t op = 0; op < p->n_ops; op++) {
        if (p->ops[op].n_choices == 0)
            return error_set(err, STRATA_EPLAN, "'%s' has no usable impl",
                             p->ops[op].name);
        s->forward[op] =
            zalloc(p->ops[op].n_choices, sizeof **s->forward, "the planner", err);
        if (!s->forward[op])
            return STRATA_ENOMEM;
    }
    return make_paths(s, err);
}

static void solver_close(struct solver *s)
{
    for (size_t i = 0; i < s->n_owned; i++)
        free(s->owned[i]);
    for (size_t op = 0; s->forward && op < s->p->n_ops; op++)
        free(s->forward[op]);
    free(s->paths);
    free(s->owned);
    free(s->forward);
    free(s->choices);
    free(s->best);
}

int plan_solve(struct plan **out, const struct plan_problem *p, strata_error *err)
{
    struct solver s = {0};
    struct plan *plan = NULL;
    int status = solver_open(&s, p, err);
    if (status != STRATA_OK)
        goto done;
    search(&s);
    if (full_score(&s).broken) {
        status = explain_broken(&s, err);
        goto done;
    }
    status = STRATA_ENOMEM;
    if (!(plan = zalloc(1, sizeof *plan, "a plan", err)))
        goto done;
    if ((status = make_steps(&s, plan, err)) != STRATA_OK)
        goto done;
    plan->cost = full_score(&s).cost;
    plan->exact = is_forest(p);
    plan->choices = s.choices;
    s.choices = NULL;
    *out = plan;
    plan = NULL;
done:
    plan_free(plan);
    solver_close(&s);
    return status;
}
