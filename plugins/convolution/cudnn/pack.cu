/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing of weights, once in setup: one element of the copy a thread.
 */
#include "plugins/convolution/cudnn/pack.h"

#include "kernels/layer.cuh"

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    pack_kernel(T *copy, const float *source, cudnn_packing p, int64_t size)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < size;
         i += step) {
        const int64_t row = i / (p.last ? p.padded_channels : p.taps);
        const int64_t low = i % (p.last ? p.padded_channels : p.taps);
        const int64_t high = row % (p.last ? p.taps : p.padded_channels);
        const int64_t k = row / (p.last ? p.taps : p.padded_channels);
        const int64_t c = p.last ? low : high, tap = p.last ? high : low;
        const bool inside = source && k < p.filters && c < p.channels;
        from_float(&copy[i], inside ? source[(k * p.channels + c) * p.taps + tap] : 0.0f);
    }
}

cudaError_t cudnn_pack(void *copy, const float *source, const struct cudnn_packing *p,
                       cudaStream_t stream)
{
    const int64_t size = p->padded_filters * p->padded_channels * p->taps;
    const unsigned blocks = layer_blocks(size, CUDA_BLOCK);
    layer_float(p->dtype, [&](auto t) {
        pack_kernel<<<blocks, CUDA_BLOCK, 0, stream>>>((decltype(t) *)copy, source, *p,
                                                       size);
    });
    return cudaGetLastError();
}
