/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedProduct on the host: what its files share.
 */
#ifndef PLUGINS_QUANTIZED_PRODUCT_PRODUCT_H
#define PLUGINS_QUANTIZED_PRODUCT_PRODUCT_H

#include "plugins/common/quantized/quantized.h"

/* State of plain impls. */
struct product_plain {
    int64_t depth, units;
    const void *packed;  /* units x depth bytes */
    const float *factor; /* of each unit: scale_in*weight_scale */
};

/* Of E4M3, float8.c: the plain impl, and the definition. */
int float8_accept(const strata_node *n);
int float8_run(const strata_run *r);
int float8_reference(const strata_node *n, const void *const *in,
                     const void *const *weight, void *const *out);

#endif /* PLUGINS_QUANTIZED_PRODUCT_PRODUCT_H */
