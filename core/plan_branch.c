/* SPDX-License-Identifier: Apache-2.0
 *
 * Depth-first branch and bound. A node of the search is reduced, bounded and, if neither
 * settles it, split in two: one label of one unknown, and all its others. Everything it
 * writes lies above its mark in the scratch memory and goes when it is done.
 */
#include "core/plan_private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOT_SWEEPS = 60, NODE_SWEEPS = 12, ROUNDS = 4 };

double plan_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- solutions --------------------------------------------------------------------- */

static size_t position(const struct pbqp_view *w, int label)
{
    size_t j = 0;
    while (j + 1 < (size_t)w->n && w->origin[j] != label)
        j++;
    return j;
}

/* Labels of what was eliminated, last first: its neighbours have theirs by then. */
static void recover(struct pbqp_search *s)
{
    for (size_t at = s->n_eliminated; at-- > 0;) {
        const struct pbqp_eliminated *x = &s->eliminated[at];
        size_t j[2] = {0, 0};
        int64_t least = INT64_MAX;
        for (int w = 0; w < x->n_views; w++)
            j[w] = position(&x->view[w], s->trial[x->view[w].node]);
        for (int i = 0; i < x->n; i++) {
            int64_t cost = x->cost[i];
            for (int w = 0; w < x->n_views; w++)
                cost += x->view[w].m[(size_t)i * x->view[w].own_stride +
                                     j[w] * x->view[w].other_stride];
            if (cost < least) {
                least = cost;
                s->trial[x->node] = x->origin[i];
            }
        }
    }
}

static void keep(struct pbqp_search *s, int n_nodes, int64_t cost)
{
    if (cost >= s->best || pbqp_dead(cost))
        return;
    recover(s);
    memcpy(s->labels, s->trial, (size_t)n_nodes * sizeof *s->labels);
    s->best = cost;
    s->found = true;
}

/* Cheapest label of a node given those of the nodes before it; of the ones after it, the
 * cheapest they could have. */
static int64_t decode_node(const struct pbqp *pb, int *chosen, int v)
{
    int64_t least = PLAN_INFINITE, exact = PLAN_INFINITE;
    for (int i = 0; i < pb->nodes[v].n; i++) {
        int64_t known = pb->nodes[v].cost[i];
        PBQP_EACH(pb, half, v)
        {
            const struct pbqp_edge *e = &pb->edges[half >> 1];
            int side = half & 1, other = e->node[!side];
            if (other < v)
                known += e->m[(size_t)i * pbqp_stride(pb, e, side) +
                              (size_t)chosen[other] * pbqp_stride(pb, e, !side)];
            if (pbqp_dead(known))
                break;
        }
        if (known < least) {
            least = exact = known;
            chosen[v] = i;
        }
    }
    return exact;
}

static int decode(struct pbqp_search *s, const struct pbqp *pb)
{
    int64_t cost = pb->constant;
    int *chosen = scratch_get(&s->scratch, (size_t)pb->n_nodes, sizeof *chosen);
    if (!chosen)
        return error_no_memory(s->err, (size_t)pb->n_nodes * 4, "the planner");
    for (int v = 0; v < pb->n_nodes; v++) {
        if (pb->nodes[v].n == 0)
            continue;
        int64_t more = decode_node(pb, chosen, v);
        if (pbqp_dead(more))
            return STRATA_OK;
        cost += more;
        s->trial[v] = pb->nodes[v].origin[chosen[v]];
    }
    keep(s, pb->n_nodes, cost);
    return STRATA_OK;
}

/* ---- one node of the search -------------------------------------------------------- */

static bool is_empty(const struct pbqp *pb)
{
    for (int v = 0; v < pb->n_nodes; v++)
        if (pb->nodes[v].n > 0)
            return false;
    return true;
}

/* Labels with which the bound is no better than the best. */
static int prune(struct pbqp_search *s, struct pbqp *pb, int64_t bound, bool *changed)
{
    for (int v = 0; v < pb->n_nodes && !pb->infeasible; v++) {
        struct pbqp_node *node = &pb->nodes[v];
        int64_t least = PLAN_INFINITE;
        bool any = false;
        for (int i = 0; i < node->n; i++)
            least = node->cost[i] < least ? node->cost[i] : least;
        for (int i = 0; i < node->n; i++) {
            if (bound + node->cost[i] - least < s->best)
                continue;
            const int64_t words[] = {PLAN_PROOF_PRUNE, s->names[v], node->origin[i]};
            int status = pbqp_record(s, 3, words);
            if (status != STRATA_OK)
                return status;
            node->cost[i] = PLAN_INFINITE;
            any = true;
        }
        int status = any ? pbqp_compact(s, pb, v) : STRATA_OK;
        if (status != STRATA_OK)
            return status;
        *changed |= any;
    }
    return STRATA_OK;
}

static int leaf(struct pbqp_search *s, struct pbqp_frame *f, int64_t bound)
{
    const int64_t words[] = {PLAN_PROOF_LEAF, bound >= PBQP_DEAD ? PLAN_INFINITE : bound};
    f->bound = bound;
    return pbqp_record(s, 2, words);
}

/* Reduce; *done where that settles the frame. */
static int reduce_frame(struct pbqp_search *s, struct pbqp_frame *f, bool *done)
{
    int status = pbqp_reduce(s, &f->pb);
    *done = f->pb.infeasible || is_empty(&f->pb);
    if (status != STRATA_OK || !*done)
        return status;
    int64_t cost = f->pb.infeasible ? PLAN_INFINITE : f->pb.constant;
    keep(s, f->pb.n_nodes, cost);
    return leaf(s, f, cost);
}

static int bound_frame(struct pbqp_search *s, struct pbqp_frame *f, int sweeps,
                       bool *done, bool *changed)
{
    int status = pbqp_tighten(s, &f->pb, sweeps, &f->bound);
    if (status == STRATA_OK && f->bound < s->best)
        status = decode(s, &f->pb);
    *done = f->bound >= s->best;
    if (status != STRATA_OK)
        return status;
    return *done ? leaf(s, f, f->bound) : prune(s, &f->pb, f->bound, changed);
}

/* Settle a frame, or leave it reduced and bounded (*done false). */
static int settle(struct pbqp_search *s, struct pbqp_frame *f, bool *done)
{
    bool root = s->nodes++ == 0, changed = true;
    int status = reduce_frame(s, f, done);
    for (int round = 0; round < ROUNDS && changed; round++) {
        bool first = root && round == 0;
        changed = false;
        if (status != STRATA_OK || *done)
            return status;
        if (first && s->start)
            s->best = s->start(s->context);
        status = bound_frame(s, f, first ? ROOT_SWEEPS : NODE_SWEEPS, done, &changed);
        if (status == STRATA_OK && !*done && changed)
            status = reduce_frame(s, f, done);
    }
    return status;
}

/* ---- the tree ---------------------------------------------------------------------- */

/* The unknown whose second-best label is dearest, and its best label: the other half is
 * then soon settled. */
static void choose_branch(const struct pbqp *pb, int *node, int *label)
{
    int64_t widest = -1;
    for (int v = 0; v < pb->n_nodes; v++) {
        const struct pbqp_node *n = &pb->nodes[v];
        int64_t least = PLAN_INFINITE, second = PLAN_INFINITE;
        int at = 0;
        for (int i = 0; i < n->n; i++)
            if (n->cost[i] < least) {
                second = least;
                least = n->cost[i];
                at = i;
            } else if (n->cost[i] < second) {
                second = n->cost[i];
            }
        int64_t width = (second - least) / 16 * n->degree + n->degree;
        if (n->n > 1 && width > widest) {
            widest = width;
            *node = v;
            *label = at;
        }
    }
}

static int push(struct pbqp_search *s, const struct pbqp *pb, int64_t bound)
{
    int status =
        grow(&s->frames, &s->frames_capacity, s->n_frames, sizeof *s->frames, s->err);
    if (status != STRATA_OK)
        return status;
    struct pbqp_frame *f = &s->frames[s->n_frames];
    *f = (struct pbqp_frame){.mark = scratch_mark(&s->scratch),
                             .n_eliminated = s->n_eliminated,
                             .bound = bound,
                             .branch = -1};
    status = pbqp_copy(s, &f->pb, pb);
    s->n_frames++;
    return status;
}

static void pop(struct pbqp_search *s)
{
    const struct pbqp_frame *f = &s->frames[--s->n_frames];
    s->n_eliminated = f->n_eliminated;
    scratch_release(&s->scratch, f->mark);
}

static int branch(struct pbqp_search *s)
{
    struct pbqp_frame *f = &s->frames[s->n_frames - 1];
    choose_branch(&f->pb, &f->branch, &f->label);
    int v = f->branch, label = f->label;
    const int64_t words[] = {PLAN_PROOF_BRANCH, s->names[v],
                             f->pb.nodes[v].origin[label]};
    struct pbqp pb = f->pb;
    int status = pbqp_record(s, 3, words);
    if (status != STRATA_OK || (status = push(s, &pb, f->bound)) != STRATA_OK)
        return status;
    struct pbqp *child = &s->frames[s->n_frames - 1].pb;
    for (int i = 0; i < child->nodes[v].n; i++)
        if (i != label)
            child->nodes[v].cost[i] = PLAN_INFINITE;
    return pbqp_compact(s, child, v);
}

/* The first half is done: on to the other labels. */
static int resume(struct pbqp_search *s)
{
    struct pbqp_frame *f = &s->frames[s->n_frames - 1];
    int v = f->branch;
    if (v < 0)
        return STRATA_OK;
    f->pb.nodes[v].cost[f->label] = PLAN_INFINITE;
    f->branch = -1;
    return pbqp_compact(s, &f->pb, v);
}

static bool over_budget(const struct pbqp_search *s)
{
    return s->nodes > 0 && ((s->max_nodes && s->nodes >= s->max_nodes) ||
                            (s->deadline > 0 && plan_seconds() > s->deadline));
}

static int step(struct pbqp_search *s)
{
    bool done;
    int status = resume(s);
    if (status == STRATA_OK)
        status = settle(s, &s->frames[s->n_frames - 1], &done);
    if (status != STRATA_OK)
        return status;
    if (!done)
        return branch(s);
    pop(s);
    return STRATA_OK;
}

int pbqp_search(struct pbqp_search *s, const struct pbqp *root)
{
    size_t n = (size_t)root->n_nodes;
    int status = STRATA_ENOMEM;
    s->labels = zalloc(n, sizeof *s->labels, "the planner", s->err);
    s->trial = zalloc(n, sizeof *s->trial, "the planner", s->err);
    if (s->labels && s->trial)
        status = push(s, root, 0);
    while (status == STRATA_OK && s->n_frames > 0 && !(s->stopped = over_budget(s)))
        status = step(s);
    s->bound = s->best;
    for (size_t i = 0; i < s->n_frames; i++)
        s->bound = s->frames[i].bound < s->bound ? s->frames[i].bound : s->bound;
    return status;
}
