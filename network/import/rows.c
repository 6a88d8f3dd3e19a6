/* SPDX-License-Identifier: Apache-2.0
 *
 * A row applied to a node.
 */
#include "network/import/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "network/import/private.h"

#define NAMES_BYTES 512 /* of a row's fixed attributes */

const struct map_rule *map_find(const char *op, const char *domain)
{
    for (const struct map_table *const *t = map_tables; *t; t++)
        for (size_t i = 0; i < (*t)->n; i++) {
            const struct map_rule *r = &(*t)->rules[i];
            if (strcmp(r->op, op) == 0 && strcmp(r->domain ? r->domain : "", domain) == 0)
                return r;
        }
    return NULL;
}

static void take_fixed(struct mapping *m)
{
    char list[NAMES_BYTES], *rest = list, *pair;
    snprintf(list, sizeof list, "%s", m->rule->fixed ? m->rule->fixed : "");
    while ((pair = strsep(&rest, ","))) {
        char *value = strchr(pair, '=');
        if (!value)
            continue;
        *value++ = '\0';
        section_word(m->g, m->s, arena_text(&m->g->arena, pair, strlen(pair)),
                     arena_text(&m->g->arena, value, strlen(value)));
    }
}

/* The layer's inputs and weights; those at the end that are absent are not given. */
static void take_ports(struct mapping *m)
{
    const char *ports = m->rule->ports ? m->rule->ports : "";
    struct section *s = m->s;
    char kind = '-';
    size_t weight = 0;
    strata_error why = {0};
    const int found = registry_find(m->im->registry, s->type, &s->layer, &why);
    m->g->arena.full |= found == STRATA_ENOMEM;
    if (found != STRATA_OK) {
        map_refuse(m, "%s", why.message);
        return;
    }
    for (int i = 0; i < m->node->n_in; i++) {
        kind = *ports && *ports != '+' ? *ports++ : *ports == '+' ? kind : '-';
        if (kind == 'x')
            section_in(m->g, s, m->node->in[i]);
        else if (kind == 'w' && weight < s->layer->n_weights &&
                 map_constant(m, i, s->layer->weights[weight++].name))
            section_weight(s, s->layer->weights[weight - 1].name, m->node->in[i]);
    }
    while (s->n_in > 0 && s->in[s->n_in - 1] < 0)
        s->n_in--;
}

/* ONNX's outputs are the layer's, as many as there are. */
static void take_outputs(struct mapping *m)
{
    for (int i = 0; i < m->node->n_out; i++)
        map_out(m, i);
}

/* Whether output 0 was given a layer or a value. */
static bool makes(const struct mapping *m)
{
    const struct value *v = m->node->n_out ? graph_value(m->g, m->node->out[0]) : NULL;
    return !v || v->constant || m->n_sections > 0;
}

int map_node(struct mapping *m, strata_error *err)
{
    const struct node *n = m->node;
    m->rule = map_find(n->op, n->domain);
    if (!m->rule && map_custom(m, m->im->registry))
        return arena_status(&m->g->arena, "layers", err);
    if (!m->rule) {
        import_refuse_node(m->im, n, n->op,
                           "no layer for it; a plugin can add one: docs/onnx.md");
        m->refused = true;
        return STRATA_OK;
    }
    if (m->rule->layer) {
        map_section(m, m->rule->layer);
        take_fixed(m);
        if (m->s)
            take_ports(m);
        if (!m->refused)
            map_names(m, m->rule->names);
        take_outputs(m);
    }
    if (m->rule->finish && !m->refused)
        m->rule->finish(m);
    if (!m->refused && !makes(m))
        map_refuse(m, "it lacks an input that it needs");
    return arena_status(&m->g->arena, "layers", err);
}
