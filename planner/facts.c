/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows from a planner's nodes, model and plan as they are: small questions that
 * several parts ask, so that no part calls another back.
 */
#include "planner/planner.h"

#include <strata/layers.h>

int planner_desc(strata_desc *out, const strata_network *net, int tensor, int format,
                 strata_error *err)
{
    const struct network_tensor *t = &net->tensors[tensor];
    return format_desc(out, *format_at(format), t->dims, t->rank, err);
}

static bool can_have(const strata_network *net, int tensor, uint64_t formats)
{
    strata_desc d;
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++)
        if (formats >> f & 1 && planner_desc(&d, net, tensor, f, NULL) == STRATA_OK)
            return true;
    return !dtype_is_free(net->tensors[tensor].dtype);
}

bool planner_wish_holds(const strata_network *net, const struct network_layer *layer)
{
    bool holds = net->build.formats != 0;
    for (int i = 0; i < layer->n_inputs && holds; i++)
        holds = can_have(net, layer->inputs[i], net->build.formats);
    for (int i = 0; i < layer->n_outputs && holds; i++)
        holds = can_have(net, layer->outputs[i], net->build.formats);
    return holds;
}

/* One state where there are no pad lanes. */
int planner_port_pad(const struct planner_model *m, const strata_network *net, int tensor,
                     int format, const strata_impl *impl, bool output)
{
    const struct network_tensor *t = &net->tensors[tensor];
    int flag = output ? STRATA_PAD_DIRTY : STRATA_PAD_IGNORED;
    if (!(impl->flags & flag) || !m->any_dirty || t->rank < 2 ||
        !format_has_pads(*format_at(format), t->dims[1]))
        return STRATA_PAD_ZERO;
    return STRATA_PAD_ANY;
}

bool planner_leaves_dirty(const struct planner *planner, const struct planner_node *n)
{
    const struct registry_layer *type = n->layer->type;
    for (size_t k = 0; k < type->n_impls; k++)
        if (type->impls[k].impl.device == planner->device.properties.kind &&
            type->impls[k].impl.flags & STRATA_PAD_DIRTY)
            return true;
    return (n->group && planner_leaves_dirty(planner, &n->group->node)) ||
           (n->longer && planner_leaves_dirty(planner, &n->longer->node));
}

int planner_head_before(const struct planner *planner, int node, int after)
{
    enum fuse_kind kind = planner->fusions[node].kind;
    enum fuse_kind then = after < 0 ? FUSE_NOTHING : planner->fusions[after].kind;
    bool in_order = after < 0 || kind < then || (kind == then && kind == FUSE_SCALE);
    return in_order ? planner->nodes[node].before : -1;
}

int planner_output(const struct planner *planner, const struct planner_node *n,
                   size_t fused, int port)
{
    return fused ? planner->network->layers[n->tail[fused - 1]].outputs[0]
                 : n->layer->outputs[port];
}

strata_epilogue planner_epilogue(const struct planner *planner,
                                 const struct planner_node *n, size_t fused)
{
    strata_epilogue epilogue = {0};
    for (size_t i = 0; i < fused; i++) {
        enum fuse_kind kind = planner->fusions[n->tail[i]].kind;
        if (kind == FUSE_SUM)
            epilogue.flags |= STRATA_EPILOGUE_RESIDUAL;
        if (kind != FUSE_ACTIVATION)
            continue;
        const strata_activation *a = planner->network->layers[n->tail[i]].params;
        epilogue.flags |= STRATA_EPILOGUE_ACTIVATION;
        epilogue.activation = a->kind;
        epilogue.alpha = strata_activation_alpha(a);
        epilogue.beta = strata_activation_beta(a);
    }
    return epilogue;
}

size_t planner_scales(const struct planner *planner, const struct planner_node *n,
                      size_t fused)
{
    size_t count = 0;
    while (count < fused && planner->fusions[n->tail[count]].kind == FUSE_SCALE)
        count++;
    return count;
}

const struct planner_candidate *planner_chosen(const struct planner *planner,
                                               const struct plan *plan, size_t node)
{
    const struct planner_model *m = planner->model;
    const int op = (int)(planner->network->n_inputs + node);
    return &m->candidates[plan_chosen(&m->problem, plan->choices, op)->impl];
}

bool planner_adds(const struct planner *planner, const struct planner_candidate *c)
{
    return c->kind == CANDIDATE_RUN &&
           planner_epilogue(planner, &planner->nodes[c->node], c->fused).flags &
               STRATA_EPILOGUE_RESIDUAL;
}

size_t planner_fused(const struct planner *planner, const struct planner_candidate *c)
{
    const struct planner_group *group =
        planner_group_of(&planner->nodes[c->node], c->kind);
    return group ? (size_t)group->members - 1 : c->kind == CANDIDATE_RUN ? c->fused : 0;
}
