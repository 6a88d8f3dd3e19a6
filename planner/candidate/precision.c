/* SPDX-License-Identifier: Apache-2.0
 *
 * What `precision` leaves of the formats: those of one float dtype, or of two, and all of
 * the dtypes that it does not touch; and what a tensor may then have.
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

/* The formats that an application binds a tensor of the network's ends in: layers may
 * read an input as it is, and write an output so. A layer between an input and an output
 * computes in what `precision` says, so it writes that. */
static uint64_t bound_formats(const struct planner *planner, const struct planner_node *n,
                              int tensor, bool output)
{
    const strata_network *net = planner->network;
    const struct network_tensor *t = &net->tensors[tensor];
    bool inner = false;
    uint64_t formats = 0;
    if (!output)
        return t->producer < 0 ? format_mask(net->inputs[t->port].format) : 0;
    if (!planner->is_output[tensor])
        return 0;
    for (int i = 0; i < n->n_in; i++) {
        const struct network_tensor *x = &net->tensors[n->in[i]];
        inner |= x->producer >= 0 && dtype_is_free(x->dtype);
    }
    for (size_t i = 0; inner && i < net->n_outputs; i++)
        if (net->outputs[i].tensor == tensor)
            formats |= format_mask(net->outputs[i].format);
    return formats;
}

uint64_t planner_allowed(const struct planner *planner, const struct planner_node *n,
                         int tensor, bool output, uint64_t wish, uint64_t precision)
{
    const strata_network *net = planner->network;
    const struct network_tensor *t = &net->tensors[tensor];
    const bool fixed = output && t->exact, free = dtype_is_free(t->dtype) && !fixed;
    const uint64_t dtypes = precision | bound_formats(planner, n, tensor, output);
    const uint64_t limit = (output && t->formats ? t->formats : ~UINT64_C(0)) &
                           (free ? wish & dtypes : ~UINT64_C(0));
    uint64_t allowed = 0;
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++) {
        strata_desc d;
        const int dtype = format_at(f)->dtype;
        const bool fits = dtype == t->dtype || (free && dtype_is_free(dtype));
        if (fits && limit >> f & 1 && planner_desc(&d, net, tensor, f, NULL) == STRATA_OK)
            allowed |= UINT64_C(1) << f;
    }
    return allowed;
}
