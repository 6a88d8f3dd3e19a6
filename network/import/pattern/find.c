/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass: every pattern at every node, step by step.
 */
#include "network/import/pattern/attempt.h"
#include "network/import/pattern/match.h"

#define ROUNDS 64 /* of a step, at most: each leaves fewer nodes */

/* The tables, taken apart once a pass. */
struct step {
    const struct pattern *rows;
    struct parsed *parsed;
    size_t n;
};

/* What these nodes read, they read no more. */
static void release(struct graph *g, struct node *const *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < nodes[i]->n_in; k++)
            if (nodes[i]->in[k] >= 0)
                g->values[nodes[i]->in[k]].readers--;
}

/* The last node has the root's name, those before it a name under that. */
static void name_nodes(struct match *m, const struct node *root, size_t first)
{
    struct graph *g = &m->im->g;
    for (size_t i = first; i + 1 < g->n_nodes; i++) {
        g->nodes[i]->derived = true;
        if (*root->name)
            g->nodes[i]->name =
                arena_print(&g->arena, "%s/%s", root->name, g->nodes[i]->op);
    }
    g->nodes[g->n_nodes - 1]->name = root->name;
    g->nodes[g->n_nodes - 1]->from =
        attempt_names(g, root, (const struct node *const *)m->nodes, m->parsed->n);
}

/* ---- the pass ------------------------------------------------------------------------
 */

static int replace(struct match *m, struct node *root, bool *changed, strata_error *err)
{
    struct import *im = m->im;
    struct graph *g = &im->g;
    const struct attempt attempt = attempt_begin(im);
    struct node *last = m->pattern->emit(m);
    bool refused = false;
    const int status = last ? attempt_infer(im, &attempt, &refused, err)
                            : arena_status(&g->arena, "a model", err);
    if (status != STRATA_OK)
        return status;
    if (!last || refused || g->n_nodes == attempt.n_nodes ||
        last != g->nodes[g->n_nodes - 1] ||
        !attempt_fits(g, root->out[0], last->out[0])) {
        attempt_undo(im, &attempt);
        return STRATA_OK;
    }
    name_nodes(m, root, attempt.n_nodes);
    release(g, m->nodes, (size_t)m->parsed->n);
    attempt_replace(g, root->out[0], last);
    *changed = true;
    return arena_status(&g->arena, "a model", err);
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
        struct step step = {0};
        bool changed = true;
        status = (*t)->sweep ? STRATA_OK : prepare(im, &step, *t, err);
        for (int i = 0; status == STRATA_OK && changed && i < ROUNDS; i++)
            status = (*t)->sweep ? (*t)->sweep(im, &changed, err)
                                 : sweep(im, &step, &changed, err);
    }
    return status;
}
