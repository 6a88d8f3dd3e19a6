/* SPDX-License-Identifier: Apache-2.0
 *
 * What each region takes in a plan.
 */
#include "planner/mixed/mixed.h"

#include <string.h>

/* The pair that a layer is of; -1: none. */
static int pair_of(const struct planner_mixes *m, int layer)
{
    const struct network_layer *l = &m->network->layers[layer];
    const int before = l->n_inputs ? m->network->tensors[l->inputs[0]].producer : -1;
    for (size_t i = 0; i < m->pairs.n; i++)
        if (m->pairs.list[i].quantize == layer || m->pairs.list[i].quantize == before)
            return (int)i;
    return -1;
}

/* What runs a pair's layer by itself is of the region that reads it, all else of that in
 * which its last layer stands. -1: of none, or nobody knows. */
static int region_of(const struct planner_mixes *m, const struct execution *x,
                     const struct execution_step *s)
{
    const struct execution_node *n = s->kind == STEP_RUN ? &x->nodes[s->node] : NULL;
    if (n && n->layer->n_outputs == 0)
        return -1;
    const int tensor = n ? n->layer->outputs[0] : x->values[s->to].tensor;
    const int layer = (size_t)tensor < m->network->n_tensors
                          ? m->network->tensors[tensor].producer
                          : -1; /* it is of layers that are merged */
    const bool alone = n && !n->made && layer >= 0;
    const int pair = alone ? pair_of(m, layer) : -1;
    return pair >= 0    ? m->pairs.list[pair].region
           : layer >= 0 ? m->pairs.region_of[layer]
                        : -1;
}

void planner_mix_bill(int64_t *out, const struct planner_mixes *m,
                      const struct execution *x, bool in_place)
{
    int region = -1;
    memset(out, 0, m->pairs.n_regions * sizeof *out);
    for (size_t i = 0; i < x->n_steps; i++) {
        const struct execution_step *s = &x->steps[i];
        const int own = region_of(m, x, s);
        if (own >= 0) /* else as the step before */
            region = own;
        if (region >= 0)
            out[region] += in_place ? s->in_place : s->cost;
    }
}
