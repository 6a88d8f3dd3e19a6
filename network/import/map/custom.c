/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of a domain that a plugin's namespace is: the layer of that name, with its
 * own attributes. Inputs beyond those it reads are its weights, in their order.
 */
#include "network/import/map.h"

#include <string.h>

static const strata_attr *find_attribute(const struct registry_layer *layer,
                                         const char *name)
{
    for (size_t i = 0; i < layer->n_attrs; i++)
        if (strcmp(layer->attrs[i].name, name) == 0)
            return &layer->attrs[i];
    return NULL;
}

static void take_attributes(struct mapping *m, const struct registry_layer *layer)
{
    for (size_t i = 0; i < m->node->n_attributes && !m->refused; i++) {
        const char *name = m->node->attributes[i].name;
        const strata_attr *a = find_attribute(layer, name);
        if (!a)
            map_refuse(m, "'%s' is no attribute of layer %s", name, layer->full_name);
        else
            map_names(m, arena_print(&m->g->arena, "%s=%s%s", name, name,
                                     a->type == STRATA_BOOL ? "?" : ""));
    }
}

static void take_inputs(struct mapping *m, const struct registry_layer *layer)
{
    const int most = layer->layer.max_in < 0 ? m->node->n_in : layer->layer.max_in;
    for (int i = 0; i < m->node->n_in && i < most; i++)
        map_in(m, i);
    for (int i = most; i < m->node->n_in; i++) {
        const size_t k = (size_t)(i - most);
        if (k >= layer->n_weights)
            map_refuse(m, "%d inputs; layer %s reads %d and has %zu weights",
                       m->node->n_in, layer->full_name, most, layer->n_weights);
        else if (map_constant(m, i, layer->weights[k].name))
            section_weight(m->s, layer->weights[k].name, m->node->in[i]);
    }
}

bool map_custom(struct mapping *m, strata_registry *registry)
{
    const struct registry_layer *layer;
    strata_error why = {0};
    if (!*m->node->domain)
        return false;
    const char *type = arena_print(&m->g->arena, "%s::%s", m->node->domain, m->node->op);
    const int found = type ? registry_find(registry, type, &layer, &why) : STRATA_ENOMEM;
    m->g->arena.full |= found == STRATA_ENOMEM;
    if (found != STRATA_OK)
        return false;
    map_section(m, type);
    take_inputs(m, layer);
    take_attributes(m, layer);
    for (int i = 0; i < m->node->n_out; i++)
        map_out(m, i);
    return true;
}
