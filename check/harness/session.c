/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one impl under guard, callback by callback; afterwards bands, copies, pads and
 * gaps are looked at.
 */
#include "check/harness/session.h"

#include <stdlib.h>
#include <string.h>

#include "check/harness/session_private.h"

int session_fault(struct session *s, const char *id, const char *format, ...)
{
    va_list args;
    if (!s->fault)
        s->fault = id;
    va_start(args, format);
    error_set_va(&s->err, STRATA_EINTERNAL, format, args);
    va_end(args);
    return STRATA_EINTERNAL;
}

#define MOST_PARAMS 1024 /* bytes that are compared */

/* ---- calls ---------------------------------------------------------------------- */

struct call {
    struct session *s;
    int (*function)(struct session *s, void *stream);
};

static int call_now(void *payload, void *stream, strata_error *err)
{
    struct call *c = payload;
    (void)err;
    return c->function(c->s, stream);
}

/* On a device a callback runs with that device current and CUDA's own record clean. */
static int call(struct session *s, strata_stream *stream,
                int (*function)(struct session *s, void *stream))
{
    struct call c = {s, function};
    struct mirror *m = s->mirror;
    if (!m)
        return function(s, NULL);
    if (m->handle->properties.kind == STRATA_HOST) { /* its streams run work later */
        int status = mirror_wait(m, &s->err);
        return status == STRATA_OK ? function(s, NULL) : status;
    }
    return m->handle->device->ops->submit(stream ? stream : m->stream, call_now, &c,
                                          sizeof c, &s->err);
}

/* A refusal says why; the core would otherwise print nothing. */
static int explained(struct session *s, int status, const char *what)
{
    if (status != STRATA_OK && s->err.length == 0)
        return session_fault(s, "message-missing", "%s returned %d without a message",
                             what, status);
    return status;
}

static int call_accept(struct session *s, void *stream)
{
    s->node.stream = stream;
    if (!s->impl->accept)
        return STRATA_OK;
    harness_enter(s->n, "accept");
    int status = explained(s, s->impl->accept(&s->node), "accept");
    s->n->vetoed = status != STRATA_OK && !s->fault;
    s->n->lacking = s->n->vetoed && status == STRATA_EDEVICE;
    return s->n->vetoed ? STRATA_EUNSUPPORTED : status;
}

static int call_setup(struct session *s, void *stream)
{
    s->node.stream = stream;
    if (!s->impl->setup)
        return STRATA_OK;
    harness_enter(s->n, "setup");
    return explained(s, s->impl->setup(&s->node, s->state.data), "setup");
}

static int call_ctx_open(struct session *s, void *stream)
{
    const struct session *owner = s->sharer ? s->sharer : s;
    s->node.stream = stream;
    if (!s->impl->ctx_open)
        return STRATA_OK;
    harness_enter(s->n, "ctx_open");
    return explained(s, s->impl->ctx_open(&s->node, owner->state.data, s->ctx.data),
                     "ctx_open");
}

static int call_run(struct session *s, void *stream)
{
    const struct session *owner = s->sharer ? s->sharer : s;
    strata_run r = {
        .struct_size = sizeof r,
        .n_in = s->node.n_in,
        .n_out = s->node.n_out,
        .n_weights = s->node.n_weights,
        .params = s->n->params,
        .state = owner->state.data,
        .ctx = s->adopted ? owner->ctx.data : s->ctx.data,
        .in = s->in,
        .out = s->out,
        .weight = s->weight,
        .epilogue = &s->epilogue,
        .workspace = s->workspace.bytes ? session_address(&s->workspace) : NULL,
        .workspace_size = s->workspace.bytes,
        .stream = stream,
        .host = &s->host,
        .err = &s->err,
    };
    harness_enter(s->n, "run");
    int status = explained(s, s->impl->run(&r), "run");
    if (status == STRATA_OK && s->err.status != STRATA_OK)
        return session_fault(s, "status-lost", "run failed but returned 0: %s",
                             s->err.message);
    return status;
}

/* ---- steps ---------------------------------------------------------------------- */

int session_size(struct session *s, size_t *bytes)
{
    int status = call(s, NULL, call_accept);
    *bytes = 0;
    if (status == STRATA_OK && s->impl->workspace) {
        harness_enter(s->n, "workspace");
        *bytes = s->impl->workspace(&s->node);
    }
    return status;
}

/* Memory that accept and workspace have settled. state and ctx are always the host's. */
static int make_instance(struct session *s)
{
    size_t bytes = 0;
    if (s->impl->workspace) {
        harness_enter(s->n, "workspace");
        bytes = s->impl->workspace(&s->node);
    }
    if (bytes > (size_t)1 << 30)
        return session_fault(s, "workspace-size", "workspace asks for %zu bytes", bytes);
    if (!session_block(s, &s->workspace, bytes, MIRROR_SCRATCH) ||
        !block_make(&s->state, s->impl->state_size, 0) ||
        !block_make(&s->ctx, s->impl->ctx_size, 0))
        return error_no_memory(&s->err, bytes, "workspace");
    return STRATA_OK;
}

/* Where setup has packed a weight, its memory holds other things afterwards. */
static void hide_packed(struct session *s)
{
    struct block *b = &s->weight_block[0];
    if (!(s->impl->flags & STRATA_WEIGHT_PACKED) || !b->base)
        return;
    memset(b->data, 0xff, b->bytes);
    memset(b->copy, 0xff, b->bytes);
    s->weight[0].data = NULL;
}

/* What setup wrote is read-only from now on, where the host can see it. */
static int protect_state(struct session *s)
{
    const bool visible = !s->mirror || !s->mirror->exact;
    const bool packs = s->impl->flags & STRATA_WEIGHT_PACKED && s->weight_block[0].base;
    int status = STRATA_OK;
    if (s->mirror && visible && (s->n_packed > 0 || packs))
        status = mirror_pull(s->mirror, &s->err);
    if (status == STRATA_OK && visible && packs &&
        block_check(&s->weight_block[0], "weight", 0, &s->err) == BLOCK_CHANGED)
        return session_fault(s, "weight-modified", "setup: %s", s->err.message);
    hide_packed(s);
    for (int i = 0; i < s->n_packed && visible && status == STRATA_OK; i++)
        if (!block_protect(&s->packed[i]))
            status = error_no_memory(&s->err, s->packed[i].bytes, "packed weights");
    if (status == STRATA_OK && !block_protect(&s->state))
        status = error_no_memory(&s->err, s->impl->state_size, "state");
    return status;
}

static int push(struct session *s, unsigned char pattern)
{
    return s->mirror ? mirror_push(s->mirror, pattern, &s->err) : STRATA_OK;
}

static int settle(struct session *s)
{
    return s->mirror ? mirror_wait(s->mirror, &s->err) : STRATA_OK;
}

int session_open(struct session *s)
{
    int status = call(s, NULL, call_accept);
    if (status == STRATA_OK)
        status = make_instance(s);
    if (status == STRATA_OK)
        status = push(s, session_patterns[0]);
    if (status == STRATA_OK)
        status = settle(s);
    if (status != STRATA_OK)
        return status;
    status = call(s, NULL, call_setup);
    s->set_up = status == STRATA_OK; /* a setup that fails cleans up itself */
    if (status == STRATA_OK)
        status = settle(s);
    if (status == STRATA_OK)
        status = protect_state(s);
    if (status != STRATA_OK)
        return status;
    status = call(s, NULL, call_ctx_open);
    s->opened = status == STRATA_OK;
    return status == STRATA_OK ? settle(s) : status;
}

int session_share(struct session *s, const struct session *other)
{
    s->sharer = other;
    hide_packed(s);
    int status = make_instance(s);
    if (status == STRATA_OK)
        status = push(s, session_patterns[0]);
    if (status == STRATA_OK)
        status = call(s, NULL, call_ctx_open);
    s->opened = status == STRATA_OK;
    return status;
}

int session_adopt(struct session *s, const struct session *other)
{
    s->sharer = other;
    s->adopted = true;
    hide_packed(s);
    return make_instance(s);
}

/* What run is given to read: params and the descriptions of tensors. */
struct given {
    strata_tensor in[HARNESS_INPUTS], out[HARNESS_OUTPUTS], weight[HARNESS_WEIGHTS];
    unsigned char params[MOST_PARAMS];
};

static size_t params_bytes(const struct session *s)
{
    const size_t bytes = s->n->layer->layer.params_size;
    return bytes < MOST_PARAMS ? bytes : MOST_PARAMS;
}

static void take_given(struct given *g, const struct session *s)
{
    memcpy(g->in, s->in, sizeof g->in);
    memcpy(g->out, s->out, sizeof g->out);
    memcpy(g->weight, s->weight, sizeof g->weight);
    memcpy(g->params, s->n->params, params_bytes(s));
}

static int compare_given(const struct given *g, struct session *s)
{
    const struct {
        const void *now, *before;
        size_t bytes;
        const char *what;
    } parts[] = {
        {s->in, g->in, sizeof g->in, "the descriptions of its inputs"},
        {s->out, g->out, sizeof g->out, "the descriptions of its outputs"},
        {s->weight, g->weight, sizeof g->weight, "the descriptions of its weights"},
        {s->n->params, g->params, params_bytes(s), "params"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (memcmp(parts[i].now, parts[i].before, parts[i].bytes) != 0)
            return session_fault(s, "params-modified", "run changed %s", parts[i].what);
    return STRATA_OK;
}

int session_call(struct session *s, strata_stream *stream)
{
    struct given g;
    take_given(&g, s);
    const int status = call(s, stream, call_run);
    return status == STRATA_OK ? compare_given(&g, s) : status;
}

const struct block *session_output_block(const struct session *s, int i)
{
    return i == 0 && s->n->in_place ? &s->in_block[0] : &s->out_block[i];
}

strata_tensor session_output(const struct session *s, int i)
{
    return session_view(&s->out[i], session_output_block(s, i));
}

void session_read(const struct session *s, int i, void *values)
{
    const strata_tensor view = session_output(s, i);
    tensor_read(values, &view);
}

static int set_bands(struct session *s, struct block *b, const char *what, int index)
{
    const bool poison = s->pattern == session_patterns[1] && !s->plain_bands;
    (void)what;
    (void)index;
    block_set_bands(b, poison ? BAND_NAN : BAND_PLAIN);
    return STRATA_OK;
}

int session_prepare(struct session *s, unsigned char pattern)
{
    s->pattern = pattern;
    session_each_block(s, set_bands);
    if (s->workspace.bytes && !s->mirror)
        memset(s->workspace.data, pattern, s->workspace.bytes);
    for (int i = 0; i < s->node.n_out; i++)
        if (s->out_block[i].base)
            memset(s->out_block[i].data, pattern, s->out_block[i].bytes);
    return push(s, pattern);
}

int session_fetch(struct session *s)
{
    return s->mirror ? mirror_pull(s->mirror, &s->err) : STRATA_OK;
}

int session_run(struct session *s, unsigned char pattern)
{
    int status = session_prepare(s, pattern);
    if (status == STRATA_OK)
        status = session_call(s, NULL);
    const int fetched = session_fetch(s);
    if (s->err.status == STRATA_EDEVICELOST)
        return session_fault(s, "device-fault", "%s", s->err.message);
    return status == STRATA_OK ? fetched : status;
}

static int inspect(struct session *s, struct block *b, const char *what, int index)
{
    const bool input = b >= s->in_block && b < s->in_block + HARNESS_INPUTS;
    const bool weight = b >= s->weight_block && b < s->weight_block + HARNESS_WEIGHTS;
    switch (block_check(b, what, index, &s->err)) {
    case BLOCK_OUTSIDE:
        return session_fault(s, "bounds", "%s", s->err.message);
    case BLOCK_CHANGED:
        return session_fault(s,
                             input    ? "input-modified"
                             : weight ? "weight-modified"
                                      : "state-modified",
                             "%s", s->err.message);
    default:
        return STRATA_OK;
    }
}

/* The larger tensor's part before an output that lies inside. */
static int inspect_lead(struct session *s, int output, unsigned char pattern)
{
    const struct block *b = &s->out_block[output];
    for (size_t i = 0; i < b->lead; i++)
        if (b->data[i] != pattern)
            return session_fault(s, "gap-written",
                                 "output %d: wrote byte %zu before it, where channels of "
                                 "the larger tensor are",
                                 output, b->lead - i);
    return STRATA_OK;
}

int session_inspect(struct session *s, unsigned char pattern)
{
    static const char *const rules[] = {
        [TENSOR_PAD] = "pad-dirty", [TENSOR_GAP] = "gap-written"};
    bool dirty = s->impl->flags & STRATA_PAD_DIRTY;
    int status = session_each_block(s, inspect);
    for (int i = 0; i < s->node.n_out && status == STRATA_OK; i++) {
        const strata_tensor view = session_output(s, i);
        if (!s->out_block[i].base)
            continue;
        if ((status = inspect_lead(s, i, pattern)) != STRATA_OK)
            break;
        enum tensor_verdict v = tensor_check_outside(&view, dirty, pattern, &s->err);
        if (v == TENSOR_PAD || v == TENSOR_GAP)
            status = session_fault(s, rules[v], "%s", s->err.message);
        else if (v != TENSOR_FINE)
            status = STRATA_ENOMEM;
    }
    return status;
}

void session_close(struct session *s)
{
    if (s->opened && s->impl->ctx_close) {
        harness_enter(s->n, "ctx_close");
        s->impl->ctx_close(s->ctx.data);
    }
    if (s->set_up && s->impl->teardown) {
        harness_enter(s->n, "teardown");
        s->impl->teardown(s->state.data);
    }
    s->opened = s->set_up = false;
}
