/* SPDX-License-Identifier: Apache-2.0
 *
 * What inputs may hold, from the rows: for each row and each type of its first port the
 * types of the others. Floats come first, as FP32, which stands for FP16 and BF16 too.
 */
#include <string.h>

#include "check/cases.h"
#include "formats/format.h"

/* Types of a port's mask, FP32 for any of the three floats. */
static uint64_t port_types(uint64_t mask)
{
    uint64_t types = 0;
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++)
        if (mask >> f & 1) {
            const int32_t dtype = format_at(f)->dtype;
            types |= UINT64_C(1) << (number_is_any(dtype) ? STRATA_FP32 : dtype);
        }
    return types;
}

/* The last mask that is not 0 serves further ports. */
static uint64_t mask_of(const uint64_t masks[REGISTRY_PORTS], int port)
{
    while (port > 0 && (port >= REGISTRY_PORTS || masks[port] == 0))
        port--;
    return masks[port];
}

static void add_types(struct check_cases *k, const int32_t types[HARNESS_INPUTS])
{
    for (size_t i = 0; i < k->n_types; i++)
        if (memcmp(k->types[i], types, sizeof k->types[i]) == 0)
            return;
    if (k->n_types < CASES_TYPES)
        memcpy(k->types[k->n_types++], types, sizeof k->types[0]);
}

/* Other ports follow the first where they can, else have the first type that they may. */
static void add_row(struct check_cases *k, const struct registry_row *row, int32_t first)
{
    int32_t types[HARNESS_INPUTS];
    for (int i = 0; i < HARNESS_INPUTS; i++) {
        const uint64_t mask = mask_of(row->in, i), allowed = port_types(mask);
        const bool same = mask == STRATA_SAME || allowed >> first & 1 || allowed == 0;
        types[i] = same ? first : __builtin_ctzll(allowed);
    }
    add_types(k, types);
}

void cases_find_types(struct check_cases *k, const struct registry_layer *layer)
{
    k->n_types = 0;
    for (int32_t first = 0; first < STRATA_DTYPE_COUNT; first++)
        for (size_t i = 0; i < layer->n_impls; i++)
            for (uint32_t r = 0; r < layer->impls[i].impl.rows.n; r++) {
                const struct registry_row *row = &layer->impls[i].rows[r];
                if (port_types(row->in[0]) >> first & 1 || row->in[0] == 0)
                    add_row(k, row, first);
            }
    memcpy(k->in_dtype, k->types[0], sizeof k->in_dtype);
}
