/* SPDX-License-Identifier: Apache-2.0
 *
 * Node by node: the operator is upgraded, or a branch or a loop put in its place; then
 * shapes of its values, as the layers tell them; and what hangs on constants alone
 * becomes one, by the layers' references: so a folded number is the one that a plan would
 * compute.
 * Branches and loops are folded as they are put in place: mutual recursion with control/.
 */
#include <string.h>

#include "network/import/carry/carry.h"
#include "network/import/control/control.h"
#include "network/import/counted/counted.h"
#include "network/import/map.h"
#include "network/import/rounds/rounds.h"
#include "network/import/upgrade.h"

static bool reads_refused(const struct graph *g, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && g->values[n->in[i]].refused)
            return true;
    return false;
}

static bool reads_constants(const struct graph *g, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !g->values[n->in[i]].constant)
            return false;
    return true;
}

/* Shapes of what the sections make, and the values too if the node reads constants. */
static int infer(struct import *im, struct mapping *m, strata_error *err)
{
    const bool constant = reads_constants(&im->g, m->node);
    int status = STRATA_OK;
    for (size_t i = 0; i < m->n_sections && !m->refused; i++) {
        strata_error why = {0};
        status = map_match(m, m->sections[i], &why);
        if (status == STRATA_OK)
            status = section_infer(&im->g, m->sections[i], im->registry, &why);
        if (status == STRATA_OK && constant) {
            status = section_run(&im->g, m->sections[i], IMPORT_FOLD_ELEMENTS, &why);
            if (status == STRATA_EOVERFLOW || status == STRATA_EUNSUPPORTED)
                status = STRATA_OK; /* left to run time */
        }
        if (status == STRATA_ENOMEM)
            return error_no_memory(err, 0, "a model");
        if (status != STRATA_OK)
            map_refuse(m, "%s", why.message);
    }
    return STRATA_OK;
}

/* Each input has a type, or the node is refused. */
static bool is_typed(struct import *im, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const struct value *v = graph_value(&im->g, n->in[i]);
        if (!v || v->dtype >= 0)
            continue;
        import_refuse_node(im, n, NULL, "input '%s' is made by no layer", v->name);
        return false;
    }
    return true;
}

/* A node that makes an Identity does nothing (drop.c). */
static void note_same(struct graph *g, const struct mapping *m)
{
    const struct section *s = m->n_sections == 1 ? m->sections[0] : NULL;
    struct value *v = s && s->n_out ? graph_value(g, s->out[0]) : NULL;
    if (v && s->n_in == 1 && strcmp(s->type, "Identity") == 0)
        v->same = s->in[0];
}

static int fold_layers(struct import *im, const struct node *n, strata_error *err)
{
    struct mapping m = {.im = im, .g = &im->g, .node = n};
    if (!is_typed(im, n))
        return STRATA_OK;
    int status = map_node(&m, err);
    if (status == STRATA_OK)
        status = infer(im, &m, err);
    if (status == STRATA_OK && !m.refused)
        note_same(&im->g, &m);
    for (size_t i = 0; i < m.n_sections; i++)
        section_free(m.sections[i]);
    return status;
}

static int fold_node(struct import *im, struct node *n, strata_error *err);

/* Nodes that an upgrade put before this one are not in the list's order. */
static int fold_producers(struct import *im, const struct node *n, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; status == STRATA_OK && i < n->n_in; i++) {
        const struct value *v = graph_value(&im->g, n->in[i]);
        if (v && v->node && !v->node->folded)
            status = fold_node(im, v->node, err);
    }
    return status;
}

static int fold_operator(struct import *im, struct node *n, strata_error *err)
{
    carry_node(im, n);
    int status = fold_producers(im, n, err);
    if (status == STRATA_OK)
        status = rounds_before(im, n, err);
    if (status == STRATA_OK)
        status = fold_producers(im, n, err);
    if (status == STRATA_OK)
        status = counted_before(im, n, err);
    if (status == STRATA_OK)
        status = fold_producers(im, n, err);
    if (status != STRATA_OK || node_is_refused(&im->g, n))
        return status;
    status = fold_layers(im, n, err);
    return status == STRATA_OK ? counted_after(im, n, err) : status;
}

static int fold_node(struct import *im, struct node *n, strata_error *err)
{
    const struct control *control;
    const size_t first = im->g.n_nodes;
    if (n->folded)
        return STRATA_OK;
    n->folded = true;
    int status = fold_producers(im, n, err);
    if (status == STRATA_OK && !reads_refused(&im->g, n)) {
        upgrade_node(im, n);
        status = arena_status(&im->g.arena, "a model", err);
    }
    if (status == STRATA_OK)
        status = fold_producers(im, n, err);
    if (status != STRATA_OK)
        return status;
    if (reads_refused(&im->g, n) || node_is_refused(&im->g, n))
        node_refuse(&im->g, n);
    else if ((control = control_find(im, n)) && rounds_reads(im, n))
        rounds_refuse(im, n, "it is not taken with what differs from round to round,");
    else if (control)
        status = control->expand(im, n, err);
    else
        status = fold_operator(im, n, err);
    return status == STRATA_OK ? import_fold_from(im, first, err) : status;
}

int import_fold_from(struct import *im, size_t first, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = first; status == STRATA_OK && i < im->g.n_nodes; i++)
        status = fold_node(im, im->g.nodes[i], err);
    return status;
}

static void refuse_lists(struct import *im)
{
    for (size_t i = 0; i < im->g.n_outputs; i++) {
        const struct value *v = &im->g.values[im->g.outputs[i]];
        if (v->sequence)
            import_refuse(im, NULL, "output '%s' is a sequence; Strata has tensors",
                          v->name);
    }
}

int import_fold(struct import *im, strata_error *err)
{
    int status = import_fold_from(im, 0, err);
    refuse_lists(im);
    if (status == STRATA_OK)
        status = counted_outputs(im, err);
    if (status == STRATA_OK && !im->all_refusals)
        status = graph_sort(&im->g, err);
    return status;
}
