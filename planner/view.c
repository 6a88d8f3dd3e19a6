/* SPDX-License-Identifier: Apache-2.0
 *
 * Node descriptions for callbacks.
 */
#include "planner/view.h"

#include "registry/math/mode.h"

/* What is the same for a node that is planned and one that runs; the caller's tensors
 * and epilogue are there already. */
static strata_node common(struct node_view *v, const struct network_layer *layer)
{
    if (v->epilogue.flags & STRATA_EPILOGUE_RESIDUAL)
        v->epilogue.residual = &v->residual;
    return (strata_node){
        .struct_size = sizeof(strata_node),
        .n_weights = (int32_t)layer->type->n_weights,
        .in = v->in,
        .out = v->out,
        .weight = v->weight,
        .epilogue = &v->epilogue,
        .host = registry_host(),
    };
}

void planner_view(struct node_view *v, const struct planner *planner,
                  const struct planner_node *n, size_t fused, int row, strata_error *err)
{
    v->epilogue = planner_epilogue(planner, n, fused);
    v->node = common(v, n->layer);
    v->node.n_in = n->n_ports;
    v->node.n_out = n->n_out;
    v->node.params = fused && n->composed ? n->composed : n->layer->params;
    v->node.device = planner->device.properties.kind;
    v->node.sm = planner->device.properties.sm;
    math_tell(&v->node, planner->math);
    v->node.row = row;
    v->node.instance = (void *)n;
    v->node.err = err;
}

void execution_view(struct node_view *v, const struct execution *x,
                    const struct execution_node *n, strata_error *err)
{
    v->epilogue = n->epilogue;
    v->node = common(v, n->layer);
    v->node.n_in = n->n_ports;
    v->node.n_out = n->n_out;
    v->node.params = n->params;
    v->node.device = x->device;
    v->node.sm = x->sm;
    math_tell(&v->node, x->math);
    v->node.row = n->row;
    v->node.instance = (void *)n;
    v->node.err = err;
}
