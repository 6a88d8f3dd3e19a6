/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of Winograd's convolution, and the transforms from and to its tensors.
 */
#ifndef PLUGINS_CONVOLUTION_WINOGRAD_TRANSFORM_H
#define PLUGINS_CONVOLUTION_WINOGRAD_TRANSFORM_H

#include "plugins/convolution/winograd/winograd.h"

struct winograd_job {
    const struct winograd *s;
    const strata_tensor *in, *out, *residual; /* residual may be NULL */
    const float *bias;                        /* may be NULL */
    const strata_epilogue *epilogue;
    int64_t down, across, tiles, groups; /* of an image; of all */
    const struct winograd_kernels *kernels;
};

/* Tiles [first, first + rows), transformed. */
struct winograd_block {
    int64_t first, rows, spot; /* floats from a spot to the next */
    float *v;
};

/* A panel of filters, and y = scale*x + shift of each. */
struct winograd_panel {
    int64_t filter, columns;
    const float *weights;
    float scale[TILE_COLUMNS], shift[TILE_COLUMNS];
};

/* Products of a panel by tiles [first, first + rows). */
struct winograd_products {
    int64_t first, rows, spot;
    float *m;
};

/* tile: of the block, of the products. */
struct winograd_kernels {
    void (*transform)(const struct winograd_job *, const struct winograd_block *,
                      int64_t tile);
    void (*collect)(const struct winograd_job *, const struct winograd_panel *,
                    const struct winograd_products *, int64_t tile);
};

/* Those of this CPU. */
const struct winograd_kernels *winograd_kernels(void);

#endif /* PLUGINS_CONVOLUTION_WINOGRAD_TRANSFORM_H */
