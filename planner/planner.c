/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning from beginning to end: nodes, model, then a plan that is searched, given, or
 * on record.
 */
#include "planner/planner.h"

#include <inttypes.h>
#include <stdlib.h>

#include "registry/math/mode.h"
#include "core/team.h"
#include "planner/explain/explain.h"
#include "planner/merge/merge.h"
#include "planner/mixed/mixed.h"
#include "planner/pack.h"
#include "planner/record.h"
#include "planner/threads.h"

/* A search that was cut is no secret. */
static void tell_gap(const struct planner *planner)
{
    const struct plan *p = planner->plan;
    if (p->proved || planner->network->build.objective == OBJECTIVE_MEMORY)
        return;
    if (planner->plan_options.objective == PLAN_LEAST_TIME)
        log_line(
            STRATA_LOG_WARNING,
            "the plan may take up to %.2f %% more than the best one: its search ended "
            "after %" PRIu64 " nodes; build.plan_nodes allows more",
            100 * plan_gap(p), p->nodes);
    else
        log_line(STRATA_LOG_WARNING,
                 "a plan with fewer reformats may exist: the search ended after %" PRIu64
                 " nodes; build.plan_nodes allows more",
                 p->nodes);
}

static int solve(struct planner *planner, struct cost_source *costs, strata_error *err)
{
    static const struct plan_ban no_reformat = {PLAN_BAN_CONVERSION, -1, -1, -1, -1};
    const struct build_options *b = &planner->network->build;
    struct plan_options *how = &planner->plan_options;
    if (b->objective == OBJECTIVE_REFORMATS)
        how->objective = PLAN_FEWEST_REFORMATS;
    how->bans = &no_reformat;
    how->n_bans = b->no_reformat;
    how->max_nodes = (uint64_t)b->plan_nodes;
    int status = cost_plan(planner, costs, err);
    if (status == STRATA_OK)
        status = planner_trade_time(planner, err);
    if (status == STRATA_OK)
        tell_gap(planner);
    return status == STRATA_EPLAN ? explain_conflict(planner, how, err) : status;
}

int planner_open(struct planner **out, const strata_network *network,
                 const struct planner_device *device, strata_error *err)
{
    const struct device_properties *d = &device->properties;
    struct planner *planner = *out = zalloc(1, sizeof *planner, "a planner", err);
    if (!planner)
        return STRATA_ENOMEM;
    planner->network = network_retain(network);
    planner->device = *device;
    planner->math = math_join(device->math, network->build.math);
    if (d->kind == STRATA_HOST) {
        planner->threads =
            device->threads ? device->threads : threads_for(network, d->threads);
        host_ceilings(&planner->device.properties, planner->threads);
    }
    planner->cold = cost_is_cold(planner);
    cost_table_init(&planner->known, d->build);
    pack_offer();
    return STRATA_OK;
}

/* At most one of plan and the planner's record; neither: it is searched for. */
static int make(struct planner *planner, const struct plan *plan,
                struct cost_source *costs, strata_error *err)
{
    int status;
    if ((status = planner_make_nodes(planner, err)) != STRATA_OK ||
        (status = planner_make_model(planner, err)) != STRATA_OK)
        return status;
    status = planner->record ? planner_restore(planner, err)
             : plan ? plan_copy(&planner->plan, &planner->model->problem, plan, err)
                    : solve(planner, costs, err);
    return status == STRATA_OK && !planner->device.quiet
               ? planner_note_fusions(planner, err)
               : status;
}

/* Takes a planner that is open; impls count with its threads meanwhile. */
static int finish(struct planner **out, struct planner *planner, const struct plan *plan,
                  struct cost_source *costs, strata_error *err)
{
    const int before = threads_set(planner->threads);
    int status = make(planner, plan, costs, err);
    threads_set(before);
    if (status != STRATA_OK) {
        planner_free(planner);
        return status;
    }
    *out = planner;
    return STRATA_OK;
}

int planner_make(struct planner **out, const strata_network *network,
                 const struct planner_device *device, struct cost_source *costs,
                 strata_error *err)
{
    struct planner *planner;
    *out = NULL;
    int status = planner_open(&planner, network, device, err);
    return status == STRATA_OK ? finish(out, planner, NULL, costs, err) : status;
}

int planner_make_as(struct planner **out, const strata_network *network,
                    const struct planner_device *device, const struct plan *plan,
                    strata_error *err)
{
    struct planner *planner;
    *out = NULL;
    int status = planner_open(&planner, network, device, err);
    return status == STRATA_OK ? finish(out, planner, plan, NULL, err) : status;
}

int planner_make_recorded(struct planner **out, const strata_network *network,
                          const struct planner_device *device, struct record *record,
                          strata_error *err)
{
    struct planner *planner;
    *out = NULL;
    int status = planner_open(&planner, network, device, err);
    if (status != STRATA_OK) {
        record_free(record);
        return status;
    }
    planner->record = record;
    planner->math = device->math;
    status =
        planner_merges_read(&planner->merges, json_object_get(record->json, "merges"),
                            planner_unmerged(planner), err);
    if (status == STRATA_OK)
        status = planner_mixes_read(&planner->mixes,
                                    json_object_get(record->json, "quantised"),
                                    planner_unmixed(planner), err);
    if (status != STRATA_OK) {
        planner_free(planner);
        return status;
    }
    return finish(out, planner, NULL, NULL, err);
}

void planner_free(struct planner *planner)
{
    if (!planner)
        return;
    planner_free_nodes(planner);
    planner_free_model(planner->model);
    plan_free(planner->plan);
    cost_table_free(&planner->known);
    record_free(planner->record);
    record_free(planner->guide);
    planner_free_merges(planner->merges);
    planner_free_mixes(planner->mixes);
    free(planner->scale);
    free(planner->bans);
    planner_free_left(planner);
    strata_network_destroy(planner->network);
    free(planner);
}
