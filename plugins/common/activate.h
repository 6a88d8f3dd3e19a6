/* SPDX-License-Identifier: Apache-2.0
 *
 * An activation behind a layer's results, in the functions of Activation's own rows:
 * exponentials in the vectors of the processor at hand. Plugins that include this link
 * POINTWISE_LIBS.
 */
#ifndef PLUGINS_COMMON_ACTIVATE_H
#define PLUGINS_COMMON_ACTIVATE_H

#include "plugins/common/element.h"
#include "plugins/common/pointwise.h"

/* Over n contiguous elements in place. Comparisons are vectors wherever they stand. */
static inline void activate_row(int32_t kind, double alpha, double beta, float *row,
                                int64_t n)
{
    const struct pointwise_constants k = {.alpha = alpha, .beta = beta};
    if (kind == STRATA_RELU || kind == STRATA_LEAKY_RELU || kind == STRATA_RELU6 ||
        kind == STRATA_CLIP)
        element_activate_row(kind, alpha, beta, row, n);
    else
        pointwise_float.apply(POINTWISE_ACTIVATION + kind, &k, row, row, NULL, NULL, n);
}

#endif /* PLUGINS_COMMON_ACTIVATE_H */
