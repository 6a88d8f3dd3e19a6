/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways to have a layer's output that run nothing: a node before computes it, it is the
 * input's memory as it is, or a concatenation's inputs are made inside its output.
 */
#include "planner/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

static bool has_free(const struct planner_model *m, const struct planner_candidate *c)
{
    for (size_t i = m->n_candidates; i-- > 0 && m->candidates[i].node == c->node;) {
        const struct planner_candidate *o = &m->candidates[i];
        if (o->kind == c->kind && o->in_formats[0] == c->in_formats[0] &&
            o->out_formats[0] == c->out_formats[0] && o->pad == c->pad &&
            o->fused == c->fused && o->grouped == c->grouped &&
            o->farther == c->farther && o->homed == c->homed)
            return true;
    }
    return false;
}

static int add_between(struct planner_model *m, struct planner_candidate c, int in_format,
                       int out_format, strata_error *err)
{
    c.row = -1;
    for (int i = 0; i < PLAN_MAX_PORTS; i++) {
        c.in_formats[i] = in_format;
        c.out_formats[i] = out_format;
    }
    return has_free(m, &c) ? STRATA_OK : planner_keep_candidate(m, &c, NULL, err);
}

static int add_free(struct planner_model *m, struct planner_candidate c, int format,
                    strata_error *err)
{
    return add_between(m, c, format, format, err);
}

/* What each node whose tail holds this one can have computed, and in which formats. */
static int add_absorbed(const struct planner *planner, struct planner_model *m, int node,
                        strata_error *err)
{
    for (int h = planner->nodes[node].before, after = node, before; h >= 0;
         after = h, h = before) {
        before = planner_head_before(planner, h, after);
        const struct planner_node *head = &planner->nodes[h];
        size_t at = 0;
        while (at < head->n_tail && head->tail[at] != node)
            at++;
        if (at == head->n_tail)
            continue;
        for (size_t i = m->first[h]; i < m->first[h + 1]; i++) {
            const struct planner_candidate from = m->candidates[i];
            if (from.kind != CANDIDATE_RUN || from.reason || from.fused <= at)
                continue;
            int tensor = planner_output(planner, head, from.fused, 0);
            struct planner_candidate c = {
                .kind = CANDIDATE_ABSORBED,
                .node = node,
                .fused = from.fused - at - 1,
                .homed = from.homed,
                .pad = planner_port_pad(m, planner->network, tensor, from.out_formats[0],
                                        &from.impl->impl, true)};
            int status = add_free(m, c, from.out_formats[0], err);
            if (status != STRATA_OK)
                return status;
        }
    }
    return STRATA_OK;
}

/* What a candidate of a group computes of the node that is `distance` after its first. */
static int add_member(const struct planner *planner, struct planner_model *m, int node,
                      const struct planner_candidate *from, int distance,
                      strata_error *err)
{
    const struct planner_group *group =
        planner_group_of(&planner->nodes[from->node], from->kind);
    if (!group || from->reason || distance >= group->members)
        return STRATA_OK;
    const struct planner_candidate c = {
        .kind = CANDIDATE_ABSORBED,
        .node = node,
        .fused = (size_t)(group->members - 1 - distance),
        .grouped = true,
        .farther = group->farther,
        .homed = from->homed,
        .pad = planner_port_pad(m, planner->network, group->made.output,
                                from->out_formats[0], &from->impl->impl, true)};
    return add_free(m, c, from->out_formats[0], err);
}

/* What the groups that begin before a node of their chain compute of it. */
static int add_grouped(const struct planner *planner, struct planner_model *m, int node,
                       strata_error *err)
{
    int status = STRATA_OK, distance = 1;
    for (int h = planner->nodes[node].previous; h >= 0;
         h = planner->nodes[h].previous, distance++)
        for (size_t i = m->first[h]; i < m->first[h + 1] && status == STRATA_OK; i++) {
            const struct planner_candidate from = m->candidates[i]; /* they move */
            status = add_member(planner, m, node, &from, distance, err);
        }
    return status;
}

/* ---- concatenation in place -------------------------------------------------------- */

/* Every input has this concatenation as its home, and a slice there. Else *part is the
 * input for which that is not so, and *why says what is in the way. */
static bool can_join(const struct planner *planner, const struct planner_model *m,
                     int node, int format, int *part, const char **why)
{
    const struct planner_node *join = &planner->nodes[node];
    for (int i = 0; i < join->n_in; i++) {
        const int home = m->home[ *part = join->in[i]];
        *why = home == -2 ? "is read by it twice" : "is inside another concatenation";
        if (home != node)
            return false;
        const struct planner_slice s = planner_find_part(planner, join, i, format);
        *why = s.why;
        if (s.begin < 0 || (s.pitched && !(m->pitched[join->in[i]] >> format & 1)))
            return false;
    }
    return true;
}

/* The whole may lie apart in a concatenation itself where no part needs to be one piece.
 */
static bool can_nest(const struct planner *planner, const struct planner_model *m,
                     int node, int format)
{
    const struct planner_node *join = &planner->nodes[node];
    bool nests = m->pitched[join->out[0]] >> format & 1;
    for (int i = 0; i < join->n_in && nests; i++)
        nests = m->pitched[join->in[i]] >> format & 1;
    return nests;
}

/* The reason of the last format that was tried stands for all. */
static int note_join(struct planner *planner, int node, bool possible, int part,
                     int format, const char *why, strata_error *err)
{
    struct planner_fusion *f = &planner->fusions[node];
    const struct network_tensor *t = &planner->network->tensors[part];
    char text[400];
    if (f->possible)
        return STRATA_OK;
    if (possible)
        snprintf(text, sizeof text, "copying its inputs costs less");
    else
        snprintf(text, sizeof text, "as %s, '%.200s' %s",
                 format_mask_name(UINT64_C(1) << format, t->rank), t->name, why);
    free(f->reason);
    f->possible = possible;
    return (f->reason = duplicate(text, err)) ? STRATA_OK : STRATA_ENOMEM;
}

/* only: as in planner_find_free. */
static int add_join(struct planner *planner, struct planner_model *m, int node,
                    int format, const struct record_decision *only, strata_error *err)
{
    const char *why = NULL;
    int part = -1;
    bool possible = can_join(planner, m, node, format, &part, &why);
    int status = note_join(planner, node, possible, part, format, why, err);
    struct planner_candidate c = {.kind = CANDIDATE_JOIN, .node = node};
    if (status == STRATA_OK && possible && !(only && only->homed))
        status = add_free(m, c, format, err);
    c.homed = true;
    if (status == STRATA_OK && possible && can_nest(planner, m, node, format) &&
        (!only || only->homed))
        status = add_free(m, c, format, err);
    return status;
}

static int add_alias(const struct planner *planner, struct planner_model *m, int node,
                     int format, strata_error *err)
{
    const struct network_layer *layer = planner->nodes[node].layer;
    for (int i = 0; i < layer->n_outputs; i++) {
        const struct planner_slice s = planner_find_alias(planner, layer, i, format);
        if (s.begin < 0 || (s.pitched && !(m->cut[layer->outputs[i]] >> format & 1)))
            return STRATA_OK;
    }
    return add_free(m, (struct planner_candidate){.kind = CANDIDATE_ALIAS, .node = node},
                    format, err);
}

/* From a format to another one. */
static int add_turned(const struct planner *planner, struct planner_model *m, int node,
                      int in_format, int out_format, strata_error *err)
{
    const struct planner_candidate c = {.kind = CANDIDATE_ALIAS, .node = node};
    return planner_turns_nothing(planner, planner->nodes[node].layer, in_format,
                                 out_format)
               ? add_between(m, c, in_format, out_format, err)
               : STRATA_OK;
}

static int add_unread(struct planner_model *m, int node, strata_error *err)
{
    return add_free(m, (struct planner_candidate){.kind = CANDIDATE_UNREAD, .node = node},
                    0, err);
}

/* The way that a file decided for, if it is one here. */
static int add_decided(struct planner *planner, struct planner_model *m, int node,
                       bool join, const struct record_decision *d, strata_error *err)
{
    if (d->kind == CANDIDATE_ABSORBED) {
        int status = add_absorbed(planner, m, node, err);
        return status == STRATA_OK ? add_grouped(planner, m, node, err) : status;
    }
    if (d->kind == CANDIDATE_UNREAD && planner->nodes[node].unread)
        return add_unread(m, node, err);
    if (d->kind == CANDIDATE_JOIN && join)
        return add_join(planner, m, node, d->in_formats[0], planner->record ? d : NULL,
                        err);
    if (d->kind == CANDIDATE_ALIAS && !join)
        return d->in_formats[0] == d->out_formats[0]
                   ? add_alias(planner, m, node, d->in_formats[0], err)
                   : add_turned(planner, m, node, d->in_formats[0], d->out_formats[0],
                                err);
    return STRATA_OK;
}

int planner_find_free(struct planner *planner, struct planner_model *m, int node,
                      const struct record_decision *only, strata_error *err)
{
    uint64_t seen = 0;
    const bool join = planner_joins(planner, node);
    if (only)
        return add_decided(planner, m, node, join, only, err);
    int status = add_absorbed(planner, m, node, err);
    if (status == STRATA_OK)
        status = add_grouped(planner, m, node, err);
    if (status == STRATA_OK && planner->nodes[node].unread)
        status = add_unread(m, node, err);
    /* Formats that some impl of the layer takes and gives here: within all constraints.
     */
    for (size_t i = m->n_candidates; i-- > 0 && status == STRATA_OK;) {
        const struct planner_candidate c = m->candidates[i];
        if (c.node != node)
            break;
        if (c.kind != CANDIDATE_RUN || c.reason || c.fused ||
            c.in_formats[0] != c.out_formats[0] || seen >> c.in_formats[0] & 1)
            continue;
        seen |= UINT64_C(1) << c.in_formats[0];
        status = (join ? add_join(planner, m, node, c.in_formats[0], NULL, err)
                       : add_alias(planner, m, node, c.in_formats[0], err));
    }
    for (int in = 0; in < STRATA_FORMAT_COUNT && status == STRATA_OK; in++)
        for (int out = 0; out < STRATA_FORMAT_COUNT && status == STRATA_OK; out++)
            if (in != out && seen >> in & 1 && seen >> out & 1)
                status = add_turned(planner, m, node, in, out, err);
    return status;
}
