/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of each node of the model, as JSON.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "network/import/private.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Names of the layers that a node of the model became. */
static json_t *layers_of(const struct import *im, const struct onnx_node *n)
{
    json_t *out = json_array();
    for (size_t i = 0; i < im->n_sections; i++) {
        const struct section *s = im->sections[i];
        bool made = false;
        for (size_t k = 0; s->node && k < n->n_outputs && !made; k++)
            for (int o = 0; o < s->node->n_out && !made; o++)
                made = *n->outputs[k] && s->node->out[o] >= 0 &&
                       strcmp(im->g.values[s->node->out[o]].name, n->outputs[k]) == 0;
        if (made && s->name)
            json_array_append_new(out, json_string(s->name));
    }
    return out;
}

static json_t *node_of(const struct import *im, const struct onnx_node *n)
{
    json_t *layers = layers_of(im, n), *out = json_object();
    json_object_set_new(out, "name", json_string(n->name));
    json_object_set_new(out, "op", json_string(n->op));
    if (n->n_outputs)
        json_object_set_new(out, "output", json_string(n->outputs[0]));
    if (json_array_size(layers) == 0 && im->n_refusals == 0)
        json_object_set_new(out, "gone",
                            json_string("folded, part of another, or read by nobody"));
    json_object_set_new(out, "layers", layers);
    return out;
}

/* Whether a symbol stays in the network, with which sizes, or why not. */
static json_t *symbol_of(const struct symbol *s)
{
    json_t *out = json_object(), *sizes = json_array();
    json_object_set_new(out, "symbol", json_string(s->symbol));
    if (*s->reason) {
        json_array_append_new(sizes, json_integer((json_int_t)s->value));
        json_object_set_new(out, "fixed", json_string(s->reason));
    } else {
        json_object_set_new(out, "profile", json_string(s->name));
        json_object_set_new(out, "least", json_integer((json_int_t)s->least));
        json_object_set_new(out, "most", json_integer((json_int_t)s->most));
        json_object_set_new(out, "step", json_integer((json_int_t)s->step));
        for (size_t i = 0; i < s->n; i++)
            json_array_append_new(sizes, json_integer((json_int_t)s->sizes[i]));
    }
    json_object_set_new(out, "sizes", sizes);
    return out;
}

int import_report(const struct import *im, char **text, size_t *size, strata_error *err)
{
    const struct onnx_graph *g = &im->model->graph;
    json_t *report = json_object(), *nodes = json_array(), *refused = json_array();
    json_t *symbols = json_array();
    for (size_t i = 0; i < g->n_nodes; i++)
        json_array_append_new(nodes, node_of(im, &g->nodes[i]));
    for (size_t i = 0; i < im->n_refusals; i++)
        json_array_append_new(refused, json_string(im->refusals[i].text));
    for (int i = 0; i < im->n_symbols; i++)
        json_array_append_new(symbols, symbol_of(&im->symbols[i]));
    json_object_set_new(report, "symbols", symbols);
    json_object_set_new(report, "nodes", nodes);
    json_object_set_new(report, "refused", refused);
    *text = report ? json_dumps(report, JSON_INDENT(1)) : NULL;
    json_decref(report);
    *size = *text ? strlen(*text) : 0;
    return *text ? STRATA_OK : error_no_memory(err, 0, "a report");
}
