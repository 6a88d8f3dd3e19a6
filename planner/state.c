/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run leaves in states. The next value of a state is written where the present one
 * lies if nothing reads that later: each step that reads the state comes before the first
 * that writes its next value, or is that step, of an impl that declares the pair. Else
 * the next value has memory of its own, and the last steps of the run copy it.
 */
#include "planner/execution.h"

#include <string.h>

#include "core/alloc.h"

static bool same_memory(const struct execution *x, int value, int memory)
{
    return value >= 0 && x->values[value].owner == memory;
}

/* Whether a node's output may be written over an input of the same format. */
static bool pair_declared(const struct execution_node *n, int in, int out)
{
    const strata_impl *impl = &n->impl->impl;
    const int port = execution_port(n, in);
    return (port == 0 && out == 0 && impl->flags & STRATA_INPLACE_OK) ||
           (out < (int)ARRAY_LENGTH(impl->in_place) && impl->in_place[out] == port + 1);
}

/* Whether a step may write `next`, from its first byte on, while it reads `now`. */
static bool writes_in_place(const struct execution *x, const struct execution_step *s,
                            int now, int next)
{
    if (s->kind != STEP_RUN)
        return false;
    const struct execution_node *n = &x->nodes[s->node];
    bool pair = false;
    if (same_memory(x, n->residual_value, now))
        return false;
    for (int out = 0; out < n->n_out; out++)
        for (int in = 0; in < n->n_in; in++) {
            const bool reads = same_memory(x, n->in_values[in], now);
            if (reads && x->values[n->in_values[in]].pitched)
                return false;
            if (!reads || !same_memory(x, n->out_values[out], next))
                continue;
            if (!pair_declared(n, in, out))
                return false;
            pair = true;
        }
    for (int in = 0, uses = 0; in < n->n_in; in++) {
        uses += same_memory(x, n->in_values[in], now);
        if (uses > 1)
            return false;
    }
    return pair;
}

static bool reads(const struct execution *x, const struct execution_step *s, int memory)
{
    int v;
    for (int k = 0; (v = execution_reads(x, s, k)) >= 0; k++)
        if (x->values[v].owner == memory)
            return true;
    return false;
}

static bool writes(const struct execution *x, const struct execution_step *s, int memory)
{
    int v;
    for (int k = 0; (v = execution_writes(x, s, k)) >= 0; k++)
        if (x->values[v].owner == memory)
            return true;
    return false;
}

static bool may_share(const struct execution *x, const struct execution_state *state)
{
    const int now = x->values[x->bindings[state->now].value].owner;
    const int next = x->values[x->bindings[state->next].value].owner;
    bool written = false;
    if (now == next)
        return true;
    for (size_t i = 0; i < x->n_steps; i++) {
        const struct execution_step *s = &x->steps[i];
        const bool read = reads(x, s, now), write = writes(x, s, next);
        if (read && (written || (write && !writes_in_place(x, s, now, next))))
            return false;
        written |= write;
    }
    return true;
}

static int add_copy(struct execution *x, const struct execution_state *state,
                    strata_error *err)
{
    int status = grow(&x->steps, &x->steps_capacity, x->n_steps, sizeof *x->steps, err);
    if (status != STRATA_OK)
        return status;
    x->steps[x->n_steps++] =
        (struct execution_step){.kind = STEP_REFORMAT,
                                .node = -1,
                                .from = x->bindings[state->next].value,
                                .to = x->bindings[state->now].value,
                                .reason = PLAN_FIXED_IO};
    return STRATA_OK;
}

int execution_keep_states(struct execution *x, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < x->n_states; i++)
        x->states[i].shared = may_share(x, &x->states[i]);
    for (size_t i = 0; i < x->n_states && status == STRATA_OK; i++)
        if (!x->states[i].shared)
            status = add_copy(x, &x->states[i], err);
    return status;
}
