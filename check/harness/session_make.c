/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks that an impl sees under guard: inputs and weights with copies to compare
 * with, outputs and workspace as patterns, and bands around each.
 */
#include "check/harness/session_private.h"

#include <stdlib.h>
#include <string.h>

const unsigned char session_patterns[PATTERNS] = {0xff, 0x5a};

/* ---- blocks -------------------------------------------------------------------- */

bool session_block(struct session *s, struct block *b, size_t bytes,
                   enum mirror_kind kind)
{
    return s->mirror ? mirror_block(s->mirror, b, bytes, session_patterns[0], kind)
                     : block_make(b, bytes, session_patterns[0]);
}

/* What a plugin is given. */
void *session_address(const struct block *b)
{
    return b->device ? b->device : b->data;
}

static int pack_alloc(const strata_node *n, size_t bytes, void **out)
{
    struct session *s = n->instance;
    struct block *b = &s->packed[s->n_packed];
    if (s->refuse_pack || s->n_packed == PACKED_BLOCKS ||
        !session_block(s, b, bytes, MIRROR_BLANK))
        return error_no_memory(n->err, bytes, "packed weights");
    *out = session_address(b);
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

/* Strides of a tensor that a range of channels, of 0 too, comes before and behind; with
 * the least alignment that a plan gives it. Its offset there, in bytes. */
static int64_t put_inside(strata_desc *d, struct format f, enum harness_pitch pitched,
                          strata_error *err)
{
    strata_desc whole;
    int64_t dims[STRATA_MAX_RANK];
    const int64_t size = (int64_t)strata_dtype_size(f.dtype);
    const int64_t unit = f.vector * size > 16 ? f.vector : 16 / size;
    if (d->rank < 2)
        return 0;
    memcpy(dims, d->dims, sizeof dims);
    dims[1] =
        (dims[1] + unit - 1) / unit * unit + (pitched == PITCH_WIDER ? 5 : 3) * unit;
    if (format_desc(&whole, f, dims, d->rank, err) != STRATA_OK)
        return -1;
    memcpy(d->strides, whole.strides, sizeof d->strides);
    return unit * size;
}

static int make_tensor(struct session *s, strata_tensor *t, struct block *b,
                       const strata_tensor *shape, uint64_t mask,
                       enum harness_pitch pitched, enum mirror_kind kind)
{
    int64_t lead = 0;
    strata_desc d;
    int bit = mask ? __builtin_ctzll(mask) : -1;
    const struct format *f = format_at(bit);
    if (!f)
        return error_set(&s->err, STRATA_EINVAL, "the row has a port without format");
    int status = format_desc(&d, *f, shape->dims, shape->rank, &s->err);
    if (status != STRATA_OK)
        return status;
    if (pitched == PITCH_ALL && shape->count > 0)
        pitch(&d);
    if (pitched >= PITCH_INSIDE && shape->count > 0)
        lead = put_inside(&d, *f, pitched, &s->err);
    if (lead < 0)
        return STRATA_EINVAL;
    size_t bytes =
        (size_t)lead + (size_t)strata_desc_size(&d) * strata_dtype_size(d.dtype);
    if (!s->n->ask && !session_block(s, b, bytes, kind))
        return error_no_memory(&s->err, bytes, "tensor");
    b->lead = (size_t)lead;
    tensor_view(t, &d, mask, STRATA_PAD_ZERO,
                s->n->ask ? NULL : (unsigned char *)session_address(b) + lead);
    t->exact = shape->exact;
    if (t->count == 0)
        t->data = NULL; /* what is empty may lie anywhere */
    return STRATA_OK;
}

/* A tensor as the host sees its block. */
strata_tensor session_view(const strata_tensor *t, const struct block *b)
{
    strata_tensor view = *t;
    view.data = b->data + b->lead;
    return view;
}

static int make_inputs(struct session *s, const struct harness_formats *f,
                       const void *const *in)
{
    bool poison = s->impl->flags & STRATA_PAD_IGNORED;
    int status = STRATA_OK;
    for (int i = 0; i < s->node.n_in && status == STRATA_OK; i++) {
        if (s->n->in[i].rank == 0) {
            s->in[i] = s->n->in[i];
            continue;
        }
        status = make_tensor(s, &s->in[i], &s->in_block[i], &s->n->in[i], f->in[i],
                             s->n->pitched_in, MIRROR_FULL);
        if (status != STRATA_OK)
            return status;
        s->in[i].pad = poison ? STRATA_PAD_ANY : STRATA_PAD_ZERO;
        if (s->n->ask)
            continue;
        const strata_tensor view = session_view(&s->in[i], &s->in_block[i]);
        tensor_fill(&view, in[i]);
        if (!tensor_set_pads(&view, poison) ||
            (!s->n->in_place && !block_protect(&s->in_block[i])))
            return error_no_memory(&s->err, s->in_block[i].bytes, "input");
    }
    return status;
}

/* A weight as the impl sees it, with its values. */
static const strata_tensor *seen_weight(const struct session *s, int i,
                                        const void **values)
{
    const struct harness_stored *stored = &s->n->stored;
    const bool few = s->impl->flags & STRATA_WEIGHT_STORED && stored->factors > 0;
    if (few && i == 0)
        *values = stored->values;
    if (few && i == stored->factors)
        *values = stored->factor_values;
    return few && i == 0                 ? &stored->weight
           : few && i == stored->factors ? &stored->factor
                                         : &s->n->weight[i];
}

static int make_weights(struct session *s, const void *const *weight)
{
    for (int i = 0; i < s->node.n_weights; i++) {
        const void *values = weight[i];
        const strata_tensor *w = seen_weight(s, i, &values);
        s->weight[i] = *w;
        if (w->rank == 0)
            continue;
        struct format f = {w->dtype, ORDER_LINEAR, 1};
        strata_desc d;
        int status = format_desc(&d, f, w->dims, w->rank, &s->err);
        if (status != STRATA_OK)
            return status;
        size_t bytes = (size_t)w->count * strata_dtype_size(w->dtype);
        if (!s->n->ask && !session_block(s, &s->weight_block[i], bytes, MIRROR_FULL))
            return error_no_memory(&s->err, bytes, "weight");
        tensor_view(&s->weight[i], &d, format_mask(f), STRATA_PAD_ZERO,
                    session_address(&s->weight_block[i]));
        if (s->n->ask)
            continue;
        const strata_tensor view = session_view(&s->weight[i], &s->weight_block[i]);
        tensor_fill(&view, values);
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
    if (!session_block(s, b, bytes, MIRROR_FULL))
        return error_no_memory(&s->err, bytes, "channels");
    memcpy(b->data, *values, bytes);
    *values = session_address(b);
    return block_protect(b) ? STRATA_OK : error_no_memory(&s->err, bytes, "channels");
}

/* The caller's is an array of double; the impl sees the output's format, and before it
 * runs no data. */
static int make_residual(struct session *s, const struct harness_formats *f,
                         const strata_epilogue *e)
{
    const enum harness_pitch pitched =
        s->n->pitched_in == PITCH_ALL ? PITCH_ALL : s->n->pitched_residual;
    const int status = make_tensor(s, &s->residual, &s->residual_block, &s->n->out[0],
                                   f->out[0], pitched, MIRROR_FULL);
    s->described = s->residual;
    s->described.data = NULL;
    s->kinds.residual = &s->described;
    s->epilogue.residual = &s->residual;
    if (status != STRATA_OK || s->n->ask)
        return status;
    const strata_tensor view = session_view(&s->residual, &s->residual_block);
    tensor_fill(&view, e->residual->data);
    if (!tensor_set_pads(&view, false) || !block_protect(&s->residual_block))
        return error_no_memory(&s->err, s->residual_block.bytes, "residual");
    return STRATA_OK;
}

static int make_epilogue(struct session *s, const struct harness_formats *f,
                         const strata_epilogue *e)
{
    if (!e)
        return STRATA_OK;
    s->epilogue = *e;
    s->kinds = *e;
    s->kinds.scale = s->kinds.bias = NULL;
    s->kinds.residual = NULL;
    if (e->flags & STRATA_EPILOGUE_RESIDUAL) {
        const int status = make_residual(s, f, e);
        if (status != STRATA_OK)
            return status;
    }
    if (s->n->ask) /* accept sees no pointers */
        return STRATA_OK;
    const int status = make_channels(s, &s->scale_block, &s->epilogue.scale);
    return status == STRATA_OK ? make_channels(s, &s->bias_block, &s->epilogue.bias)
                               : status;
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
int session_each_block(struct session *s, session_visit visit)
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

static int discard(struct session *s, struct block *b, const char *what, int index)
{
    (void)s;
    (void)what;
    (void)index;
    block_free(b);
    return STRATA_OK;
}

/* ---- the session --------------------------------------------------------------- */

int session_make(struct session *s, struct harness_node *n,
                 const struct registry_impl *impl, int row,
                 const struct harness_formats *formats, const void *const *in,
                 const void *const *weight, const strata_epilogue *epilogue)
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
    n->vetoed = n->lacking = false;
    int status = make_inputs(s, formats, in);
    if (status == STRATA_OK)
        status = make_weights(s, weight);
    if (status == STRATA_OK)
        status = make_outputs(s, formats);
    return status == STRATA_OK ? make_epilogue(s, formats, epilogue) : status;
}

void session_free(struct session *s)
{
    if (s->mirror)
        mirror_reset(s->mirror);
    session_each_block(s, discard);
}
