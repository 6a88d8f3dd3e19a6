/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs of FP32 that every reader rounds to FP16. Who sends one to a device may send
 * halves: half the bytes, and every result is the same, to the bit.
 */
#include "planner/execution.h"

/* Whether what a step makes of an input is the same if that was rounded before. */
static bool rounds(const struct execution *x, const struct execution_step *s, int value)
{
    if (s->kind == STEP_REFORMAT)
        return x->values[s->to].desc.dtype == STRATA_FP16;
    const struct execution_node *n = &x->nodes[s->node];
    return n->impl->impl.flags & STRATA_ROUNDS_IN && n->residual_value != value;
}

/* Whether a step leaves an input's memory as it is, and what it reads there it rounds.
 * A re-label does neither: what it names has readers of its own. */
static bool step_rounds(const struct execution *x, const struct execution_step *s,
                        int owner, bool *reads)
{
    int v;
    if (s->kind == STEP_RELABEL)
        return true;
    for (int k = 0; (v = execution_writes(x, s, k)) >= 0; k++)
        if (x->values[v].owner == owner)
            return false;
    for (int k = 0; (v = execution_reads(x, s, k)) >= 0; k++) {
        const bool here = x->values[v].owner == owner;
        if (here && !rounds(x, s, v))
            return false;
        *reads = *reads || here;
    }
    return true;
}

void execution_find_rounded(struct execution *x)
{
    for (size_t i = 0; i < x->n_inputs; i++) {
        struct execution_binding *b = &x->bindings[i];
        const struct execution_value *v = &x->values[b->value];
        bool reads = false, rounded = v->desc.dtype == STRATA_FP32;
        for (size_t k = 0; k < x->n_steps && rounded; k++)
            rounded = step_rounds(x, &x->steps[k], v->owner, &reads);
        b->rounded = rounded && reads;
    }
}
