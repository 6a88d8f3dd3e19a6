/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_STREAM_H
#define KERNELS_STREAM_H

#include "kernels/device.h"

struct cuda_stream {
    strata_stream base;
    cudaStream_t native;
    bool foreign; /* the application's */
};

static inline struct cuda_stream *cuda_stream(strata_stream *s)
{
    return (struct cuda_stream *)s;
}

/* With cudaStream* flags. */
int cuda_stream_make(struct device *base, unsigned flags, strata_stream **out,
                     strata_error *err);
/* Begin a graph; mode: which threads may break it. */
int cuda_capture(strata_stream *s, enum cudaStreamCaptureMode mode, strata_error *err);

#endif /* KERNELS_STREAM_H */
