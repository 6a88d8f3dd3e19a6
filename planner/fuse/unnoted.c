/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of layers that might be fused before a plan is: kept, so that what
 * another plan does with them can be noted in its place.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "planner/planner.h"

static int copy(struct planner_fusion *to, const struct planner_fusion *from, size_t n,
                strata_error *err)
{
    for (size_t i = 0; i < n; i++) {
        free(to[i].reason);
        to[i] = from[i];
        to[i].reason = NULL;
        if (from[i].reason && !(to[i].reason = duplicate(from[i].reason, err)))
            return STRATA_ENOMEM;
    }
    return STRATA_OK;
}

int planner_unnote_fusions(struct planner *planner, strata_error *err)
{
    const size_t n = planner->n_fusions;
    if (planner->unnoted)
        return copy(planner->fusions, planner->unnoted, n, err);
    planner->unnoted = zalloc(n, sizeof *planner->unnoted, "fusions", err);
    return planner->unnoted ? copy(planner->unnoted, planner->fusions, n, err)
                            : STRATA_ENOMEM;
}

void planner_free_fusions(struct planner *planner)
{
    for (size_t i = 0; i < planner->n_fusions; i++) {
        if (planner->fusions)
            free(planner->fusions[i].reason);
        if (planner->unnoted)
            free(planner->unnoted[i].reason);
    }
    free(planner->fusions);
    free(planner->unnoted);
}
