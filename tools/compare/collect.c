/* SPDX-License-Identifier: Apache-2.0
 *
 * Every tensor of a run, taken right after the step that made it: memory is used again
 * later. The plan stays as it is, so what is compared is what runs.
 */
#include "tools/compare/compare.h"

#include <stdlib.h>
#include <string.h>

#include "engine/context/context.h"

const struct compare_tensor *compare_find(const struct compare_side *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->tensors[i].name, name) == 0)
            return &s->tensors[i];
    return NULL;
}

void compare_side_free(struct compare_side *s)
{
    for (size_t i = 0; i < s->n; i++)
        values_free(&s->tensors[i].values);
    free(s->tensors);
    strata_context_destroy(s->context);
    tool_close(&s->session);
}

/* The bytes from a value's first element to its last: what is inside another at a pitch
 * has the others' between its own. The caller's to free; NULL: err says why. */
static void *fetch(const strata_context *c, const struct execution_value *v,
                   const void *from, const char *name, strata_error *err)
{
    const size_t bytes = (size_t)strata_desc_bytes(&v->desc);
    void *raw = zalloc(1, bytes, name, err);
    int status = raw ? STRATA_OK : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = c->handle->device->ops->copy(c->stream, raw, from, bytes,
                                              COPY_FROM_DEVICE, err);
    if (status == STRATA_OK)
        status = strata_stream_synchronize(c->stream, err);
    if (status == STRATA_OK)
        return raw;
    free(raw);
    return NULL;
}

static int read_value(struct compare_tensor *t, strata_context *c,
                      const struct execution_value *v, const void *from,
                      strata_error *err)
{
    void *raw = fetch(c, v, from, t->name, err);
    int status = raw ? STRATA_OK : err->status;
    if (status == STRATA_OK)
        status = values_read(&t->values, &v->desc, raw, t->name, err);
    free(raw);
    return status;
}

/* Once for each tensor, from the first value of it. */
static int collect_value(struct compare_side *s, int value,
                         const struct execution_node *n, strata_error *err)
{
    const strata_engine *e = s->context->engine;
    const struct execution_value *v = &e->execution->values[value];
    const char *name = e->network->tensors[v->tensor].name;
    if (compare_find(s, name) || e->network->tensors[v->tensor].producer < 0)
        return STRATA_OK;
    int status = grow(&s->tensors, &s->capacity, s->n, sizeof *s->tensors, err);
    if (status != STRATA_OK)
        return status;
    struct compare_tensor *t = &s->tensors[s->n++];
    *t = (struct compare_tensor){.name = name,
                                 .layer = n ? n->name : name,
                                 .impl = n ? n->impl->impl.name : "(joined)",
                                 .format = v->format};
    return read_value(t, s->context, v, s->context->value_data[value], err);
}

/* What a node reads was made before it, by several nodes where they write into one. */
static int collect_node(struct compare_side *s, const struct execution_node *n,
                        bool inputs, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < (inputs ? n->n_in : n->n_out) && status == STRATA_OK; i++)
        status = collect_value(s, inputs ? n->in_values[i] : n->out_values[i],
                               inputs ? NULL : n, err);
    return status;
}

/* Put the other side's tensor in a value's place. */
static int feed_value(struct compare_side *s, const struct compare_side *feed, int value,
                      strata_error *err)
{
    const strata_context *c = s->context;
    const struct execution_value *v = &c->engine->execution->values[value];
    const struct compare_tensor *t =
        compare_find(feed, c->engine->network->tensors[v->tensor].name);
    if (!t || t->values.count != strata_desc_count(&v->desc))
        return STRATA_OK;
    void *raw = fetch(c, v, c->value_data[value], t->name, err);
    int status = raw ? STRATA_OK : err->status;
    if (status == STRATA_OK)
        status = values_write(&t->values, &v->desc, raw, err);
    if (status == STRATA_OK)
        status = c->handle->device->ops->copy(c->stream, c->value_data[value], raw,
                                              (size_t)strata_desc_bytes(&v->desc),
                                              COPY_TO_DEVICE, err);
    if (status == STRATA_OK)
        status = strata_stream_synchronize(c->stream, err);
    free(raw);
    return status;
}

static int feed_node(struct compare_side *s, const struct compare_side *feed,
                     const struct execution_node *n, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++)
        status = feed_value(s, feed, n->in_values[i], err);
    return status == STRATA_OK && n->residual_value >= 0
               ? feed_value(s, feed, n->residual_value, err)
               : status;
}

static int collect_outputs(struct compare_side *s, strata_error *err)
{
    const strata_engine *e = s->context->engine;
    int status = STRATA_OK;
    for (size_t i = e->execution->n_inputs;
         i < e->execution->n_bindings && status == STRATA_OK; i++)
        status = collect_value(s, e->execution->bindings[i].value, NULL, err);
    return status;
}

static int collect_steps(struct compare_side *s, const struct compare_side *feed,
                         strata_error *err)
{
    strata_context *c = s->context;
    const struct execution *x = c->engine->execution;
    int status = STRATA_OK;
    for (size_t i = 0; i < x->n_steps && status == STRATA_OK; i++) {
        const struct execution_step *step = &x->steps[i];
        const struct execution_node *n =
            step->kind == STEP_RUN ? &x->nodes[step->node] : NULL;
        if (n)
            status = collect_node(s, n, true, err);
        if (n && feed && status == STRATA_OK)
            status = feed_node(s, feed, n, err);
        if (status == STRATA_OK)
            status = context_enqueue_steps(c, i, i + 1, NULL, err);
        if (status == STRATA_OK)
            status = strata_stream_synchronize(c->stream, err);
        if (status == STRATA_OK && n)
            status = collect_node(s, n, false, err);
    }
    return status;
}

int compare_collect(struct compare_side *s, const struct compare_side *feed,
                    strata_error *err)
{
    strata_context *c = s->context;
    int status = strata_context_prepare(c, err);
    if (status == STRATA_OK && (status = context_begin(c, err)) == STRATA_OK) {
        status = collect_steps(s, feed, err);
        context_end(c); /* or its team of threads waits for more */
    }
    return status == STRATA_OK ? collect_outputs(s, err) : status;
}
