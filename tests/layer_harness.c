/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one impl under guard: every block the impl sees has bands around it, outputs
 * and workspace start as NaN patterns, inputs and weights are compared with copies, and
 * pads and gaps are checked element by element.
 */
#include "tests/layer_harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/layer_memory.h"

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
    struct block workspace, state, ctx, packed[PACKED_BLOCKS];
    int n_packed;
    strata_host host;
};

static int pack_alloc(const strata_node *n, size_t bytes, void **out)
{
    struct session *s = n->instance;
    if (s->n_packed == PACKED_BLOCKS ||
        !block_make(&s->packed[s->n_packed], bytes, patterns[0]))
        return error_no_memory(n->err, bytes, "packed weights");
    *out = s->packed[s->n_packed++].data;
    return STRATA_OK;
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
                       unsigned char pattern)
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
    if (!block_make(b, bytes, pattern))
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
                             s->n->pitched_in, patterns[0]);
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
        if (!block_make(&s->weight_block[i], bytes, patterns[0]))
            return error_no_memory(&s->n->err, bytes, "weight");
        tensor_view(&s->weight[i], &d, format_mask(f), STRATA_PAD_ZERO,
                    s->weight_block[i].data);
        tensor_fill(&s->weight[i], weight[i]);
        if (!block_protect(&s->weight_block[i]))
            return error_no_memory(&s->n->err, bytes, "weight");
    }
    return STRATA_OK;
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
    if (!(e->flags & STRATA_EPILOGUE_RESIDUAL))
        return STRATA_OK;
    int status = make_tensor(s, &s->residual, &s->residual_block, &s->n->out[0],
                             f->out[0], s->n->pitched_in, patterns[0]);
    if (status != STRATA_OK)
        return status;
    tensor_fill(&s->residual, e->residual->data);
    s->epilogue.residual = &s->residual;
    if (!tensor_set_pads(&s->residual, 0) || !block_protect(&s->residual_block))
        return error_no_memory(&s->n->err, s->residual_block.bytes, "residual");
    return STRATA_OK;
}

static int make_outputs(struct session *s, const struct harness_formats *f)
{
    int status = STRATA_OK;
    for (int i = 0; i < s->node.n_out && status == STRATA_OK; i++)
        if (i == 0 && s->n->in_place)
            s->out[0] = s->in[0];
        else
            status = make_tensor(s, &s->out[i], &s->out_block[i], &s->n->out[i],
                                 f->out[i], s->n->pitched_out, patterns[0]);
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
    if (!block_make(&s->workspace, bytes, patterns[0]) ||
        !block_make(&s->state, impl->state_size, 0) ||
        !block_make(&s->ctx, impl->ctx_size, 0))
        return error_no_memory(&s->n->err, bytes, "workspace");
    int status = impl->setup ? impl->setup(node, s->state.data) : STRATA_OK;
    for (int i = 0; i < s->n_packed && status == STRATA_OK; i++)
        if (!block_protect(&s->packed[i]))
            status = error_no_memory(&s->n->err, s->packed[i].bytes, "packed weights");
    if (status == STRATA_OK && !block_protect(&s->state))
        status = error_no_memory(&s->n->err, impl->state_size, "state");
    if (status == STRATA_OK && impl->ctx_open)
        status = impl->ctx_open(node, s->state.data, s->ctx.data);
    return status;
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
        .in = s->in,
        .out = s->out,
        .weight = s->weight,
        .epilogue = &s->epilogue,
        .workspace = s->workspace.bytes ? s->workspace.data : NULL,
        .workspace_size = s->workspace.bytes,
        .host = &s->host,
        .err = &s->n->err,
    };
    bool dirty = s->impl->flags & STRATA_PAD_DIRTY;
    if (s->workspace.bytes)
        memset(s->workspace.data, pattern, s->workspace.bytes);
    for (int i = 0; i < s->node.n_out; i++)
        if (s->out_block[i].base)
            memset(s->out_block[i].data, pattern, s->out_block[i].bytes);
    int status = s->impl->run(&r);
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
    for (size_t a = 0; a < ARRAY_LENGTH(arrays); a++)
        for (int i = 0; i < counts[a]; i++)
            block_free(&arrays[a][i]);
    block_free(&s->residual_block);
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
    s.node.in = s.in;
    s.node.out = s.out;
    s.node.weight = s.weight;
    s.node.epilogue = &s.kinds;
    s.node.row = row;
    s.node.instance = &s;
    s.node.host = &s.host;
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
