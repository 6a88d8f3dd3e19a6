/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs in place of an engine that was just built, where its costs are measured: of each
 * of its plans, in a context of its own, on random inputs. How a plan is timed is in
 * beginnings.c.
 */
#include "engine/context/context.h"

#include "planner/planner.h"

#define BEGINNINGS_MS 800.0 /* for all sizes together */

/* Where what a plan's steps cost was measured for this build, or plans were tried. */
static bool is_wanted(const strata_engine *e)
{
    const struct build_options *b = &network_loaded(e->network)->build;
    return e->planner->costs.kind == COSTS_MEASURE &&
           (b->costs.kind == COSTS_MEASURE || build_tries_plans(b)) &&
           e->handle->device->ops->capture_begin && e->execution->n_steps > 0;
}

/* By their impls' flags. */
static bool is_capturable(const strata_context *c)
{
    bool captured = c->use_graph;
    for (size_t i = 0; i < c->execution->n_nodes; i++)
        captured &= !c->nodes[i].uncaptured;
    for (size_t i = 0; i < c->n_smaller; i++)
        captured &= is_capturable(c->smaller[i]);
    return captured;
}

static int cost_plans(strata_engine *e, strata_context *c, strata_error *err)
{
    const double budget_ms = BEGINNINGS_MS / (double)(1 + e->n_smaller);
    int status = is_capturable(c) ? context_prepare_times(c, err) : STRATA_EUNSUPPORTED;
    if (status == STRATA_OK)
        status = context_cost_in_place(c, e->execution, budget_ms, err);
    for (size_t i = 0; i < e->n_smaller && status == STRATA_OK; i++)
        status = context_cost_in_place(c->smaller[i], e->smaller[i]->execution, budget_ms,
                                       err);
    return status;
}

int engine_cost_in_place(strata_engine *e, strata_error *err)
{
    strata_context *c = NULL;
    strata_error why;
    error_clear(&why);
    if (!is_wanted(e))
        return STRATA_OK;
    int status = strata_context_create(&c, e, e->handle, &why);
    if (status == STRATA_OK)
        status = cost_plans(e, c, &why);
    strata_context_destroy(c);
    if (status == STRATA_EDEVICELOST)
        return error_set(err, status, "%s", why.message);
    if (status != STRATA_OK)
        log_line(STRATA_LOG_INFO, "%s: no costs in place: %s", e->network->path,
                 why.message[0] ? why.message : "its runs are not one graph");
    return STRATA_OK;
}
