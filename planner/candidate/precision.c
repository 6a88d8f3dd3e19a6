/* SPDX-License-Identifier: Apache-2.0
 *
 * What `precision` leaves of the formats: those of one float dtype, or of two, and all of
 * the dtypes that it does not touch.
 */
#include "planner/planner.h"

static uint64_t precision_formats(enum precision precision)
{
    static const int dtypes[] = {[PRECISION_FP32] = STRATA_FP32,
                                 [PRECISION_FP16] = STRATA_FP16,
                                 [PRECISION_ANY] = STRATA_FP32,
                                 [PRECISION_BF16] = STRATA_BF16};
    uint64_t mask = 0;
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++) {
        int dtype = format_at(f)->dtype;
        bool any = precision == PRECISION_ANY && dtype != STRATA_BF16;
        if (!dtype_is_free(dtype) || any || dtype == dtypes[precision])
            mask |= UINT64_C(1) << f;
    }
    return mask;
}

static bool mask_has(uint64_t mask, uint64_t formats)
{
    return !(mask & ~STRATA_SAME) || mask & formats;
}

/* At the ports that the node has; what is exact keeps its dtype. */
static bool row_has_precision(const struct planner *planner, const struct planner_node *n,
                              const struct registry_row *row, uint64_t formats)
{
    for (int i = 0; i < REGISTRY_PORTS && i < n->n_ports; i++)
        if (!mask_has(row->in[i], formats))
            return false;
    for (int i = 0; i < REGISTRY_PORTS && i < n->n_out; i++)
        if (!planner->network->tensors[n->out[i]].exact &&
            !mask_has(row->out[i], formats))
            return false;
    return true;
}

uint64_t planner_precision(const struct planner *planner, const struct planner_node *n,
                           bool made)
{
    uint64_t wanted = precision_formats(planner->network->build.precision);
    const struct registry_layer *type = n->layer->type;
    bool here = false;
    for (size_t i = 0; i < type->n_impls; i++) {
        if (type->impls[i].impl.device != planner->device.properties.kind)
            continue;
        here = true;
        for (uint32_t r = 0; r < type->impls[i].impl.rows.n; r++)
            if (row_has_precision(planner, n, &type->impls[i].rows[r], wanted))
                return wanted;
    }
    if (made) /* its layers by themselves keep what is asked for */
        return wanted;
    if (here)
        log_line(STRATA_LOG_WARNING,
                 "layer '%s': %s has no impl at the precision asked for; it runs in "
                 "another",
                 n->layer->name, type->full_name);
    return ~UINT64_C(0);
}
