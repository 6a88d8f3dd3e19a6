/* SPDX-License-Identifier: Apache-2.0
 *
 * Lying inside others, where it would save nothing: a concatenation that no impl writes
 * into, a slice that none reads. Labels that are left out make a problem smaller by far.
 */
#include "planner/record.h"

#include <stdlib.h>
#include <string.h>

/* Of each network tensor, formats in which some candidate uses it inside another. */
struct uses {
    uint64_t *written, *read;
};

static void note(const struct planner *planner, const struct planner_candidate *c,
                 struct uses *u)
{
    const struct planner_node *n = planner_run_node(planner, c);
    if (c->homed)
        u->written[planner_output(planner, n, c->fused, 0)] |= UINT64_C(1)
                                                               << c->out_formats[0];
    for (int i = 0; i < n->n_in && c->anywhere; i++)
        u->read[n->in[i]] |=
            UINT64_C(1) << c->in_formats[i < PLAN_MAX_PORTS ? i : PLAN_MAX_PORTS - 1];
    if (c->adds_anywhere)
        u->read[n->residual] |= UINT64_C(1) << c->out_formats[0];
}

/* A node's ways of a kind, in the formats of a mask, that are still there. */
static uint64_t refuse(struct planner_model *m, size_t node, enum candidate_kind kind,
                       uint64_t formats, const char *why, strata_error *err)
{
    uint64_t left = 0;
    for (size_t i = m->first[node]; i < m->first[node + 1]; i++) {
        struct planner_candidate *c = &m->candidates[i];
        if (c->kind != kind || c->reason)
            continue;
        if (!(formats >> c->in_formats[0] & 1))
            left |= UINT64_C(1) << c->in_formats[0];
        else if (!(c->reason = duplicate(why, err)))
            return left;
    }
    return left;
}

static int refuse_join(struct planner *planner, size_t node, strata_error *err)
{
    struct planner_fusion *f = &planner->fusions[node];
    free(f->reason);
    f->possible = false;
    f->reason = duplicate("no impl before it writes inside another tensor", err);
    return f->reason ? STRATA_OK : STRATA_ENOMEM;
}

static int prune_join(struct planner *planner, struct planner_model *m, size_t node,
                      struct uses *u, strata_error *err)
{
    const struct planner_node *join = &planner->nodes[node];
    uint64_t apart = 0, used = 0;
    for (int i = 0; i < join->n_in; i++)
        if (m->home[join->in[i]] == (int)node) {
            apart |= m->pitched[join->in[i]];
            used |= m->pitched[join->in[i]] & u->written[join->in[i]];
        }
    const uint64_t unused = apart & ~used;
    for (int i = 0; i < join->n_in; i++)
        if (m->home[join->in[i]] == (int)node)
            m->pitched[join->in[i]] &= ~unused;
    const uint64_t left = refuse(m, node, CANDIDATE_JOIN, unused,
                                 "no impl before it writes inside another tensor", err);
    for (size_t i = m->first[node]; i < m->first[node + 1]; i++)
        if (m->candidates[i].kind == CANDIDATE_JOIN && m->candidates[i].homed &&
            !m->candidates[i].reason)
            u->written[join->out[0]] |= UINT64_C(1) << m->candidates[i].in_formats[0];
    return unused && !left ? refuse_join(planner, node, err) : STRATA_OK;
}

static void prune_slice(const struct planner *planner, struct planner_model *m,
                        size_t node, const struct uses *u, strata_error *err)
{
    const struct planner_node *n = &planner->nodes[node];
    uint64_t apart = 0, used = 0;
    for (int i = 0; i < n->n_out; i++) {
        apart |= m->cut[n->out[i]];
        used |= m->cut[n->out[i]] & u->read[n->out[i]];
    }
    for (int i = 0; i < n->n_out; i++)
        m->cut[n->out[i]] &= used;
    if (apart & ~used)
        refuse(m, node, CANDIDATE_ALIAS, apart & ~used,
               "no impl behind it reads inside another tensor", err);
}

/* A record's plan reads so where one of its conversions says it. */
static void recall(const struct record *r, struct planner_model *m)
{
    for (size_t i = 0; i < r->n_conversions; i++)
        if (r->conversions[i].to.stage == PLAN_ANYWHERE)
            m->anywhere[r->conversions[i].tensor] |= UINT64_C(1)
                                                     << r->conversions[i].to.format;
}

int planner_prune_homes(struct planner *planner, struct planner_model *m,
                        strata_error *err)
{
    const size_t n = planner->network->n_tensors;
    struct uses u = {0};
    int status = STRATA_OK;
    if (planner->record) {
        recall(planner->record, m);
        return STRATA_OK;
    }
    u.written = zalloc(n, sizeof *u.written, "the plan", err);
    u.read = zalloc(n, sizeof *u.read, "the plan", err);
    if (!u.written || !u.read)
        status = STRATA_ENOMEM;
    for (size_t i = 0; i < m->n_candidates && status == STRATA_OK; i++)
        if (!m->candidates[i].reason && planner_runs(&m->candidates[i]))
            note(planner, &m->candidates[i], &u);
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++) {
        if (planner_joins(planner, (int)i))
            status = prune_join(planner, m, i, &u, err);
        prune_slice(planner, m, i, &u, err);
        if (err && err->status == STRATA_ENOMEM)
            status = STRATA_ENOMEM;
    }
    for (size_t t = 0; t < n; t++)
        m->anywhere[t] = m->pitched[t] | m->cut[t];
    free(u.written);
    free(u.read);
    return status;
}
