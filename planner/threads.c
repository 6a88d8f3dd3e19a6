/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads a network's kernels use.
 */
#include "planner/threads.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/host/wait.h"

/* What of a layer is worth one more thread, in the same time of some ten microseconds: a
 * region of a team takes one. */
static const double operations_per_thread = 5e5, bytes_per_thread = 1e6;
/* So many times more where the team sleeps: a region takes 50 us then. */
static const double asleep = 8;
/* So many small layers, each for one thread, are worth one more together. */
static const double small_layers = 4;

static double bytes_of(const strata_tensor *tensors, int n)
{
    double bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (double)tensors[i].count * (double)strata_dtype_size(tensors[i].dtype);
    return bytes;
}

/* In threads' worth. What computes nothing reads as much as it writes, of inputs that may
 * be far larger. */
static double layer_work(const strata_network *net, const struct network_layer *l)
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
    const double written = bytes_of(out, l->n_outputs);
    const double read = count > 0 ? bytes_of(tensors, l->n_ports) : written;
    free(tensors);
    return count / operations_per_thread + (read + written) / bytes_per_thread;
}

int threads_for(const strata_network *net, int available)
{
    const double share = wait_sleeps(net->runtime.wait) ? 1 / asleep : 1;
    double sum = 0, most = 0;
    if (net->runtime.threads > 0)
        return (int)net->runtime.threads;
    for (size_t i = 0; i < net->n_layers; i++) {
        const double work = share * layer_work(net, &net->layers[i]);
        sum += work;
        most = work > most ? work : most;
    }
    const double worth = 1 + (sum > small_layers * most ? sum / small_layers : most);
    return worth < available ? (int)worth : available;
}
