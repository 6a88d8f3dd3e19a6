/* SPDX-License-Identifier: Apache-2.0
 *
 * core::Pooling by oneDNN: max and average, in every format of the module. Its maximum
 * passes over a NaN.
 */
#include "plugins/common/onednn/primitive.h"
#include "plugins/common/onednn/window.h"

enum { LANES = 16 }; /* channels that its kernels compute at once, whatever there is */

static dnnl_alg_kind_t algorithm(const strata_pooling *p)
{
    return p->kind == STRATA_POOL_MAX ? dnnl_pooling_max
           : p->count_include_pad     ? dnnl_pooling_avg_include_padding
                                      : dnnl_pooling_avg_exclude_padding;
}

/* Ceil mode lets the last window hang over the end pad. oneDNN knows only pads, and an
 * average that counts pads would count the overhang too, where ours does not. */
static int stretch_end(const strata_node *n, struct window *w)
{
    const strata_pooling *p = n->params;
    if (window_has_empty(w))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "a window lies in the pads alone, where oneDNN differs");
    for (int d = w->first; d < WINDOW_DIMS; d++) {
        int64_t end =
            (w->out[d] - 1) * w->stride[d] + window_extent(w, d) - w->in[d] - w->begin[d];
        if (end <= w->end[d])
            continue;
        if (algorithm(p) == dnnl_pooling_avg_include_padding)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "oneDNN's average would count what ceil_mode adds beyond "
                               "the pads");
        w->end[d] = end;
    }
    return STRATA_OK;
}

static int describe(const strata_node *n, struct onednn_request *request)
{
    const strata_pooling *p = n->params;
    dnnl_memory_desc_t input;
    struct window w;
    struct onednn_window o;
    int status;

    if (p->kind == STRATA_POOL_LP || p->indices)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "oneDNN has no %s",
                           p->indices ? "flat indices" : "p-norm");
    if (n->in[0].dtype != STRATA_FP32 && p->kind != STRATA_POOL_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it takes maxima of bytes alone");
    if ((status = window_of_pooling(&w, p, &n->in[0], n->host, n->err)) ||
        (status = stretch_end(n, &w)) || (status = onednn_tensor(n, &n->in[0], &input)) ||
        (status = onednn_tensor(n, &n->out[0], &request->output)))
        return status;
    if (n->in[0].dims[1] < LANES && n->in[0].format & STRATA_F32_NCHW)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "oneDNN computes %d planes at once, and here are fewer",
                           LANES);
    onednn_window(&o, &w);
    return onednn_check(
        n,
        dnnl_pooling_v2_forward_desc_init(&request->op.pooling, dnnl_forward_inference,
                                          algorithm(p), &input, &request->output,
                                          o.stride, o.kernel, o.dilation, o.begin, o.end),
        "pooling");
}

ONEDNN_CALLBACKS(describe)
ONEDNN_EACH_CALLBACKS(describe)

static const strata_row blocked[] = {
    {{STRATA_F32_NC16HW16 | STRATA_F32_NC8HW8}, {STRATA_SAME}}};
static const strata_row plain[] = {{{STRATA_F32_NHWC | STRATA_F32_NCHW}, {STRATA_SAME}}};

static const strata_row bytes[] = {{{STRATA_I8_NHWC | STRATA_U8_NHWC}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {ONEDNN_IMPL(1, "onednn_blocked", blocked, 0.085, 1), .flags = STRATA_NAN_DROPPED},
    {ONEDNN_IMPL(2, "onednn", plain, 0.085, 0.5), .flags = STRATA_NAN_DROPPED},
    {ONEDNN_EACH(3, "onednn_blocked_each", blocked, 0.083, 0.97),
     .flags = STRATA_NAN_DROPPED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT},
    {ONEDNN_IMPL(4, "onednn_bytes", bytes, 0.085, 0.5)},
};

const strata_extends onednn_pooling = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Pooling",
    .params_size = sizeof(strata_pooling),
    .impls = STRATA_ARRAY(impls),
};
