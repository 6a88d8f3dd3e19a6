/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing a kernel: the candidate that accept and workspace probe and setup turns into a
 * primitive.
 */
#include "plugins/common/onednn/primitive.h"

#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/onednn/epilogue.h"

enum onednn_source onednn_bias_source(const strata_node *n)
{
    int32_t flags = n->epilogue ? n->epilogue->flags : 0;
    if (n->n_weights > 1 && n->weight[1].rank > 0)
        return ONEDNN_BIAS;
    return (flags & STRATA_EPILOGUE_BIAS) && !(flags & STRATA_EPILOGUE_SCALE)
               ? ONEDNN_EPILOGUE_BIAS
               : ONEDNN_NONE;
}

void onednn_candidate_close(struct onednn_candidate *c)
{
    if (c->descriptor)
        dnnl_primitive_desc_destroy(c->descriptor);
    if (c->attr)
        dnnl_primitive_attr_destroy(c->attr);
    if (c->engine)
        dnnl_engine_destroy(c->engine);
    free(c->request.own_factors);
}

static void candidate_arguments(struct onednn_candidate *c)
{
    onednn_bind(&c->arguments, DNNL_ARG_SRC, ONEDNN_INPUT);
    onednn_bind(&c->arguments, DNNL_ARG_DST, ONEDNN_OUTPUT);
    onednn_bind(&c->arguments, DNNL_ARG_SCRATCHPAD, ONEDNN_WORKSPACE);
    if (c->request.weight.ndims > 0)
        onednn_bind(&c->arguments, DNNL_ARG_WEIGHTS, ONEDNN_WEIGHT);
    else if (c->request.second != ONEDNN_NONE)
        onednn_bind(&c->arguments, DNNL_ARG_WEIGHTS, c->request.second);
    if (c->request.bias != ONEDNN_NONE)
        onednn_bind(&c->arguments, DNNL_ARG_BIAS, c->request.bias);
}

static bool has_operands(const struct onednn_candidate *c)
{
    for (int i = 0; i < c->arguments.n; i++)
        if (c->arguments.at[i].index >= DNNL_ARG_ATTR_MULTIPLE_POST_OP(0))
            return true;
    return false;
}

#define LAST (STRATA_F32_NHWC | STRATA_I8_NHWC | STRATA_U8_NHWC)

/* A residual of one image and one pixel, which oneDNN takes for a value a channel. */
static bool has_pixel_residual(const strata_node *n)
{
    return n->epilogue && n->epilogue->flags & STRATA_EPILOGUE_RESIDUAL &&
           n->out[0].rank > 1 && n->out[0].count == n->out[0].dims[1];
}

/* The reference kernels are for checking, not for running. Convolution by GEMM (2.6.3,
 * chosen below AVX2) misreads the operands of post-ops in channels-last; its depthwise
 * kernels there give every block of channels the values of the first. */
static int candidate_judge(const strata_node *n, const struct onednn_candidate *c)
{
    const char *kernel = NULL;
    int status = onednn_check(
        n, dnnl_primitive_desc_query(c->descriptor, dnnl_query_impl_info_str, 0, &kernel),
        "kernel name");
    if (status != STRATA_OK)
        return status;
    if (strstr(kernel, "ref"))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "oneDNN has only its reference kernel (%s) for this shape in "
                           "these formats",
                           kernel);
    if (strstr(kernel, "gemm") && n->out[0].format & LAST && has_operands(c))
        return STRATA_FAIL(
            n, STRATA_EUNSUPPORTED,
            "oneDNN's kernel %s gets a fused scale, bias or residual wrong "
            "in channels-last",
            kernel);
    if (strstr(kernel, "dw") && n->out[0].format & LAST && has_pixel_residual(n))
        return STRATA_FAIL(
            n, STRATA_EUNSUPPORTED,
            "oneDNN's kernel %s gets a fused residual of one pixel wrong in "
            "channels-last",
            kernel);
    return STRATA_OK;
}

/* The layer says what its first one is. */
static int check_weights(const strata_node *n, const struct onednn_request *request)
{
    const int own = request->weight.ndims > 0 && request->weight.data_type != dnnl_f32;
    for (int i = own; i < n->n_weights; i++)
        if (n->weight[i].rank > 0 && n->weight[i].dtype != STRATA_FP32)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "weight %d is not fp32", i);
    return STRATA_OK;
}

/* The kernel and its scratchpad are those of so many threads. */
static int choose_kernel(const strata_node *n, struct onednn_candidate *c)
{
    const int threads = omp_get_max_threads();
    c->threads = c->request.is_small ? 1 : threads;
    omp_set_num_threads(c->threads);
    const dnnl_status_t made = dnnl_primitive_desc_create(&c->descriptor, &c->request.op,
                                                          c->attr, c->engine, NULL);
    omp_set_num_threads(threads);
    return onednn_check(n, made, "kernel for this shape in these formats");
}

int onednn_candidate_open(const strata_node *n, onednn_describe describe,
                          struct onednn_candidate *c)
{
    int status;

    *c = (struct onednn_candidate){0};
    /* oneDNN's cache (2.6.3) answers a request with another kernel where only strides of
     * single elements differ: its workspace is not the one that was planned for. */
    if ((status = onednn_room(n)) || (status = describe(n, &c->request)) ||
        (status = check_weights(n, &c->request)) ||
        (status = onednn_check(n, dnnl_set_primitive_cache_capacity(0), "its cache")) ||
        (status =
             onednn_check(n, dnnl_engine_create(&c->engine, dnnl_cpu, 0), "engine")) ||
        (status = onednn_check(n, dnnl_primitive_attr_create(&c->attr), "attributes")) ||
        (status = onednn_check(
             n,
             dnnl_primitive_attr_set_scratchpad_mode(c->attr, dnnl_scratchpad_mode_user),
             "attributes")))
        return status;
    if (c->request.scale != 0 &&
        (status = onednn_check(
             n, dnnl_primitive_attr_set_output_scales(c->attr, 1, 0, &c->request.scale),
             "a factor")))
        return status;
    if (c->request.quantized &&
        (status = onednn_quantized_attributes(n, &c->request, c->attr)))
        return status;
    candidate_arguments(c);
    if ((status = onednn_epilogue(n, &c->request, c->attr, &c->arguments)) ||
        (status = choose_kernel(n, c)))
        return status;
    return candidate_judge(n, c);
}

size_t onednn_candidate_workspace(const struct onednn_candidate *c)
{
    const dnnl_memory_desc_t *md =
        dnnl_primitive_desc_query_md(c->descriptor, dnnl_query_scratchpad_md, 0);
    return md ? dnnl_memory_desc_get_size(md) : 0;
}

static void cut_batch(strata_tensor *t)
{
    t->count /= t->dims[0];
    t->dims[0] = 1;
}

int onednn_one_image(struct onednn_image *image, const strata_node *n)
{
    *image = (struct onednn_image){.node = *n, .in = n->in[0], .out = n->out[0]};
    if (n->n_in != 1 || n->n_out != 1 || image->in.dims[0] < 2 ||
        image->in.dims[0] != image->out.dims[0])
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it is for batches of several images");
    cut_batch(&image->in);
    cut_batch(&image->out);
    image->node.in = &image->in;
    image->node.out = &image->out;
    return STRATA_OK;
}

int onednn_accept(const strata_node *n, onednn_describe describe)
{
    struct onednn_candidate c;
    int status = onednn_candidate_open(n, describe, &c);
    onednn_candidate_close(&c);
    return status;
}

size_t onednn_workspace(const strata_node *n, onednn_describe describe)
{
    struct onednn_candidate c;
    size_t bytes = onednn_candidate_open(n, describe, &c)
                       ? SIZE_MAX
                       : onednn_candidate_workspace(&c);
    onednn_candidate_close(&c);
    return bytes;
}
