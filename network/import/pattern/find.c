/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass: every pattern at every node, step by step.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "network/import/pattern/match.h"

#define ROUNDS 64      /* of a step, at most: each leaves fewer nodes */
#define FROM_BYTES 256 /* of the names of what a node stands for */

/* The tables, taken apart once a pass. */
struct step {
    const struct pattern *rows;
    struct parsed *parsed;
    size_t n;
};

/* What an attempt may have added, to leave it out again. */
struct mark {
    size_t n_nodes, n_refusals, n_wanted, all_refusals;
};

static struct mark mark_of(const struct import *im)
{
    return (struct mark){im->g.n_nodes, im->n_refusals, im->n_wanted, im->all_refusals};
}

/* What these nodes read, they read no more. */
static void release(struct graph *g, struct node *const *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < nodes[i]->n_in; k++)
            if (nodes[i]->in[k] >= 0)
                g->values[nodes[i]->in[k]].readers--;
}

static void undo(struct import *im, const struct mark *to)
{
    release(&im->g, im->g.nodes + to->n_nodes, im->g.n_nodes - to->n_nodes);
    im->g.n_nodes = to->n_nodes;
    im->n_refusals = to->n_refusals;
    im->n_wanted = to->n_wanted;
    im->all_refusals = to->all_refusals;
}

static bool same_type(const struct value *a, const struct value *b)
{
    return a && b && a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* ---- names ---------------------------------------------------------------------------
 */

/* Names of what the last node stands for besides; without the part they share with it. */
static const char *other_names(struct match *m, const struct node *root)
{
    const char *slash = strrchr(root->name, '/');
    const size_t shared = slash ? (size_t)(slash - root->name) + 1 : 0;
    char text[FROM_BYTES] = "";
    size_t at = 0;
    for (int i = 0; i < m->parsed->n; i++) {
        const struct node *n = m->nodes[i];
        const char *name = n == root ? "" : n->name;
        if (shared && strncmp(name, root->name, shared) == 0)
            name += shared;
        const char *const parts[] = {n->from ? n->from : "", name};
        for (size_t k = 0; k < ARRAY_LENGTH(parts); k++)
            if (*parts[k] && at < sizeof text)
                at += (size_t)snprintf(text + at, sizeof text - at, "%s%s",
                                       at ? ", " : "", parts[k]);
    }
    if (at >= sizeof text)
        memcpy(text + sizeof text - 5, " ...", 5);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = '_';
    return *text ? arena_text(&m->im->g.arena, text, strlen(text)) : NULL;
}

/* The last node has the root's name, those before it a name under that. */
static void name_nodes(struct match *m, const struct node *root, size_t first)
{
    struct graph *g = &m->im->g;
    for (size_t i = first; i + 1 < g->n_nodes; i++)
        if (*root->name)
            g->nodes[i]->name =
                arena_print(&g->arena, "%s/%s", root->name, g->nodes[i]->op);
    g->nodes[g->n_nodes - 1]->name = root->name;
    g->nodes[g->n_nodes - 1]->from = other_names(m, root);
}

/* ---- the pass ------------------------------------------------------------------------
 */

/* What the root made is now made by the last node added. */
static void take_place(struct match *m, const struct node *root, struct node *last,
                       size_t first)
{
    struct graph *g = &m->im->g;
    const struct value made = *graph_value(g, last->out[0]);
    struct value *v = graph_value(g, root->out[0]);
    name_nodes(m, root, first);
    release(g, m->nodes, (size_t)m->parsed->n);
    v->node = last;
    v->same = made.same;
    v->exact = made.exact;
    v->constant = made.constant;
    v->data = made.data;
    last->out[0] = root->out[0];
}

static int replace(struct match *m, struct node *root, bool *changed, strata_error *err)
{
    struct import *im = m->im;
    const struct mark mark = mark_of(im);
    struct node *last = m->pattern->emit(m);
    int status = arena_status(&im->g.arena, "a model", err);
    if (status == STRATA_OK && last)
        status = import_fold_from(im, mark.n_nodes, err);
    if (status != STRATA_OK)
        return status;
    if (!last || im->all_refusals > mark.all_refusals || im->g.n_nodes == mark.n_nodes ||
        last != im->g.nodes[im->g.n_nodes - 1] ||
        !same_type(graph_value(&im->g, last->out[0]),
                   graph_value(&im->g, root->out[0]))) {
        undo(im, &mark);
        return STRATA_OK;
    }
    take_place(m, root, last, mark.n_nodes);
    *changed = true;
    return arena_status(&im->g.arena, "a model", err);
}

static bool is_read(const struct graph *g, const struct node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && g->values[n->out[i]].readers > 0)
            return true;
    return false;
}

static int find_at(struct import *im, const struct step *step, struct node *root,
                   bool *changed, strata_error *err)
{
    int status = STRATA_OK;
    bool replaced = false;
    for (size_t i = 0; status == STRATA_OK && !replaced && i < step->n; i++) {
        struct match m = {
            .im = im, .pattern = &step->rows[i], .parsed = &step->parsed[i]};
        if (match_find(&m, root) && (!m.pattern->check || m.pattern->check(&m)))
            status = replace(&m, root, &replaced, err);
    }
    *changed |= replaced;
    return status;
}

/* One round: readers before producers, so that the longest pattern finds all its nodes.
 */
static int sweep(struct import *im, const struct step *step, bool *changed,
                 strata_error *err)
{
    int status = STRATA_OK;
    *changed = false;
    for (size_t i = im->g.n_nodes; status == STRATA_OK && i-- > 0;)
        if (is_read(&im->g, im->g.nodes[i]))
            status = find_at(im, step, im->g.nodes[i], changed, err);
    return status == STRATA_OK && *changed ? import_drop(im, err) : status;
}

static int prepare(struct import *im, struct step *step, const struct pattern_table *t,
                   strata_error *err)
{
    *step = (struct step){.rows = t->rows, .n = t->n};
    step->parsed = arena_get(&im->g.arena, t->n, sizeof *step->parsed);
    if (!step->parsed)
        return arena_status(&im->g.arena, "patterns", err);
    for (size_t i = 0; i < t->n; i++)
        if (!pattern_parse(&step->parsed[i], t->rows[i].text))
            return error_set(err, STRATA_EINTERNAL, "not a pattern: %s", t->rows[i].text);
    return STRATA_OK;
}

int import_find_patterns(struct import *im, strata_error *err)
{
    int status = STRATA_OK;
    if (im->options.no_patterns)
        return STRATA_OK;
    for (const struct pattern_table *const *t = pattern_tables; status == STRATA_OK && *t;
         t++) {
        struct step step;
        bool changed = true;
        status = prepare(im, &step, *t, err);
        for (int i = 0; status == STRATA_OK && changed && i < ROUNDS; i++)
            status = sweep(im, &step, &changed, err);
    }
    return status;
}
