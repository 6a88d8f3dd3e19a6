/* SPDX-License-Identifier: Apache-2.0
 *
 * core::MatrixMultiply by oneDNN's matmul. A constant B is packed as the kernel likes it;
 * other operands lie as they are, transposed and broadcast by their distances. C is added
 * by a post-op.
 */
#include "plugins/common/onednn/epilogue.h"

#include "plugins/matrix_multiply/product.h"

enum { MOST_DIMS = 5 };

static dnnl_data_type_t data_type(int32_t dtype)
{
    return dtype == STRATA_BF16    ? dnnl_bf16
           : dtype == STRATA_INT8  ? dnnl_s8
           : dtype == STRATA_UINT8 ? dnnl_u8
           : dtype == STRATA_INT32 ? dnnl_s32
                                   : dnnl_f32;
}

/* Operand x as rows x columns for each matrix of the batch; a dim that does not move it
 * is 1 if `stretches`. */
static int describe_matrix(const strata_node *n, const struct matrix_product *p,
                           int which, int64_t rows, int64_t columns, int stretches,
                           dnnl_data_type_t type, dnnl_memory_desc_t *md)
{
    const struct matrix *x = &p->at[which];
    const int ndims = p->dims + 2;
    dnnl_dims_t dims = {0}, strides = {0};
    int64_t dense = 1, elements = 1;
    for (int d = 0; d < p->dims; d++) {
        dims[d] = x->batch[d] ? p->dim[d] : 1;
        strides[d] = x->batch[d];
    }
    dims[ndims - 2] = stretches && x->row == 0 ? 1 : rows;
    strides[ndims - 2] = x->row;
    dims[ndims - 1] = stretches && x->column == 0 ? 1 : columns;
    strides[ndims - 1] = x->column;
    for (int d = ndims - 1; d >= 0; d--) {
        if (dims[d] == 1)
            strides[d] = dense;
        if (__builtin_mul_overflow(strides[d], dims[d], &dense) ||
            __builtin_mul_overflow(elements, dims[d], &elements) || dense > INT32_MAX ||
            elements < 1)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "an operand is empty or reaches over %d elements, which "
                               "oneDNN's kernels do not take",
                               INT32_MAX);
    }
    return onednn_check(
        n, dnnl_memory_desc_init_by_strides(md, ndims, dims, type, strides), "operand");
}

/* The constant as the network has it, and as the kernel may choose. */
static int describe_constant(const strata_node *n, const struct matrix_product *p,
                             dnnl_data_type_t type, struct onednn_request *request,
                             dnnl_memory_desc_t *any)
{
    dnnl_dims_t dims = {1, 1, 1, 1, 1};
    int status = describe_matrix(n, p, PRODUCT_B, p->k, p->n, 0,
                                 data_type(n->weight[MATRIX_WEIGHT].dtype),
                                 &request->weight);
    dims[p->dims] = p->k;
    dims[p->dims + 1] = p->n;
    return status ? status
                  : onednn_check(n,
                                 dnnl_memory_desc_init_by_tag(any, p->dims + 2, dims,
                                                              type, dnnl_format_tag_any),
                                 "weight");
}

static int describe_bias(const strata_node *n, const struct matrix_product *p,
                         dnnl_memory_desc_t *bias)
{
    dnnl_dims_t dims = {1, 1, 1, 1, 1};
    dims[p->dims + 1] = p->n;
    return onednn_dense(n, dims, p->dims + 2, bias);
}

/* What oneDNN's own steps cannot say. */
static int check(const strata_node *n, const struct matrix_product *p)
{
    const strata_matrix_multiply *params = n->params;
    const int32_t a = n->in[MATRIX_A].dtype;
    const int whole = n->out[0].dtype == STRATA_INT32;
    const int bias = n->weight[MATRIX_BIAS].rank > 0;
    const int c = matrix_has_c(params, n->n_in, n->in);
    if (p->dims + 2 > MOST_DIMS || p->k == 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "oneDNN takes batches of at most %d dims and no empty sums",
                           MOST_DIMS - 2);
    if ((c && params->beta != 1) || (bias && params->alpha != 1))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "oneDNN adds C as it is, and scales a bias with the product");
    if (whole && (bias || c || params->alpha != 1))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "oneDNN adds to and scales whole numbers in FP32");
    if (whole && matrix_second(n->n_in, n->in, n->weight)->dtype != STRATA_INT8)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "oneDNN multiplies by int8");
    if (whole && !onednn_has(dnnl_cpu_isa_avx512_core_vnni))
        return STRATA_FAIL(n, STRATA_EDEVICE,
                           "without the CPU's VNNI oneDNN's sums of two saturate");
    if (a == STRATA_BF16 && !onednn_has(dnnl_cpu_isa_avx512_core_bf16))
        return STRATA_FAIL(n, STRATA_EDEVICE, "this CPU has no BF16 products");
    return STRATA_OK;
}

/* A thread does these products in 3 us or less; another takes 1 to 6 to have. */
static bool is_small(const struct matrix_product *p, int32_t dtype)
{
    const double bytes = 1 << 19, floats = 1 << 17;
    return (double)p->m * (double)p->n * (double)p->k * (double)p->batches <
           (dtype == STRATA_INT8 || dtype == STRATA_UINT8 ? bytes : floats);
}

static int describe(const strata_node *n, struct onednn_request *request)
{
    const strata_matrix_multiply *params = n->params;
    const dnnl_data_type_t type = data_type(n->in[MATRIX_A].dtype);
    const struct matrix_product p =
        matrix_product_of(params, n->n_in, n->in, n->weight, &n->out[0], NULL);
    dnnl_memory_desc_t a, b, bias;
    int status;
    if ((status = check(n, &p)) ||
        (status = describe_matrix(n, &p, PRODUCT_A, p.m, p.k, 0, type, &a)) ||
        (status = describe_matrix(n, &p, PRODUCT_D, p.m, p.n, 0,
                                  data_type(n->out[0].dtype), &request->output)))
        return status;
    if (matrix_is_constant(n->n_in, n->in)) {
        status = describe_constant(n, &p, type == dnnl_u8 ? dnnl_s8 : type, request, &b);
    } else {
        request->second = ONEDNN_SECOND;
        status = describe_matrix(n, &p, PRODUCT_B, p.k, p.n, 0,
                                 data_type(n->in[MATRIX_B].dtype), &b);
    }
    request->bias = n->weight[MATRIX_BIAS].rank > 0 ? ONEDNN_BIAS : ONEDNN_NONE;
    request->scale = params->alpha != 1 ? (float)params->alpha : 0;
    request->is_small = is_small(&p, n->in[MATRIX_A].dtype);
    if (!status && request->bias != ONEDNN_NONE)
        status = describe_bias(n, &p, &bias);
    if (!status && matrix_has_c(params, n->n_in, n->in))
        status = describe_matrix(n, &p, PRODUCT_C, p.m, p.n, 1, type, &request->addend);
    return status ? status
                  : onednn_check(n,
                                 dnnl_matmul_desc_init(
                                     &request->op.matmul, &a, &b,
                                     request->bias != ONEDNN_NONE ? &bias : NULL,
                                     &request->output),
                                 "matmul");
}

ONEDNN_CALLBACKS(describe)

#define ROW(format) {{(format), STRATA_SAME, STRATA_SAME}, {STRATA_SAME}}
static const strata_row rows[] = {ROW(STRATA_F32_NCHW), ROW(STRATA_BF16_NCHW)};
static const strata_row byte_rows[] = {
    {{STRATA_I8_NCHW | STRATA_U8_NCHW, STRATA_I8_NCHW, STRATA_I32_NCHW},
     {STRATA_I32_NCHW}}};

static const strata_impl impls[] = {
    {ONEDNN_IMPL(1, "onednn", rows, 0.9, 0.87), .flags = STRATA_NAN_DROPPED,
     .epilogues = STRATA_EPILOGUE_RESIDUAL | STRATA_EPILOGUE_ACTIVATION,
     .activations = ONEDNN_ACTIVATIONS},
    {ONEDNN_IMPL(2, "onednn_int8", byte_rows, 0.9, 0.87)},
};

const strata_extends onednn_matrix_multiply = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::MatrixMultiply",
    .params_size = sizeof(strata_matrix_multiply),
    .impls = STRATA_ARRAY(impls),
};
