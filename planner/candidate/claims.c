/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of convolutions as one layer, where by what the impl claims that takes many
 * times as long as the layers by themselves: a plain loop against a library. A bound
 * would let it be, and each block of a network be timed in vain.
 */
#include "planner/record.h"

#include <stdlib.h>

/* Times what the layers take. Claims are not that far from what is measured. */
enum { HOPELESS = 8 };

static const char hopeless[] =
    "by its claims it takes over 8 times as long as the layers "
    "by themselves";

/* Of a node by itself; infinite where no impl runs it. */
static int64_t least_claimed(const struct planner_model *m, int node)
{
    int64_t least = PLAN_INFINITE;
    for (size_t i = m->first[node]; i < m->first[node + 1]; i++) {
        const struct planner_candidate *c = &m->candidates[i];
        if (c->kind == CANDIDATE_RUN && !c->reason && c->cost < least)
            least = c->cost;
    }
    return least;
}

/* Of a group's layers, each by itself. */
static int64_t apart(const struct planner *planner, const struct planner_model *m,
                     int node, const struct planner_group *group)
{
    int64_t sum = 0;
    for (int i = 0; i < group->members && sum < PLAN_INFINITE; i++) {
        sum += least_claimed(m, node);
        node = planner->nodes[node].next;
    }
    return sum;
}

static int refuse(struct planner_candidate *c, strata_error *err)
{
    c->reason = duplicate(hopeless, err);
    return c->reason ? STRATA_OK : STRATA_ENOMEM;
}

/* A node's ways to run a group; *left: formats that others of it are written in. */
static int refuse_runs(struct planner_model *m, int node, enum candidate_kind kind,
                       int64_t limit, uint64_t *left, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = m->first[node]; i < m->first[node + 1] && status == STRATA_OK; i++) {
        struct planner_candidate *c = &m->candidates[i];
        if (c->kind != kind || c->reason)
            continue;
        if (c->impl->impl.efficiency > 0 && c->cost > limit)
            status = refuse(c, err);
        else
            *left |= UINT64_C(1) << c->out_formats[0];
    }
    return status;
}

/* Members that no group is left to compute. */
static int refuse_absorbed(struct planner_model *m, int node, bool farther, uint64_t left,
                           strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = m->first[node]; i < m->first[node + 1] && status == STRATA_OK; i++) {
        struct planner_candidate *c = &m->candidates[i];
        if (c->kind == CANDIDATE_ABSORBED && c->grouped && c->farther == farther &&
            !c->reason && !(left >> c->in_formats[0] & 1))
            status = refuse(c, err);
    }
    return status;
}

static int prune(struct planner *planner, struct planner_model *m, int node,
                 enum candidate_kind kind, strata_error *err)
{
    const struct planner_group *group = planner_group_of(&planner->nodes[node], kind);
    if (!group || !planner_is_block(group))
        return STRATA_OK;
    const int64_t sum = apart(planner, m, node, group);
    uint64_t left = 0;
    if (sum >= PLAN_INFINITE / HOPELESS)
        return STRATA_OK;
    int status = refuse_runs(m, node, kind, sum * HOPELESS, &left, err);
    for (int i = 1; i < group->members && status == STRATA_OK; i++) {
        node = planner->nodes[node].next;
        status = refuse_absorbed(m, node, group->farther, left, err);
    }
    return status;
}

int planner_prune_claims(struct planner *planner, struct planner_model *m,
                         strata_error *err)
{
    int status = STRATA_OK;
    if (planner->record || planner->guide)
        return STRATA_OK; /* these know what they want */
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++) {
        status = prune(planner, m, (int)i, CANDIDATE_GROUP, err);
        if (status == STRATA_OK)
            status = prune(planner, m, (int)i, CANDIDATE_LONGER, err);
    }
    return status;
}
