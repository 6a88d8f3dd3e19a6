/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that run once: a Constant whose weight lies as its output does is that weight,
 * any other is computed when its engine is set up, to memory that contexts read. The
 * weight is then free, and engines for other sizes have what the largest one's made.
 * Where contexts check what they run, all stays, and each has its own.
 */
#include "engine/context/context.h"

#include "core/team.h"
#include "registry/registry.h"

/* The one run of a node; its memory is made_once's. */
struct once {
    strata_run run;
    const struct execution_node *node;
    int threads;
};

/* Without gaps, in the order of its dims. */
static bool is_linear(const strata_tensor *t)
{
    int64_t stride = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        if (t->dims[d] > 1 && t->strides[d] != stride)
            return false;
        stride *= t->dims[d];
    }
    return t->vector == 1;
}

/* Where weights are not packed, and so stay. */
static bool is_weight(const struct execution_node *n, const strata_tensor *weight,
                      const strata_tensor *out)
{
    return !(n->impl->impl.flags & STRATA_WEIGHT_PACKED) && weight->dtype == out->dtype &&
           weight->size == out->size && is_linear(out) && is_linear(weight);
}

static int run_once(void *payload, void *stream, strata_error *err)
{
    struct once *const *once = payload;
    strata_run *r = &(*once)->run;
    const struct execution_node *n = (*once)->node;
    const int before = threads_set((*once)->threads);
    r->stream = stream;
    r->err = err;
    int status = n->impl->impl.run(r);
    threads_set(before);
    if (status != STRATA_OK) {
        error_set(err, status, "it returned %d (%s) without a message", status,
                  strata_status_text(status));
        error_prefix(err, "layer '%s', impl %s, run", n->name, n->impl->impl.name);
    }
    return status;
}

static int make_once(strata_engine *e, const struct execution_node *n,
                     struct engine_part *part, strata_tensor *out, strata_error *err)
{
    struct allocator *memory = &e->handle->allocator;
    const struct device_ops *ops = e->handle->device->ops;
    strata_epilogue epilogue = n->epilogue;
    struct once once = {.node = n, .threads = e->execution->threads}, *payload = &once;
    void *workspace =
        n->workspace ? allocator_get(memory, n->workspace, "a workspace", err) : NULL;
    if (n->workspace && !workspace)
        return STRATA_ENOMEM;
    once.run = (strata_run){.struct_size = sizeof(strata_run),
                            .n_out = 1,
                            .n_weights = (int32_t)n->layer->type->n_weights,
                            .params = n->params,
                            .out = out,
                            .weight = part->weights,
                            .epilogue = &epilogue,
                            .workspace = workspace,
                            .workspace_size = n->workspace,
                            .host = registry_host()};
    int status = ops->submit(e->handle->stream, run_once, &payload, sizeof payload, err);
    const int done =
        ops->stream_synchronize(e->handle->stream, status == STRATA_OK ? err : NULL);
    allocator_put(memory, workspace, n->workspace);
    return status == STRATA_OK ? done : status;
}

void *engine_lent_constant(const strata_engine *e, size_t node)
{
    const struct execution_node *n = &e->execution->nodes[node];
    const int from = e->parts[node]->lender;
    if (from < 0 || e->execution->values[n->out_values[0]].constant < 0 ||
        context_check_wanted())
        return NULL;
    const struct execution *x = e->lender->execution;
    const struct execution_node *lender = &x->nodes[from];
    const struct execution_value *made = &x->values[lender->out_values[0]],
                                 *own = &e->execution->values[n->out_values[0]];
    return made->constant >= 0 && lender->impl == n->impl && lender->row == n->row &&
                   made->pad == own->pad && strata_desc_equal(&made->desc, &own->desc)
               ? e->lender->parts[from]->constant
               : NULL;
}

int engine_make_constant(strata_engine *e, size_t node, strata_error *err)
{
    const struct execution_node *n = &e->execution->nodes[node];
    struct engine_part *part = e->parts[node];
    strata_tensor none, out;
    if (part->constant || e->execution->values[n->out_values[0]].constant < 0)
        return STRATA_OK;
    execution_tensors(e->execution, n, &none, &out);
    if (is_weight(n, &part->weights[0], &out)) {
        part->constant = part->weights[0].data;
        return STRATA_OK;
    }
    const int64_t size = e->execution->values[n->out_values[0]].bytes;
    const size_t bytes = size > 0 ? (size_t)size : 1;
    part->constant = allocator_get(&e->handle->allocator, bytes, n->name, err);
    if (!part->constant)
        return STRATA_ENOMEM;
    part->constant_bytes = bytes;
    e->weight_bytes += bytes;
    out.data = part->constant;
    return out.count > 0 ? make_once(e, n, part, &out, err) : STRATA_OK;
}

bool engine_keeps_weight(const struct engine_part *made)
{
    return made->constant_bytes == 0 || context_check_wanted();
}

void engine_free_constant(strata_handle *handle, struct engine_part *part)
{
    if (part->constant_bytes > 0)
        allocator_put(&handle->allocator, part->constant, part->constant_bytes);
    part->constant = NULL;
    part->constant_bytes = 0;
}
