/* SPDX-License-Identifier: Apache-2.0
 *
 * `weight_scale`: factors of a weight that is stored in few bits, one for all or one for
 * each output channel, or one for each group of values of it. The core multiplies, unless
 * an impl takes the weight as it is stored; layers only say along which dims they differ.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_FACTORS_H
#define PLUGINS_COMMON_QUANTIZED_FACTORS_H

#include <strata/plugin.h>

#define FACTORS_WEIGHT(of)                                                               \
    {                                                                                    \
        .name = "weight_scale", .flags = STRATA_FACTORS, .rank = -1,                     \
        .doc = "factors of a weight of few bits: one, or one for each " of            \
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

/* Factors for groups of that many values along `depth`: each channel has its own. */
static inline void factors_group(strata_tensor *expected, const strata_tensor *weight,
                                 int depth, int64_t group)
{
    const int64_t values = weight->dims[depth];
    expected->dims[1 - depth] = weight->dims[1 - depth];
    expected->dims[depth] = values / group + (values % group > 0);
    expected->vector_dim = depth;
    expected->vector = (int32_t)group;
}

#endif /* PLUGINS_COMMON_QUANTIZED_FACTORS_H */
