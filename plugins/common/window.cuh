/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor under windows, as kernels see it, in any format.
 */
#ifndef PLUGINS_COMMON_WINDOW_CUH
#define PLUGINS_COMMON_WINDOW_CUH

#include "plugins/common/window.h"

/* Of data at index (n, c, i): n*image + (c >> shift)*channel + (c & mask) + i*step. */
struct window_tensor {
    void *data;
    int64_t image, channel, step[WINDOW_DIMS];
    uint32_t shift, mask; /* of the vector of channels */
};

static inline window_tensor window_tensor_of(const strata_tensor *t)
{
    window_tensor v = {t->data, t->strides[0], t->strides[1], {}, 0, 0};
    while (t->vector_dim == 1 && (1 << v.shift) < t->vector)
        v.shift++;
    v.mask = (1u << v.shift) - 1;
    for (int d = 2; d < t->rank; d++)
        v.step[WINDOW_DIMS - t->rank + d] = t->strides[d];
    return v;
}

static __device__ inline int64_t channel_offset(const window_tensor &t, uint32_t c)
{
    return (c >> t.shift) * t.channel + (c & t.mask);
}

#endif /* PLUGINS_COMMON_WINDOW_CUH */
