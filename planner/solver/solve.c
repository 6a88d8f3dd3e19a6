/* SPDX-License-Identifier: Apache-2.0
 *
 * From a problem to a plan, or to what makes it infeasible.
 */
#include "planner/solver/private.h"

#include <stdlib.h>
#include <string.h>

/* The tensors between the operations of a conflict, for the message. */
static void name_tensors(const struct plan_problem *p, const struct plan_conflict *c,
                         strata_error *err)
{
    for (size_t i = 0; i < p->n_tensors; i++) {
        bool made = false, read = false;
        for (size_t k = 0; k < c->n_ops; k++) {
            made |= p->tensors[i].producer == c->ops[k];
            for (size_t r = 0; r < p->tensors[i].n_readers; r++)
                read |= p->tensors[i].readers[r].op == c->ops[k];
        }
        if (made && read)
            error_append(err, " '%s'", p->tensors[i].name);
    }
}

static int explain_conflict(const struct plan_problem *p,
                            const struct plan_options *options, strata_error *err)
{
    struct plan_conflict c = {0};
    int status = plan_find_conflict(&c, p, options, err);
    if (status == STRATA_OK) {
        status = error_set(err, STRATA_EPLAN, "no formats fit together for");
        for (size_t i = 0; i < c.n_ops; i++)
            error_append(err, "%s '%s'", i ? "," : "", p->ops[c.ops[i]].name);
        error_append(err, " at tensor");
        name_tensors(p, &c, err);
        if (c.n_bans)
            error_append(err, ", with %zu of the constraints given", c.n_bans);
        error_append(err, "; allow more formats for one of them");
    }
    plan_conflict_free(&c);
    return status;
}

int plan_solve(struct plan **out, const struct plan_problem *p,
               const struct plan_options *options, strata_error *err)
{
    struct plan_model m;
    struct plan_run r = {0};
    int status = plan_model_open(&m, p, options, err);
    if (status == STRATA_OK)
        status = plan_run_search(&r, &m, options, PLAN_INFINITE, err);
    if (status == STRATA_OK && r.found)
        status = plan_from_run(out, &m, &r, err);
    else if (status == STRATA_OK && r.proved)
        status = explain_conflict(p, options, err);
    else if (status == STRATA_OK)
        status = error_set(err, STRATA_EPLAN,
                           "the planner's limit was spent before it found any plan; "
                           "allow more nodes or seconds");
    free(r.choices);
    plan_model_close(&m);
    return status;
}

int plan_of_choices(struct plan **out, const struct plan_problem *p,
                    const struct plan_options *options, const size_t *choices,
                    int64_t bound, strata_error *err)
{
    struct plan_model m;
    struct plan_run r = {.found = true, .bound = bound};
    int status = plan_model_open(&m, p, options, err);
    r.choices = zalloc(p->n_ops, sizeof *choices, "a plan", err);
    if (status == STRATA_OK && !r.choices)
        status = STRATA_ENOMEM;
    if (status != STRATA_OK)
        goto done;
    memcpy(r.choices, choices, p->n_ops * sizeof *choices);
    r.objective = plan_model_cost(&m, choices);
    r.proved = r.objective == bound;
    status = r.objective < PLAN_INFINITE
                 ? plan_from_run(out, &m, &r, err)
                 : error_set(err, STRATA_EINVAL, "these choices do not fit together");
done:
    free(r.choices);
    plan_model_close(&m);
    return status;
}
