/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the steps: in several orders, nodes that can write over their input share its
 * memory, what is alive together is placed apart, and the least arena wins.
 */
#include "planner/execution.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "planner/arena.h"

/* ---- lifetimes -----------------------------------------------------------------------
 */

static void touch(struct execution *x, int value, int step)
{
    struct execution_value *v = &x->values[x->values[value].owner];
    v->first = step < v->first ? step : v->first;
    v->last = step > v->last ? step : v->last;
    if (v->binding >= 0 && v->binding < (int)x->n_inputs && step > x->last_input_step)
        x->last_input_step = step;
}

static void find_lifetimes(struct execution *x)
{
    int v;
    x->last_input_step = -1;
    for (size_t i = 0; i < x->n_values; i++) {
        x->values[i].first = (int)x->n_steps;
        x->values[i].last = -1;
    }
    for (size_t s = 0; s < x->n_steps; s++) {
        for (int k = 0; (v = execution_reads(x, &x->steps[s], k)) >= 0; k++)
            touch(x, v, (int)s);
        for (int k = 0; (v = execution_writes(x, &x->steps[s], k)) >= 0; k++)
            touch(x, v, (int)s);
    }
}

/* ---- in place -------------------------------------------------------------------------
 */

/* Owners that got another since they were settled are followed on: few do so twice. */
static int owner_of(const struct execution *x, int value)
{
    while (x->values[value].owner != value)
        value = x->values[value].owner;
    return value;
}

static bool reads_memory(const struct execution *x, const struct execution_step *s,
                         int first, int memory)
{
    int v;
    for (int k = first; (v = execution_reads(x, s, k)) >= 0; k++)
        if (owner_of(x, v) == memory)
            return true;
    return false;
}

/* last_read: of each owner's memory, a step. */
static bool can_share(const struct execution *x, const struct execution_node *n,
                      size_t step, const int *last_read)
{
    if (!(n->impl->impl.flags & STRATA_INPLACE_OK) || n->n_in < 1 || n->n_out < 1 ||
        execution_port(n, 0) != 0)
        return false;
    const struct execution_value *in = &x->values[n->in_values[0]];
    const struct execution_value *out = &x->values[n->out_values[0]];
    int memory = owner_of(x, n->in_values[0]);
    return in->format == out->format && in->desc.rank == out->desc.rank &&
           memcmp(in->desc.dims, out->desc.dims, sizeof in->desc.dims) == 0 &&
           !in->pitched && out->alias < 0 && x->values[memory].binding < 0 &&
           x->values[memory].constant < 0 && out->binding < 0 &&
           last_read[memory] <= (int)step && !reads_memory(x, &x->steps[step], 1, memory);
}

static void find_last_reads(const struct execution *x, int *last_read)
{
    int v;
    memset(last_read, -1, x->n_values * sizeof *last_read);
    for (size_t s = 0; s < x->n_steps; s++)
        for (int k = 0; (v = execution_reads(x, &x->steps[s], k)) >= 0; k++)
            last_read[x->values[v].owner] = (int)s;
}

static void forget_in_place(struct execution *x)
{
    for (size_t v = 0; v < x->n_values; v++)
        if (x->values[v].in_place) {
            x->values[v].in_place = false;
            x->values[v].alias = -1;
        }
    execution_settle(x);
}

/* last_read: room for each value. */
static void share_in_place(struct execution *x, int *last_read)
{
    forget_in_place(x);
    find_last_reads(x, last_read);
    for (size_t s = 0; s < x->n_steps; s++) {
        if (x->steps[s].kind != STEP_RUN)
            continue;
        struct execution_node *n = &x->nodes[x->steps[s].node];
        if (!can_share(x, n, s, last_read))
            continue;
        int out = n->out_values[0], memory = owner_of(x, n->in_values[0]);
        x->values[out].alias = n->in_values[0];
        x->values[out].in_place = true;
        x->values[out].owner = memory;
        if (last_read[out] > last_read[memory])
            last_read[memory] = last_read[out];
    }
    execution_settle(x);
}

/* ---- placement ----------------------------------------------------------------- */

static bool in_arena(const struct execution_value *v)
{
    return v->alias < 0 && v->binding < 0 && v->constant < 0 && v->last >= 0;
}

/* One block for each value that owns arena memory and one for each workspace. */
static int place(struct execution *x, strata_error *err)
{
    size_t n = 0;
    struct arena_block *blocks =
        zalloc(x->n_values + x->n_steps, sizeof *blocks, "the arena planner", err);
    if (!blocks)
        return STRATA_ENOMEM;
    for (size_t v = 0; v < x->n_values; v++)
        if (in_arena(&x->values[v]))
            blocks[n++] = (struct arena_block){x->values[v].bytes, x->values[v].first,
                                               x->values[v].last, 0};
    for (size_t s = 0; s < x->n_steps; s++)
        if (x->steps[s].kind == STEP_RUN && x->nodes[x->steps[s].node].workspace)
            blocks[n++] = (struct arena_block){
                (int64_t)x->nodes[x->steps[s].node].workspace, (int)s, (int)s, 0};
    int status = arena_place(blocks, n, &x->arena_bytes, &x->arena_bound, err);
    n = 0;
    for (size_t v = 0; v < x->n_values; v++)
        if (in_arena(&x->values[v]))
            x->values[v].offset = blocks[n++].offset;
    for (size_t s = 0; s < x->n_steps; s++)
        if (x->steps[s].kind == STEP_RUN && x->nodes[x->steps[s].node].workspace)
            x->nodes[x->steps[s].node].workspace_offset = blocks[n++].offset;
    free(blocks);
    return status;
}

/* Bytes of the arena in use at each step. */
static void count_live(struct execution *x)
{
    int64_t live = 0;
    for (size_t s = 0; s < x->n_steps; s++)
        x->steps[s].live = 0;
    for (size_t i = 0; i < x->n_values; i++) {
        const struct execution_value *v = &x->values[i];
        if (!in_arena(v))
            continue;
        x->steps[v->first].live += v->bytes;
        if ((size_t)v->last + 1 < x->n_steps)
            x->steps[v->last + 1].live -= v->bytes;
    }
    for (size_t s = 0; s < x->n_steps; s++) {
        struct execution_step *step = &x->steps[s];
        live += step->live;
        step->live = live;
        if (step->kind == STEP_RUN)
            step->live += (int64_t)x->nodes[step->node].workspace;
    }
}

/* ---- orders
 * ---------------------------------------------------------------------------- */

/* Steps in the order given, of those as they were scheduled. */
static int try_order(struct execution *x, const struct execution_step *scheduled,
                     const int *order, int *last_read, strata_error *err)
{
    for (size_t s = 0; s < x->n_steps; s++)
        x->steps[s] = scheduled[order[s]];
    share_in_place(x, last_read);
    find_lifetimes(x);
    return place(x, err);
}

int execution_place(struct execution *x, strata_error *err)
{
    size_t n = x->n_steps;
    int64_t least = INT64_MAX;
    int status = STRATA_OK;
    struct execution_step *scheduled = zalloc(n, sizeof *scheduled, "the schedule", err);
    int *order = zalloc(n, sizeof *order, "the schedule", err);
    int *best = zalloc(n, sizeof *best, "the schedule", err);
    int *last_read = zalloc(x->n_values, sizeof *last_read, "the schedule", err);
    if (!scheduled || !order || !best || !last_read) {
        status = STRATA_ENOMEM;
        goto done;
    }
    if (n > 0)
        memcpy(scheduled, x->steps, n * sizeof *scheduled);
    for (int which = 0; which < ORDER_COUNT && status == STRATA_OK; which++) {
        if (n > 0) /* orders are of the steps as scheduled */
            memcpy(x->steps, scheduled, n * sizeof *scheduled);
        status = execution_order(x, which, order, err);
        if (status == STRATA_OK)
            status = try_order(x, scheduled, order, last_read, err);
        if (status != STRATA_OK || x->arena_bytes >= least)
            continue;
        least = x->arena_bytes;
        memcpy(best, order, n * sizeof *best);
    }
    if (status == STRATA_OK)
        status = try_order(x, scheduled, best, last_read, err);
    if (status == STRATA_OK)
        count_live(x);
done:
    free(scheduled);
    free(order);
    free(best);
    free(last_read);
    return status;
}
