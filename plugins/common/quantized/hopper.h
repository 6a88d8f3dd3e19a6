/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of 8 bits on Hopper's tensor cores: what the impls of each layer share.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_HOPPER_H
#define PLUGINS_COMMON_QUANTIZED_HOPPER_H

#include <strata/layers.h>

#include "plugins/common/window.h"

/* Rows x columns of a tile; `thin`: pieces of 64 channels instead of 128; `kept`,
 * `patch`: resident.cuh's, of either. */
#define HOPPER_EACH(_)                                                                   \
    _(128x128_pair)                                                                      \
    _(128x256_pair)                                                                      \
    _(128x192_pair)                                                                      \
    _(256x128_pair)                                                                      \
    _(192x128_pair)                                                                      \
    _(64x128)                                                                            \
    _(64x64)                                                                             \
    _(256x64)                                                                            \
    _(128x64_split)                                                                      \
    _(64x64_split)                                                                       \
    _(64x32_split)                                                                       \
    _(64x128_thin)                                                                       \
    _(64x64_thin)                                                                        \
    _(256x64_thin)                                                                       \
    _(256x32_thin)                                                                       \
    _(64x128_kept)                                                                       \
    _(128x64_kept)                                                                       \
    _(128x64_patch)

#include "plugins/common/product/tactics.h"

/* A layer as a product: rows are pixels, columns filters. */
struct quantized_shape {
    struct window w; /* of a product: an element */
    const strata_quantized *q;
    int64_t groups, in_c, out_c;   /* channels */
    int64_t in_stored, out_stored; /* with pad lanes, elements of a pixel */
    int64_t addend_stored;         /* the same of a second input; 0: none */
    int64_t pixels;                /* of the output, of all images */
    int64_t filter, channel;       /* weight [k*filter + c*channel + t] */
};

/* State of every impl; memory is strata.pack's. */
struct quantized_hopper_state {
    struct quantized_shape shape; /* of the greatest batch */
    void *weight;                 /* [column][element][channel, to whole pieces] */
    float *factor, *bias;         /* of columns, to whole tiles; 0 past the filters */
    int32_t *offset;              /* the same, or NULL where what stands for 0 is 0 */
    float *quick_scale; /* of columns, and a bias of each behind all (quick.cuh) */
    float quick[15];    /* a quantized_quick and, behind it, a quantized_alone */
    int32_t columns;
    int32_t multiprocessors;
};

int quantized_hopper_accept(const strata_node *n, const struct quantized_shape *s,
                            int tactic);
/* joined: of a layer that may have a second input, NULL of others. */
int quantized_hopper_setup(const strata_node *n, const struct quantized_shape *s,
                           const strata_quantized_convolution *joined,
                           struct quantized_hopper_state *state, int tactic);
/* `pixels`: of this run's output. */
int quantized_hopper_run(const strata_run *r, const strata_quantized *q,
                         const strata_quantized_convolution *joined, int64_t pixels,
                         int tactic);

#endif /* PLUGINS_COMMON_QUANTIZED_HOPPER_H */
