/* SPDX-License-Identifier: Apache-2.0
 *
 * A good assignment to start from, in the time of a few passes over the network:
 *   1. forward, each operation's choices get the cheapest cost of having them, as if
 * every tensor had one reader (exact on chains); a backward pass picks accordingly;
 *   2. the same from the choice that favours one label everywhere, for each label;
 *   3. each start is improved by changing one operation, then two adjacent ones, for as
 *      long as the exact cost falls; the cheapest is kept, the earliest on a tie;
 *   4. if all end with a conversion missing, backtracking looks for a start without.
 */
#include "planner/solver/private.h"

#include <stdlib.h>
#include <string.h>

/* Costs of a partial or broken assignment compare by what is missing first. */
struct score {
    int broken; /* tensors without a conversion */
    int64_t cost;
};

/* What a tree costs that no table has; `wanted` is 0 where there is none. */
struct memo {
    uint64_t wanted;
    int64_t cost;
    int tensor, root;
};

struct starter {
    const struct plan_model *m;
    const struct plan_problem *p;
    struct memo *memo; /* 1 << MEMO_BITS places, the later one kept; or NULL */
    int64_t **forward; /* per operation and choice */
    size_t *choices, *best;
    uint64_t steps; /* of backtracking */
};

enum { MAX_BACKTRACKS = 1 << 20, MEMO_BITS = 16 };

static bool banned(const struct starter *s, int op, size_t k)
{
    return s->m->banned[s->m->first[op] + k];
}

/* Of a tensor whose readers may want too many sets a tree is grown for each set, which is
 * asked for again and again. */
static int64_t tree_cost(const struct starter *s, int tensor, int root, uint64_t wanted)
{
    const struct plan_forest *f = s->m->forest[tensor];
    if (!s->memo || f->tree || (wanted & (wanted - 1)) == 0)
        return plan_forest_cost(f, s->p, tensor, root, wanted);
    const uint64_t key = (wanted * UINT64_C(0x9E3779B97F4A7C15)) ^
                         ((uint64_t)tensor << 32 | (uint64_t)root);
    struct memo *m = &s->memo[key * UINT64_C(0xD1342543DE82EF95) >> (64 - MEMO_BITS)];
    if (m->wanted != wanted || m->tensor != tensor || m->root != root)
        *m = (struct memo){wanted, plan_forest_cost(f, s->p, tensor, root, wanted),
                           tensor, root};
    return m->cost;
}

static void add_choice(const struct starter *s, struct score *score, int op, size_t k)
{
    if (banned(s, op, k))
        score->broken++;
    else
        score->cost += s->p->ops[op].choices[k].cost;
}

static void add_tensor(const struct starter *s, struct score *score, int tensor)
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

static struct score full_score(const struct starter *s)
{
    struct score score = {0, 0};
    for (size_t op = 0; op < s->p->n_ops; op++)
        add_choice(s, &score, (int)op, s->choices[op]);
    for (size_t t = 0; t < s->p->n_tensors; t++)
        add_tensor(s, &score, (int)t);
    return score;
}

/* The part of the score that depends on one operation, or on two: each tensor once. */
static struct score local_score(const struct starter *s, int a, int b)
{
    struct score score = {0, 0};
    int tensors[64], n = 0;
    const int ops[2] = {a, b};
    for (int k = 0; k < (b < 0 ? 1 : 2); k++) {
        const struct plan_op *o = &s->p->ops[ops[k]];
        add_choice(s, &score, ops[k], s->choices[ops[k]]);
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
static int64_t forward_cost(const struct starter *s, int op, size_t k)
{
    const struct plan_op *o = &s->p->ops[op];
    int64_t total = o->choices[k].cost;
    if (banned(s, op, k))
        return PLAN_INFINITE;
    for (int i = 0; i < o->n_in; i++) {
        const struct plan_tensor *t = &s->p->tensors[o->in[i]];
        const struct plan_op *producer = &s->p->ops[t->producer];
        int64_t best = PLAN_INFINITE;
        int to = plan_in_label(&o->choices[k], i);
        for (size_t j = 0; j < producer->n_choices; j++) {
            int from = plan_out_label(&producer->choices[j], t->port);
            int64_t path = s->m->forest[o->in[i]]->path[from * s->p->n_labels + to];
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
static void decide_backward(struct starter *s)
{
    for (size_t op = s->p->n_ops; op-- > 0;) {
        const struct plan_op *o = &s->p->ops[op];
        struct score best = {INT32_MAX, 0};
        for (size_t k = 0; k < o->n_choices; k++) {
            struct score score = {0, s->forward[op][k]};
            if (score.cost >= PLAN_INFINITE)
                score = (struct score){1 + banned(s, (int)op, k), 0};
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

static void start_dynamic(struct starter *s)
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

static void start_favouring(struct starter *s, int label)
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

static bool improve_one(struct starter *s, int op)
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

static bool improve_pair(struct starter *s, int a, int b)
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

static bool improve_with_readers(struct starter *s, int op)
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
static void improve(struct starter *s)
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

static bool reachable(const struct starter *s, int op)
{
    const struct plan_op *o = &s->p->ops[op];
    const struct plan_choice *c = plan_chosen(s->p, s->choices, op);
    if (banned(s, op, s->choices[op]))
        return false;
    for (int i = 0; i < o->n_in; i++) {
        const struct plan_tensor *t = &s->p->tensors[o->in[i]];
        int from = plan_out_label(plan_chosen(s->p, s->choices, t->producer), t->port);
        const int64_t *path = s->m->forest[o->in[i]]->path;
        if (path[from * s->p->n_labels + plan_in_label(c, i)] >= PLAN_INFINITE)
            return false;
    }
    return true;
}

/* An assignment without a missing conversion, by backtracking over the operations in
 * order: a tree exists exactly where each of its readers can be reached. */
static bool start_feasible(struct starter *s)
{
    size_t op = 0;
    if (s->p->n_ops == 0)
        return true;
    for (s->choices[0] = 0; s->steps++ < MAX_BACKTRACKS;) {
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
    return false;
}

static struct score keep_best(struct starter *s, struct score best)
{
    improve(s);
    struct score score = full_score(s);
    if (!less(score, best))
        return best;
    memcpy(s->best, s->choices, s->p->n_ops * sizeof *s->best);
    return score;
}

static void search(struct starter *s)
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

static int starter_open(struct starter *s, const struct plan_model *m, strata_error *err)
{
    const struct plan_problem *p = &m->p;
    s->m = m;
    s->p = p;
    s->forward = zalloc(p->n_ops, sizeof *s->forward, "the planner", err);
    s->best = zalloc(p->n_ops, sizeof *s->best, "the planner", err);
    if (!s->forward || !s->best)
        return STRATA_ENOMEM;
    s->forward[0] = zalloc(m->first[p->n_ops], sizeof **s->forward, "the planner", err);
    if (!s->forward[0])
        return STRATA_ENOMEM;
    for (size_t op = 1; op < p->n_ops; op++)
        s->forward[op] = s->forward[0] + m->first[op];
    for (size_t t = 0; t < p->n_tensors && !s->memo; t++)
        if (m->forest[t]->many && !m->forest[t]->tree &&
            !(s->memo =
                  zalloc((size_t)1 << MEMO_BITS, sizeof *s->memo, "the planner", err)))
            return STRATA_ENOMEM;
    return STRATA_OK;
}

bool plan_start(const struct plan_model *m, size_t *choices, strata_error *err,
                int *status)
{
    struct starter s = {.choices = choices};
    bool found = false;
    *status = STRATA_OK;
    if (m->p.n_ops == 0)
        return true;
    for (size_t op = 0; op < m->p.n_ops; op++)
        if (m->p.ops[op].n_choices == 0)
            return false;
    *status = starter_open(&s, m, err);
    if (*status == STRATA_OK) {
        search(&s);
        found = !full_score(&s).broken;
    }
    if (s.forward)
        free(s.forward[0]);
    free(s.forward);
    free(s.best);
    free(s.memo);
    return found;
}
