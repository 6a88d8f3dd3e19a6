/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of inputs that a case runs as, beside its own.
 */
#include "check/harness/trial.h"

/* Types that some row takes on its first input. */
static uint64_t row_types(const struct registry_layer *layer)
{
    uint64_t types = 0;
    for (size_t i = 0; i < layer->n_impls; i++)
        for (uint32_t r = 0; r < layer->impls[i].impl.rows.n; r++)
            for (int f = 0; f < STRATA_FORMAT_COUNT; f++)
                if (layer->impls[i].rows[r].in[0] >> f & 1)
                    types |= UINT64_C(1) << format_at(f)->dtype;
    return types;
}

uint64_t trial_further_types(const struct trial *k)
{
    const uint64_t integers = 1u << STRATA_INT8 | 1u << STRATA_UINT8 |
                              1u << STRATA_INT32 | UINT64_C(1) << STRATA_INT64;
    uint64_t types = k->c->dtypes;
    if (k->c->integers && !k->c->in_dtype[0])
        types |= integers & row_types(k->node.layer);
    if (!k->c->refused && !k->c->in_dtype[0])
        types |= UINT64_C(1) << STRATA_FP64 & row_types(k->node.layer);
    return k->c->n_in < 0 ? 0 : types;
}
