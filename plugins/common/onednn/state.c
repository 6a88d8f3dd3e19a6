/* SPDX-License-Identifier: Apache-2.0
 *
 * A primitive's life: made and given its packed weights in setup, bound to one context's
 * handles in ctx_open and to pointers in run.
 */
#include "plugins/common/onednn/primitive.h"

#include <omp.h>

/* One reorder, from the network's layout into the kernel's. */
static int reorder(const strata_node *n, dnnl_engine_t engine,
                   const dnnl_memory_desc_t *from, void *source,
                   const dnnl_memory_desc_t *to, void *destination)
{
    dnnl_primitive_desc_t descriptor = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
    dnnl_status_t s;

    if ((s = dnnl_reorder_primitive_desc_create(&descriptor, from, engine, to, engine,
                                                NULL)) ||
        (s = dnnl_primitive_create(&primitive, descriptor)) ||
        (s = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags)) ||
        (s = dnnl_memory_create(&arguments[0].memory, from, engine, source)) ||
        (s = dnnl_memory_create(&arguments[1].memory, to, engine, destination)) ||
        (s = dnnl_primitive_execute(primitive, stream, 2, arguments)))
        goto done;
    s = dnnl_stream_wait(stream);
done:
    for (int i = 0; i < 2; i++)
        if (arguments[i].memory)
            dnnl_memory_destroy(arguments[i].memory);
    if (stream)
        dnnl_stream_destroy(stream);
    if (primitive)
        dnnl_primitive_destroy(primitive);
    if (descriptor)
        dnnl_primitive_desc_destroy(descriptor);
    return onednn_check(n, s, "packing the weights");
}

/* On one thread: a team made here, beside that of the thread that runs the network, would
 * be more threads than processors to libgomp, which then lets both sleep between kernels;
 * waking them costs a third of a small network's time. */
static int pack_weight(const strata_node *n, const struct onednn_candidate *c,
                       void **packed)
{
    const dnnl_memory_desc_t *wanted =
        dnnl_primitive_desc_query_md(c->descriptor, dnnl_query_weights_md, 0);
    const strata_pack *pack;
    int threads, status;

    if (c->request.weight.ndims == 0 ||
        dnnl_memory_desc_equal(wanted, &c->request.weight))
        return STRATA_OK;
    pack = n->host->extension ? n->host->extension(STRATA_PACK_V1) : NULL;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1
                           ", which oneDNN needs for its packed weights");
    if ((status = pack->alloc(n, dnnl_memory_desc_get_size(wanted), packed)) ||
        (status = onednn_room(n)))
        return status;
    threads = omp_get_max_threads();
    omp_set_num_threads(1);
    status =
        reorder(n, c->engine, &c->request.weight, n->weight[0].data, wanted, *packed);
    omp_set_num_threads(threads);
    return status;
}

static int make_primitive(const strata_node *n, const struct onednn_candidate *c,
                          dnnl_primitive_t *out)
{
    const int threads = omp_get_max_threads();
    omp_set_num_threads(c->threads);
    const dnnl_status_t made = dnnl_primitive_create(out, c->descriptor);
    omp_set_num_threads(threads);
    return onednn_check(n, made, "primitive");
}

int onednn_setup(const strata_node *n, onednn_describe describe, void *state)
{
    struct onednn_state *s = state;
    struct onednn_candidate c;
    int status = onednn_candidate_open(n, describe, &c);

    if (status)
        goto done;
    s->batch = n->in[0].dims[0];
    s->threads = c.threads;
    s->workspace = onednn_candidate_workspace(&c);
    s->arguments = c.arguments;
    if (c.request.quantized && c.request.quantized->to != 0 &&
        (status = onednn_quantized_divisor(n, &s->divisor)))
        goto done;
    if ((status = pack_weight(n, &c, &s->weight)) || (status = onednn_room(n)) ||
        (status = make_primitive(n, &c, &s->primitive)))
        goto done;
    s->engine = c.engine;
    c.engine = NULL;
done:
    onednn_candidate_close(&c);
    return status;
}

void onednn_teardown(void *state)
{
    struct onednn_state *s = state;
    if (!s)
        return;
    if (s->primitive)
        dnnl_primitive_destroy(s->primitive);
    if (s->engine)
        dnnl_engine_destroy(s->engine);
    *s = (struct onednn_state){0};
}

/* A handle that holds no pointer yet; run sets it. */
static int open_handle(const strata_node *n, const struct onednn_state *s,
                       const_dnnl_primitive_desc_t descriptor, int index,
                       dnnl_exec_arg_t *argument)
{
    const dnnl_memory_desc_t *md =
        dnnl_primitive_desc_query_md(descriptor, dnnl_query_exec_arg_md, index);
    argument->arg = index;
    return onednn_check(
        n, dnnl_memory_create(&argument->memory, md, s->engine, DNNL_MEMORY_NONE),
        "memory handle");
}

int onednn_ctx_open(const strata_node *n, const void *state, void *ctx)
{
    const struct onednn_state *s = state;
    struct onednn_context *c = ctx;
    const_dnnl_primitive_desc_t descriptor;
    int status;

    if ((status = onednn_room(n)) ||
        (status =
             onednn_check(n, dnnl_primitive_get_primitive_desc(s->primitive, &descriptor),
                          "primitive")) ||
        (status = onednn_check(
             n, dnnl_stream_create(&c->stream, s->engine, dnnl_stream_default_flags),
             "stream")))
        return status;
    for (int i = 0; i < s->arguments.n; i++, c->n_arguments++)
        if ((status = open_handle(n, s, descriptor, s->arguments.at[i].index,
                                  &c->arguments[i]))) {
            onednn_ctx_close(c);
            return status;
        }
    return STRATA_OK;
}

void onednn_ctx_close(void *ctx)
{
    struct onednn_context *c = ctx;
    if (!c)
        return;
    for (int i = 0; i < c->n_arguments; i++)
        dnnl_memory_destroy(c->arguments[i].memory);
    if (c->stream)
        dnnl_stream_destroy(c->stream);
    *c = (struct onednn_context){0};
}

/* Of fp32. */
static void *image_data(const strata_tensor *t, int64_t image)
{
    return (float *)t->data + image * t->strides[0];
}

/* oneDNN's handles are not const; it writes through the output and workspace alone. */
static void *source_data(const struct onednn_state *s, const strata_run *r,
                         enum onednn_source source, int64_t image)
{
    switch (source) {
    case ONEDNN_INPUT:
        return image ? image_data(&r->in[0], image) : r->in[0].data;
    case ONEDNN_SECOND:
        return r->in[1].data;
    case ONEDNN_THIRD:
        return r->in[2].data;
    case ONEDNN_OUTPUT:
        return image ? image_data(&r->out[0], image) : r->out[0].data;
    case ONEDNN_WEIGHT:
        return s->weight ? s->weight : r->weight[0].data;
    case ONEDNN_BIAS:
        return r->weight[1].data;
    case ONEDNN_EPILOGUE_SCALE:
        return (void *)r->epilogue->scale;
    case ONEDNN_EPILOGUE_BIAS:
        return (void *)r->epilogue->bias;
    case ONEDNN_EPILOGUE_RESIDUAL:
        return image ? image_data(r->epilogue->residual, image)
                     : r->epilogue->residual->data;
    case ONEDNN_SCALE_OUT:
        return s->divisor;
    case ONEDNN_WORKSPACE:
        return r->workspace;
    default:
        return NULL;
    }
}

/* A primitive divides work and scratchpad among the threads that it was made for. */
static dnnl_status_t execute(const struct onednn_state *s, const struct onednn_context *c)
{
    const int threads = omp_get_max_threads();
    dnnl_status_t status;

    if (threads != s->threads)
        omp_set_num_threads(s->threads);
    status =
        dnnl_primitive_execute(s->primitive, c->stream, c->n_arguments, c->arguments);
    if (status == dnnl_success)
        status = dnnl_stream_wait(c->stream);
    if (threads != s->threads)
        omp_set_num_threads(threads);
    return status;
}

/* From one image on, as many as the primitive was made for. */
static dnnl_status_t run_images(const struct onednn_state *s, struct onednn_context *c,
                                const strata_run *r, int64_t image)
{
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < c->n_arguments && status == dnnl_success; i++)
        status = dnnl_memory_set_data_handle(
            c->arguments[i].memory, source_data(s, r, s->arguments.at[i].source, image));
    return status == dnnl_success ? execute(s, c) : status;
}

int onednn_run(const strata_run *r)
{
    const struct onednn_state *s = r->state;
    struct onednn_context *c = r->ctx;
    dnnl_status_t status = dnnl_success;

    if (!s->each && r->in[0].dims[0] != s->batch)
        return STRATA_FAIL(r, STRATA_EUNSUPPORTED,
                           "oneDNN was set up for a batch of %lld, found %lld; build for "
                           "this batch",
                           (long long)s->batch, (long long)r->in[0].dims[0]);
    if (r->workspace_size < s->workspace)
        return STRATA_FAIL(
            r, STRATA_EINTERNAL,
            "workspace has %zu bytes, needed are %zu with %d threads; plan "
            "and set up with the same number of threads",
            r->workspace_size, s->workspace, s->threads);
    if (!c->ran && !onednn_has_room())
        return STRATA_FAIL(r, STRATA_ENOMEM, ONEDNN_NO_ROOM, ONEDNN_ROOM_MIB);
    c->ran = true;
    const int64_t images = s->each ? r->in[0].dims[0] : 1;
    for (int64_t image = 0; image < images && status == dnnl_success; image++)
        status = run_images(s, c, r, image);
    if (status != dnnl_success)
        return STRATA_FAIL(r, STRATA_EINTERNAL, "oneDNN says %s",
                           dnnl_status2str(status));
    return STRATA_OK;
}
