/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs watched from step to step.
 */
#include "calibrate/watch.h"

#include <stdlib.h>

/* One run, with what it has told already. */
struct watch {
    strata_context *context;
    const struct watcher *watcher;
    bool *told; /* of each tensor */
};

/* ---- values --------------------------------------------------------------------------
 */

static const struct execution_value *value_at(const strata_context *c, int value)
{
    return &c->engine->execution->values[value];
}

/* From a value's first element to its last: what is inside another at a pitch has the
 * others' between its own. */
static size_t bytes_of(const strata_context *c, int value)
{
    return (size_t)strata_desc_bytes(&value_at(c, value)->desc);
}

int watch_bytes(void **out, strata_context *c, int value, strata_error *err)
{
    const size_t bytes = bytes_of(c, value);
    *out = zalloc(1, bytes, watch_tensor(c, value)->name, err);
    int status = *out ? STRATA_OK : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = c->handle->device->ops->copy(c->stream, *out, c->value_data[value],
                                              bytes, COPY_FROM_DEVICE, err);
    if (status == STRATA_OK)
        status = strata_stream_synchronize(c->stream, err);
    if (status == STRATA_OK)
        return STRATA_OK;
    free(*out);
    *out = NULL;
    return status;
}

int watch_set_bytes(strata_context *c, int value, const void *bytes, strata_error *err)
{
    int status = c->handle->device->ops->copy(c->stream, c->value_data[value], bytes,
                                              bytes_of(c, value), COPY_TO_DEVICE,
                                              err);
    return status == STRATA_OK ? strata_stream_synchronize(c->stream, err) : status;
}

static int dense(strata_desc *out, const strata_desc *of, strata_error *err)
{
    return format_desc(out, (struct format){STRATA_FP32, ORDER_LINEAR, 1}, of->dims,
                       of->rank, err);
}

int watch_floats(float **out, int64_t *n, strata_context *c, int value, strata_error *err)
{
    const strata_desc *desc = &value_at(c, value)->desc;
    strata_desc own;
    void *raw = NULL;
    *n = strata_desc_count(desc);
    *out = zalloc((size_t)*n, sizeof **out, watch_tensor(c, value)->name, err);
    int status = *out ? watch_bytes(&raw, c, value, err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = dense(&own, desc, err);
    if (status == STRATA_OK)
        status = strata_reformat(&own, *out, desc, raw, err);
    free(raw);
    if (status == STRATA_OK)
        return STRATA_OK;
    free(*out);
    *out = NULL;
    return status;
}

int watch_set_floats(strata_context *c, int value, const float *from, strata_error *err)
{
    const struct execution_value *v = value_at(c, value);
    strata_desc own;
    void *raw = NULL;
    int status = watch_bytes(&raw, c, value, err);
    if (status == STRATA_OK)
        status = dense(&own, &v->desc, err);
    if (status == STRATA_OK)
        status = strata_reformat(&v->desc, raw, &own, from, err);
    if (status == STRATA_OK)
        status = watch_set_bytes(c, value, raw, err);
    free(raw);
    return status;
}

/* ---- a run ---------------------------------------------------------------------------
 */

static int tell(struct watch *w, int value, const struct execution_node *n,
                strata_error *err)
{
    bool *told = &w->told[value_at(w->context, value)->tensor];
    if (*told)
        return STRATA_OK;
    *told = true;
    return w->watcher->made(w->watcher->of, w->context, value, n, err);
}

/* What a node reads was made before it, by several nodes where they write into one. */
static int before_node(struct watch *w, const struct execution_node *n, strata_error *err)
{
    const struct watcher *who = w->watcher;
    int status = STRATA_OK;
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++)
        status = tell(w, n->in_values[i], NULL, err);
    for (int i = 0; i < n->n_in && status == STRATA_OK && who->read; i++)
        status = who->read(who->of, w->context, n->in_values[i], n, err);
    if (status == STRATA_OK && who->read && n->residual_value >= 0)
        status = who->read(who->of, w->context, n->residual_value, n, err);
    return status;
}

static int watch_steps(struct watch *w, strata_error *err)
{
    strata_context *c = w->context;
    const struct execution *x = c->engine->execution;
    int status = STRATA_OK;
    for (size_t i = 0; i < x->n_steps && status == STRATA_OK; i++) {
        const struct execution_step *step = &x->steps[i];
        const struct execution_node *n =
            step->kind == STEP_RUN ? &x->nodes[step->node] : NULL;
        if (n)
            status = before_node(w, n, err);
        if (status == STRATA_OK)
            status = context_enqueue_steps(c, i, i + 1, NULL, err);
        if (status == STRATA_OK)
            status = strata_stream_synchronize(c->stream, err);
        for (int k = 0; n && k < n->n_out && status == STRATA_OK; k++)
            status = tell(w, n->out_values[k], n, err);
    }
    return status;
}

static int tell_outputs(struct watch *w, strata_error *err)
{
    const struct execution *x = w->context->engine->execution;
    int status = STRATA_OK;
    for (size_t i = x->n_inputs; i < x->n_bindings && status == STRATA_OK; i++)
        status = tell(w, x->bindings[i].value, NULL, err);
    return status;
}

int watch_run(strata_context *c, const struct watcher *watcher, strata_error *err)
{
    struct watch w = {.watcher = watcher};
    int status = strata_context_prepare(c, err);
    if (status != STRATA_OK)
        return status;
    w.context = c = c->active; /* of the sizes that are set */
    w.told = zalloc(c->engine->network->n_tensors, sizeof *w.told, "a run", err);
    status = w.told ? context_begin(c, err) : STRATA_ENOMEM;
    if (status == STRATA_OK) {
        status = watch_steps(&w, err);
        context_end(c); /* or its team of threads waits for more */
        if (status == STRATA_OK)
            status = tell_outputs(&w, err);
    }
    free(w.told);
    return status;
}
