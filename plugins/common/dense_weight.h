/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of matrix products, packed in setup so that the product's inner loop runs over
 * an image as it lies in memory, pad lanes included, and its output is a row of an image.
 */
#ifndef PLUGINS_COMMON_DENSE_WEIGHT_H
#define PLUGINS_COMMON_DENSE_WEIGHT_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Elements of one image of a dense tensor, pad lanes included. */
int64_t dense_image_size(const strata_tensor *t);

/* Channels with pad lanes. */
int64_t dense_channels(const strata_tensor *t);

/* The weight of n (its first, FP32, of `rows` logical rows over the elements of an image
 * of in[0]) as out[0]'s padded rows x in[0]'s padded image, in in[0]'s dtype; zero where
 * either has pads. transposed: it comes as columns x rows. NULL where there is no image. */
int dense_weight_pack(const strata_node *n, int transposed, void **packed);

/* The weight of n, a convolution with a window of one pixel, as out[0]'s padded channels
 * x in[0]'s padded channels. */
int dense_channels_pack(const strata_node *n, void **packed);

/* The bias of n (its second weight, which it has) in out[0]'s dtype, each element
 * `repeat` times, then zeros up to `count` elements. */
int dense_bias_pack(const strata_node *n, int64_t repeat, int64_t count, void **packed);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_COMMON_DENSE_WEIGHT_H */
