/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole runs: put on the stream, by a graph or step by step, and waited for; and the one
 * that comes before all others.
 */
#include "engine/context/context.h"

#include <stdlib.h>

#include <strata/state.h>

static size_t consumed_end(const struct execution *x)
{
    return x->last_input_step < 0 ? x->n_steps : (size_t)x->last_input_step + 1;
}

static int enqueue_graph(strata_context *c, const struct context_graph *g,
                         strata_event *input_consumed, strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    int status = STRATA_OK;
    for (size_t i = 0; i < g->n && status == STRATA_OK; i++) {
        const struct context_segment *s = &g->segments[i];
        status = s->graph ? ops->graph_launch(c->stream, s->graph, err)
                          : context_enqueue_steps(c, s->first, s->end, NULL, err);
        if (status == STRATA_OK && input_consumed && s->end == consumed_end(c->execution))
            status = strata_event_record(input_consumed, c->stream, err);
    }
    return status;
}

static int enqueue_steps(strata_context *c, strata_event *input_consumed,
                         strata_error *err)
{
    const size_t consumed = consumed_end(c->execution);
    int status = context_enqueue_steps(c, 0, consumed, NULL, err);
    if (status == STRATA_OK && input_consumed)
        status = strata_event_record(input_consumed, c->stream, err);
    if (status == STRATA_OK)
        status = context_enqueue_steps(c, consumed, c->execution->n_steps, NULL, err);
    c->warm = status == STRATA_OK;
    return status;
}

/* Wait for the runs under way; where they are measured, full states begin anew. */
static int end_runs(strata_context *c, strata_error *err)
{
    strata_context *whole = c->whole;
    if (!whole->starts_over || whole->calls.runs - whole->started < 2)
        return context_settle(c, err);
    strata_error own;
    error_clear(&own);
    const int status = context_settle(c, &own);
    if (status != STRATA_EOVERFLOW)
        return status == STRATA_OK ? status : error_set(err, status, "%s", own.message);
    whole->started = whole->calls.runs;
    return context_reset_states(whole, STRATA_ALL_ROWS, err);
}

/* By the graph if there is one. The first run with new bindings goes step by step: it
 * loads the kernels, and bindings used once are not worth a graph. */
static int enqueue_run(strata_context *c, strata_event *input_consumed, strata_error *err)
{
    const struct context_graph *g = &c->graphs[input_consumed != NULL];
    int status = context_states_kept(c, err);
    if (status != STRATA_OK)
        return status;
    if (c->stale && c->queued && (status = end_runs(c, err)) != STRATA_OK)
        return status;
    if (c->stale && (status = context_set_pointers(c, err)) != STRATA_OK)
        return status;
    c->whole->calls.runs++;
    if (c->profile)
        return context_enqueue_profiled(c, consumed_end(c->execution), input_consumed,
                                        err);
    if (c->use_graph && c->warm && g->n == 0)
        status = context_capture(c, input_consumed != NULL, err);
    c->queued = true;
    if (status == STRATA_OK)
        status = context_begin(c, err);
    if (status != STRATA_OK)
        return status;
    status = g->n > 0 ? enqueue_graph(c, g, input_consumed, err)
                      : enqueue_steps(c, input_consumed, err);
    context_end(c);
    return status;
}

static int enqueue(strata_context *c, strata_event *input_consumed, strata_error *err)
{
    const int status = enqueue_run(c, input_consumed, err);
    if (status == STRATA_OK)
        context_note_counts(c->whole);
    return status;
}

static int start(strata_context *c, strata_event *input_consumed, uint64_t moved,
                 strata_error *err)
{
    int status = context_take_turn(c, moved, err);
    if (status == STRATA_OK)
        status = enqueue(c->active, input_consumed, err);
    return context_leave_turn(c, status, err);
}

int context_start(strata_context *c, uint64_t moved, strata_error *err)
{
    return start(c, NULL, moved, err);
}

int context_run(strata_context *c, strata_error *err)
{
    if (!c->active->queued)
        context_visit(c, c->active->execution->threads);
    int status = start(c, NULL, 0, err);
    context_end_visit(c);
    return status == STRATA_OK ? end_runs(c, err) : status;
}

int strata_context_enqueue(strata_context *c, strata_event *input_consumed,
                           strata_error *err)
{
    int status = context_enter(c, __func__, err);
    if (status != STRATA_OK)
        return status;
    status = context_resolve(c, err);
    if (status == STRATA_OK)
        status = start(c, input_consumed, 0, err);
    return context_leave(c, status);
}

int strata_context_wait(strata_context *c, strata_error *err)
{
    int status = context_enter(c, __func__, err);
    return status != STRATA_OK ? status : context_leave(c, end_runs(c, err));
}

int strata_context_run(strata_context *c, strata_error *err)
{
    int status = context_enter(c, __func__, err);
    if (status != STRATA_OK)
        return status;
    status = context_resolve(c, err);
    if (status == STRATA_OK)
        status = context_run(c, err);
    return context_leave(c, status);
}

static int prepare(strata_context *c, strata_error *err)
{
    int status = c->warm && !c->stale ? STRATA_OK : enqueue(c, NULL, err);
    if (status == STRATA_OK)
        status = context_settle(c, err);
    if (status == STRATA_OK && c->use_graph && c->graphs[0].n == 0)
        status = context_capture(c, 0, err);
    for (size_t i = 0; i < c->n_smaller && status == STRATA_OK; i++)
        status = prepare(c->smaller[i], err);
    return status;
}

/* The runs are to leave the states as they are. */
static int prepare_with_states(strata_context *c, strata_error *err)
{
    int status = context_settle(c, err);
    if (status == STRATA_OK)
        status = context_states_kept(c, err);
    if (status != STRATA_OK)
        return status;
    const size_t bytes = context_states_bytes(c, STRATA_ALL_ROWS);
    void *states = malloc(bytes);
    if (!states)
        return error_no_memory(err, bytes, "a copy of the states");
    status = context_save_states(c, STRATA_ALL_ROWS, states, err);
    if (status == STRATA_OK)
        status = strata_stream_synchronize(c->stream, err);
    if (status == STRATA_OK) {
        c->rehearses = true;
        status = prepare(c, err);
        c->rehearses = false;
        const int restored = context_restore_states(c, STRATA_ALL_ROWS, states,
                                                    status == STRATA_OK ? err : NULL);
        const int complete =
            strata_stream_synchronize(c->stream, status == STRATA_OK ? err : NULL);
        status = status != STRATA_OK     ? status
                 : restored != STRATA_OK ? restored
                                         : complete;
    }
    free(states);
    return status;
}

int strata_context_prepare(strata_context *c, strata_error *err)
{
    int status = context_enter(c, __func__, err);
    if (status != STRATA_OK)
        return status;
    status = context_resolve(c, err);
    if (status == STRATA_OK)
        status = c->execution->n_states ? prepare_with_states(c, err) : prepare(c, err);
    return context_leave(c, status);
}

static void use_graph(strata_context *c, bool use)
{
    context_drop_graphs(c);
    c->use_graph = use && c->handle->device->ops->capture_begin && !c->check;
    for (size_t i = 0; i < c->n_smaller; i++)
        use_graph(c->smaller[i], use);
}

int strata_context_use_graph(strata_context *c, int use, strata_error *err)
{
    int status = context_enter(c, __func__, err);
    if (status != STRATA_OK)
        return status;
    if ((status = context_settle(c, err)) == STRATA_OK) {
        c->wants_graph = use;
        use_graph(c, use);
    }
    return context_leave(c, status);
}
