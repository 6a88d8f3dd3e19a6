/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one impl under guard: every block the impl sees has bands around it, outputs
 * and workspace start as NaN patterns, inputs and weights are compared with copies, and
 * pads and gaps are checked element by element.
 */
#include "check/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const unsigned char session_patterns[PATTERNS] = {0xff, 0x5a};

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

/* ---- blocks -------------------------------------------------------------------- */

static bool make_block(struct session *s, struct block *b, size_t bytes,
                       enum mirror_kind kind)
{
    return s->mirror ? mirror_block(s->mirror, b, bytes, session_patterns[0], kind)
                     : block_make(b, bytes, session_patterns[0]);
}

/* What a plugin is given. */
static void *address(const struct block *b)
{
    return b->device ? b->device : b->data;
}

static int pack_alloc(const strata_node *n, size_t bytes, void **out)
{
    struct session *s = n->instance;
    struct block *b = &s->packed[s->n_packed];
    if (s->refuse_pack || s->n_packed == PACKED_BLOCKS ||
        !make_block(s, b, bytes, MIRROR_BLANK))
        return error_no_memory(n->err, bytes, "packed weights");
    *out = address(b);
    s->n_packed++;
    return s->mirror && !s->mirror->exact ? mirror_push_block(s->mirror, b, n->err)
                                          : STRATA_OK;
}

static const void *pack_extension(const char *id)
{
    static const strata_pack pack = {.struct_size = sizeof pack, .alloc = pack_alloc};
    return strcmp(id, STRATA_PACK_V1) == 0 ? &pack : NULL;
}

/* Strides above dense everywhere but along the innermost dim. */
static void pitch(strata_desc *d)
{
    int64_t end = 0; /* of the dims with smaller strides */
    for (int done = 0; done < d->rank; done++) {
        int inner = -1;
        for (int i = 0; i < d->rank; i++)
            if (d->strides[i] >= end &&
                (inner < 0 || d->strides[i] < d->strides[inner] ||
                 (d->strides[i] == d->strides[inner] && d->dims[i] == 1)))
                inner = i;
        if (inner < 0)
            return;
        int64_t extent = d->dims[inner];
        if (inner == d->vector_dim)
            extent = (extent + d->vector - 1) / d->vector;
        int64_t old = d->strides[inner] * extent, grow = 2 * d->vector;
        end = d->strides[inner] * extent + grow;
        for (int i = 0; i < d->rank; i++)
            if (i != inner && d->strides[i] >= old) {
                int64_t factor = d->strides[i] / old;
                d->strides[i] = factor * end;
            }
    }
}

static int make_tensor(struct session *s, strata_tensor *t, struct block *b,
                       const strata_tensor *shape, uint64_t mask, bool pitched,
                       enum mirror_kind kind)
{
    strata_desc d;
    int bit = mask ? __builtin_ctzll(mask) : -1;
    const struct format *f = format_at(bit);
    if (!f)
        return error_set(&s->err, STRATA_EINVAL, "the row has a port without format");
    int status = format_desc(&d, *f, shape->dims, shape->rank, &s->err);
    if (status != STRATA_OK)
        return status;
    if (pitched)
        pitch(&d);
    size_t bytes = (size_t)strata_desc_size(&d) * strata_dtype_size(d.dtype);
    if (!make_block(s, b, bytes, kind))
        return error_no_memory(&s->err, bytes, "tensor");
    tensor_view(t, &d, mask, STRATA_PAD_ZERO, address(b));
    return STRATA_OK;
}

/* A tensor as the host sees its block. */
static strata_tensor mirror(const strata_tensor *t, const struct block *b)
{
    strata_tensor view = *t;
    view.data = b->data;
    return view;
}

static int make_inputs(struct session *s, const struct harness_formats *f,
                       const double *const *in)
{
    bool poison = s->impl->flags & STRATA_PAD_IGNORED;
    int status = STRATA_OK;
    for (int i = 0; i < s->node.n_in && status == STRATA_OK; i++) {
        status = make_tensor(s, &s->in[i], &s->in_block[i], &s->n->in[i], f->in[i],
                             s->n->pitched_in, MIRROR_FULL);
        if (status != STRATA_OK)
            return status;
        s->in[i].pad = poison ? STRATA_PAD_ANY : STRATA_PAD_ZERO;
        const strata_tensor view = mirror(&s->in[i], &s->in_block[i]);
        tensor_fill(&view, in[i]);
        if (!tensor_set_pads(&view, poison ? NAN : 0) ||
            (!s->n->in_place && !block_protect(&s->in_block[i])))
            return error_no_memory(&s->err, s->in_block[i].bytes, "input");
    }
    return status;
}

static int make_weights(struct session *s, const double *const *weight)
{
    for (int i = 0; i < s->node.n_weights; i++) {
        const strata_tensor *w = &s->n->weight[i];
        s->weight[i] = *w;
        if (w->rank == 0)
            continue;
        struct format f = {w->dtype, ORDER_LINEAR, 1};
        strata_desc d;
        int status = format_desc(&d, f, w->dims, w->rank, &s->err);
        if (status != STRATA_OK)
            return status;
        size_t bytes = (size_t)w->count * strata_dtype_size(w->dtype);
        if (!make_block(s, &s->weight_block[i], bytes, MIRROR_FULL))
            return error_no_memory(&s->err, bytes, "weight");
        tensor_view(&s->weight[i], &d, format_mask(f), STRATA_PAD_ZERO,
                    address(&s->weight_block[i]));
        const strata_tensor view = mirror(&s->weight[i], &s->weight_block[i]);
        tensor_fill(&view, weight[i]);
        if (!block_protect(&s->weight_block[i]))
            return error_no_memory(&s->err, bytes, "weight");
    }
    return STRATA_OK;
}

/* Per-channel factors or addends of an epilogue. */
static int make_channels(struct session *s, struct block *b, const float **values)
{
    const strata_tensor *out = &s->n->out[0];
    size_t bytes = (size_t)(out->rank > 1 ? out->dims[1] : 1) * sizeof(float);
    if (!*values)
        return STRATA_OK;
    if (!make_block(s, b, bytes, MIRROR_FULL))
        return error_no_memory(&s->err, bytes, "channels");
    memcpy(b->data, *values, bytes);
    *values = address(b);
    return block_protect(b) ? STRATA_OK : error_no_memory(&s->err, bytes, "channels");
}

/* The caller's residual is dense linear FP64; the impl sees the output's format. */
static int make_epilogue(struct session *s, const struct harness_formats *f,
                         const strata_epilogue *e)
{
    if (!e)
        return STRATA_OK;
    s->epilogue = *e;
    s->kinds = *e;
    s->kinds.scale = s->kinds.bias = NULL;
    s->kinds.residual = NULL;
    int status = make_channels(s, &s->scale_block, &s->epilogue.scale);
    if (status == STRATA_OK)
        status = make_channels(s, &s->bias_block, &s->epilogue.bias);
    if (status != STRATA_OK || !(e->flags & STRATA_EPILOGUE_RESIDUAL))
        return status;
    status = make_tensor(s, &s->residual, &s->residual_block, &s->n->out[0], f->out[0],
                         s->n->pitched_in, MIRROR_FULL);
    if (status != STRATA_OK)
        return status;
    const strata_tensor view = mirror(&s->residual, &s->residual_block);
    tensor_fill(&view, e->residual->data);
    s->epilogue.residual = &s->residual;
    if (!tensor_set_pads(&view, 0) || !block_protect(&s->residual_block))
        return error_no_memory(&s->err, s->residual_block.bytes, "residual");
    return STRATA_OK;
}

static int make_outputs(struct session *s, const struct harness_formats *f)
{
    /* What lies between pitched rows must keep its pattern. */
    enum mirror_kind kind = s->n->pitched_out ? MIRROR_FULL : MIRROR_BLANK;
    int status = STRATA_OK;
    for (int i = 0; i < s->node.n_out && status == STRATA_OK; i++)
        if (i == 0 && s->n->in_place)
            s->out[0] = s->in[0];
        else
            status = make_tensor(s, &s->out[i], &s->out_block[i], &s->n->out[i],
                                 f->out[i], s->n->pitched_out, kind);
    return status;
}

/* Every block a plugin may see, for what is done to all of them. */
static int each_block(struct session *s, int (*visit)(struct session *s, struct block *b,
                                                      const char *what, int index))
{
    const struct {
        struct block *blocks;
        int n;
        const char *what;
    } groups[] = {
        {s->in_block, HARNESS_INPUTS, "input"},
        {s->out_block, HARNESS_OUTPUTS, "output"},
        {s->weight_block, HARNESS_WEIGHTS, "weight"},
        {s->packed, PACKED_BLOCKS, "packed weights"},
        {&s->residual_block, 1, "residual"},
        {&s->scale_block, 1, "epilogue scale"},
        {&s->bias_block, 1, "epilogue bias"},
        {&s->workspace, 1, "workspace"},
        {&s->state, 1, "state"},
        {&s->ctx, 1, "ctx"},
    };
    int status = STRATA_OK;
    for (size_t g = 0; g < ARRAY_LENGTH(groups); g++)
        for (int i = 0; i < groups[g].n && status == STRATA_OK; i++)
            if (groups[g].blocks[i].base)
                status = visit(s, &groups[g].blocks[i], groups[g].what, i);
    return status;
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

static int discard(struct session *s, struct block *b, const char *what, int index)
{
    (void)s;
    (void)what;
    (void)index;
    block_free(b);
    return STRATA_OK;
}

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
        .ctx = s->ctx.data,
        .in = s->in,
        .out = s->out,
        .weight = s->weight,
        .epilogue = &s->epilogue,
        .workspace = s->workspace.bytes ? address(&s->workspace) : NULL,
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

int session_make(struct session *s, struct harness_node *n,
                 const struct registry_impl *impl, int row,
                 const struct harness_formats *formats, const double *const *in,
                 const double *const *weight, const strata_epilogue *epilogue)
{
    *s = (struct session){.n = n,
                          .impl = &impl->impl,
                          .mirror = n->mirror,
                          .node = n->node,
                          .host = *n->node.host};
    s->node.in = s->in;
    s->node.out = s->out;
    s->node.weight = s->weight;
    s->node.epilogue = &s->kinds;
    s->node.row = row;
    s->node.instance = s;
    s->node.host = &s->host;
    s->node.err = &s->err;
    if (!n->no_pack)
        s->host.extension = pack_extension;
    n->vetoed = false;
    int status = make_inputs(s, formats, in);
    if (status == STRATA_OK)
        status = make_weights(s, weight);
    if (status == STRATA_OK)
        status = make_outputs(s, formats);
    return status == STRATA_OK ? make_epilogue(s, formats, epilogue) : status;
}

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
    if (!make_block(s, &s->workspace, bytes, MIRROR_SCRATCH) ||
        !block_make(&s->state, s->impl->state_size, 0) ||
        !block_make(&s->ctx, s->impl->ctx_size, 0))
        return error_no_memory(&s->err, bytes, "workspace");
    return STRATA_OK;
}

/* What setup wrote is read-only from now on, where the host can see it. */
static int protect_state(struct session *s)
{
    const bool visible = !s->mirror || !s->mirror->exact;
    int status = STRATA_OK;
    if (s->mirror && visible && s->n_packed > 0)
        status = mirror_pull(s->mirror, &s->err);
    if (s->impl->flags & STRATA_WEIGHT_PACKED && s->node.n_weights > 0)
        s->weight[0].data = NULL;
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
    int status = make_instance(s);
    if (status == STRATA_OK)
        status = push(s, session_patterns[0]);
    if (status == STRATA_OK)
        status = call(s, NULL, call_ctx_open);
    s->opened = status == STRATA_OK;
    return status;
}

int session_call(struct session *s, strata_stream *stream)
{
    return call(s, stream, call_run);
}

strata_tensor session_output(const struct session *s, int i)
{
    const bool on_input = i == 0 && s->n->in_place;
    return mirror(&s->out[i], on_input ? &s->in_block[0] : &s->out_block[i]);
}

void session_read(const struct session *s, int i, double *values)
{
    const strata_tensor view = session_output(s, i);
    tensor_read(values, &view);
}

int session_prepare(struct session *s, unsigned char pattern)
{
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

int session_inspect(struct session *s, unsigned char pattern)
{
    static const char *const rules[] = {
        [TENSOR_PAD] = "pad-dirty", [TENSOR_GAP] = "gap-written"};
    bool dirty = s->impl->flags & STRATA_PAD_DIRTY;
    int status = each_block(s, inspect);
    for (int i = 0; i < s->node.n_out && status == STRATA_OK; i++) {
        const strata_tensor view = session_output(s, i);
        if (!s->out_block[i].base)
            continue;
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

void session_free(struct session *s)
{
    if (s->mirror)
        mirror_reset(s->mirror);
    each_block(s, discard);
}

/* ---- all in a row ----------------------------------------------------------------- */

/* A second run on other initial contents must give the same bits. */
static int run_again(struct session *s, double *const *out)
{
    bool exact = !(s->impl->flags & STRATA_NONDETERMINISTIC);
    int status = session_run(s, session_patterns[1]);
    for (int i = 0; i < s->node.n_out && status == STRATA_OK; i++) {
        const strata_tensor view = session_output(s, i);
        size_t bytes = (size_t)view.count * sizeof(double);
        double *again = malloc(bytes + 1);
        if (!again)
            return error_no_memory(&s->err, bytes, "second result");
        tensor_read(again, &view);
        for (int64_t k = 0; k < view.count && exact && status == STRATA_OK; k++)
            if (memcmp(&again[k], &out[i][k], sizeof again[k]) != 0 &&
                !(isnan(again[k]) && isnan(out[i][k])))
                status = session_fault(
                    s,
                    tensor_find_pattern(&view, session_patterns[1]) == k ? "unwritten"
                                                                         : "stale-read",
                    "output %d, element %lld is %g on a second run, was %g: it is not "
                    "written, or reads stale memory",
                    i, (long long)k, again[k], out[i][k]);
        free(again);
    }
    return status == STRATA_OK ? session_inspect(s, session_patterns[1]) : status;
}

int harness_run(struct harness_node *n, const struct registry_impl *impl, int row,
                const struct harness_formats *formats, const double *const *in,
                const double *const *weight, const strata_epilogue *epilogue,
                double *const *out)
{
    struct session *s = malloc(sizeof *s);
    if (!s)
        return error_no_memory(&n->err, sizeof *s, "a session");
    int status = session_make(s, n, impl, row, formats, in, weight, epilogue);
    if (status == STRATA_OK)
        status = session_open(s);
    if (status == STRATA_OK)
        status = session_run(s, session_patterns[0]);
    for (int i = 0; i < s->node.n_out && status == STRATA_OK; i++)
        session_read(s, i, out[i]);
    if (status == STRATA_OK && !n->plain)
        status = session_inspect(s, session_patterns[0]);
    if (status == STRATA_OK && !n->plain && !n->in_place)
        status = run_again(s, out);
    session_close(s);
    n->fault = s->fault;
    n->err = s->err;
    session_free(s);
    free(s);
    return status;
}
