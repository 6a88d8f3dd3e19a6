/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in the layout and type of a convolution's tensors.
 */
#ifndef PLUGINS_CONVOLUTION_CUDNN_PACK_H
#define PLUGINS_CONVOLUTION_CUDNN_PACK_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cudnn_packing {
    int64_t filters, channels, taps;         /* of the source, in this order */
    int64_t padded_filters, padded_channels; /* of the copy; the rest is zero */
    int32_t dtype;                           /* of the copy: STRATA_FP32 ... */
    int32_t last;                            /* the copy is filters, taps, channels */
};

/* source: FP32, or NULL for zeros. */
cudaError_t cudnn_pack(void *copy, const float *source, const struct cudnn_packing *p,
                       cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_CONVOLUTION_CUDNN_PACK_H */
