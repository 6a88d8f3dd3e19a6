/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear interpolation along up to three dims, FP32 and FP16; a vector of the format is
 * at most 16 bytes.
 */
#ifndef KERNELS_RESIZE_LINEAR_H
#define KERNELS_RESIZE_LINEAR_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RESIZE_DIMS 3

/* Of a spatial dim, in device memory, by output index: offsets of both neighbours in the
 * input and the upper one's share. */
struct resize_table {
    const int64_t *low, *high;
    const float *share;
};

struct resize_job {
    strata_tensor x, y;
    struct resize_table table[RESIZE_DIMS]; /* by spatial dim, outermost first */
};

/* cudaError_t of the launch. Pad lanes of y are written zero. */
int resize_linear_start(const struct resize_job *job, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* KERNELS_RESIZE_LINEAR_H */
