/* SPDX-License-Identifier: Apache-2.0
 *
 * Building an engine: nodes, model, plan, schedule, then weights and impls' setup.
 */
#include "engine/file/stored.h"
#include "planner/explain/explain.h"
#include "core/team.h"
#include "planner/threads.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void engine_node_tensors(const strata_engine *e, const struct engine_node *n,
                         strata_tensor *in, strata_tensor *out)
{
    for (int side = 0; side < 2; side++) {
        int count = side ? n->n_out : n->n_in;
        for (int i = 0; i < count; i++) {
            const struct engine_value *v =
                &e->values[side ? n->out_values[i] : n->in_values[i]];
            tensor_view(side ? &out[i] : &in[i], &v->desc, UINT64_C(1) << v->format,
                        v->pad, NULL);
        }
    }
}

void engine_residual(const strata_engine *e, const struct engine_node *n,
                     strata_tensor *out)
{
    if (n->residual_value < 0)
        return;
    const struct engine_value *v = &e->values[n->residual_value];
    tensor_view(out, &v->desc, UINT64_C(1) << v->format, v->pad, NULL);
}

/* A search that was cut is no secret. */
static void tell_gap(const strata_engine *e)
{
    const struct plan *p = e->plan;
    if (p->proved || e->network->build.objective == OBJECTIVE_MEMORY)
        return;
    if (e->plan_options.objective == PLAN_LEAST_TIME)
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

static int solve(strata_engine *e, strata_error *err)
{
    static const struct plan_ban no_reformat = {PLAN_BAN_CONVERSION, -1, -1, -1, -1};
    if (e->network->build.objective == OBJECTIVE_REFORMATS)
        e->plan_options.objective = PLAN_FEWEST_REFORMATS;
    e->plan_options.bans = &no_reformat;
    e->plan_options.n_bans = e->network->build.no_reformat;
    e->plan_options.max_nodes = (uint64_t)e->network->build.plan_nodes;
    int status = cost_plan(e, &e->plan_options, err);
    if (status == STRATA_OK)
        status = engine_trade_time(e, err);
    if (status == STRATA_OK)
        tell_gap(e);
    return status == STRATA_EPLAN ? explain_conflict(e, &e->plan_options, err) : status;
}

/* plan: of the same network on the same handle, or NULL to make one. */
static int build(strata_engine *e, const struct plan *plan, strata_error *err)
{
    int status;
    if ((status = engine_make_nodes(e, err)) != STRATA_OK)
        return status;
    if ((status = engine_make_model(e, err)) != STRATA_OK)
        return status;
    status = e->stored ? engine_restore_plan(e, err)
             : plan    ? plan_copy(&e->plan, &e->model->problem, plan, err)
                       : solve(e, err);
    if (status != STRATA_OK)
        return status;
    if ((status = engine_make_schedule(e, err)) != STRATA_OK)
        return status;
    return engine_setup_nodes(e, err);
}

static int end_team_on_stream(void *payload, void *stream, strata_error *err)
{
    (void)payload;
    (void)stream;
    (void)err;
    team_end();
    return STRATA_OK;
}

/* Contexts may well be on other streams, whose teams would suffer from this one's. */
static void end_team(const strata_engine *e)
{
    const struct device_ops *ops = e->handle->device->ops;
    if (e->handle->properties.kind == STRATA_HOST &&
        ops->submit(e->handle->stream, end_team_on_stream, NULL, 0, NULL) == STRATA_OK)
        ops->stream_synchronize(e->handle->stream, NULL);
}

/* At most one of plan and stored; stored is taken over. */
static int make_engine(strata_engine **out, strata_handle *handle,
                       const strata_network *network, const struct plan *plan,
                       struct engine_stored *stored, const strata_engine *lender,
                       strata_error *err)
{
    int status = STRATA_ENOMEM;
    *out = NULL;
    engine_offer_packs();
    strata_engine *e = zalloc(1, sizeof *e, "an engine", err);
    if (!e) {
        engine_stored_free(stored);
        return status;
    }
    e->network = network_retain(network);
    e->handle = handle;
    e->lender = lender;
    e->stored = stored;
    cost_table_init(&e->known, handle->properties.build);
    e->math = handle->math == STRATA_MATH_TENSOR_OP ? handle->math : network->build.math;
    e->math = stored ? stored->math : e->math;
    e->threads = handle->properties.kind == STRATA_HOST
                     ? threads_for(network, handle->properties.threads)
                     : 0;
    int before = threads_set(e->threads); /* what accept and workspace count with */
    status = build(e, plan, err);
    if (status == STRATA_OK && !lender)
        status = engine_add_batches(e, err);
    threads_set(before);
    if (!lender)
        end_team(e);
    if (status != STRATA_OK) {
        error_prefix(err, "%s", network->path);
        goto done;
    }
    *out = e;
    e = NULL;
done:
    strata_engine_destroy(e);
    return status;
}

int engine_build_plan(strata_engine **out, strata_handle *handle,
                      const strata_network *network, const struct plan *plan,
                      strata_error *err)
{
    error_clear(err);
    if (!out || !handle || !network)
        return error_set(err, STRATA_EINVAL, "an engine needs out, handle and network");
    return make_engine(out, handle, network, plan, NULL, NULL, err);
}

int engine_build_lent(strata_engine **out, strata_handle *handle,
                      const strata_network *network, struct engine_stored *stored,
                      const strata_engine *lender, strata_error *err)
{
    return make_engine(out, handle, network, NULL, stored, lender, err);
}

int engine_build_stored(strata_engine **out, strata_handle *handle,
                        const strata_network *network, struct engine_stored *stored,
                        strata_error *err)
{
    return make_engine(out, handle, network, NULL, stored, NULL, err);
}

int strata_engine_build(strata_engine **out, strata_handle *handle,
                        const strata_network *network, strata_error *err)
{
    return engine_build_plan(out, handle, network, NULL, err);
}

void strata_engine_destroy(strata_engine *e)
{
    if (!e)
        return;
    engine_free_batches(e);
    for (size_t i = 0; i < e->n_nodes; i++)
        engine_release_node(e, &e->nodes[i]);
    engine_free_nodes(e);
    engine_free_model(e->model);
    plan_free(e->plan);
    free(e->values);
    free(e->steps);
    free(e->bindings);
    cost_table_free(&e->known);
    strata_network_destroy(e->network);
    engine_stored_free(e->stored); /* after the network, whose weights are in the file */
    free(e);
}

int strata_engine_bindings(const strata_engine *e)
{
    return (int)e->n_bindings;
}

int strata_engine_binding(const strata_engine *e, int index, strata_binding *out,
                          strata_error *err)
{
    error_clear(err);
    if (index < 0 || index >= (int)e->n_bindings)
        return error_set(err, STRATA_EINVAL, "binding %d: there are %zu", index,
                         e->n_bindings);
    const struct engine_binding *b = &e->bindings[index];
    const struct engine_value *v = &e->values[b->value];
    *out = (strata_binding){.name = b->name,
                            .is_input = b->is_input,
                            .desc = v->desc,
                            .format =
                                format_mask_name(UINT64_C(1) << v->format, v->desc.rank),
                            .bytes = v->bytes};
    return STRATA_OK;
}

int strata_engine_find(const strata_engine *e, const char *name)
{
    for (size_t i = 0; i < e->n_bindings && name; i++)
        if (strcmp(e->bindings[i].name, name) == 0)
            return (int)i;
    return -1;
}

uint64_t strata_engine_weight_bytes(const strata_engine *e)
{
    uint64_t bytes = e->weight_bytes;
    for (size_t i = 0; i < e->n_smaller; i++)
        bytes += e->smaller[i]->weight_bytes;
    return bytes;
}

uint64_t strata_engine_arena_bytes(const strata_engine *e)
{
    uint64_t most = (uint64_t)e->arena_bytes;
    for (size_t i = 0; i < e->n_smaller; i++)
        if (most < strata_engine_arena_bytes(e->smaller[i]))
            most = strata_engine_arena_bytes(e->smaller[i]);
    return most;
}
