/* SPDX-License-Identifier: Apache-2.0
 *
 * Where channels lie in a tensor of 8 bits in any format, for plain host impls of layers
 * that slide filters.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_CHANNELS_H
#define PLUGINS_COMMON_QUANTIZED_CHANNELS_H

#include "plugins/common/quantized/quantized.h"
#include "plugins/common/window.h"

/* Channels from c on that lie side by side. */
static inline int64_t channels_together(const strata_tensor *t, int64_t c)
{
    return t->vector_dim == 1   ? t->vector - c % t->vector
           : t->strides[1] == 1 ? INT64_MAX
                                : 1;
}

/* Offset of a channel. */
static inline int64_t channels_offset(const strata_tensor *t, int64_t c)
{
    return t->vector_dim == 1 ? c / t->vector * t->strides[1] + c % t->vector
                              : c * t->strides[1];
}

/* Offset of a place of the plane, D, H, W right-aligned. */
static inline int64_t channels_place(const strata_tensor *t, const struct window *w,
                                     int64_t n, const int64_t *i)
{
    int64_t at = n * t->strides[0];
    for (int d = w->first; d < WINDOW_DIMS; d++)
        at += i[d] * t->strides[2 + d - w->first];
    return at;
}

/* `count` channels from `first` on at one place of the input, by the weights of one tap.
 */
static inline int32_t channels_dot(const strata_tensor *in, int64_t at, int64_t first,
                                   int64_t count, const int8_t *w, int32_t zero)
{
    int32_t sum = 0;
    for (int64_t i = 0, n; i < count; i += n) {
        n = window_min(channels_together(in, first + i), count - i);
        sum += quantized_dot((const char *)in->data + at + channels_offset(in, first + i),
                             in->dtype, w + i, n, zero);
    }
    return sum;
}

#endif /* PLUGINS_COMMON_QUANTIZED_CHANNELS_H */
