/* SPDX-License-Identifier: Apache-2.0
 *
 * core::QuantizedConvolution by oneDNN: direct convolution of bytes in channels-last.
 */
#include "plugins/common/onednn/primitive.h"
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

static int describe_with(const strata_node *n, bool known, struct onednn_request *request)
{
    const strata_quantized_convolution *p = n->params;
    dnnl_memory_desc_t input, weight;
    dnnl_dims_t dims;
    struct window w;
    struct onednn_window o;
    if (n->n_in > 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "oneDNN rounds otherwise where it adds a second input");
    int status = window_of_convolution(&w, &p->convolution, &n->in[0], &n->weight[0],
                                       n->host, n->err);
    if (status)
        return status;
    const int rank = weight_dims(&p->convolution, &n->weight[0], dims);
    request->bias = ONEDNN_NONE;
    if ((status = onednn_quantized_factors(n, &p->quantized, 1, known, request)) ||
        (status = onednn_tensor(n, &n->in[0], &input)) ||
        (status = onednn_tensor(n, &n->out[0], &request->output)) ||
        (status = onednn_dense_bytes(n, dims, rank, &request->weight)) ||
        (status = onednn_any_bytes(n, dims, rank, &weight)))
        return status;
    onednn_window(&o, &w);
    return onednn_check(n,
                        dnnl_dilated_convolution_forward_desc_init(
                            &request->op.convolution, dnnl_forward_inference,
                            dnnl_convolution_direct, &input, &weight, NULL,
                            &request->output, o.stride, o.dilation, o.begin, o.end),
                        "convolution");
}

ONEDNN_CALLBACKS_WITH(describe_with)

static const strata_row rows[] = {
    {{STRATA_I8_NHWC | STRATA_U8_NHWC},
     {STRATA_I8_NHWC | STRATA_U8_NHWC | STRATA_F32_NHWC}},
};

static const strata_impl impls[] = {
    {ONEDNN_IMPL(1, "onednn", rows, 1, 0.6), .flags = STRATA_NAN_DROPPED},
};

const strata_extends onednn_quantized_convolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedConvolution",
    .params_size = sizeof(strata_quantized_convolution),
    .impls = STRATA_ARRAY(impls),
};
