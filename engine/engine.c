/* SPDX-License-Identifier: Apache-2.0
 *
 * Building an engine: a planner and its execution, then weights and impls' setup.
 */
#include "engine/engine.h"

#include <strata/state.h>

#include <stdlib.h>
#include <string.h>

#include "core/arguments.h"
#include "core/team.h"
#include "engine/file/stored.h"
#include "planner/mixed/mixed.h"
#include "planner/planner.h"

/* Where an engine's plan is from; without plan and record a new one is made. */
struct origin {
    const struct plan *plan;      /* taken as it is */
    struct record *record;        /* restored, and taken over */
    struct engine_stored *stored; /* the record's file, taken over; NULL: the lender's */
    const strata_engine *lender;
    struct planner *planner; /* that has a plan, taken over */
    /* Of its plan, which is of this planner, that stays the caller's. */
    const strata_engine *kin;
    const struct engine_pool *pool;
    const struct planner *planned;
};

static int plan_engine(strata_engine *e, const struct origin *from, strata_error *err)
{
    struct planner_device device = {.properties = e->handle->properties,
                                    .math = e->handle->math,
                                    .threads = e->handle->threads};
    int status;
    if (from->kin)
        return execution_make(&e->execution, from->planned, from->plan, err);
    if (from->planner) {
        e->planner = from->planner;
        status = STRATA_OK;
    } else if (from->record) {
        device.math = from->lender ? from->lender->execution->math : from->stored->math;
        status =
            planner_make_recorded(&e->planner, e->network, &device, from->record, err);
    } else if (from->plan) {
        status = planner_make_as(&e->planner, e->network, &device, from->plan, err);
    } else {
        device.mixed_again = engine_mixes_in_place(e->handle, &e->network->build);
        status = e->lender ? planner_make(&e->planner, e->network, &device, e->costs, err)
                           : planner_make_mixed(&e->planner, e->network, &device,
                                                e->costs, err);
    }
    if (status != STRATA_OK)
        return status;
    strata_network *given = e->network;
    e->network = network_retain(e->planner->network); /* merged or mixed, may be */
    strata_network_destroy(given);
    return execution_make(&e->execution, e->planner, e->planner->plan, err);
}

/* Mutual recursion with engine_add_sizes (batch.c): it ends because an engine that has
 * a lender adds no batches. */
static int build(strata_engine *e, const struct origin *from, strata_error *err)
{
    int status = plan_engine(e, from, err);
    if (status != STRATA_OK)
        return status;
    e->row_bytes =
        zalloc(e->execution->n_bindings, sizeof *e->row_bytes, "an engine", err);
    if (!e->row_bytes)
        return STRATA_ENOMEM;
    const int before = threads_set(e->execution->threads);
    status = engine_setup_parts(e, from->kin, from->pool, err);
    if (status == STRATA_OK && !e->lender && !from->kin)
        status = engine_add_sizes(e, err);
    threads_set(before);
    return status;
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

static int make_engine(strata_engine **out, strata_handle *handle,
                       const strata_network *network, const struct origin *from,
                       strata_error *err)
{
    struct cost_device costs;
    *out = NULL;
    strata_engine *e = zalloc(1, sizeof *e, "an engine", err);
    struct engine_turns *turns = e ? engine_open_turns(err) : NULL;
    if (!turns) {
        free(e);
        record_free(from->record);
        engine_stored_free(from->stored);
        planner_free(from->planner);
        return STRATA_ENOMEM;
    }
    e->turns = turns;
    e->network = network_retain(network);
    e->handle = handle;
    e->wait = handle->wait ? handle->wait : network->runtime.wait;
    e->lender = from->lender;
    e->late = from->planner && from->lender;
    e->batch_symbol = -1;
    e->stored = from->stored;
    cost_device_init(&costs, handle);
    e->costs = e->lender && e->lender->costs ? e->lender->costs : &costs.source;
    int status = build(e, from, err);
    e->costs = NULL;
    if (!e->lender)
        end_team(e);
    if (status == STRATA_OK) {
        *out = e;
        return STRATA_OK;
    }
    const bool inner = from->lender && !from->planner; /* of an engine that says it */
    if (!inner && !error_has_place(err))
        error_prefix(err, "%s", network->path);
    strata_engine_destroy(e);
    return status;
}

int engine_build_plan(strata_engine **out, strata_handle *handle,
                      const strata_network *network, const struct plan *plan,
                      strata_error *err)
{
    const struct origin from = {.plan = plan};
    error_clear(err);
    return make_engine(out, handle, network, &from, err);
}

int engine_build_lent(strata_engine **out, const strata_engine *lender,
                      const strata_network *network, struct record *record,
                      strata_error *err)
{
    const struct origin from = {.lender = lender, .record = record};
    return make_engine(out, lender->handle, network, &from, err);
}

int engine_build_version(strata_engine **out, const strata_engine *lender,
                         strata_handle *handle, struct planner *planner,
                         strata_error *err)
{
    const struct origin from = {.lender = lender, .planner = planner};
    return make_engine(out, handle, planner->network, &from, err);
}

int engine_build_kin(strata_engine **out, const strata_engine *kin,
                     const struct engine_pool *pool, const struct planner *planner,
                     const struct plan *plan, strata_error *err)
{
    const struct origin from = {
        .kin = kin, .pool = pool, .planned = planner, .plan = plan};
    int status = make_engine(out, kin->handle, planner->network, &from, err);
    if (status != STRATA_OK)
        return status;
    strata_engine *e = *out;
    e->batch = kin->batch;
    e->batch_symbol = kin->batch_symbol;
    memcpy(e->sizes, kin->sizes, sizeof e->sizes);
    memcpy(e->row_bytes, kin->row_bytes, e->execution->n_bindings * sizeof *e->row_bytes);
    return STRATA_OK;
}

int engine_complete_kin(strata_engine *e, struct planner *planner, strata_error *err)
{
    struct cost_device costs;
    cost_device_init(&costs, e->handle);
    e->planner = planner;
    e->costs = &costs.source;
    const int before = threads_set(e->execution->threads);
    int status = engine_add_sizes(e, err);
    threads_set(before);
    e->costs = NULL;
    return status;
}

int engine_build_stored(strata_engine **out, strata_handle *handle,
                        const strata_network *network, struct engine_stored *stored,
                        strata_error *err)
{
    const struct origin from = {.stored = stored, .record = stored->record};
    stored->record = NULL; /* the planner frees it */
    return make_engine(out, handle, network, &from, err);
}

/* Mutual recursion with engine_free_sizes (batch.c): it ends because the engines inside
 * have none inside. */
void strata_engine_destroy(strata_engine *e)
{
    if (!e)
        return;
    engine_free_sizes(e);
    engine_free_parts(e);
    engine_close_turns(e->turns);
    free(e->row_bytes);
    execution_free(e->execution);
    planner_free(e->planner);
    strata_network_destroy(e->network);
    engine_stored_free(e->stored); /* after the network, whose weights are in the file */
    free(e);
}

int strata_engine_bindings(const strata_engine *e)
{
    return e ? (int)e->execution->n_bindings : 0;
}

static int describe_binding(const strata_engine *e, const struct execution_binding *b,
                            strata_binding *out, strata_error *err)
{
    int status = struct_check(out->struct_size, SIZE_THROUGH(strata_binding, bytes),
                              "strata_binding", err);
    if (status != STRATA_OK)
        return status;
    const struct execution_value *v = &e->execution->values[b->value];
    const strata_binding found = {
        .name = b->name,
        .is_input = b->is_input,
        .desc = v->desc,
        .format = format_mask_name(UINT64_C(1) << v->format, v->desc.rank),
        .bytes = v->bytes,
    };
    struct_give(out, &found, sizeof found);
    return STRATA_OK;
}

int strata_engine_binding(const strata_engine *e, int index, strata_binding *out,
                          strata_error *err)
{
    int status = ARGUMENTS(err, {"engine", e}, {"out", out});
    if (status != STRATA_OK)
        return status;
    const struct execution *x = e->execution;
    if (index < 0 || index >= (int)x->n_bindings)
        return error_set(err, STRATA_EINVAL, "binding %d: there are %zu", index,
                         x->n_bindings);
    return describe_binding(e, &x->bindings[index], out, err);
}

int strata_engine_states(const strata_engine *e)
{
    return e ? (int)e->execution->n_states : 0;
}

int strata_engine_state(const strata_engine *e, int index, strata_binding *out,
                        strata_error *err)
{
    int status = ARGUMENTS(err, {"engine", e}, {"out", out});
    if (status != STRATA_OK)
        return status;
    const struct execution *x = e->execution;
    if (index < 0 || index >= (int)x->n_states)
        return error_set(err, STRATA_EINVAL, "state %d: there are %zu", index,
                         x->n_states);
    return describe_binding(e, &x->bindings[x->states[index].now], out, err);
}

int strata_engine_find(const strata_engine *e, const char *name)
{
    for (size_t i = 0; e && name && i < e->execution->n_bindings; i++)
        if (strcmp(e->execution->bindings[i].name, name) == 0)
            return (int)i;
    return -1;
}

uint64_t strata_engine_weight_bytes(const strata_engine *e)
{
    uint64_t bytes = e ? e->weight_bytes : 0;
    for (size_t i = 0; e && i < e->n_smaller; i++)
        bytes += e->smaller[i]->weight_bytes;
    return bytes;
}

uint64_t strata_engine_arena_bytes(const strata_engine *e)
{
    uint64_t most = e ? (uint64_t)e->execution->arena_bytes : 0;
    for (size_t i = 0; e && i < e->n_smaller; i++)
        if (most < strata_engine_arena_bytes(e->smaller[i]))
            most = strata_engine_arena_bytes(e->smaller[i]);
    return most;
}

int strata_device_capability(const strata_handle *handle)
{
    return handle ? handle->properties.sm : 0;
}
