/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedConvolution with a channel a group on CUDA, depthwise.cu.
 */
#ifndef PLUGINS_QUANTIZED_CONVOLUTION_DEPTHWISE_CUH
#define PLUGINS_QUANTIZED_CONVOLUTION_DEPTHWISE_CUH

#include "plugins/common/window.h"

/* Memory is strata.pack's; arrays of channels are padded to whole words. */
struct depthwise_state {
    struct window w;
    void *weight;         /* [row][group of four elements][channel], words */
    float *factor, *bias; /* of each channel */
    int32_t *offset;      /* -zero_in*(sum of its weights) */
};

/* Channels as they lie in memory: rounded up to the vector. */
static inline int64_t stored_channels(const strata_tensor *t)
{
    const int64_t vector = t->vector_dim == 1 ? t->vector : 1;
    return (t->dims[1] + vector - 1) / vector * vector;
}

int depthwise_accept(const strata_node *n);
int depthwise_setup(const strata_node *n, void *state);
int depthwise_run(const strata_run *r);

#endif /* PLUGINS_QUANTIZED_CONVOLUTION_DEPTHWISE_CUH */
