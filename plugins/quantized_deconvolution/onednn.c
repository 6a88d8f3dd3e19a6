/* SPDX-License-Identifier: Apache-2.0
 *
 * core::QuantizedDeconvolution by oneDNN: the direct method on bytes in channels-last.
 */
#include "plugins/common/onednn/primitive.h"
#include "plugins/common/onednn/window.h"
#include "plugins/common/deconvolution/deconvolution.h"

/* The weight as it lies, by rank: (I, O, kernel...). */
static const dnnl_format_tag_t stored[] = {[3] = dnnl_bac, dnnl_bacd, dnnl_bacde};

static int describe_weight(const strata_node *n, struct onednn_request *request,
                           dnnl_memory_desc_t *any)
{
    const strata_tensor *w = &n->weight[STRATA_QUANTIZED_WEIGHT];
    dnnl_dims_t dims = {w->dims[1], w->dims[0]};
    for (int d = 2; d < w->rank; d++)
        dims[d] = w->dims[d];
    const int status =
        onednn_check(n,
                     dnnl_memory_desc_init_by_tag(&request->weight, w->rank, dims,
                                                  dnnl_s8, stored[w->rank]),
                     "weight descriptor");
    return status ? status : onednn_any_bytes(n, dims, w->rank, any);
}

/* Gaps between the inputs' reaches, or outputs past the last one's. */
static bool leaves_outputs(const struct window *w, int d)
{
    const int64_t reach = (w->in[d] - 1) * w->stride[d] + window_extent(w, d);
    return w->stride[d] > w->kernel[d] || (w->stride[d] > 1 && w->dilation[d] > 1) ||
           w->begin[d] + w->out[d] > reach;
}

static int check(const strata_node *n, const struct window *w)
{
    const strata_quantized_deconvolution *p = n->params;
    if (p->deconvolution.groups != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it has one group of channels");
    for (int d = 0; d < WINDOW_DIMS; d++)
        if (w->begin[d] < 0)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "begin pad is %lld; oneDNN takes none below 0",
                               (long long)w->begin[d]);
        else if (leaves_outputs(w, d))
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "some outputs see no input, which oneDNN 2 sums from "
                               "memory that nobody wrote");
    return STRATA_OK;
}

static int describe_with(const strata_node *n, bool known, struct onednn_request *request)
{
    const strata_quantized_deconvolution *p = n->params;
    dnnl_memory_desc_t input, weight;
    struct window w;
    struct onednn_window o;
    int status =
        deconvolution_window(&w, &p->deconvolution, &n->in[0],
                             &n->weight[STRATA_QUANTIZED_WEIGHT], n->host, n->err);
    request->bias = ONEDNN_NONE;
    if (status || (status = check(n, &w)) ||
        (status = onednn_quantized_factors(n, &p->quantized, 1, known, request)) ||
        (status = onednn_tensor(n, &n->in[0], &input)) ||
        (status = onednn_tensor(n, &n->out[0], &request->output)) ||
        (status = describe_weight(n, request, &weight)))
        return status;
    onednn_window(&o, &w);
    return onednn_check(n,
                        dnnl_dilated_deconvolution_forward_desc_init(
                            &request->op.convolution, dnnl_forward_inference,
                            dnnl_deconvolution_direct, &input, &weight, NULL,
                            &request->output, o.stride, o.dilation, o.begin, o.end),
                        "deconvolution");
}

ONEDNN_CALLBACKS_WITH(describe_with)

static const strata_row rows[] = {
    {{STRATA_I8_NHWC | STRATA_U8_NHWC},
     {STRATA_I8_NHWC | STRATA_U8_NHWC | STRATA_F32_NHWC}},
};

static const strata_impl impls[] = {
    {ONEDNN_IMPL(1, "onednn", rows, 0.9, 0.6), .flags = STRATA_NAN_DROPPED},
};

const strata_extends onednn_quantized_deconvolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedDeconvolution",
    .params_size = sizeof(strata_quantized_deconvolution),
    .impls = STRATA_ARRAY(impls),
};
