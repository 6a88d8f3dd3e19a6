/* SPDX-License-Identifier: Apache-2.0
 *
 * What each step of an engine's run is, and the least that it must move and do: the
 * terms in which a time is judged.
 */
#include "engine/engine.h"

#include <stdlib.h>

#include "core/arguments.h"
#include "planner/view.h"

static double bytes_of(const strata_tensor *t, int dtype)
{
    return (double)t->size * (double)strata_dtype_size(dtype);
}

static double tensors_bytes(const strata_tensor *t, int n)
{
    double bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += bytes_of(&t[i], t[i].dtype);
    return bytes;
}

static double operations(const struct node_view *v, const struct execution_node *n)
{
    const strata_layer *layer = &n->layer->type->layer;
    double count = 0;
    if (layer->flops)
        return layer->flops(&v->node);
    for (int i = 0; i < n->n_out; i++)
        count += (double)v->out[i].count;
    return count;
}

/* Tensors are read and written once; so are the weights, as wide as the output, which is
 * how impls pack them, unless they take them as they are stored. */
static int measure_run(strata_step *out, const strata_engine *e, int node,
                       strata_error *err)
{
    const struct execution *x = e->execution;
    const struct execution_node *n = &x->nodes[node];
    const size_t count = (size_t)(n->n_ports + n->n_out);
    strata_tensor *in = zalloc(count, sizeof *in, "a step", err);
    if (!in)
        return STRATA_ENOMEM;
    struct node_view v = {
        .in = in, .out = in + n->n_ports, .weight = e->parts[node]->weights};
    execution_tensors(x, n, in, v.out);
    const int dtype = n->n_out ? v.out[0].dtype : STRATA_FP32;
    const bool stored = n->impl->impl.flags & STRATA_WEIGHT_STORED;
    out->bytes = tensors_bytes(in, (int)count);
    for (size_t w = 0; w < n->layer->type->n_weights; w++)
        if (n->weights[w].rank > 0)
            out->bytes += bytes_of(&n->weights[w], stored ? n->weights[w].dtype : dtype);
    if (n->residual_value >= 0)
        out->bytes += (double)x->values[n->residual_value].bytes;
    execution_view(&v, x, n, err);
    out->operations = operations(&v, n);
    const double peak = e->handle->properties.flops[dtype];
    out->floor_us = peak > 0 ? 1e6 * out->operations / peak : 0;
    free(in);
    return STRATA_OK;
}

static const char *format_of(const struct execution *x, int value)
{
    const struct execution_value *v = &x->values[value];
    return format_mask_name(UINT64_C(1) << v->format, v->desc.rank);
}

static void describe_run(strata_step *out, const struct execution *x,
                         const struct execution_node *n)
{
    out->name = n->name;
    out->layer = n->layer->type->full_name;
    out->impl = n->impl->impl.name;
    out->module = module_info(n->impl->module).path;
    out->from = n->n_in ? format_of(x, n->in_values[0]) : "-";
    out->to = n->n_out ? format_of(x, n->out_values[0]) : "-";
}

static void describe_conversion(strata_step *out, const strata_engine *e,
                                const struct execution_step *s)
{
    const struct execution *x = e->execution;
    out->name = e->network->tensors[x->values[s->to].tensor].name;
    out->from = format_of(x, s->from);
    out->to = format_of(x, s->to);
    if (s->kind == STEP_REFORMAT)
        out->bytes = (double)x->values[s->from].bytes + (double)x->values[s->to].bytes;
}

int strata_engine_steps(const strata_engine *e)
{
    return e ? (int)e->execution->n_steps : 0;
}

static int describe(strata_step *out, const strata_engine *e, int index,
                    strata_error *err)
{
    static const int kinds[] = {[STEP_RUN] = STRATA_STEP_RUN,
                                [STEP_REFORMAT] = STRATA_STEP_REFORMAT,
                                [STEP_RELABEL] = STRATA_STEP_RELABEL};
    const struct execution *x = e->execution;
    const struct execution_step *s = &x->steps[index];
    int status = STRATA_OK;
    out->kind = s->once ? STRATA_STEP_RELABEL : kinds[s->kind];
    out->predicted_us = (double)execution_step_predicts(x, s) / (PLAN_UNIT_PER_NS * 1e3);
    out->live_bytes = s->live;
    if (s->kind == STEP_RUN) {
        describe_run(out, x, &x->nodes[s->node]);
        status = measure_run(out, e, s->node, err);
    } else {
        describe_conversion(out, e, s);
    }
    const double memory_us = 1e6 * out->bytes / e->handle->properties.bandwidth;
    out->memory_bound = memory_us >= out->floor_us;
    if (out->memory_bound)
        out->floor_us = memory_us;
    return status;
}

int strata_engine_step(const strata_engine *e, int index, strata_step *out,
                       strata_error *err)
{
    strata_step found = {0};
    int status = ARGUMENTS(err, {"engine", e}, {"out", out});
    if (status == STRATA_OK)
        status = struct_check(out->struct_size, SIZE_THROUGH(strata_step, predicted_us),
                              "strata_step", err);
    if (status != STRATA_OK)
        return status;
    if (index < 0 || index >= (int)e->execution->n_steps)
        return error_set(err, STRATA_EINVAL, "step %d: there are %zu", index,
                         e->execution->n_steps);
    status = describe(&found, e, index, err);
    struct_give(out, &found, sizeof found);
    return status;
}
