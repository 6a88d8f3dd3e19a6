/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear interpolation along up to three dims, FP32, FP16 and BF16; a vector of the
 * format is at most 16 bytes.
 */
#ifndef PLUGINS_RESIZE_LINEAR_H
#define PLUGINS_RESIZE_LINEAR_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RESIZE_DIMS 3

/* An output index: offsets of both neighbours in the input's image, in elements, and the
 * upper one's share. 16 bytes, so that it moves as one word. */
struct resize_entry {
    int32_t low, high;
    float share;
    int32_t unused;
};

struct resize_job {
    strata_tensor x, y;
    /* By spatial dim, outermost first, in device memory; images are below 2^31 elements. */
    const struct resize_entry *table[RESIZE_DIMS];
};

/* cudaError_t of the launch. Pad lanes of y are written zero. */
int resize_linear_start(const struct resize_job *job, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_RESIZE_LINEAR_H */
