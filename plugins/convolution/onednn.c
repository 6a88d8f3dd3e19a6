/* SPDX-License-Identifier: Apache-2.0
 *
 * core::Convolution by oneDNN: direct convolution in blocked formats and channels-last,
 * im2col in fp32:nchw. Few input channels are read from fp32:nchw straight into blocks.
 */
#include "plugins/common/onednn/epilogue.h"
#include "plugins/common/onednn/window.h"

/* (K, C/groups, kernel...) with groups split off in front when there are any. */
static int weight_dims(const strata_convolution *p, const strata_tensor *weight,
                       dnnl_dims_t dims)
{
    int rank = 0;
    if (p->groups > 1)
        dims[rank++] = p->groups;
    dims[rank++] = weight->dims[0] / (p->groups > 1 ? p->groups : 1);
    for (int d = 1; d < weight->rank; d++)
        dims[rank++] = weight->dims[d];
    return rank;
}

static int describe_window(const strata_node *n, const struct window *w,
                           const dnnl_memory_desc_t *input,
                           const dnnl_memory_desc_t *weight,
                           const dnnl_memory_desc_t *bias, struct onednn_request *request)
{
    struct onednn_window o;
    onednn_window(&o, w);
    return onednn_check(n,
                        dnnl_dilated_convolution_forward_desc_init(
                            &request->op.convolution, dnnl_forward_inference,
                            dnnl_convolution_direct, input, weight, bias,
                            &request->output, o.stride, o.dilation, o.begin, o.end),
                        "convolution");
}

static int describe(const strata_node *n, struct onednn_request *request)
{
    const strata_convolution *p = n->params;
    dnnl_memory_desc_t input, weight, bias;
    dnnl_dims_t dims, channels = {n->out[0].dims[1]};
    struct window w;
    int rank, status;

    if ((status =
             window_of_convolution(&w, p, &n->in[0], &n->weight[0], n->host, n->err)))
        return status;
    request->bias = onednn_bias_source(n);
    rank = weight_dims(p, &n->weight[0], dims);
    if ((status = onednn_tensor(n, &n->in[0], &input)) ||
        (status = onednn_tensor(n, &n->out[0], &request->output)) ||
        (status = onednn_dense(n, dims, rank, &request->weight)) ||
        (status = onednn_any(n, dims, rank, &weight)) ||
        (status = onednn_dense(n, channels, 1, &bias)))
        return status;
    return describe_window(n, &w, &input, &weight,
                           request->bias != ONEDNN_NONE ? &bias : NULL, request);
}

ONEDNN_CALLBACKS(describe)
ONEDNN_EACH_CALLBACKS(describe)

static const strata_row blocked16[] = {
    {{STRATA_F32_NC16HW16}, {STRATA_SAME}},
    {{STRATA_F32_NCHW}, {STRATA_F32_NC16HW16}},
};
static const strata_row blocked8[] = {
    {{STRATA_F32_NC8HW8}, {STRATA_SAME}},
    {{STRATA_F32_NCHW}, {STRATA_F32_NC8HW8}},
};
static const strata_row each16[] = {{{STRATA_F32_NC16HW16}, {STRATA_SAME}}};
static const strata_row each8[] = {{{STRATA_F32_NC8HW8}, {STRATA_SAME}}};
static const strata_row last[] = {{{STRATA_F32_NHWC}, {STRATA_SAME}}};
static const strata_row linear[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};

#define FUSED                                                                            \
    .flags = STRATA_NAN_DROPPED, .epilogues = ONEDNN_EPILOGUES,                          \
    .activations = ONEDNN_ACTIVATIONS
/* The sigmoid of linear outputs is oneDNN's reference, which gives 0 for NaN. */
#define FUSED_LINEAR                                                                     \
    .flags = STRATA_NAN_DROPPED, .epilogues = ONEDNN_EPILOGUES,                          \
    .activations = ONEDNN_ACTIVATIONS - (UINT64_C(1) << STRATA_SIGMOID)

#define FUSED_EACH                                                                       \
    .flags = STRATA_NAN_DROPPED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,                \
    .epilogues = ONEDNN_EPILOGUES, .activations = ONEDNN_ACTIVATIONS

static const strata_impl impls[] = {
    {ONEDNN_IMPL(1, "onednn_nc16hw16", blocked16, 0.9, 0.8), FUSED},
    {ONEDNN_IMPL(2, "onednn_nc8hw8", blocked8, 0.48, 0.85), FUSED},
    {ONEDNN_IMPL(3, "onednn_nhwc", last, 0.95, 0.6), FUSED},
    {ONEDNN_IMPL(4, "onednn_nchw", linear, 0.8, 0.14), FUSED_LINEAR},
    {ONEDNN_EACH(5, "onednn_nc16hw16_each", each16, 0.87, 0.8), FUSED_EACH},
    {ONEDNN_EACH(6, "onednn_nc8hw8_each", each8, 0.46, 0.85), FUSED_EACH},
};

const strata_extends onednn_convolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Convolution",
    .params_size = sizeof(strata_convolution),
    .impls = STRATA_ARRAY(impls),
};
