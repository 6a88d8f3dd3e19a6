/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that no run changes: what a Constant makes, unless it goes to memory of the
 * application, of a state or of a larger value, which others write. They lie beside the
 * weights, one copy serves all contexts, and a run takes no time for them.
 */
#include "planner/execution.h"

#include <string.h>

/* By an impl that needs nothing but its weight: setup is still under way. */
static bool is_constant(const struct execution *x, const struct execution_node *n)
{
    const strata_impl *impl = &n->impl->impl;
    if (strcmp(n->layer->type->full_name, "core::Constant@1") != 0 || n->n_fused > 0 ||
        impl->setup || impl->state_size > 0 || impl->ctx_size > 0 || impl->ctx_open)
        return false;
    const struct execution_value *v = &x->values[n->out_values[0]];
    return v->alias < 0 && v->binding < 0;
}

void execution_find_constants(struct execution *x)
{
    for (size_t i = 0; i < x->n_steps; i++) {
        struct execution_step *s = &x->steps[i];
        if (s->kind != STEP_RUN || !is_constant(x, &x->nodes[s->node]))
            continue;
        s->once = true;
        x->cost -= s->cost;
        s->cost = 0;
        x->values[x->nodes[s->node].out_values[0]].constant = s->node;
    }
}
