/* SPDX-License-Identifier: Apache-2.0
 *
 * core::FullyConnected by cuBLAS, in fp32:nchw: y = weight * x + bias. Shows a library
 * handle in a context, its scratch memory in the workspace, and the math mode.
 *
 * cuBLAS counts columns first, so our y (images x units) is its units x images matrix.
 */
#include <limits.h>

#include <cublas_v2.h>
#include <strata/cuda.h>
#include <strata/layers.h>

enum { WEIGHT, BIAS };
enum { SCRATCH = 4 << 20 }; /* bytes, what cuBLAS takes by itself below sm_90 */

typedef struct {
    cublasHandle_t handle;
} context;

#define CUBLAS(call, expression)                                                         \
    do {                                                                                 \
        const cublasStatus_t cublas_e_ = (expression);                                   \
        if (cublas_e_ != CUBLAS_STATUS_SUCCESS)                                          \
            return STRATA_FAIL(call, STRATA_EDEVICE, "%s: %s", #expression,              \
                               cublasGetStatusString(cublas_e_));                        \
    } while (0)

static __global__ void spread(float *y, const float *bias, int64_t size, int64_t units)
{
    STRATA_FOR_EACH(i, size)
        y[i] = bias[i % units];
}

/* Elements of one image. */
static int64_t inputs_of(const strata_tensor *x)
{
    int64_t inputs = 1;
    for (int32_t d = 1; d < x->rank; d++)
        inputs *= x->dims[d];
    return inputs;
}

static int accept(const strata_node *n)
{
    if (n->in[0].dims[0] > INT_MAX || n->out[0].dims[1] > INT_MAX ||
        inputs_of(&n->in[0]) > INT_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "a dim is over 2^31 - 1");
    return STRATA_OK;
}

static size_t workspace(const strata_node *)
{
    return SCRATCH;
}

static int ctx_open(const strata_node *n, const void *, void *memory)
{
    context *c = (context *)memory;
    CUBLAS(n, cublasCreate(&c->handle));
    CUBLAS(n, cublasSetMathMode(c->handle, strata_may_use_tf32(n)
                                               ? CUBLAS_TF32_TENSOR_OP_MATH
                                               : CUBLAS_DEFAULT_MATH));
    return STRATA_OK;
}

static void ctx_close(void *memory)
{
    cublasDestroy(((context *)memory)->handle);
}

static int run(const strata_run *r)
{
    const strata_fully_connected *p = (const strata_fully_connected *)r->params;
    const cublasHandle_t handle = ((context *)r->ctx)->handle;
    const strata_tensor *y = &r->out[0], *bias = &r->weight[BIAS];
    const int units = (int)y->dims[1], images = (int)y->dims[0];
    const int inputs = (int)inputs_of(&r->in[0]);
    const float one = 1, keep = bias->rank > 0 ? 1 : 0;
    if (bias->rank > 0) {
        spread<<<strata_blocks(y->size, 256), 256, 0, strata_stream_of(r)>>>(
            (float *)y->data, (const float *)bias->data, y->size, units);
        const int status = STRATA_LAUNCHED(r);
        if (status != STRATA_OK)
            return status;
    }
    /* In this order: setting the stream takes the workspace away. */
    CUBLAS(r, cublasSetStream(handle, strata_stream_of(r)));
    CUBLAS(r, cublasSetWorkspace(handle, r->workspace, r->workspace_size));
    CUBLAS(r, cublasSgemm(handle, p->transposed ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_OP_N,
                          units, images, inputs, &one,
                          (const float *)r->weight[WEIGHT].data,
                          p->transposed ? units : inputs, (const float *)r->in[0].data,
                          inputs, &keep, (float *)y->data, units));
    return STRATA_OK;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_CUDA, .name = "cublas", .rows = STRATA_ARRAY(rows),
     .efficiency = 0.7, .ctx_size = sizeof(context), .accept = accept,
     .workspace = workspace, .ctx_open = ctx_open, .ctx_close = ctx_close, .run = run},
};
static const strata_extends fully_connected = {
    .struct_size = sizeof(strata_extends), .version = 1, .layer = "core::FullyConnected",
    .params_size = sizeof(strata_fully_connected), .impls = STRATA_ARRAY(impls),
};
static const strata_extends *const extends[] = {&fully_connected};
STRATA_MODULE_EXTENDS("org.example", "1.0.0", "+core::FullyConnected", extends)
