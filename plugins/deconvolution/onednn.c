/* SPDX-License-Identifier: Apache-2.0
 *
 * core::Deconvolution by oneDNN: the direct method, whose weights have filters and
 * channels the other way round.
 */
#include "plugins/common/onednn/epilogue.h"
#include "plugins/common/onednn/window.h"

#include "plugins/common/deconvolution/deconvolution.h"

/* The weight as it lies, by rank: (I, O, kernel...), or (G, I, O, kernel...) in groups. */
static const dnnl_format_tag_t whole[] = {[3] = dnnl_bac, dnnl_bacd, dnnl_bacde};
static const dnnl_format_tag_t grouped[] = {[3] = dnnl_acbd, dnnl_acbde, dnnl_acbdef};

/* In oneDNN's order: (O, I, kernel...) with groups in front when there are any. */
static int weight_dims(const strata_deconvolution *p, const strata_tensor *weight,
                       dnnl_dims_t dims)
{
    int rank = 0;
    if (p->groups > 1)
        dims[rank++] = p->groups;
    dims[rank++] = weight->dims[1];
    dims[rank++] = weight->dims[0] / p->groups;
    for (int d = 2; d < weight->rank; d++)
        dims[rank++] = weight->dims[d];
    return rank;
}

static int describe_window(const strata_node *n, const struct window *w,
                           const dnnl_memory_desc_t *input,
                           const dnnl_memory_desc_t *weight,
                           const dnnl_memory_desc_t *bias, struct onednn_request *request)
{
    struct onednn_window o;
    for (int d = 0; d < WINDOW_DIMS; d++)
        if (w->begin[d] < 0)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "begin pad is %lld; oneDNN takes none below 0",
                               (long long)w->begin[d]);
    onednn_window(&o, w);
    return onednn_check(n,
                        dnnl_dilated_deconvolution_forward_desc_init(
                            &request->op.convolution, dnnl_forward_inference,
                            dnnl_deconvolution_direct, input, weight, bias,
                            &request->output, o.stride, o.dilation, o.begin, o.end),
                        "deconvolution");
}

static int describe(const strata_node *n, struct onednn_request *request)
{
    const strata_deconvolution *p = n->params;
    const strata_tensor *given = &n->weight[DECONVOLUTION_WEIGHT];
    dnnl_memory_desc_t input, weight, bias;
    dnnl_dims_t dims, channels = {n->out[0].dims[1]};
    struct window w;
    int rank, status;

    if ((status = deconvolution_window(&w, p, &n->in[0], given, n->host, n->err)))
        return status;
    request->bias = onednn_bias_source(n);
    rank = weight_dims(p, given, dims);
    if ((status = onednn_tensor(n, &n->in[0], &input)) ||
        (status = onednn_tensor(n, &n->out[0], &request->output)) ||
        (status = onednn_any(n, dims, rank, &weight)) ||
        (status = onednn_check(n,
                               dnnl_memory_desc_init_by_tag(
                                   &request->weight, rank, dims, dnnl_f32,
                                   (p->groups > 1 ? grouped : whole)[given->rank]),
                               "weight descriptor")) ||
        (status = onednn_dense(n, channels, 1, &bias)))
        return status;
    return describe_window(n, &w, &input, &weight,
                           request->bias != ONEDNN_NONE ? &bias : NULL, request);
}

ONEDNN_CALLBACKS(describe)

static const strata_row blocked16[] = {{{STRATA_F32_NC16HW16}, {STRATA_SAME}}};
static const strata_row blocked8[] = {{{STRATA_F32_NC8HW8}, {STRATA_SAME}}};
static const strata_row last[] = {{{STRATA_F32_NHWC}, {STRATA_SAME}}};
static const strata_row linear[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};

/* A bias alone: anything else behind its sums oneDNN computes element by element by its
 * reference code, which takes 25 to 70 times as long as the deconvolution. */
#define FUSED .epilogues = STRATA_EPILOGUE_BIAS

static const strata_impl impls[] = {
    {ONEDNN_IMPL(1, "onednn_nc16hw16", blocked16, 0.7, 0.6), FUSED},
    {ONEDNN_IMPL(2, "onednn_nc8hw8", blocked8, 0.4, 0.6), FUSED},
    {ONEDNN_IMPL(3, "onednn_nhwc", last, 0.7, 0.5), FUSED},
    {ONEDNN_IMPL(4, "onednn_nchw", linear, 0.4, 0.14), FUSED},
};

const strata_extends onednn_deconvolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Deconvolution",
    .params_size = sizeof(strata_deconvolution),
    .impls = STRATA_ARRAY(impls),
};
