/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps in which patterns are looked for: what is long first.
 */
#include "network/import/pattern/pattern.h"

extern const struct pattern_table pattern_attentions, pattern_bounds, pattern_activations,
    pattern_columns, pattern_concatenations, pattern_dynamic, pattern_flats,
    pattern_normalizations, pattern_orders, pattern_places, pattern_products,
    pattern_regions, pattern_scales, pattern_shuffles, pattern_steps, pattern_windows;

/* clang-format off: a step a line */
const struct pattern_table *const pattern_tables[] = {
    &pattern_dynamic,
    &pattern_concatenations,
    &pattern_attentions,
    &pattern_bounds,
    &pattern_places,
    &pattern_activations,
    &pattern_normalizations,
    &pattern_steps,
    &pattern_orders,
    &pattern_products,
    &pattern_columns,
    &pattern_regions,
    &pattern_orders,
    &pattern_flats,
    &pattern_windows,
    &pattern_scales,
    &pattern_shuffles,
    NULL,
};
/* clang-format on */
