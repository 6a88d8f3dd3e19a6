/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan's certificate, written, read back and checked by the checker, which shares
 * nothing with the solver.
 */
#include "tools/explain/explain.h"
#include "planner/certificate/certificate.h"

#include <inttypes.h>
#include <stdlib.h>

static int check_as_text(const strata_engine *e, const struct plan_certificate *made,
                         strata_error *err)
{
    const struct planner *planner = e->planner;
    struct plan_certificate *c = NULL;
    char *text = NULL;
    int status = plan_certificate_write(&text, made, err);
    if (status == STRATA_OK)
        status = plan_certificate_read(&c, text, err);
    if (status == STRATA_OK)
        status = plan_check(&planner->model->problem, &planner->plan_options, c, err);
    plan_certificate_free(c);
    free(text);
    return status;
}

int explain_print_verify(const strata_engine *e, strata_error *err)
{
    const struct planner *planner = e->planner;
    const struct plan *plan = planner->plan;
    struct plan_certificate *c = NULL;
    if (!plan->proved) {
        tool_print("not proved: cost %" PRId64 ", lower bound %" PRId64 ", gap %.2f %%\n",
                   plan->objective, plan->bound, 100 * plan_gap(plan));
        return STRATA_OK;
    }
    int status =
        plan_certify(&c, &planner->model->problem, &planner->plan_options, plan, err);
    if (status == STRATA_OK)
        status = check_as_text(e, c, err);
    if (status == STRATA_OK)
        tool_print("proved: lower bound = cost = %" PRId64
                   " (%.1f us); %zu words of proof "
                   "checked\n",
                   c->objective, explain_microseconds(plan->cost), c->n_proof);
    else
        error_prefix(err, "the plan is not proved");
    plan_certificate_free(c);
    return status;
}
