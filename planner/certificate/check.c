/* SPDX-License-Identifier: Apache-2.0
 *
 * The independent checker of plan certificates. It shares nothing with the solver but the
 * structs of problem.h: this file adds up the plan by the prices of price.c, state.c
 * builds the pairwise problem with trees grown one label at a time, proof.c follows the
 * proof.
 */
#include "planner/certificate/check.h"

#include <stdlib.h>

/* Above all costs that assignments can differ by. */
static int64_t weight_of_reformat(const struct plan_problem *p)
{
    int64_t total = 1;
    for (size_t op = 0; op < p->n_ops; op++) {
        int64_t most = 0;
        for (size_t c = 0; c < p->ops[op].n_choices; c++)
            if (p->ops[op].choices[c].cost < PLAN_INFINITE &&
                p->ops[op].choices[c].cost > most)
                most = p->ops[op].choices[c].cost;
        total = plus(total, most);
    }
    for (size_t t = 0; t < p->n_tensors; t++) {
        int64_t most = 0;
        for (int e = 0; e < p->n_labels * p->n_labels; e++)
            if (p->tensors[t].conversion[e] < PLAN_INFINITE &&
                p->tensors[t].conversion[e] > most)
                most = p->tensors[t].conversion[e];
        for (int l = 0; l < p->n_labels; l++)
            total = plus(total, most);
    }
    return total;
}

/* ---- the plan ---------------------------------------------------------------------- */

static int check_tree(const struct checker *k, size_t *at, int tensor, int64_t *total)
{
    const struct plan_tensor *t = &k->p->tensors[tensor];
    const struct plan_choice *c =
        &k->p->ops[t->producer].choices[k->c->choices[t->producer]];
    int root = plan_out_label(c, t->port);
    uint64_t made = UINT64_C(1) << root, wanted = 0;
    for (size_t r = 0; r < t->n_readers; r++) {
        int op = t->readers[r].op;
        const struct plan_choice *chosen = &k->p->ops[op].choices[k->c->choices[op]];
        wanted |= UINT64_C(1) << plan_in_label(chosen, t->readers[r].port);
    }
    for (; *at < k->c->n_steps && k->c->steps[*at].tensor == tensor; ++*at) {
        const struct plan_step *s = &k->c->steps[*at];
        if (s->from < 0 || s->to < 0 || s->from >= k->p->n_labels ||
            s->to >= k->p->n_labels || !(made >> s->from & 1) || made >> s->to & 1 ||
            !check_keeps(k->p, root, s->from, s->to) ||
            s->cost != t->conversion[s->from * k->p->n_labels + s->to])
            return check_fail(k, "a step does not fit its tree");
        made |= UINT64_C(1) << s->to;
        *total = plus(*total, check_conversion(k, tensor, s->from, s->to));
    }
    for (int l = 0; l < k->p->n_labels; l++)
        if (k->p->labels[l].stage == PLAN_NONE && check_conversion(k, tensor, root, l) == 0)
            made |= UINT64_C(1) << l; /* without a step */
    return wanted & ~made ? check_fail(k, "a reader lacks its format") : STRATA_OK;
}

static int check_plan(const struct checker *k)
{
    int64_t total = 0;
    size_t at = 0;
    if (k->c->n_choices != k->p->n_ops)
        return check_fail(k, "it has another number of operations");
    for (size_t op = 0; op < k->p->n_ops; op++) {
        if (k->c->choices[op] >= k->p->ops[op].n_choices)
            return check_fail(k, "a choice does not exist");
        total = plus(total, check_choice(k, (int)op, k->c->choices[op]));
    }
    for (size_t t = 0; t < k->p->n_tensors; t++) {
        int status = check_tree(k, &at, (int)t, &total);
        if (status != STRATA_OK)
            return status;
    }
    if (at != k->c->n_steps)
        return check_fail(k, "a step belongs to no tensor in order");
    return total >= DEAD || total != k->c->objective
               ? check_fail(k, "the plan's cost differs")
               : STRATA_OK;
}

int plan_check(const struct plan_problem *p, const struct plan_options *options,
               const struct plan_certificate *c, strata_error *err)
{
    struct checker k = {.p = p, .o = options, .c = c, .err = err};
    int status;
    if (options && options->objective == PLAN_FEWEST_REFORMATS)
        k.penalty = weight_of_reformat(p);
    if ((status = check_plan(&k)) != STRATA_OK || (status = check_fits(&k)) != STRATA_OK)
        return status;
    status = grow(&k.stack, &k.capacity, 0, sizeof *k.stack, err);
    if (status != STRATA_OK)
        return status;
    k.depth = 1;
    status = check_build(&k, &k.stack[0]) ? check_proof(&k)
                                          : error_no_memory(err, 0, "the checker");
    while (k.depth > 0)
        state_free(&k.stack[--k.depth]);
    free(k.stack);
    return status;
}
