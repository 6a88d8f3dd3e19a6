/* SPDX-License-Identifier: Apache-2.0
 *
 * Depth-first branch and bound. A node of the search is reduced, bounded and, if neither
 * settles it, split in two: one label of one unknown, and all its others. Everything it
 * writes lies above its mark in the scratch memory and goes when it is done.
 */
#include "planner/solver/private.h"

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

/* What the nodes decided so far cost the others, label by label. */
struct decoder {
    const struct pbqp *pb;
    int64_t **sum; /* [node][label] */
    bool *decided;
};

static int decoder_open(struct decoder *d, struct pbqp_search *s, const struct pbqp *pb)
{
    size_t n = (size_t)pb->n_nodes;
    *d = (struct decoder){pb, scratch_get(&s->scratch, n, sizeof *d->sum),
                          scratch_get(&s->scratch, n, sizeof *d->decided)};
    if (!d->sum || !d->decided)
        return error_no_memory(s->err, n * sizeof *d->sum, "the planner");
    memset(d->decided, 0, n * sizeof *d->decided);
    for (size_t v = 0; v < n; v++) {
        size_t bytes = (size_t)pb->nodes[v].n * sizeof **d->sum;
        if (bytes && !(d->sum[v] = scratch_get(&s->scratch, bytes, 1)))
            return error_no_memory(s->err, bytes, "the planner");
        if (bytes)
            memcpy(d->sum[v], pb->nodes[v].cost, bytes);
    }
    return STRATA_OK;
}

/* Least of the other node's sum plus the edge, over the other's labels. */
static int64_t least_across(const struct decoder *d, int half, int i)
{
    const struct pbqp_edge *e = &d->pb->edges[half >> 1];
    int side = half & 1, other = e->node[!side];
    size_t stride = pbqp_stride(d->pb, e, !side);
    const int64_t *cell = e->m + (size_t)i * pbqp_stride(d->pb, e, side);
    int64_t least = PLAN_INFINITE;
    for (int j = 0; j < d->pb->nodes[other].n; j++, cell += stride) {
        int64_t cost = pbqp_dead(*cell) ? PLAN_INFINITE : d->sum[other][j] + *cell;
        least = cost < least ? cost : least;
    }
    return least;
}

/* The label that is cheapest given what is decided and the best its neighbours can do. */
static int decode_label(const struct decoder *d, int v)
{
    int64_t least = PLAN_INFINITE;
    int at = -1;
    for (int i = 0; i < d->pb->nodes[v].n; i++) {
        int64_t cost = d->sum[v][i];
        PBQP_EACH(d->pb, half, v)
        {
            if (pbqp_dead(cost))
                break;
            if (!d->decided[d->pb->edges[half >> 1].node[!(half & 1)]])
                cost += least_across(d, half, i);
        }
        if (!pbqp_dead(cost) && cost < least) {
            least = cost;
            at = i;
        }
    }
    return at;
}

static void decide(const struct decoder *d, int v, int i)
{
    d->decided[v] = true;
    PBQP_EACH(d->pb, half, v)
    {
        const struct pbqp_edge *e = &d->pb->edges[half >> 1];
        int side = half & 1, other = e->node[!side];
        const int64_t *cell = e->m + (size_t)i * pbqp_stride(d->pb, e, side);
        for (int j = 0; j < d->pb->nodes[other].n && !d->decided[other]; j++) {
            int64_t cost = cell[(size_t)j * pbqp_stride(d->pb, e, !side)];
            int64_t *sum = &d->sum[other][j];
            *sum = pbqp_dead(cost) || pbqp_dead(*sum) ? PLAN_INFINITE : *sum + cost;
        }
    }
}

/* Round the bound's costs to an assignment: operations in order, then the sets. */
static int decode(struct pbqp_search *s, const struct pbqp *pb)
{
    struct scratch_mark mark = scratch_mark(&s->scratch);
    struct decoder d;
    int64_t cost = pb->constant;
    int status = decoder_open(&d, s, pb);
    for (int set = 0; set < 2 && status == STRATA_OK && !pbqp_dead(cost); set++)
        for (int v = 0; v < pb->n_nodes; v++) {
            if (pb->nodes[v].n == 0 || pb->nodes[v].is_set != set)
                continue;
            int i = decode_label(&d, v);
            if (i < 0) {
                cost = PLAN_INFINITE;
                break;
            }
            cost += d.sum[v][i];
            decide(&d, v, i);
            s->trial[v] = pb->nodes[v].origin[i];
        }
    if (status == STRATA_OK)
        keep(s, pb->n_nodes, cost);
    scratch_release(&s->scratch, mark);
    return status;
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
        status = bound_frame(s, f, first ? ROOT_SWEEPS : NODE_SWEEPS, done, &changed);
        if (first && s->start && !s->found && !*done)
            s->best = s->start(s->context);
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
        status = pbqp_queue_open(&s->queue, root->n_nodes, s->err);
    if (status == STRATA_OK)
        status = push(s, root, 0);
    while (status == STRATA_OK && s->n_frames > 0 && !(s->stopped = over_budget(s)))
        status = step(s);
    s->bound = s->best;
    for (size_t i = 0; i < s->n_frames; i++)
        s->bound = s->frames[i].bound < s->bound ? s->frames[i].bound : s->bound;
    return status;
}
