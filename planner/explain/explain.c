/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about a plan, each a problem with one thing changed: a tensor's conversions
 * banned, or a choice given to an operation that its plugin does not have.
 */
#include "planner/explain/explain.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* Questions are cut where they would take a network long: the dearest reformats are asked
 * about, in searches of so many nodes; fewer where each is of many operations. */
enum { MAX_ASKED = 64, ASKED_OPERATIONS = 1 << 18, MAX_NODES = 20000 };

/* What is asked about. */
struct asked {
    const struct plan_problem *p;
    struct plan_options options;
    const struct plan *plan;
    int64_t cost; /* of the best plan: what answers are compared with */
};

/* A problem that shares everything but the choices that a question adds. */
struct question {
    struct plan_problem p;
    struct plan_choice **owned; /* choices of the operations that were given one */
    size_t n_owned;
};

static void question_close(struct question *q)
{
    for (size_t i = 0; q->owned && i < q->n_owned; i++)
        free(q->owned[i]);
    free(q->owned);
    free(q->p.ops);
    *q = (struct question){0};
}

static int question_open(struct question *q, const struct plan_problem *p,
                         strata_error *err)
{
    *q = (struct question){.p = *p};
    q->p.ops = zalloc(p->n_ops, sizeof *p->ops, "a question about the plan", err);
    q->owned = zalloc(p->n_ops, sizeof *q->owned, "a question about the plan", err);
    if (!q->p.ops || !q->owned) {
        question_close(q);
        return STRATA_ENOMEM;
    }
    memcpy(q->p.ops, p->ops, p->n_ops * sizeof *p->ops);
    return STRATA_OK;
}

static int give_choice(struct question *q, int op, const struct plan_choice *choice,
                       strata_error *err)
{
    struct plan_op *o = &q->p.ops[op];
    struct plan_choice *all =
        zalloc(o->n_choices + 1, sizeof *all, "a question about the plan", err);
    if (!all)
        return STRATA_ENOMEM;
    memcpy(all, o->choices, o->n_choices * sizeof *all);
    all[o->n_choices++] = *choice;
    q->owned[q->n_owned++] = o->choices = all;
    return STRATA_OK;
}

/* ---- what forbidding costs -------------------------------------------------------- */

static int find_changes(struct explain_reformat *r, const struct asked *a,
                        const struct plan *other, strata_error *err)
{
    const struct plan *plan = a->plan;
    r->changes = zalloc(a->p->n_ops, sizeof *r->changes, "changes of the plan", err);
    if (!r->changes)
        return STRATA_ENOMEM;
    for (size_t op = 0; op < a->p->n_ops; op++)
        if (plan->choices[op] != other->choices[op])
            r->changes[r->n_changes++] =
                (struct explain_change){(int)op, plan->choices[op], other->choices[op]};
    return STRATA_OK;
}

/* The best plan that pays for no conversion of a tensor; re-labels stay. NULL: none. */
static int solve_without(struct plan **out, const struct asked *a, int tensor,
                         strata_error *err)
{
    const struct plan_ban ban = {PLAN_BAN_CONVERSION, tensor, -1, -1, -1};
    struct plan_options more = a->options;
    struct plan_ban *bans =
        zalloc(more.n_bans + 1, sizeof *bans, "a question about the plan", err);
    int64_t cost;
    if (!bans)
        return STRATA_ENOMEM;
    if (more.n_bans)
        memcpy(bans, more.bans, more.n_bans * sizeof *bans);
    bans[more.n_bans++] = ban;
    more.bans = bans;
    /* first: where there is none, plan_solve looks for the reason at length */
    int status = plan_cost_without(&cost, a->p, &a->options, &ban, err);
    if (status == STRATA_OK && cost < PLAN_INFINITE)
        status = plan_solve(out, a->p, &more, err);
    free(bans);
    return status;
}

static int ask_without(struct explain *x, struct explain_reformat *r,
                       const struct asked *a, strata_error *err)
{
    struct plan *other = NULL;
    strata_error none = {0};
    int status = solve_without(&other, a, r->step.tensor, &none);
    if (status == STRATA_EPLAN) { /* the search was cut before it found one */
        r->asked = x->exact = false;
        return STRATA_OK;
    }
    if (status != STRATA_OK)
        return error_set(err, status, "explaining the plan: %s", none.message);
    if (!other)
        return STRATA_OK;
    r->avoidable = true;
    r->penalty = other->cost - a->cost;
    r->reformats = (int64_t)other->n_reformats - (int64_t)a->plan->n_reformats;
    x->exact &= other->proved;
    status = find_changes(r, a, other, err);
    plan_free(other);
    return status;
}

/* ---- what would remove it --------------------------------------------------------- */

static int64_t least_cost(const struct plan_op *o)
{
    int64_t least = PLAN_INFINITE;
    for (size_t k = 0; k < o->n_choices; k++)
        least = o->choices[k].cost < least ? o->choices[k].cost : least;
    return least;
}

/* The operation's present choice with a port, or all, in another label. Ports past the
 * last distinct one share its entry. */
static struct plan_choice hypothetical(const struct asked *a, int op, int port,
                                       const struct explain_remedy *try)
{
    struct plan_choice c = *plan_chosen(a->p, a->plan->choices, op);
    int at = port < PLAN_MAX_PORTS ? port : PLAN_MAX_PORTS - 1;
    c.cost = least_cost(&a->p->ops[op]);
    if (try->all_ports || try->output)
        for (int i = 0; i < PLAN_MAX_PORTS; i++)
            if (try->all_ports || i == at)
                c.out[i] = (uint8_t)try->label;
    if (try->all_ports || !try->output)
        for (int i = 0; i < PLAN_MAX_PORTS; i++)
            if (try->all_ports || i == at)
                c.in[i] = (uint8_t)try->label;
    return c;
}

/* The readers that want the step's label; one that reads at several ports gets one
 * choice with all of them changed. */
static int give_readers(struct question *q, struct explain_remedy *try,
                        const struct asked *a, const struct plan_step *step,
                        strata_error *err)
{
    const struct plan_problem *p = a->p;
    const struct plan_tensor *t = &p->tensors[step->tensor];
    int status = STRATA_OK;
    for (size_t i = 0; i < t->n_readers && status == STRATA_OK; i++) {
        const struct plan_reader *r = &t->readers[i];
        if (plan_in_label(plan_chosen(p, a->plan->choices, r->op), r->port) != step->to)
            continue;
        struct plan_choice c = hypothetical(a, r->op, r->port, try);
        if (q->p.ops[r->op].n_choices > p->ops[r->op].n_choices) {
            int at = r->port < PLAN_MAX_PORTS ? r->port : PLAN_MAX_PORTS - 1;
            q->p.ops[r->op].choices[p->ops[r->op].n_choices].in[at] = (uint8_t)try->label;
            continue;
        }
        try->op = try->n_ops++ ? try->op : r->op;
        try->cost += c.cost;
        status = give_choice(q, r->op, &c, err);
    }
    return status;
}

static int give_producer(struct question *q, struct explain_remedy *try,
                         const struct asked *a, const struct plan_step *step,
                         strata_error *err)
{
    const struct plan_tensor *t = &a->p->tensors[step->tensor];
    struct plan_choice c = hypothetical(a, t->producer, t->port, try);
    try->op = t->producer;
    try->n_ops = 1;
    try->cost = c.cost;
    return give_choice(q, t->producer, &c, err);
}

static int ask_remedy(struct explain *x, struct explain_reformat *r,
                      struct explain_remedy try, const struct asked *a, strata_error *err)
{
    struct question q;
    struct plan *other = NULL;
    int status = question_open(&q, a->p, err);
    if (status == STRATA_OK)
        status = (try.output ? give_producer : give_readers)(&q, &try, a, &r->step, err);
    if (status == STRATA_OK && try.n_ops > 0)
        status = plan_solve(&other, &q.p, &a->options, err);
    if (status == STRATA_OK && other) {
        try.gain = a->cost - other->cost;
        try.reformats = (int64_t)a->plan->n_reformats - (int64_t)other->n_reformats;
        x->exact &= other->proved;
        if (try.gain > r->remedy.gain)
            r->remedy = try;
    }
    plan_free(other);
    question_close(&q);
    return status;
}

static int ask_remedies(struct explain *x, struct explain_reformat *r,
                        const struct asked *a, strata_error *err)
{
    const struct plan_tensor *t = &a->p->tensors[r->step.tensor];
    const struct plan_choice *c = plan_chosen(a->p, a->plan->choices, t->producer);
    int status = STRATA_OK;
    for (int i = 0; i < 4 && status == STRATA_OK; i++) {
        struct explain_remedy try = {.op = -1, .output = i & 1, .all_ports = i & 2};
        try.label = try.output ? r->step.to : plan_out_label(c, t->port);
        status = ask_remedy(x, r, try, a, err);
    }
    return status;
}

/* ---- all of it -------------------------------------------------------------------- */

static uint64_t offered(const struct plan_op *o, int port, bool output)
{
    uint64_t labels = 0;
    for (size_t k = 0; k < o->n_choices; k++)
        labels |= UINT64_C(1) << (output ? plan_out_label(&o->choices[k], port)
                                         : plan_in_label(&o->choices[k], port));
    return labels;
}

/* below: the labels that the step makes or that are made of it. */
static void find_ends(struct explain_reformat *r, const struct plan_problem *p,
                      const struct plan *plan, uint64_t below)
{
    const struct plan_tensor *t = &p->tensors[r->step.tensor];
    r->written = offered(&p->ops[t->producer], t->port, true);
    r->read = UINT64_MAX;
    for (size_t i = 0; i < t->n_readers; i++) {
        const struct plan_reader *reader = &t->readers[i];
        const struct plan_choice *c = plan_chosen(p, plan->choices, reader->op);
        if (below >> plan_in_label(c, reader->port) & 1)
            r->read &= offered(&p->ops[reader->op], reader->port, false);
    }
}

/* One whose place in the order of costs is not the first, or is not known, is compared
 * with the best that can be found. */
static int open_questions(struct asked *a, struct explain *x, strata_error *err)
{
    struct plan *best = NULL;
    a->cost = a->plan->cost;
    x->exact = a->plan->proved;
    if (a->options.max_nodes == 0)
        a->options.max_nodes = MAX_NODES;
    if (a->plan->proved)
        return STRATA_OK;
    int status = plan_solve(&best, a->p, &a->options, err);
    if (status == STRATA_OK) {
        a->cost = best->cost;
        x->exact = best->proved;
    }
    plan_free(best);
    return status;
}

static int by_cost(const void *a, const void *b)
{
    const struct explain_reformat *x = *(struct explain_reformat *const *)a;
    const struct explain_reformat *y = *(struct explain_reformat *const *)b;
    if (x->step.cost != y->step.cost)
        return x->step.cost > y->step.cost ? -1 : 1;
    return (x > y) - (x < y);
}

static int ask(struct explain *x, const struct asked *a, strata_error *err)
{
    size_t n = x->n_reformats, most = ASKED_OPERATIONS / (a->p->n_ops + 1);
    struct explain_reformat **order =
        zalloc(n, sizeof(struct explain_reformat *), "an explanation", err);
    int status = order ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; order && i < n; i++)
        order[i] = &x->reformats[i];
    if (order)
        qsort(order, n, sizeof *order, by_cost);
    most = most < 1 ? 1 : most > MAX_ASKED ? MAX_ASKED : most;
    for (size_t i = 0; i < n && i < most && status == STRATA_OK; i++) {
        order[i]->asked = true;
        status = ask_without(x, order[i], a, err);
        if (status == STRATA_OK)
            status = ask_remedies(x, order[i], a, err);
    }
    free(order);
    return status;
}

int explain_plan(struct explain **out, const struct plan_problem *p,
                 const struct plan_options *options, const struct plan *plan,
                 strata_error *err)
{
    struct asked a = {.p = p, .plan = plan};
    struct explain *x = zalloc(1, sizeof *x, "an explanation", err);
    if (!x)
        return STRATA_ENOMEM;
    x->reformats = zalloc(plan->n_steps, sizeof *x->reformats, "an explanation", err);
    x->first = zalloc(p->n_tensors, sizeof *x->first, "an explanation", err);
    if (!x->reformats || !x->first) {
        explain_free(x);
        return STRATA_ENOMEM;
    }
    memset(x->first, -1, p->n_tensors * sizeof *x->first);
    if (options)
        a.options = *options;
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].cost == 0)
            continue;
        int *first = &x->first[plan->steps[i].tensor];
        *first = *first < 0 ? (int)x->n_reformats : *first;
        struct explain_reformat *r = &x->reformats[x->n_reformats++];
        r->step = plan->steps[i];
        r->reason = plan_step_reason(p, plan, &plan->steps[i]);
        r->remedy.op = -1;
        find_ends(r, p, plan, plan_step_labels(plan, &plan->steps[i]));
    }
    int status = open_questions(&a, x, err);
    if (status == STRATA_OK)
        status = ask(x, &a, err);
    if (status == STRATA_OK)
        *out = x;
    else
        explain_free(x);
    return status;
}

void explain_free(struct explain *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->n_reformats; i++)
        free(x->reformats[i].changes);
    free(x->reformats);
    free(x->first);
    free(x);
}

const struct explain_reformat *explain_find(const struct explain *x, int tensor, int to)
{
    if (!x || tensor < 0 || x->first[tensor] < 0)
        return NULL;
    for (size_t i = (size_t)x->first[tensor];
         i < x->n_reformats && x->reformats[i].step.tensor == tensor; i++)
        if (x->reformats[i].step.to == to)
            return &x->reformats[i];
    return NULL;
}
