/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_COST_H
#define CORE_COST_H

#include "core/device.h"
#include "core/plan.h"

/* The analytic cost model: a roofline over the device's ceilings, for planning without a
 * device and for what was not measured. Results are in 1/16 ns, at least 1. */
int64_t cost_of_run(const strata_node *n, const strata_impl *impl,
                    const strata_layer *layer, const struct device_properties *d);
/* bytes of the source and of the destination. */
int64_t cost_of_reformat(int64_t from_bytes, int64_t to_bytes,
                         const struct device_properties *d);

#endif /* CORE_COST_H */
