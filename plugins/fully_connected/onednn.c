/* SPDX-License-Identifier: Apache-2.0
 *
 * core::FullyConnected by oneDNN's inner product, whose input may lie in any format the
 * kernel can fold into its packed weights, and by its matmul, which packs them otherwise
 * and is up to a tenth faster (2.6, AVX-512, 128 rows). The output is linear.
 */
#include "plugins/common/onednn/epilogue.h"

/* Weights over the input's own dims, (M, C, spatial...), or (C, spatial..., M). */
static const dnnl_format_tag_t transposed[] = {dnnl_format_tag_undef,
                                               dnnl_format_tag_undef,
                                               dnnl_ba,
                                               dnnl_bca,
                                               dnnl_bcda,
                                               dnnl_bcdea};

static int describe_weight(const strata_node *n, int64_t units, dnnl_memory_desc_t *given,
                           dnnl_memory_desc_t *any)
{
    const strata_fully_connected *p = n->params;
    const strata_tensor *in = &n->in[0];
    dnnl_dims_t dims = {units};
    int status;

    for (int d = 1; d < in->rank; d++)
        dims[d] = in->dims[d];
    if ((status = onednn_any(n, dims, in->rank, any)) ||
        (status = onednn_dense(n, dims, in->rank, given)) || !p->transposed)
        return status;
    return onednn_check(n,
                        dnnl_memory_desc_init_by_tag(given, in->rank, dims, dnnl_f32,
                                                     transposed[in->rank]),
                        "transposed weights");
}

static int describe(const strata_node *n, struct onednn_request *request)
{
    const strata_tensor *out = &n->out[0];
    const int64_t units = out->dims[1];
    dnnl_memory_desc_t input, weight, bias;
    dnnl_dims_t output = {n->in[0].dims[0], units}, channels = {units};
    int status;

    if (out->format != STRATA_F32_NCHW || out->count != output[0] * units)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "oneDNN writes (N, M) linearly");
    request->bias = onednn_bias_source(n);
    if ((status = onednn_tensor(n, &n->in[0], &input)) ||
        (status = describe_weight(n, units, &request->weight, &weight)) ||
        (status = onednn_dense(n, output, 2, &request->output)) ||
        (status = onednn_dense(n, channels, 1, &bias)))
        return status;
    return onednn_check(n,
                        dnnl_inner_product_forward_desc_init(
                            &request->op.inner_product, dnnl_forward_inference, &input,
                            &weight, request->bias != ONEDNN_NONE ? &bias : NULL,
                            &request->output),
                        "inner product");
}

ONEDNN_CALLBACKS(describe)

/* The product of a linear input, its images as rows, and the weight as depth x units. */
static int describe_product(const strata_node *n, struct onednn_request *request)
{
    const strata_fully_connected *p = n->params;
    const strata_tensor *in = &n->in[0], *out = &n->out[0];
    const int64_t rows = in->dims[0], units = out->dims[1];
    if (rows < 1 || in->count > INT32_MAX || out->count > INT32_MAX ||
        n->weight[0].count > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "an operand is empty or has over %d elements, which oneDNN's "
                           "kernels do not take",
                           INT32_MAX);
    const int64_t depth = in->count / rows;
    const dnnl_dims_t from = {rows, depth}, to = {rows, units}, addends = {1, units};
    const dnnl_dims_t weight = {depth, units};
    const dnnl_dims_t strides = {p->transposed ? units : 1, p->transposed ? 1 : depth};
    dnnl_memory_desc_t input, any, bias;
    int status;
    request->bias = onednn_bias_source(n);
    if ((status = onednn_dense(n, from, 2, &input)) ||
        (status = onednn_any(n, weight, 2, &any)) ||
        (status = onednn_dense(n, to, 2, &request->output)) ||
        (status = onednn_dense(n, addends, 2, &bias)) ||
        (status = onednn_check(n,
                               dnnl_memory_desc_init_by_strides(
                                   &request->weight, 2, weight, dnnl_f32, strides),
                               "weights")))
        return status;
    return onednn_check(n,
                        dnnl_matmul_desc_init(&request->op.matmul, &input, &any,
                                              request->bias != ONEDNN_NONE ? &bias : NULL,
                                              &request->output),
                        "matmul");
}

static int accept_product(const strata_node *n)
{
    return onednn_accept(n, describe_product);
}

static size_t workspace_product(const strata_node *n)
{
    return onednn_workspace(n, describe_product);
}

static int setup_product(const strata_node *n, void *state)
{
    return onednn_setup(n, describe_product, state);
}

static const strata_row linear[] = {{{STRATA_F32_NCHW}, {STRATA_F32_NCHW}}};
static const strata_row folded[] = {
    {{STRATA_F32_NC16HW16 | STRATA_F32_NC8HW8 | STRATA_F32_NHWC}, {STRATA_F32_NCHW}}};

#define FUSED                                                                            \
    .flags = STRATA_NAN_DROPPED, .epilogues = ONEDNN_EPILOGUES,                          \
    .activations = ONEDNN_ACTIVATIONS

static const strata_impl impls[] = {
    {ONEDNN_IMPL(1, "onednn", linear, 0.9, 0.87), FUSED},
    {ONEDNN_IMPL(2, "onednn_folded", folded, 0.75, 0.85), FUSED},
    {ONEDNN_IMPL_OF(3, "onednn_matmul", linear, 0.92, 0.87, _product), FUSED},
};

const strata_extends onednn_fully_connected = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::FullyConnected",
    .params_size = sizeof(strata_fully_connected),
    .impls = STRATA_ARRAY(impls),
};
