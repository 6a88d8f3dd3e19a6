/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes a problem infeasible, by solving less and less of it.
 */
#include "planner/solver/private.h"

#include <stdlib.h>

struct filter {
    const struct plan_problem *p;
    const struct plan_options *options;
    bool *member;
    struct plan_ban *bans;
    bool *kept; /* of the bans */
    strata_error *err;
};

static int is_feasible(const struct filter *f, bool *feasible)
{
    struct plan_options o = {.bans = f->bans};
    struct plan_model m;
    for (size_t i = 0; f->options && i < f->options->n_bans; i++)
        if (f->kept[i])
            f->bans[o.n_bans++] = f->options->bans[i];
    int status = plan_model_open(&m, f->p, &o, f->err);
    m.member = f->member;
    if (status == STRATA_OK)
        status = plan_is_feasible(feasible, &m, f->err);
    plan_model_close(&m);
    return status;
}

/* Deletion filter: what can go while no plan exists, goes. */
static int delete_from(const struct filter *f, bool *kept, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool feasible;
        kept[i] = false;
        int status = is_feasible(f, &feasible);
        if (status != STRATA_OK)
            return status;
        kept[i] = feasible;
    }
    return STRATA_OK;
}

static int run_filter(const struct filter *f, size_t n_bans)
{
    bool feasible;
    int status;
    for (size_t op = 0; op < f->p->n_ops; op++)
        f->member[op] = true;
    for (size_t i = 0; i < n_bans; i++)
        f->kept[i] = true;
    if ((status = is_feasible(f, &feasible)) != STRATA_OK)
        return status;
    if (feasible)
        return error_set(f->err, STRATA_EINVAL, "the problem has a plan: no conflict");
    if ((status = delete_from(f, f->member, f->p->n_ops)) != STRATA_OK)
        return status;
    return delete_from(f, f->kept, n_bans);
}

int plan_find_conflict(struct plan_conflict *out, const struct plan_problem *p,
                       const struct plan_options *options, strata_error *err)
{
    struct filter f = {.p = p, .options = options, .err = err};
    size_t n_bans = options ? options->n_bans : 0;
    int status = STRATA_ENOMEM;
    *out = (struct plan_conflict){0};
    f.member = zalloc(p->n_ops, sizeof *f.member, "a conflict", err);
    f.kept = zalloc(n_bans, sizeof *f.kept, "a conflict", err);
    f.bans = zalloc(n_bans, sizeof *f.bans, "a conflict", err);
    out->ops = zalloc(p->n_ops, sizeof *out->ops, "a conflict", err);
    out->bans = zalloc(n_bans, sizeof *out->bans, "a conflict", err);
    if (!f.member || !f.kept || !f.bans || !out->ops || !out->bans)
        goto done;
    if ((status = run_filter(&f, n_bans)) != STRATA_OK)
        goto done;
    for (size_t op = 0; op < p->n_ops; op++)
        if (f.member[op])
            out->ops[out->n_ops++] = (int)op;
    for (size_t i = 0; i < n_bans; i++)
        if (f.kept[i])
            out->bans[out->n_bans++] = i;
done:
    if (status != STRATA_OK)
        plan_conflict_free(out);
    free(f.member);
    free(f.kept);
    free(f.bans);
    return status;
}

void plan_conflict_free(struct plan_conflict *c)
{
    free(c->ops);
    free(c->bans);
    *c = (struct plan_conflict){0};
}
