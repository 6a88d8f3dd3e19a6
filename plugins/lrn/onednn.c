/* SPDX-License-Identifier: Apache-2.0
 *
 * core::LRN by oneDNN, across channels.
 */
#include "plugins/common/onednn/primitive.h"

static int describe(const strata_node *n, struct onednn_request *request)
{
    const strata_lrn *p = n->params;
    dnnl_memory_desc_t input;
    int status;

    if (p->size % 2 == 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "size is %lld; oneDNN's windows are odd", (long long)p->size);
    if ((status = onednn_tensor(n, &n->in[0], &input)) ||
        (status = onednn_tensor(n, &n->out[0], &request->output)))
        return status;
    return onednn_check(n,
                        dnnl_lrn_forward_desc_init(&request->op.lrn,
                                                   dnnl_forward_inference,
                                                   dnnl_lrn_across_channels, &input,
                                                   p->size, (float)p->alpha,
                                                   (float)p->beta, (float)p->bias),
                        "lrn");
}

ONEDNN_CALLBACKS(describe)

static const strata_row blocked[] = {
    {{STRATA_F32_NC16HW16 | STRATA_F32_NC8HW8}, {STRATA_SAME}}};
static const strata_row plain[] = {{{STRATA_F32_NHWC | STRATA_F32_NCHW}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {ONEDNN_IMPL(1, "onednn_blocked", blocked, 0.3, 0.8)},
    {ONEDNN_IMPL(2, "onednn", plain, 0.3, 0.5)},
};

const strata_extends onednn_lrn = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::LRN",
    .params_size = sizeof(strata_lrn),
    .impls = STRATA_ARRAY(impls),
};
