/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of chains that may become one layer.
 */
#include "planner/fuse/members.h"
#include "planner/fuse/notes.h"

#include <stdlib.h>

/* Of floats, and of which the user says nothing. */
static bool is_free(const struct planner *planner, const struct planner_node *n)
{
    return n->n_out == 1 && n->n_ports == n->n_in && !n->unread && !n->layer->impl &&
           n->n_in > 0 && dtype_is_free(tensor_of(planner, n->in[0])->dtype) &&
           dtype_is_free(tensor_of(planner, n->out[0])->dtype);
}

bool members_may_end(const struct planner *planner, int node)
{
    const struct planner_node *n = &planner->nodes[node];
    return n->previous < 0 && is_free(planner, n);
}

bool members_may_begin(const struct planner *planner, int node)
{
    const struct planner_node *n = &planner->nodes[node];
    return n->next < 0 && !n->group && is_free(planner, n);
}

bool members_may_have(const struct planner *planner, int node)
{
    return members_may_end(planner, node) && members_may_begin(planner, node);
}

bool members_convolves(const struct planner *planner, int node)
{
    enum { WEIGHT = 0 };
    const struct network_layer *l = planner->nodes[node].layer;
    return is_type(l, "core::Convolution@1") && l->n_inputs == 1 &&
           network_has_weight(l, WEIGHT) &&
           network_has_plain_weight(planner->network, l) &&
           l->weights[WEIGHT].dtype == STRATA_FP32;
}

bool members_may_convolve(const struct planner *planner, int node)
{
    return members_convolves(planner, node) && members_may_have(planner, node);
}

bool members_are_summed(const struct planner *planner, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    return is_type(l, "core::ElementWise@1") && l->n_inputs == 2 &&
           ((const strata_elementwise *)l->params)->op == STRATA_SUM &&
           l->inputs[0] != l->inputs[1];
}

bool members_are_alike(const struct planner *planner, int a, int b)
{
    const struct network_tensor *x = tensor_of(planner, a), *y = tensor_of(planner, b);
    return x->rank == y->rank &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

bool members_are_joined(const struct planner *planner, int node)
{
    const int tensor = planner->nodes[node].out[0];
    return !planner->is_output[tensor] && planner->readers[tensor] == 1 &&
           !tensor_of(planner, tensor)->formats;
}

int members_next(const struct planner *planner, int node, const int *reader)
{
    const int next =
        members_are_joined(planner, node) ? reader[planner->nodes[node].out[0]] : -1;
    return next >= 0 && members_may_have(planner, next) ? next : -1;
}

void members_link(struct planner *planner, const int *nodes, int n)
{
    for (int i = 1; i < n; i++) {
        planner->nodes[nodes[i - 1]].next = nodes[i];
        planner->nodes[nodes[i]].previous = nodes[i - 1];
    }
}

int members_note(struct planner *planner, const int *nodes, int n, const char *together,
                 strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 1; i < n && status == STRATA_OK; i++)
        status = notes_add(&planner->fusions[nodes[i]], true, nodes[0], err, "%.200s: %s",
                           planner->nodes[nodes[0]].layer->name, together);
    return status;
}

int members_only_reader(const struct planner *planner, const int *reader, int node)
{
    const struct network_layer *layer = planner->nodes[node].layer;
    const int tensor = layer->outputs[0];
    return planner->is_output[tensor] || planner->readers[tensor] != 1 ||
                   planner->network->tensors[tensor].formats ||
                   planner->nodes[reader[tensor]].layer->impl
               ? -1
               : reader[tensor];
}
