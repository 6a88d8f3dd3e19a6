/* SPDX-License-Identifier: Apache-2.0
 *
 * A convolution and its epilogue as a graph of cuDNN's backend API:
 *   y = activation(conv(x, w) + residual + bias)
 * where every part but conv may be absent. In this order, and with a bias of the
 * tensors' type, it is a pattern that cuDNN has kernels for; in others it compiles some
 * at run time. A problem is plain data, so that cuDNN's answers can be kept by it.
 */
#ifndef PLUGINS_CONVOLUTION_CUDNN_GRAPH_H
#define PLUGINS_CONVOLUTION_CUDNN_GRAPH_H

#include <cudnn.h>
#include <stdint.h>

#define CUDNN_RANK 5 /* at most: N, C and three spatial dims */
#define CUDNN_SPATIAL 3

/* Unique ids of the tensors in memory; also their order in a variant pack. */
enum cudnn_operand {
    CUDNN_X,
    CUDNN_W,
    CUDNN_Y,
    CUDNN_RESIDUAL,
    CUDNN_BIAS,
    CUDNN_OPERANDS
};

struct cudnn_shape {
    int64_t dims[CUDNN_RANK];
    int64_t strides[CUDNN_RANK]; /* elements */
};

/* Compared byte by byte: start from zeroed memory. */
struct cudnn_problem {
    int32_t rank;         /* 4 or 5 */
    int32_t type;         /* cudnnDataType_t of all operands; arithmetic is FP32 */
    int32_t tensor_cores; /* kernels may use them */
    int32_t operands;     /* mask 1 << CUDNN_RESIDUAL ... of the optional ones */
    int32_t activation;   /* STRATA_RELU ..., or -1 */
    int32_t reserved;
    double alpha; /* of the activation */
    struct cudnn_shape x, w, y;
    int64_t begin[CUDNN_SPATIAL], end[CUDNN_SPATIAL]; /* pads; the first rank - 2 */
    int64_t stride[CUDNN_SPATIAL], dilation[CUDNN_SPATIAL];
};

/* Descriptors under construction. After a failure the rest does nothing, so that status
 * is looked at once. */
enum { CUDNN_DESCRIPTORS = 40 };
struct cudnn_builder {
    cudnnBackendDescriptor_t made[CUDNN_DESCRIPTORS];
    int n;
    cudnnStatus_t status;
    const char *what; /* the step that failed */
};

cudnnBackendDescriptor_t cudnn_make(struct cudnn_builder *b,
                                    cudnnBackendDescriptorType_t type, const char *what);
void cudnn_set(struct cudnn_builder *b, cudnnBackendDescriptor_t d,
               cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               int64_t n, const void *values);
void cudnn_finalize(struct cudnn_builder *b, cudnnBackendDescriptor_t d);
void cudnn_builder_clear(struct cudnn_builder *b);

/* Whether an activation has a node that agrees with ours. */
int cudnn_has_activation(int32_t kind);

/* The operation graph, finalised; handle: NULL to plan without a device. It lives as long
 * as the builder's descriptors. */
cudnnBackendDescriptor_t cudnn_graph(struct cudnn_builder *b,
                                     const struct cudnn_problem *p, cudnnHandle_t handle);

#endif /* PLUGINS_CONVOLUTION_CUDNN_GRAPH_H */
