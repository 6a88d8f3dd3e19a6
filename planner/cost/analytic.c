/* SPDX-License-Identifier: Apache-2.0
 *
 * time = launch + operations / (peak * efficiency) + bytes / (memory * bandwidth)
 *
 * The two are added, not overlapped as in a roofline: measured over the networks of
 * bench/nets, the sum is as good a prediction, and of two impls that move the same bytes
 * it tells the one that computes slower. Claims come from bench/plan/claims.
 */
#include "planner/cost/cost.h"

#include "registry/registry.h"

/* An impl that does not say how fast it is: a plain loop. */
#define UNKNOWN_EFFICIENCY 0.01
static const double unknown_bandwidth[] = {[STRATA_HOST] = 0.2, [STRATA_CUDA] = 0.6};
/* Share of the device's bandwidth a reformat reaches. */
#define REFORMAT_EFFICIENCY 0.6
/* Bounds: Winograd's convolutions do down to a quarter of the arithmetic that a layer
 * counts, and the ceilings of a host are those of a typical core. */
#define BOUND_FLOPS 4
/* Of a host's bytes: a core's AMX does 6,500 of their operations where the ceiling says
 * 250. */
#define BOUND_BYTE_FLOPS 26
/* The data may lie in caches. */
#define BOUND_BANDWIDTH 8

static int64_t to_units(double ns)
{
    double units = ns * PLAN_UNIT_PER_NS;
    if (!(units < (double)(PLAN_INFINITE / 1024)))
        return PLAN_INFINITE / 1024;
    return units < 1 ? 1 : (int64_t)units;
}

static double tensors_bytes(const strata_tensor *t, int n)
{
    double bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (double)t[i].size * (double)strata_dtype_size(t[i].dtype);
    return bytes;
}

static double operations(const strata_node *n, const strata_layer *layer)
{
    double count = 0;
    if (layer->flops)
        return layer->flops(n);
    for (int i = 0; i < n->n_out; i++)
        count += (double)n->out[i].count;
    return count;
}

static double node_bytes(const strata_node *n)
{
    return tensors_bytes(n->in, n->n_in) + tensors_bytes(n->out, n->n_out) +
           tensors_bytes(n->weight, n->n_weights);
}

/* Of two impls alike in their claims the one made for fewer formats is taken: it has a
 * format's worth of choices less to make. In units far below what a claim can tell. */
static int64_t generality(const struct registry_row *row)
{
    return __builtin_popcountll(row->in[0]) + __builtin_popcountll(row->out[0]);
}

int64_t cost_of_run(const strata_node *n, const strata_impl *impl,
                    const struct registry_row *row, const strata_layer *layer,
                    const struct device_properties *d)
{
    double efficiency = impl->efficiency > 0 ? impl->efficiency : UNKNOWN_EFFICIENCY;
    double bandwidth = impl->bandwidth > 0 ? impl->bandwidth : unknown_bandwidth[d->kind];
    int dtype = n->n_out ? n->out[0].dtype : STRATA_FP32;
    double compute = operations(n, layer) / (d->flops[dtype] * efficiency);
    double memory = node_bytes(n) / (d->bandwidth * bandwidth);
    return to_units(d->launch_ns + (compute + memory) * 1e9) + generality(row);
}

int64_t cost_of_reformat(int64_t from_bytes, int64_t to_bytes,
                         const struct device_properties *d)
{
    double bytes = (double)from_bytes + (double)to_bytes;
    return to_units(d->launch_ns + bytes / (d->bandwidth * REFORMAT_EFFICIENCY) * 1e9);
}

static double bound_of_flops(const strata_node *n, const struct device_properties *d)
{
    const int in = n->n_in ? n->in[0].dtype : STRATA_FP32;
    if (d->kind == STRATA_HOST && (in == STRATA_INT8 || in == STRATA_UINT8))
        return d->flops[in] * BOUND_BYTE_FLOPS;
    return d->flops[n->n_out ? n->out[0].dtype : STRATA_FP32] * BOUND_FLOPS;
}

int64_t cost_bound_of_run(const strata_node *n, const strata_layer *layer,
                          const struct device_properties *d)
{
    double compute = operations(n, layer) / bound_of_flops(n, d) * 1e9;
    int64_t memory = cost_bound_of_reformat((int64_t)node_bytes(n), 0, d);
    return to_units(compute) > memory ? to_units(compute) : memory;
}

int64_t cost_bound_of_reformat(int64_t from_bytes, int64_t to_bytes,
                               const struct device_properties *d)
{
    double bytes = (double)from_bytes + (double)to_bytes;
    return to_units(bytes / (d->bandwidth * BOUND_BANDWIDTH) * 1e9);
}
