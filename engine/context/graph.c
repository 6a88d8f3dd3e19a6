/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a run as device graphs, so that enqueueing costs the host one launch. A
 * node that cannot be captured parts them and is enqueued between two graphs. Graphs hold
 * addresses: new bindings need new graphs, which is dearer than a run but, unlike
 * staging buffers at fixed addresses, costs later runs no copy.
 */
#include "engine/context/context.h"

#include <stdlib.h>

static void drop(strata_context *c, struct context_graph *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->segments[i].graph)
            c->handle->device->ops->graph_destroy(c->handle->device,
                                                  g->segments[i].graph);
    free(g->segments);
    *g = (struct context_graph){0};
}

void context_drop_graphs(strata_context *c)
{
    for (size_t i = 0; i < ARRAY_LENGTH(c->graphs); i++)
        drop(c, &c->graphs[i]);
}

static bool is_captured(const strata_context *c, size_t step)
{
    const struct execution_step *s = &c->execution->steps[step];
    return s->kind != STEP_RUN || s->once || !c->nodes[s->node].uncaptured;
}

/* Where the segment that begins at a step ends: before what is enqueued the other way,
 * and (parted) after the last reader of the inputs. */
static size_t segment_end(const strata_context *c, size_t first, bool parted)
{
    size_t end = first + 1;
    while (end < c->execution->n_steps && is_captured(c, end) == is_captured(c, first) &&
           !(parted && (int)end == c->execution->last_input_step + 1))
        end++;
    return end;
}

static int make_segments(strata_context *c, struct context_graph *g, bool parted,
                         strata_error *err)
{
    size_t end;
    for (size_t first = 0; first < c->execution->n_steps; first = end) {
        int status = grow(&g->segments, &g->capacity, g->n, sizeof *g->segments, err);
        if (status != STRATA_OK)
            return status;
        end = segment_end(c, first, parted);
        g->segments[g->n++] = (struct context_segment){.first = first, .end = end};
    }
    return STRATA_OK;
}

int context_capture_segment(strata_context *c, struct context_segment *s, size_t *step,
                            strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    int status = ops->capture_begin(c->stream, err);
    *step = c->execution->n_steps;
    if (status != STRATA_OK)
        return status;
    status = context_enqueue_steps(c, s->first, s->end, step, err);
    if (status == STRATA_OK)
        *step = c->execution->n_steps;
    /* A capture that began must end. */
    int ended = ops->capture_end(c->stream, &s->graph, status == STRATA_OK ? err : NULL);
    return status != STRATA_OK ? status : ended;
}

static int capture_segments(strata_context *c, struct context_graph *g, size_t *step,
                            strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < g->n && status == STRATA_OK; i++)
        if (is_captured(c, g->segments[i].first))
            status = context_capture_segment(c, &g->segments[i], step, err);
    return status;
}

/* Do without the node that cannot be captured, or without graphs. */
static void give_way(strata_context *c, size_t step, const strata_error *why)
{
    const struct execution_step *s = &c->execution->steps[step];
    c->failed = false;
    if (step < c->execution->n_steps && s->kind == STEP_RUN) {
        c->nodes[s->node].uncaptured = true;
        log_line(STRATA_LOG_WARNING,
                 "layer '%s', impl %s cannot be part of a graph and is enqueued by "
                 "itself; give the impl STRATA_NO_CAPTURE, or mend this: %s",
                 c->execution->nodes[s->node].name,
                 c->execution->nodes[s->node].impl->impl.name, why->message);
        return;
    }
    c->use_graph = false;
    log_line(STRATA_LOG_WARNING, "%s: runs without a graph: %s", c->engine->network->path,
             why->message);
}

int context_capture(strata_context *c, int which, strata_error *err)
{
    struct context_graph *g = &c->graphs[which];
    size_t step = c->execution->n_steps;
    int status = context_begin(c, err); /* what failed before is no matter here */
    if (status == STRATA_OK)
        context_end(c);
    while (status == STRATA_OK && c->use_graph) {
        if ((status = make_segments(c, g, which == 1, err)) != STRATA_OK)
            break;
        strata_error why = {0};
        status = capture_segments(c, g, &step, &why);
        if (status == STRATA_OK)
            return status;
        drop(c, g);
        if (status == STRATA_EDEVICELOST)
            return error_set(err, status, "%s", why.message);
        status = STRATA_OK;
        give_way(c, step, &why);
    }
    drop(c, g);
    return status;
}
