/* SPDX-License-Identifier: Apache-2.0
 *
 * Interpolation by tables of taps on CUDA: every filter, along up to three dims.
 */
#ifndef PLUGINS_RESIZE_TAPS_CUDA_H
#define PLUGINS_RESIZE_TAPS_CUDA_H

#include "plugins/resize/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Taps of a resized axis, in device memory: `n` for each output index, offsets in the
 * input, in elements, and weights. The first offset is -1 for the extrapolation value. */
struct resize_table {
    int32_t n;
    const int64_t *at;
    const float *weight;
};

struct resize_taps_job {
    struct resize_plan plan;
    struct resize_table table[RESIZE_AXES];
    const void *x;
    void *y;
    int32_t dtype; /* FP32, FP16 or BF16 */
    float value;   /* extrapolation */
};

/* cudaError_t of the launch. Pad lanes of y are not zero. */
int resize_taps_start(const struct resize_taps_job *job, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_RESIZE_TAPS_CUDA_H */
