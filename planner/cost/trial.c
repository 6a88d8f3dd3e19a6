/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials: what a run of the network would have, on memory and data of their own.
 */
#include "planner/cost/trial.h"

#include <stdlib.h>
#include <string.h>

#include "core/team.h"
#include "formats/reformat/reformat.h"

void trial_pattern_fill(struct trial_pattern *p)
{
    float *x = (float *)p->of[STRATA_FP32];
    uint8_t *small[] = {(uint8_t *)p->of[STRATA_INT8], (uint8_t *)p->of[STRATA_UINT8]};
    uint8_t *truth = (uint8_t *)p->of[STRATA_BOOL8];
    uint64_t state = 42;
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < TRIAL_PATTERN; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        x[i] = (float)(state >> 40) / (float)(1 << 23) - 1;
        p->weight[i] = 0.55f + 0.45f * x[i];
        small[0][i] = small[1][i] = (uint8_t)(state >> 57);
        truth[i] = (uint8_t)(state >> 63);
    }
    for (int dtype = 0; dtype < STRATA_DTYPE_COUNT; dtype++)
        if (dtype != STRATA_FP32 && dtype_range(dtype) > 0) /* a float */
            reformat_elements(p->of[dtype], dtype, x, STRATA_FP32, TRIAL_PATTERN);
}

static const void *pattern_of(const struct trial_pattern *p, int dtype, bool weight)
{
    return dtype == STRATA_FP32 && weight ? (const void *)p->weight : p->of[dtype];
}

static size_t tensor_bytes(const strata_tensor *t)
{
    return (size_t)t->size * strata_dtype_size(t->dtype);
}

static int fill_memory(struct trial *t, void *data, size_t bytes, int dtype, bool weight,
                       const struct trial_pattern *p, strata_error *err)
{
    const struct device_ops *ops = t->handle->device->ops;
    strata_stream *s = t->handle->stream;
    size_t done = TRIAL_PATTERN * strata_dtype_size(dtype);
    done = done < bytes ? done : bytes;
    int status =
        ops->copy(s, data, pattern_of(p, dtype, weight), done, COPY_TO_DEVICE, err);
    for (size_t n; done < bytes && status == STRATA_OK; done += n) {
        n = done < bytes - done ? done : bytes - done;
        status = ops->copy(s, (char *)data + done, data, n, COPY_ON_DEVICE, err);
    }
    return status;
}

static int get_memory(struct trial *t, void **out, size_t bytes, int dtype, bool weight,
                      const struct trial_pattern *p, strata_error *err)
{
    *out = allocator_get(&t->handle->allocator, bytes, "a measurement", err);
    return *out ? fill_memory(t, *out, bytes, dtype, weight, p, err) : STRATA_ENOMEM;
}

static int get_tensors(struct trial *t, strata_tensor *tensors, int n, bool weight,
                       const struct trial_pattern *p, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < n && status == STRATA_OK; i++)
        if (tensors[i].size > 0)
            status = get_memory(t, &tensors[i].data, tensor_bytes(&tensors[i]),
                                tensors[i].dtype, weight, p, err);
    return status;
}

static int get_inputs(struct trial *t, const struct trial_pattern *p, strata_error *err)
{
    strata_tensor *in = t->query->in;
    int status = STRATA_OK;
    for (int i = 0, before; i < t->node->n_ports && status == STRATA_OK; i++)
        if ((before = cost_port_before(t->node, t->query->candidate, i)) >= 0)
            in[i].data = in[before].data;
        else
            status = get_tensors(t, &in[i], 1, false, p, err);
    return status;
}

/* Each piece of memory is given back once. */
static void part_inputs(struct trial *t, strata_tensor *in)
{
    for (int i = t->node->n_ports - 1; i >= 0; i--)
        if (cost_port_before(t->node, t->query->candidate, i) >= 0)
            in[i].data = NULL;
}

static void put_tensors(struct trial *t, strata_tensor *tensors, int n)
{
    for (int i = 0; tensors && i < n; i++) {
        allocator_put(&t->handle->allocator, tensors[i].data, tensor_bytes(&tensors[i]));
        tensors[i].data = NULL;
    }
}

void trial_close(struct trial *t)
{
    struct allocator *memory = &t->handle->allocator;
    const struct cost_query *q = t->query;
    if (t->graph)
        t->handle->device->ops->graph_destroy(t->handle->device, t->graph);
    if (!q->candidate) {
        allocator_put(memory, t->from, (size_t)strata_desc_bytes(&q->from));
        allocator_put(memory, t->to, (size_t)strata_desc_bytes(&q->to));
        return;
    }
    const strata_impl *impl = &q->candidate->impl->impl;
    if (t->opened && impl->ctx_close)
        impl->ctx_close(t->ctx);
    if (t->set_up && impl->teardown)
        impl->teardown(t->state);
    pack_free(&t->packs);
    part_inputs(t, q->in);
    put_tensors(t, q->in, t->node->n_ports);
    put_tensors(t, q->out, t->node->n_out);
    put_tensors(t, t->weights, t->run.n_weights);
    if (t->view.epilogue.flags & STRATA_EPILOGUE_RESIDUAL)
        put_tensors(t, &t->view.residual, 1);
    allocator_put(memory, t->run.workspace, t->run.workspace_size);
    free(t->weights);
    free(t->state);
    free(t->ctx);
}

static int fail_trial(const struct trial *t, int status, const char *phase,
                      strata_error *err)
{
    if (status == STRATA_OK)
        return status;
    error_set(err, status, "%s", strata_status_text(status));
    if (t->query->candidate)
        error_prefix(err, "layer '%s', impl %s, %s for a measurement", t->query->layer,
                     t->query->candidate->impl->impl.name, phase);
    return status;
}

static int setup_on_stream(void *payload, void *stream, strata_error *err)
{
    struct trial *t = *(struct trial **)payload;
    const strata_impl *impl = &t->query->candidate->impl->impl;
    threads_set(t->planner->threads);
    t->view.node.stream = stream;
    t->view.node.err = err;
    int status = impl->setup ? impl->setup(&t->view.node, t->state) : STRATA_OK;
    t->set_up = status == STRATA_OK;
    if (status == STRATA_OK && impl->ctx_open)
        status = impl->ctx_open(&t->view.node, t->state, t->ctx);
    t->opened = t->set_up && status == STRATA_OK;
    return fail_trial(t, status, "setup", err);
}

static int prepare_run(struct trial *t, const struct trial_pattern *p, strata_error *err)
{
    const struct planner_candidate *c = t->query->candidate;
    const strata_impl *impl = &c->impl->impl;
    int n_weights = (int)t->node->layer->type->n_weights;
    t->weights = zalloc((size_t)n_weights, sizeof *t->weights, "a measurement", err);
    t->state = zalloc(1, impl->state_size, "an impl's state", err);
    t->ctx = zalloc(1, impl->ctx_size, "an impl's context", err);
    if (!t->weights || !t->state || !t->ctx)
        return STRATA_ENOMEM;
    memcpy(t->weights, t->query->weights, (size_t)n_weights * sizeof *t->weights);
    t->run = (strata_run){.struct_size = sizeof(strata_run),
                          .n_in = t->node->n_ports,
                          .n_out = t->node->n_out,
                          .n_weights = n_weights,
                          .state = t->state,
                          .ctx = t->ctx,
                          .in = t->query->in,
                          .out = t->query->out,
                          .weight = t->weights,
                          .epilogue = &t->view.epilogue,
                          .host = registry_host()};
    for (int i = 0; i < n_weights; i++)
        t->weights[i].data = NULL;
    t->packs.allocator = &t->handle->allocator;
    t->view = (struct node_view){.in = t->query->in,
                                 .out = t->query->out,
                                 .weight = t->weights,
                                 .packs = &t->packs};
    if (t->node->n_out > 0)
        t->view.residual = t->query->out[0]; /* of its shape and format */
    planner_view(&t->view, t->planner, t->node, c->fused, c->row, err);
    t->run.params = t->view.node.params;
    int status = STRATA_OK;
    if (t->view.epilogue.flags & STRATA_EPILOGUE_RESIDUAL)
        status = get_tensors(t, &t->view.residual, 1, false, p, err);
    if (status == STRATA_OK)
        status = get_inputs(t, p, err);
    if (status == STRATA_OK)
        status = get_tensors(t, t->query->out, t->node->n_out, false, p, err);
    if (status == STRATA_OK)
        status = get_tensors(t, t->weights, n_weights, true, p, err);
    if (status != STRATA_OK || c->workspace == 0)
        return status;
    t->run.workspace =
        allocator_get(&t->handle->allocator, c->workspace, "a workspace", err);
    t->run.workspace_size = t->run.workspace ? c->workspace : 0;
    return t->run.workspace ? STRATA_OK : STRATA_ENOMEM;
}

int trial_open(struct trial *t, const struct trial_pattern *p, strata_error *err)
{
    const struct cost_query *q = t->query;
    const struct device_ops *ops = t->handle->device->ops;
    strata_stream *s = t->handle->stream;
    int status;
    if (!q->candidate) {
        status = get_memory(t, &t->from, (size_t)strata_desc_bytes(&q->from),
                            q->from.dtype, false, p, err);
        return status != STRATA_OK
                   ? status
                   : get_memory(t, &t->to, (size_t)strata_desc_bytes(&q->to), q->to.dtype,
                                false, p, err);
    }
    t->node = planner_run_node(t->planner, q->candidate);
    status = prepare_run(t, p, err);
    if (status == STRATA_OK)
        status = ops->submit(s, setup_on_stream, &t, sizeof t, err);
    if (status == STRATA_OK)
        status = ops->stream_synchronize(s, err);
    if (status == STRATA_OK && q->candidate->impl->impl.flags & STRATA_WEIGHT_PACKED)
        put_tensors(t, t->weights, t->run.n_weights > 0);
    return status;
}

struct run_payload {
    struct trial *trial;
    int repeats;
};

static int run_on_stream(void *payload, void *stream, strata_error *err)
{
    const struct run_payload *p = payload;
    struct trial *t = p->trial;
    const strata_impl *impl = &t->query->candidate->impl->impl;
    int status = STRATA_OK;
    threads_set(t->planner->threads);
    t->run.stream = stream;
    t->run.err = err;
    for (int i = 0; i < p->repeats && status == STRATA_OK; i++)
        status = impl->run(&t->run);
    return fail_trial(t, status, "run", err);
}

int trial_enqueue(struct trial *t, int repeats, strata_error *err)
{
    const struct device_ops *ops = t->handle->device->ops;
    strata_stream *s = t->handle->stream;
    struct run_payload p = {t, repeats};
    int status = STRATA_OK;
    if (t->query->candidate)
        return ops->submit(s, run_on_stream, &p, sizeof p, err);
    for (int i = 0; i < repeats && status == STRATA_OK; i++)
        status = reformat_enqueue(s, &t->query->to, t->to, &t->query->from, t->from, err);
    return status;
}

bool trial_empty(const struct trial *t)
{
    for (int i = 0; t->query->candidate && i < t->run.n_out; i++)
        if (t->run.out[i].count > 0)
            return false;
    return t->query->candidate != NULL;
}

int64_t trial_bytes(const struct planner *planner, const struct cost_query *q)
{
    int64_t bytes = 0;
    if (!q->candidate)
        return strata_desc_bytes(&q->from) + strata_desc_bytes(&q->to);
    const struct planner_node *n = planner_run_node(planner, q->candidate);
    for (int i = 0; i < n->n_ports; i++)
        bytes += (int64_t)tensor_bytes(&q->in[i]);
    for (int i = 0; i < n->n_out; i++)
        bytes += (int64_t)tensor_bytes(&q->out[i]);
    for (size_t w = 0; w < n->layer->type->n_weights; w++)
        bytes += 2 * (int64_t)tensor_bytes(&q->weights[w]); /* and its packed copy */
    return bytes + (int64_t)q->candidate->workspace;
}

void *trial_input(const struct trial *t, int k, size_t *bytes)
{
    const bool adds = t->view.epilogue.flags & STRATA_EPILOGUE_RESIDUAL;
    const strata_tensor *from = k < t->run.n_in            ? &t->query->in[k]
                                : k == t->run.n_in && adds ? &t->view.residual
                                                           : NULL;
    if (!t->query->candidate && k == 0) {
        *bytes = (size_t)strata_desc_bytes(&t->query->from);
        return t->from;
    }
    const bool again =
        k < t->run.n_in && cost_port_before(t->node, t->query->candidate, k) >= 0;
    *bytes = from && !again ? tensor_bytes(from) : 0;
    return from ? from->data : NULL;
}
