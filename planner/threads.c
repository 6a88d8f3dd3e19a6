/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads a network's kernels use.
 */
#include "planner/threads.h"

#include <stdlib.h>

#include "core/alloc.h"

/* Operations that are worth one more thread, a tenth of a millisecond or so of work. */
static const double operations_per_thread = 5e6;

static double layer_operations(const strata_network *net, const struct network_layer *l)
{
    strata_node node;
    double count = 0;
    size_t n = (size_t)(l->n_ports + l->n_outputs) + l->type->n_weights;
    strata_tensor *tensors = zalloc(n, sizeof *tensors, "a layer", NULL);
    if (!tensors)
        return 0;
    strata_tensor *out = tensors + l->n_ports;
    network_node(net, l, &node, tensors, out, out + l->n_outputs, NULL);
    for (int i = 0; i < l->n_outputs; i++)
        count += (double)out[i].count;
    if (l->type->layer.flops)
        count = l->type->layer.flops(&node);
    free(tensors);
    return count;
}

int threads_for(const strata_network *net, int available)
{
    double operations = 0;
    if (net->runtime.threads > 0)
        return (int)net->runtime.threads;
    for (size_t i = 0; i < net->n_layers; i++)
        operations += layer_operations(net, &net->layers[i]);
    double worth = 1 + operations / operations_per_thread;
    return worth < available ? (int)worth : available;
}
