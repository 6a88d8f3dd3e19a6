/* SPDX-License-Identifier: Apache-2.0
 *
 * core::QuantizedProduct by oneDNN's matmul: rows of bytes times a packed constant.
 */
#include "plugins/common/onednn/primitive.h"

static dnnl_data_type_t data_type(int32_t dtype)
{
    return dtype == STRATA_INT8 ? dnnl_s8 : dtype == STRATA_UINT8 ? dnnl_u8 : dnnl_f32;
}

/* All rows of a dense tensor as one matrix. */
static int describe_rows(const strata_node *n, const strata_tensor *t,
                         dnnl_memory_desc_t *md)
{
    const int64_t columns = t->dims[t->rank - 1];
    const dnnl_dims_t dims = {columns ? t->count / columns : 0, columns};
    if (t->count < 1 || t->count > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "a tensor is empty or has over %d elements, which oneDNN's "
                           "kernels do not take",
                           INT32_MAX);
    return onednn_check(
        n, dnnl_memory_desc_init_by_tag(md, 2, dims, data_type(t->dtype), dnnl_ab),
        "rows");
}

static int describe_with(const strata_node *n, bool known, struct onednn_request *request)
{
    const strata_quantized_product *p = n->params;
    const int64_t depth = n->in[0].dims[n->in[0].rank - 1];
    const int64_t units = n->out[0].dims[n->out[0].rank - 1];
    const dnnl_dims_t dims = {depth, units};
    dnnl_memory_desc_t input, weight;
    int status;
    request->bias = ONEDNN_NONE;
    if ((status = onednn_quantized_factors(n, &p->quantized, 1, known, request)) ||
        (status = describe_rows(n, &n->in[0], &input)) ||
        (status = describe_rows(n, &n->out[0], &request->output)) ||
        (status = onednn_any_bytes(n, dims, 2, &weight)) ||
        (status =
             onednn_check(n,
                          dnnl_memory_desc_init_by_tag(&request->weight, 2, dims, dnnl_s8,
                                                       p->transposed ? dnnl_ba : dnnl_ab),
                          "weight")))
        return status;
    return onednn_check(n,
                        dnnl_matmul_desc_init(&request->op.matmul, &input, &weight, NULL,
                                              &request->output),
                        "matmul");
}

ONEDNN_CALLBACKS_WITH(describe_with)

static const strata_row rows[] = {
    {{STRATA_I8_NCHW | STRATA_U8_NCHW},
     {STRATA_I8_NCHW | STRATA_U8_NCHW | STRATA_F32_NCHW}},
};

static const strata_impl impls[] = {
    {ONEDNN_IMPL(1, "onednn", rows, 1, 0.87), .flags = STRATA_NAN_DROPPED},
};

const strata_extends onednn_quantized_product = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedProduct",
    .params_size = sizeof(strata_quantized_product),
    .impls = STRATA_ARRAY(impls),
};
