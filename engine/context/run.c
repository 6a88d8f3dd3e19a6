/* SPDX-License-Identifier: Apache-2.0
 *
 * One of the engine's steps. A device with queues of its own is given it at once, the
 * host device takes it over to another thread; either way enqueueing a node copies
 * one pointer.
 */
#include "engine/context/context.h"
#include "core/team.h"
#include "formats/reformat/reformat.h"

struct step_payload {
    strata_context *context;
    const struct execution_step *step; /* NULL: the run begins */
};

static bool nothing_to_do(const struct context_node *node)
{
    for (int i = 0; i < node->run.n_out; i++)
        if (node->run.out[i].count > 0)
            return false;
    return true;
}

static int run_node(strata_context *c, int index, void *stream, strata_error *err)
{
    const struct execution_node *n = &c->execution->nodes[index];
    struct context_node *node = &c->nodes[index];
    if (nothing_to_do(node))
        return STRATA_OK;
    node->run.stream = stream;
    node->run.err = err;
    int status = n->impl->impl.run(&node->run);
    if (status != STRATA_OK) {
        error_set(err, status, "it returned %d (%s) without a message", status,
                  strata_status_text(status));
        error_prefix(err, "%s:%d: error: layer '%s', impl %s, run",
                     c->engine->network->path, n->layer->place.line, n->name,
                     n->impl->impl.name);
    }
    return status;
}

static int run_step(void *payload, void *stream, strata_error *err)
{
    const struct step_payload *p = payload;
    strata_context *c = p->context;
    if (!p->step) { /* the run begins, on the thread that computes it */
        threads_set(c->execution->threads);
        c->failed = false;
        return STRATA_OK;
    }
    if (c->failed)
        return STRATA_OK;
    int status = run_node(c, p->step->node, stream, err);
    c->failed = status != STRATA_OK;
    return status;
}

int context_enqueue_step(strata_context *c, const struct execution_step *step,
                         strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    const struct execution *x = c->execution;
    struct step_payload payload = {c, step};
    if (step && !context_step_acts(c, step))
        return STRATA_OK;
    if (step && step->kind == STEP_REFORMAT)
        return reformat_enqueue(c->stream, &x->values[step->to].desc,
                                c->value_data[step->to], &x->values[step->from].desc,
                                c->value_data[step->from], err);
    return ops->submit(c->stream, run_step, &payload, sizeof payload, err);
}

int context_begin(strata_context *c, strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    int status = STRATA_OK;
    if (ops->run_begin)
        status = ops->run_begin(c->stream, c->execution->threads, c->engine->wait, err);
    if (status != STRATA_OK)
        return status;
    status = context_enqueue_step(c, NULL, err);
    if (status != STRATA_OK)
        context_end(c);
    return status;
}

void context_end(strata_context *c)
{
    const struct device_ops *ops = c->handle->device->ops;
    if (ops->run_end)
        ops->run_end(c->stream);
}
