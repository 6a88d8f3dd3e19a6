/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one impl under guard: every block the impl sees has bands around it, outputs
 * and workspace start as NaN patterns, inputs and weights are compared with copies, and
 * pads and gaps are checked element by element. On a device all of this happens to the
 * blocks' mirrors.
 */
#include "tests/layer_harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/layer_mirror.h"

#define PACKED_BLOCKS 8 /* of strata.pack/1 in one instance */

enum { PATTERNS = 2 };
/* NaN in FP32 and FP16; then large and odd values. */
static const unsigned char patterns[PATTERNS] = { 0xff, 0x5a };

/* ---- one run ------------------------------------------------------------------- */

struct session {
    struct harness_node *n;
    const strata_impl *impl;
    strata_node node; /* complete tensors */
    strata_tensor in[HARNESS_INPUTS], out[HARNESS_OUTPUTS], weight[HARNESS_WEIGHTS];
    strata_tensor residual;
    strata_epilogue kinds, epilogue; /* kinds: without pointers, for setup */
    struct block in_block[HARNESS_INPUTS], out_block[HARNESS_OUTPUTS];
    struct block weight_block[HARNESS_WEIGHTS], residual_block;
    struct block scale_block, bias_block;
    struct block workspace, state, ctx, packed[PACKED_BLOCKS];
    int n_packed;
    strata_host host;
    /* What the impl sees: the same with addresses of the device. */
    struct {
        strata_tensor in[HARNESS_INPUTS], out[HARNESS_OUTPUTS], weight[HARNESS_WEIGHTS];
        strata_tensor residual;
    } seen;
};

struct launch {
    const strata_impl *impl;
    strata_run *run;
};

static bool make_block(struct session *s, struct block *b, size_t bytes,
                       enum mirror_kind kind)
{
    return s->n->mirror ? mirror_block(s->n->mirror, b, bytes, patterns[0], kind)
                        : block_make(b, bytes, patterns[0]);
}

static void *address(const struct block *b)
{
    return b->device ? b->device : b->data;
}

static int pack_alloc(const strata_node *n, size_t bytes, void **out)
{
    struct session *s = n->instance;
    struct mirror *m = s->n->mirror;
    if (s->n_packed == PACKED_BLOCKS ||
        !make_block(s, &s->packed[s->n_packed], bytes, MIRROR_BLANK))
        return error_no_memory(n->err, bytes, "packed weights");
    struct block *b = &s->packed[s->n_packed++];
    *out = address(b);
    return m && !m->exact ? mirror_push_block(m, b, n->err) : STRATA_OK;
}

static const void *pack_extension(const char *id)
{
    static const strata_pack pack = { .struct_size = sizeof pack, .alloc = pack_alloc };
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
        return error_set(&s->n->err, STRATA_EINVAL, "the row has a port without format");
    int status = format_desc(&d, *f, shape->dims, shape->rank, &s->n->err);
    if (status != STRATA_OK)
        return status;
    if (pitched)
        pitch(&d);
    size_t bytes = (size_t)strata_desc_size(&d) * strata_dtype_size(d.dtype);
    if (!make_block(s, b, bytes, kind))
        return error_no_memory(&s->n->err, bytes, "tensor");
    tensor_view(t, &d, mask, STRATA_PAD_ZERO, b->data);
    return STRATA_OK;
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
        tensor_fill(&s->in[i], in[i]);
        s->in[i].pad = poison ? STRATA_PAD_ANY : STRATA_PAD_ZERO;
        if (!tensor_set_pads(&s->in[i], poison ? NAN : 0) ||
            (!s->n->in_place && !block_protect(&s->in_block[i])))
            return error_no_memory(&s->n->err, s->in_block[i].bytes, "input");
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
        struct format f = { w->dtype, ORDER_LINEAR, 1 };
        strata_desc d;
        int status = format_desc(&d, f, w->dims, w->rank, &s->n->err);
        if (status != STRATA_OK)
            return status;
        size_t bytes = (size_t)w->count * strata_dtype_size(w->dtype);
        if (!make_block(s, &s->weight_block[i], bytes, MIRROR_FULL))
            return error_no_memory(&s->n->err, bytes, "weight");
        tensor_view(&s->weight[i], &d, format_mask(f), STRATA_PAD_ZERO,
                    s->weight_block[i].data);
        tensor_fill(&s->weight[i], weight[i]);
        if (!block_protect(&s->weight_block[i]))
            return error_no_memory(&s->n->err, bytes, "weight");
    }
    return STRATA_OK;
}

/* A vector of the epilogue, an element for each channel of output 0. */
static int make_vector(struct session *s, struct block *b, const float **out,
                       const float *values)
{
    const strata_tensor *y = &s->n->out[0];
    size_t bytes = (size_t)(y->rank > 1 ? y->dims[1] : 1) * sizeof *values;
    if (!make_block(s, b, bytes, MIRROR_FULL))
        return error_no_memory(&s->n->err, bytes, "epilogue");
    memcpy(b->data, values, bytes);
    *out = address(b);
    return block_protect(b) ? STRATA_OK
                            : error_no_memory(&s->n->err, bytes, "epilogue");
}

/* The caller's residual is dense linear FP64; the impl sees the output's format. */
static int make_epilogue(struct session *s, const struct harness_formats *f,
                         const strata_epilogue *e)
{
    if (!e)
        return STRATA_OK;
    s->kinds = *e;
    s->kinds.scale = s->kinds.bias = NULL;
    s->kinds.residual = NULL;
    s->epilogue = s->kinds;
    int status = STRATA_OK;
    if (e->flags & STRATA_EPILOGUE_SCALE)
        status = make_vector(s, &s->scale_block, &s->epilogue.scale, e->scale);
    if (e->flags & STRATA_EPILOGUE_BIAS && status == STRATA_OK)
        status = make_vector(s, &s->bias_block, &s->epilogue.bias, e->bias);
    if (!(e->flags & STRATA_EPILOGUE_RESIDUAL) || status != STRATA_OK)
        return status;
    status = make_tensor(s, &s->residual, &s->residual_block, &s->n->out[0],
                             f->out[0], s->n->pitched_in, MIRROR_FULL);
    if (status != STRATA_OK)
        return status;
    tensor_fill(&s->residual, e->residual->data);
    s->epilogue.residual = &s->seen.residual;
    if (!tensor_set_pads(&s->residual, 0) || !block_protect(&s->residual_block))
        return error_no_memory(&s->n->err, s->residual_block.bytes, "residual");
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

/* The impl's view of the tensors. */
static void show_tensors(struct session *s)
{
    memcpy(s->seen.in, s->in, sizeof s->in);
    memcpy(s->seen.out, s->out, sizeof s->out);
    memcpy(s->seen.weight, s->weight, sizeof s->weight);
    s->seen.residual = s->residual;
    for (int i = 0; i < s->node.n_in; i++)
        s->seen.in[i].data = address(&s->in_block[i]);
    for (int i = 0; i < s->node.n_out; i++)
        s->seen.out[i].data =
            address(s->out_block[i].base ? &s->out_block[i] : &s->in_block[i]);
    for (int i = 0; i < s->node.n_weights; i++)
        s->seen.weight[i].data = address(&s->weight_block[i]);
    s->seen.residual.data = address(&s->residual_block);
}

/* Pack weights; what was packed is protected where the host can see it. */
static int set_up(struct session *s)
{
    struct mirror *m = s->n->mirror;
    bool visible = !m || !m->exact;
    int status = m ? mirror_push(m, patterns[0], &s->n->err) : STRATA_OK;
    if (m && status == STRATA_OK)
        status = mirror_wait(m, &s->n->err);
    if (status == STRATA_OK)
        status = s->impl->setup(&s->node, s->state.data);
    if (m && visible && s->n_packed > 0 && status == STRATA_OK)
        status = mirror_pull(m, &s->n->err);
    for (int i = 0; i < s->n_packed && visible && status == STRATA_OK; i++)
        if (!block_protect(&s->packed[i]))
            status = error_no_memory(&s->n->err, s->packed[i].bytes, "packed weights");
    return status;
}

static int open_instance(struct session *s)
{
    strata_node *node = &s->node;
    const strata_impl *impl = s->impl;
    size_t bytes = 0;
    if (impl->accept && impl->accept(node) != STRATA_OK) {
        s->n->vetoed = true;
        return STRATA_EUNSUPPORTED;
    }
    if (impl->workspace)
        bytes = impl->workspace(node);
    if (bytes > (size_t)1 << 30)
        return error_set(&s->n->err, STRATA_EOVERFLOW, "workspace of %zu bytes", bytes);
    if (!make_block(s, &s->workspace, bytes, MIRROR_SCRATCH) ||
        !block_make(&s->state, impl->state_size, 0) ||
        !block_make(&s->ctx, impl->ctx_size, 0))
        return error_no_memory(&s->n->err, bytes, "workspace");
    int status = impl->setup ? set_up(s) : STRATA_OK;
    if (status == STRATA_OK && !block_protect(&s->state))
        status = error_no_memory(&s->n->err, impl->state_size, "state");
    if (status == STRATA_OK && impl->ctx_open)
        status = impl->ctx_open(node, s->state.data, s->ctx.data);
    return status;
}

/* As the core runs it: the device tells of launches that the impl does not check. */
static int run_work(void *payload, void *native_stream, strata_error *err)
{
    const struct launch *l = payload;
    (void)err;
    l->run->stream = native_stream;
    return l->impl->run(l->run);
}

static int run_on_device(struct session *s, strata_run *r, unsigned char pattern)
{
    struct mirror *m = s->n->mirror;
    struct launch work = { s->impl, r };
    int status = mirror_push(m, pattern, r->err);
    if (status == STRATA_OK)
        status = m->handle->device->ops->submit(m->stream, run_work, &work, sizeof work,
                                                r->err);
    int waited = mirror_pull(m, r->err);
    return status == STRATA_OK ? waited : status;
}

static int run_once(struct session *s, unsigned char pattern)
{
    strata_run r = {
        .struct_size = sizeof r,
        .n_in = s->node.n_in,
        .n_out = s->node.n_out,
        .n_weights = s->node.n_weights,
        .params = s->n->params,
        .state = s->state.data,
        .ctx = s->ctx.data,
        .in = s->seen.in,
        .out = s->seen.out,
        .weight = s->seen.weight,
        .epilogue = &s->epilogue,
        .workspace = s->workspace.bytes ? address(&s->workspace) : NULL,
        .workspace_size = s->workspace.bytes,
        .host = &s->host,
        .err = &s->n->err,
    };
    bool dirty = s->impl->flags & STRATA_PAD_DIRTY;
    if (s->workspace.bytes && !s->n->mirror)
        memset(s->workspace.data, pattern, s->workspace.bytes);
    for (int i = 0; i < s->node.n_out; i++)
        if (s->out_block[i].base)
            memset(s->out_block[i].data, pattern, s->out_block[i].bytes);
    int status = s->n->mirror ? run_on_device(s, &r, pattern) : s->impl->run(&r);
    if (status == STRATA_OK && s->n->err.status != STRATA_OK)
        status = error_set(&s->n->err, STRATA_EINTERNAL, "run failed but returned 0");
    for (int i = 0; i < s->node.n_out && status == STRATA_OK; i++)
        if (s->out_block[i].base)
            status = tensor_check_outside(&s->out[i], dirty, pattern, &s->n->err);
    return status;
}

static int check_blocks(const struct session *s)
{
    strata_error *err = &s->n->err;
    int status = block_check(&s->workspace, "workspace", 0, err);
    status |= block_check(&s->state, "state (read-only after setup)", 0, err);
    status |= block_check(&s->ctx, "ctx", 0, err);
    status |= block_check(&s->residual_block, "residual", 0, err);
    status |= block_check(&s->scale_block, "epilogue's scale", 0, err);
    status |= block_check(&s->bias_block, "epilogue's bias", 0, err);
    for (int i = 0; i < HARNESS_INPUTS; i++)
        status |= block_check(&s->in_block[i], "input", i, err);
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        status |= block_check(&s->out_block[i], "output", i, err);
    for (int i = 0; i < HARNESS_WEIGHTS; i++)
        status |= block_check(&s->weight_block[i], "weight", i, err);
    for (int i = 0; i < s->n_packed; i++)
        status |= block_check(&s->packed[i], "packed weights", i, err);
    return status == STRATA_OK ? STRATA_OK : err->status;
}

/* A second run on other initial contents must give the same bits. */
static int run_again(struct session *s, double *const *out)
{
    bool exact = !(s->impl->flags & STRATA_NONDETERMINISTIC);
    int status = run_once(s, patterns[1]);
    for (int i = 0; i < s->node.n_out && status == STRATA_OK; i++) {
        size_t bytes = (size_t)s->out[i].count * sizeof(double);
        double *again = malloc(bytes + 1);
        if (!again)
            return error_no_memory(&s->n->err, bytes, "second result");
        tensor_read(again, &s->out[i]);
        for (int64_t k = 0; k < s->out[i].count && exact && status == STRATA_OK; k++)
            if (memcmp(&again[k], &out[i][k], sizeof again[k]) != 0 &&
                !(isnan(again[k]) && isnan(out[i][k])))
                status = error_set(&s->n->err, STRATA_EINTERNAL,
                                   "output %d, element %lld is %g on a second run, was "
                                   "%g: it is not written, or reads stale memory",
                                   i, (long long)k, again[k], out[i][k]);
        free(again);
    }
    return status;
}

static void session_free(struct session *s)
{
    struct block *const arrays[] = { s->in_block, s->out_block, s->weight_block,
                                     s->packed };
    const int counts[] = { HARNESS_INPUTS, HARNESS_OUTPUTS, HARNESS_WEIGHTS,
                           PACKED_BLOCKS };
    if (s->n->mirror)
        mirror_reset(s->n->mirror);
    for (size_t a = 0; a < ARRAY_LENGTH(arrays); a++)
        for (int i = 0; i < counts[a]; i++)
            block_free(&arrays[a][i]);
    block_free(&s->residual_block);
    block_free(&s->scale_block);
    block_free(&s->bias_block);
    block_free(&s->workspace);
    block_free(&s->state);
    block_free(&s->ctx);
}

int harness_run(struct harness_node *n, const struct registry_impl *impl, int row,
                const struct harness_formats *formats, const double *const *in,
                const double *const *weight, const strata_epilogue *epilogue,
                double *const *out)
{
    struct session s = { .n = n, .impl = &impl->impl, .node = n->node,
                         .host = *n->node.host };
    s.node.in = s.seen.in;
    s.node.out = s.seen.out;
    s.node.weight = s.seen.weight;
    s.node.epilogue = &s.kinds;
    s.node.row = row;
    s.node.instance = &s;
    s.node.host = &s.host;
    if (n->mirror)
        s.node.stream = n->mirror->handle->device->ops->stream_native(n->mirror->stream);
    if (!n->no_pack)
        s.host.extension = pack_extension;
    n->vetoed = false;
    error_clear(&n->err);
    int status = make_inputs(&s, formats, in);
    if (status == STRATA_OK)
        status = make_weights(&s, weight);
    if (status == STRATA_OK)
        status = make_outputs(&s, formats);
    if (status == STRATA_OK)
        status = make_epilogue(&s, formats, epilogue);
    if (status != STRATA_OK)
        goto done;
    show_tensors(&s);
    status = open_instance(&s);
    if (status == STRATA_OK)
        status = run_once(&s, patterns[0]);
    for (int i = 0; i < s.node.n_out && status == STRATA_OK; i++)
        tensor_read(out[i], &s.out[i]);
    if (status == STRATA_OK && !n->in_place)
        status = run_again(&s, out);
    if (status == STRATA_OK)
        status = check_blocks(&s);
    if (s.ctx.base && !n->vetoed && s.impl->ctx_close)
        s.impl->ctx_close(s.ctx.data);
    if (s.state.base && !n->vetoed && s.impl->teardown)
        s.impl->teardown(s.state.data);
done:
    session_free(&s);
    return status;
}
