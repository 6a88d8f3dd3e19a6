/* SPDX-License-Identifier: Apache-2.0
 *
 * The operation graph of a convolution: the convolution, then one pointwise node for
 * each part of the epilogue. What lies between nodes is virtual and FP32.
 */
#include "plugins/convolution/cudnn/graph.h"

#include <strata/plugin.h>

#include <stdbool.h>

#define ALIGNMENT 16 /* bytes, of every tensor */
#define FIRST_VIRTUAL 100

/* ---- descriptors ------------------------------------------------------------------- */

static void check(struct cudnn_builder *b, cudnnStatus_t status, const char *what)
{
    if (b->status != CUDNN_STATUS_SUCCESS || status == CUDNN_STATUS_SUCCESS)
        return;
    b->status = status;
    b->what = what;
}

cudnnBackendDescriptor_t cudnn_make(struct cudnn_builder *b,
                                    cudnnBackendDescriptorType_t type, const char *what)
{
    cudnnBackendDescriptor_t d = NULL;
    if (b->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    if (b->n == CUDNN_DESCRIPTORS) {
        check(b, CUDNN_STATUS_INTERNAL_ERROR, what);
        return NULL;
    }
    check(b, cudnnBackendCreateDescriptor(type, &d), what);
    if (b->status == CUDNN_STATUS_SUCCESS)
        b->made[b->n++] = d;
    b->what = b->status == CUDNN_STATUS_SUCCESS ? what : b->what;
    return d;
}

void cudnn_set(struct cudnn_builder *b, cudnnBackendDescriptor_t d,
               cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               int64_t n, const void *values)
{
    if (b->status == CUDNN_STATUS_SUCCESS)
        check(b, cudnnBackendSetAttribute(d, name, type, n, values), b->what);
}

void cudnn_finalize(struct cudnn_builder *b, cudnnBackendDescriptor_t d)
{
    if (b->status == CUDNN_STATUS_SUCCESS)
        check(b, cudnnBackendFinalize(d), b->what);
}

void cudnn_builder_clear(struct cudnn_builder *b)
{
    while (b->n > 0)
        cudnnBackendDestroyDescriptor(b->made[--b->n]);
}

static void set_int(struct cudnn_builder *b, cudnnBackendDescriptor_t d,
                    cudnnBackendAttributeName_t name, int64_t value)
{
    cudnn_set(b, d, name, CUDNN_TYPE_INT64, 1, &value);
}

static void set_double(struct cudnn_builder *b, cudnnBackendDescriptor_t d,
                       cudnnBackendAttributeName_t name, double value)
{
    cudnn_set(b, d, name, CUDNN_TYPE_DOUBLE, 1, &value);
}

static void set_descriptor(struct cudnn_builder *b, cudnnBackendDescriptor_t d,
                           cudnnBackendAttributeName_t name,
                           cudnnBackendDescriptor_t value)
{
    cudnn_set(b, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

/* ---- tensors ----------------------------------------------------------------------- */

static cudnnBackendDescriptor_t tensor(struct cudnn_builder *b, int64_t id, int rank,
                                       cudnnDataType_t type,
                                       const struct cudnn_shape *shape)
{
    const bool is_virtual = id >= FIRST_VIRTUAL;
    cudnnBackendDescriptor_t d = cudnn_make(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
    cudnn_set(b, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    cudnn_set(b, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, shape->dims);
    cudnn_set(b, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, shape->strides);
    set_int(b, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    set_int(b, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT);
    cudnn_set(b, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    cudnn_finalize(b, d);
    return d;
}

static cudnnBackendDescriptor_t bias(struct cudnn_builder *b,
                                     const struct cudnn_problem *p)
{
    struct cudnn_shape s;
    for (int i = 0; i < CUDNN_RANK; i++) {
        s.dims[i] = i == 1 ? p->y.dims[1] : 1;
        s.strides[i] = i == 1 ? 1 : p->y.dims[1];
    }
    return tensor(b, CUDNN_BIAS, p->rank, (cudnnDataType_t)p->type, &s);
}

/* ---- nodes ------------------------------------------------------------------------- */

struct chain {
    const struct cudnn_problem *problem;
    cudnnBackendDescriptor_t nodes[4], last; /* last: what the next node reads */
    int n;
    int left; /* pointwise nodes to come; the one before none writes y */
};

/* The tensor that a node writes. */
static cudnnBackendDescriptor_t result(struct cudnn_builder *b, struct chain *c)
{
    const struct cudnn_problem *p = c->problem;
    return c->left == 0
               ? tensor(b, CUDNN_Y, p->rank, (cudnnDataType_t)p->type, &p->y)
               : tensor(b, FIRST_VIRTUAL + c->n, p->rank, CUDNN_DATA_FLOAT, &p->y);
}

static void convolution(struct cudnn_builder *b, struct chain *c)
{
    const struct cudnn_problem *p = c->problem;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT, type = (cudnnDataType_t)p->type;
    const int64_t spatial = p->rank - 2;
    const float alpha = 1, beta = 0;
    cudnnBackendDescriptor_t x = tensor(b, CUDNN_X, p->rank, type, &p->x);
    cudnnBackendDescriptor_t w = tensor(b, CUDNN_W, p->rank, type, &p->w);
    cudnnBackendDescriptor_t d =
        cudnn_make(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
    cudnn_set(b, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    cudnn_set(b, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
              &mode);
    set_int(b, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, spatial);
    cudnn_set(b, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, spatial,
              p->dilation);
    cudnn_set(b, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, spatial,
              p->stride);
    cudnn_set(b, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, spatial,
              p->begin);
    cudnn_set(b, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, spatial,
              p->end);
    cudnn_finalize(b, d);
    c->last = result(b, c);
    cudnnBackendDescriptor_t node =
        cudnn_make(b, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                   "convolution of these tensors");
    set_descriptor(b, node, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    set_descriptor(b, node, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    set_descriptor(b, node, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, c->last);
    set_descriptor(b, node, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, d);
    /* As floats: with FP32 arithmetic a double 1 is taken for a 0. */
    cudnn_set(b, node, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT,
              1, &alpha);
    cudnn_set(b, node, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT,
              1, &beta);
    cudnn_finalize(b, node);
    c->nodes[c->n++] = node;
}

static cudnnBackendDescriptor_t pointwise(struct cudnn_builder *b,
                                          cudnnPointwiseMode_t mode)
{
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t d =
        cudnn_make(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise operation");
    cudnn_set(b, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    cudnn_set(b, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    return d;
}

/* operand: NULL for a function of one tensor. */
static void append(struct cudnn_builder *b, struct chain *c,
                   cudnnBackendDescriptor_t operation, cudnnBackendDescriptor_t operand)
{
    cudnn_finalize(b, operation);
    c->left--;
    cudnnBackendDescriptor_t to = result(b, c);
    cudnnBackendDescriptor_t node =
        cudnn_make(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                   "pointwise operation on tensors");
    set_descriptor(b, node, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, operation);
    set_descriptor(b, node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, c->last);
    if (operand)
        set_descriptor(b, node, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, operand);
    set_descriptor(b, node, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
    cudnn_finalize(b, node);
    c->last = to;
    c->nodes[c->n++] = node;
}

/* ---- activations --------------------------------------------------------------------
 */

/* A parameter of a pointwise activation: a constant, or the epilogue's own. */
enum source { NO_PARAMETER, FIXED, ALPHA };
struct parameter {
    cudnnBackendAttributeName_t name;
    enum source source;
    double value;
};

static const struct activation {
    cudnnPointwiseMode_t mode;
    struct parameter parameter;
} activations[STRATA_ACTIVATION_COUNT] = {
    [STRATA_RELU] = {CUDNN_POINTWISE_RELU_FWD, {0}},
    [STRATA_LEAKY_RELU] = {CUDNN_POINTWISE_RELU_FWD,
                           {CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, ALPHA, 0}},
    [STRATA_RELU6] = {CUDNN_POINTWISE_RELU_FWD,
                      {CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, FIXED, 6}},
    [STRATA_SIGMOID] = {CUDNN_POINTWISE_SIGMOID_FWD, {0}},
    [STRATA_TANH] = {CUDNN_POINTWISE_TANH_FWD, {0}},
    [STRATA_ELU] = {CUDNN_POINTWISE_ELU_FWD, {CUDNN_ATTR_POINTWISE_ELU_ALPHA, ALPHA, 0}},
    [STRATA_SOFTPLUS] = {CUDNN_POINTWISE_SOFTPLUS_FWD,
                         {CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, FIXED, 1}},
    [STRATA_GELU] = {CUDNN_POINTWISE_GELU_FWD, {0}},
    [STRATA_SILU] = {CUDNN_POINTWISE_SWISH_FWD,
                     {CUDNN_ATTR_POINTWISE_SWISH_BETA, FIXED, 1}},
    [STRATA_SWISH] = {CUDNN_POINTWISE_SWISH_FWD,
                      {CUDNN_ATTR_POINTWISE_SWISH_BETA, ALPHA, 0}},
};

static void append_activation(struct cudnn_builder *b, struct chain *c)
{
    const struct cudnn_problem *p = c->problem;
    const struct activation *a = &activations[p->activation];
    const struct parameter *q = &a->parameter;
    cudnnBackendDescriptor_t operation = pointwise(b, a->mode);
    if (q->source != NO_PARAMETER)
        set_double(b, operation, q->name, q->source == ALPHA ? p->alpha : q->value);
    append(b, c, operation, NULL);
}

/* ---- the graph --------------------------------------------------------------------- */

int cudnn_has_activation(int32_t kind)
{
    return kind >= 0 && kind < STRATA_ACTIVATION_COUNT && activations[kind].mode != 0;
}

static bool has(const struct cudnn_problem *p, enum cudnn_operand operand)
{
    return p->operands & 1 << operand;
}

cudnnBackendDescriptor_t cudnn_graph(struct cudnn_builder *b,
                                     const struct cudnn_problem *p, cudnnHandle_t handle)
{
    struct chain c = {.problem = p,
                      .left = __builtin_popcount((unsigned)p->operands) +
                              (p->activation >= 0)};
    convolution(b, &c);
    if (has(p, CUDNN_RESIDUAL))
        append(b, &c, pointwise(b, CUDNN_POINTWISE_ADD),
               tensor(b, CUDNN_RESIDUAL, p->rank, (cudnnDataType_t)p->type, &p->y));
    if (has(p, CUDNN_BIAS))
        append(b, &c, pointwise(b, CUDNN_POINTWISE_ADD), bias(b, p));
    if (p->activation >= 0)
        append_activation(b, &c);
    cudnnBackendDescriptor_t graph =
        cudnn_make(b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
    cudnn_set(b, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, c.n,
              c.nodes);
    if (handle)
        cudnn_set(b, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                  &handle);
    cudnn_finalize(b, graph);
    return graph;
}
