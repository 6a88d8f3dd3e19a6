/* SPDX-License-Identifier: Apache-2.0
 *
 * `weight_scale`: factors of a weight that is stored in few bits, one for all or one for
 * each output channel. The core multiplies; layers only say along which dim they differ.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_FACTORS_H
#define PLUGINS_COMMON_QUANTIZED_FACTORS_H

#include <strata/plugin.h>

#define FACTORS_WEIGHT(of)                                                               \
    {                                                                                    \
        .name = "weight_scale", .flags = STRATA_FACTORS, .rank = -1,                     \
        .doc = "factors of a weight of int8 or FP8: one, or one for each " of            \
    }

/* Dims of the factors beside those that are expected of the weight. */
static inline void factors_shape(strata_tensor *expected, const strata_tensor *given,
                                 const strata_tensor *weight, int dim)
{
    int64_t count = given->rank > 0;
    for (int d = 0; d < given->rank; d++)
        count *= given->dims[d];
    expected->dtype = STRATA_FP32;
    expected->rank = weight->rank;
    for (int d = 0; d < weight->rank; d++)
        expected->dims[d] = d == dim && count > 1 ? weight->dims[d] : 1;
}

#endif /* PLUGINS_COMMON_QUANTIZED_FACTORS_H */
