/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the steps: in several orders, nodes that can write over their input share its
 * memory, what is alive together is placed apart, and the least arena wins.
 */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "planner/arena.h"

int engine_step_reads(const strata_engine *e, const struct engine_step *s, int k)
{
    if (s->kind != STEP_RUN)
        return k == 0 ? s->from : -1;
    const struct engine_node *n = &e->nodes[s->node];
    return k < n->n_in ? n->in_values[k] : k == n->n_in ? n->residual_value : -1;
}

int engine_step_writes(const strata_engine *e, const struct engine_step *s, int k)
{
    if (s->kind != STEP_RUN)
        return k == 0 ? s->to : -1;
    const struct engine_node *n = &e->nodes[s->node];
    return k < n->n_out ? n->out_values[k] : -1;
}

/* ---- lifetimes -----------------------------------------------------------------------
 */

static void touch(strata_engine *e, int value, int step)
{
    struct engine_value *v = &e->values[engine_owner(e, value)];
    v->first = step < v->first ? step : v->first;
    v->last = step > v->last ? step : v->last;
    if (v->binding >= 0 && v->binding < (int)e->n_inputs && step > e->last_input_step)
        e->last_input_step = step;
}

static void find_lifetimes(strata_engine *e)
{
    int v;
    e->last_input_step = -1;
    for (size_t i = 0; i < e->n_values; i++) {
        e->values[i].first = (int)e->n_steps;
        e->values[i].last = -1;
    }
    for (size_t s = 0; s < e->n_steps; s++) {
        for (int k = 0; (v = engine_step_reads(e, &e->steps[s], k)) >= 0; k++)
            touch(e, v, (int)s);
        for (int k = 0; (v = engine_step_writes(e, &e->steps[s], k)) >= 0; k++)
            touch(e, v, (int)s);
    }
}

/* ---- in place -------------------------------------------------------------------------
 */

static bool reads_memory(const strata_engine *e, const struct engine_step *s, int first,
                         int memory)
{
    int v;
    for (int k = first; (v = engine_step_reads(e, s, k)) >= 0; k++)
        if (engine_owner(e, v) == memory)
            return true;
    return false;
}

static bool can_share(const strata_engine *e, const struct engine_node *n, size_t step)
{
    if (!(n->impl->impl.flags & STRATA_INPLACE_OK) || n->n_in < 1 || n->n_out < 1)
        return false;
    const struct engine_value *in = &e->values[n->in_values[0]];
    const struct engine_value *out = &e->values[n->out_values[0]];
    int memory = engine_owner(e, n->in_values[0]);
    if (in->format != out->format || in->desc.rank != out->desc.rank ||
        memcmp(in->desc.dims, out->desc.dims, sizeof in->desc.dims) != 0 ||
        out->alias >= 0 ||
        e->values[memory].binding >= 0 || out->binding >= 0 ||
        reads_memory(e, &e->steps[step], 1, memory))
        return false;
    for (size_t s = step + 1; s < e->n_steps; s++)
        if (reads_memory(e, &e->steps[s], 0, memory))
            return false;
    return true;
}

static void share_in_place(strata_engine *e)
{
    for (size_t v = 0; v < e->n_values; v++)
        if (e->values[v].in_place) {
            e->values[v].in_place = false;
            e->values[v].alias = -1;
        }
    for (size_t s = 0; s < e->n_steps; s++) {
        if (e->steps[s].kind != STEP_RUN)
            continue;
        struct engine_node *n = &e->nodes[e->steps[s].node];
        if (!can_share(e, n, s))
            continue;
        e->values[n->out_values[0]].alias = n->in_values[0];
        e->values[n->out_values[0]].in_place = true;
    }
}

/* ---- placement ----------------------------------------------------------------- */

static bool in_arena(const struct engine_value *v)
{
    return v->alias < 0 && v->binding < 0 && v->last >= 0;
}

/* One block for each value that owns arena memory and one for each workspace. */
static int place(strata_engine *e, strata_error *err)
{
    size_t n = 0;
    struct arena_block *blocks =
        zalloc(e->n_values + e->n_steps, sizeof *blocks, "the arena planner", err);
    if (!blocks)
        return STRATA_ENOMEM;
    for (size_t v = 0; v < e->n_values; v++)
        if (in_arena(&e->values[v]))
            blocks[n++] = (struct arena_block){e->values[v].bytes, e->values[v].first,
                                               e->values[v].last, 0};
    for (size_t s = 0; s < e->n_steps; s++)
        if (e->steps[s].kind == STEP_RUN && e->nodes[e->steps[s].node].workspace)
            blocks[n++] = (struct arena_block){
                (int64_t)e->nodes[e->steps[s].node].workspace, (int)s, (int)s, 0};
    int status = arena_place(blocks, n, &e->arena_bytes, &e->arena_bound, err);
    n = 0;
    for (size_t v = 0; v < e->n_values; v++)
        if (in_arena(&e->values[v]))
            e->values[v].offset = blocks[n++].offset;
    for (size_t s = 0; s < e->n_steps; s++)
        if (e->steps[s].kind == STEP_RUN && e->nodes[e->steps[s].node].workspace)
            e->nodes[e->steps[s].node].workspace_offset = blocks[n++].offset;
    free(blocks);
    return status;
}

/* ---- orders
 * ---------------------------------------------------------------------------- */

/* Steps in the order given, of those as they were scheduled. */
static int try_order(strata_engine *e, const struct engine_step *scheduled,
                     const int *order, strata_error *err)
{
    for (size_t s = 0; s < e->n_steps; s++)
        e->steps[s] = scheduled[order[s]];
    share_in_place(e);
    find_lifetimes(e);
    return place(e, err);
}

int engine_plan_memory(strata_engine *e, strata_error *err)
{
    size_t n = e->n_steps;
    int64_t least = INT64_MAX;
    int status = STRATA_OK;
    struct engine_step *scheduled = zalloc(n, sizeof *scheduled, "the schedule", err);
    int *order = zalloc(n, sizeof *order, "the schedule", err);
    int *best = zalloc(n, sizeof *best, "the schedule", err);
    if (!scheduled || !order || !best) {
        status = STRATA_ENOMEM;
        goto done;
    }
    if (n > 0)
        memcpy(scheduled, e->steps, n * sizeof *scheduled);
    for (int which = 0; which < ORDER_COUNT && status == STRATA_OK; which++) {
        if (n > 0) /* orders are of the steps as scheduled */
            memcpy(e->steps, scheduled, n * sizeof *scheduled);
        status = engine_order_steps(e, which, order, err);
        if (status == STRATA_OK)
            status = try_order(e, scheduled, order, err);
        if (status != STRATA_OK || e->arena_bytes >= least)
            continue;
        least = e->arena_bytes;
        memcpy(best, order, n * sizeof *best);
    }
    if (status == STRATA_OK)
        status = try_order(e, scheduled, best, err);
done:
    free(scheduled);
    free(order);
    free(best);
    return status;
}
