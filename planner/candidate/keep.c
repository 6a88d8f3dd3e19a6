/* SPDX-License-Identifier: Apache-2.0
 *
 * The model's list of candidates.
 */
#include "planner/planner.h"

int planner_keep_candidate(struct planner_model *m, struct planner_candidate *c,
                           const char *reason, strata_error *err)
{
    int status = grow(&m->candidates, &m->candidates_capacity, m->n_candidates,
                      sizeof *m->candidates, err);
    if (status != STRATA_OK)
        return status;
    if (reason && !(c->reason = duplicate(reason, err)))
        return STRATA_ENOMEM;
    m->candidates[m->n_candidates++] = *c;
    return STRATA_OK;
}
