/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_STREAM_H
#define KERNELS_STREAM_H

#include "kernels/device.h"

struct cuda_stream {
    strata_stream base;
    cudaStream_t native;
};

static inline struct cuda_stream *cuda_stream(strata_stream *s)
{
    return (struct cuda_stream *)s;
}

#endif /* KERNELS_STREAM_H */
