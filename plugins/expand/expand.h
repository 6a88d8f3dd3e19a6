/* SPDX-License-Identifier: Apache-2.0
 *
 * Expand as repetition, for its impls on all devices: a dim of n elements is repeated,
 * and neighbouring dims that repeat as one are one.
 */
#ifndef PLUGINS_EXPAND_EXPAND_H
#define PLUGINS_EXPAND_EXPAND_H

#include <strata/layers.h>

struct expand_dim {
    int64_t n, repeat;
};

/* Dims outermost first; there is at least one. Returns how many. */
static inline int expand_dims(const strata_tensor *out, const strata_tensor *x,
                              struct expand_dim *dim)
{
    int last = 0;
    dim[0].n = dim[0].repeat = 1;
    for (int d = 0; d < out->rank; d++) {
        const int own = d - (out->rank - x->rank);
        const int64_t n = own < 0 ? 1 : x->dims[own], repeat = out->dims[d] / n;
        struct expand_dim *outer = &dim[last];
        if (repeat == 1) {
            outer->n *= n;
        } else if (outer->n == 1) {
            outer->n = n;
            outer->repeat *= repeat;
        } else {
            dim[++last].n = n;
            dim[last].repeat = repeat;
        }
    }
    return last + 1;
}

#endif /* PLUGINS_EXPAND_EXPAND_H */
