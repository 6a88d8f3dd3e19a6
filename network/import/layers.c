/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass that makes the network's layers, node by node.
 */
#include "network/import/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "network/import/private.h"

static void keep_section(struct import *im, struct section *s)
{
    struct section **all = arena_grow(&im->g.arena, im->sections, &im->sections_capacity,
                                      im->n_sections, sizeof(struct section *));
    if (!all)
        return;
    im->sections = all;
    im->sections[im->n_sections++] = s;
}

/* A layer that gives a constant, or what another layer or an input gives. */
static int keep_source(struct import *im, const char *type, int in, int weight, int out,
                       strata_error *err)
{
    struct section *s = section_make(&im->g, type, NULL);
    if (in >= 0)
        section_in(&im->g, s, in);
    section_weight(s, "value", weight);
    section_out(&im->g, s, out);
    int status = section_infer(&im->g, s, im->registry, err);
    if (status == STRATA_OK)
        keep_section(im, s);
    return status;
}

/* Constants that layers read as inputs come of a Constant each. */
static int provide(struct import *im, struct section *s, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; status == STRATA_OK && i < s->n_in; i++) {
        const int from = s->in[i];
        struct value *v = graph_value(&im->g, from);
        if (!v || !v->constant)
            continue;
        if (v->given < 0) {
            const int rank = v->rank, given = graph_add_value(&im->g, v->name);
            status = keep_source(im, "Constant", VALUE_NONE, from, given, err);
            if (given < 0 || status != STRATA_OK)
                return status == STRATA_OK ? STRATA_ENOMEM : status;
            im->g.values[given].rank = rank;
            im->g.values[from].given = given;
        }
        s->in[i] = im->g.values[from].given;
    }
    return status;
}

/* A node that a pattern made says in the network's text what it was. */
static void tell_origin(struct mapping *m)
{
    if (m->node->from && m->n_sections)
        m->sections[0]->comment = arena_print(&m->g->arena, "from: %s", m->node->from);
}

/* The narrow float that some input is whatever the precision; FP32: there is none. */
static int exact_dtype(const struct graph *g, const struct section *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && value_is_exact(&g->values[s->in[i]]) &&
            g->values[s->in[i]].dtype != STRATA_FP32)
            return g->values[s->in[i]].dtype;
    return STRATA_FP32;
}

static int cast_to(struct mapping *m, int from, int dtype, int *to, strata_error *err)
{
    struct section *s = section_make(m->g, "Cast", m->node);
    *to = graph_add_value(m->g, "");
    section_in(m->g, s, from);
    section_out_rank(m->g, s, *to, m->g->values[from].rank);
    section_word(m->g, s, "to", strata_dtype_name(dtype));
    int status = section_infer(m->g, s, m->im->registry, err);
    if (status == STRATA_OK && m->keep)
        keep_section(m->im, s);
    else
        section_free(s);
    return status;
}

int map_match(struct mapping *m, struct section *s, strata_error *err)
{
    const int dtype = s ? exact_dtype(m->g, s) : STRATA_FP32;
    int status = STRATA_OK;
    for (int i = 0; dtype != STRATA_FP32 && i < s->n_in && status == STRATA_OK; i++) {
        const struct value *v = graph_value(m->g, s->in[i]);
        if (v && dtype_is_free(v->dtype) && !value_is_exact(v))
            status = cast_to(m, s->in[i], dtype, &s->in[i], err);
    }
    return status;
}

static int map_one(struct import *im, const struct node *n, strata_error *err)
{
    struct mapping m = {.im = im, .g = &im->g, .node = n, .keep = true};
    int status = map_node(&m, err);
    tell_origin(&m);
    for (size_t i = 0; status == STRATA_OK && !m.refused && i < m.n_sections; i++) {
        strata_error why = {0};
        status = provide(im, m.sections[i], err);
        if (status != STRATA_OK)
            break;
        status = map_match(&m, m.sections[i], &why);
        if (status == STRATA_OK)
            status = section_infer(&im->g, m.sections[i], im->registry, &why);
        if (status == STRATA_OK) {
            map_factors(&im->g, m.sections[i]);
            keep_section(im, m.sections[i]);
        } else if (status != STRATA_ENOMEM) {
            map_refuse(&m, "%s", why.message);
            status = STRATA_OK;
        } else
            *err = why;
    }
    return status;
}

/* Outputs that are inputs or constants of the model come of a layer, too. */
static int map_outputs(struct import *im, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < im->g.n_outputs; i++) {
        const int from = im->g.outputs[i];
        const struct value *v = &im->g.values[from];
        if (v->node && !v->constant)
            continue;
        const bool constant = v->constant;
        const int to = graph_add_value(&im->g, v->name);
        status = keep_source(im, constant ? "Constant" : "Identity",
                             constant ? VALUE_NONE : from, constant ? from : VALUE_NONE,
                             to, err);
        im->g.outputs[i] = to;
    }
    return status;
}

int import_map(struct import *im, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < im->g.n_nodes; i++)
        status = map_one(im, im->g.nodes[i], err);
    return status == STRATA_OK && !im->all_refusals ? map_outputs(im, err) : status;
}
