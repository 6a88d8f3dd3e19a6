/* SPDX-License-Identifier: Apache-2.0
 *
 * The file's graph as values and nodes: initializers become constants, inputs get the
 * dims that the model or the options say.
 */
#include "network/import/private.h"

#include <string.h>

#include "core/names.h"
#include "network/network.h"

struct loading {
    struct import *im;
    struct names index; /* of values by name */
    strata_error *err;
};

/* The value of a name, made where it is new. */
static int find_value(struct loading *l, const char *name)
{
    if (!*name)
        return VALUE_NONE;
    int value = names_get(&l->index, name);
    if (value >= 0)
        return value;
    value = graph_add_value(&l->im->g, name);
    if (value >= 0 && names_put(&l->index, name, value, l->err) != STRATA_OK)
        l->im->g.arena.full = true;
    return value;
}

static void load_constant(struct loading *l, const char *name,
                          const struct onnx_tensor *t)
{
    struct value *v = graph_value(&l->im->g, find_value(l, name));
    if (!v)
        return;
    v->dtype = onnx_type_core(t->type);
    v->rank = t->rank;
    memcpy(v->dims, t->dims, sizeof v->dims);
    v->constant = true;
    v->data = t->data;
    if (v->dtype < 0) {
        import_refuse(l->im, NULL, "tensor '%s' has elements of type %s; Strata has none",
                      name, onnx_type_name(t->type));
        v->refused = true;
    }
}

static const struct import_shape *find_shape(const struct import_shape *all, size_t n,
                                             const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

/* The dims of an input: given, the model's, or those that its symbols are given. */
static void load_dims(struct loading *l, const struct onnx_value *in, struct value *v)
{
    const struct import_options *o = &l->im->options;
    const struct import_shape *given = find_shape(o->shapes, o->n_shapes, in->name);
    v->rank = given ? given->rank : in->rank;
    if (v->rank < 0)
        import_refuse(l->im, NULL, "input '%s' has no rank: --shape %s=1x...", in->name,
                      in->name);
    for (int d = 0; d < v->rank; d++) {
        const struct onnx_dim *dim = &in->dims[d];
        const struct import_shape *symbol =
            given || !*dim->symbol ? NULL
                                   : find_shape(o->symbols, o->n_symbols, dim->symbol);
        v->dims[d] = given ? given->dims[d] : symbol ? symbol->dims[0] : dim->value;
        if (v->dims[d] < 0 && *dim->symbol)
            import_refuse(l->im, NULL, "input '%s' has the free dim '%s': --dim %s=N",
                          in->name, dim->symbol, dim->symbol);
        else if (v->dims[d] < 0)
            import_refuse(l->im, NULL, "dim %d of input '%s' is free: --shape %s=1x...",
                          d, in->name, in->name);
    }
    if (v->rank > 0 && network_elements(v->dims, v->rank) < 0)
        v->refused = true;
}

static void load_input(struct loading *l, const struct onnx_value *in)
{
    static const char *const forms[] = {[ONNX_SPARSE] = "a sparse tensor",
                                        [ONNX_SEQUENCE] = "a sequence",
                                        [ONNX_MAP] = "a map",
                                        [ONNX_OPTIONAL] = "an optional value",
                                        [ONNX_UNTYPED] = "of no type"};
    struct import *im = l->im;
    const struct import_options *o = &im->options;
    const int value = find_value(l, in->name);
    struct value *v = graph_value(&im->g, value);
    if (!v || v->constant) /* an initializer, which may be listed as an input too */
        return;
    for (size_t i = 0; i < o->n_constants; i++)
        if (strcmp(o->constants[i].name, in->name) == 0) {
            load_constant(l, in->name, o->constants[i].tensor);
            return;
        }
    im->g.inputs[im->g.n_inputs++] = value;
    v->dtype = onnx_type_core(in->type);
    if (in->form != ONNX_TENSOR)
        import_refuse(im, NULL, "input '%s' is %s; Strata has tensors", in->name,
                      forms[in->form]);
    else if (v->dtype < 0)
        import_refuse(im, NULL, "input '%s' has elements of type %s; Strata has none",
                      in->name, onnx_type_name(in->type));
    else
        load_dims(l, in, v);
    v = graph_value(&im->g, value);
    v->refused |= v->dtype < 0 || v->rank < 0;
}

static int64_t opset_of(const struct onnx_model *m, const char *domain)
{
    for (size_t i = 0; i < m->n_opsets; i++)
        if (strcmp(m->opsets[i].domain, domain) == 0)
            return m->opsets[i].version;
    return 1;
}

static void load_node(struct loading *l, const struct onnx_node *from)
{
    struct graph *g = &l->im->g;
    int *ports = arena_get(&g->arena, from->n_inputs + from->n_outputs, sizeof *ports);
    if (!ports)
        return;
    for (size_t i = 0; i < from->n_inputs; i++)
        ports[i] = find_value(l, from->inputs[i]);
    for (size_t i = 0; i < from->n_outputs; i++)
        ports[from->n_inputs + i] = find_value(l, from->outputs[i]);
    struct node *n = graph_add_node(g, from->op, ports, (int)from->n_inputs,
                                    ports + from->n_inputs, (int)from->n_outputs);
    if (!n)
        return;
    n->name = from->name;
    n->domain = strcmp(from->domain, "ai.onnx") == 0 ? "" : from->domain;
    n->version = opset_of(l->im->model, n->domain);
    n->attributes = arena_copy(&g->arena, from->attributes,
                               from->n_attributes * sizeof *n->attributes);
    n->n_attributes = n->attributes ? from->n_attributes : 0;
}

int import_load(struct import *im, strata_error *err)
{
    const struct onnx_graph *from = &im->model->graph;
    struct graph *g = &im->g;
    struct loading l = {.im = im, .err = err};
    g->name = im->options.name ? im->options.name : from->name;
    g->inputs = arena_get(&g->arena, from->n_inputs, sizeof *g->inputs);
    g->outputs = arena_get(&g->arena, from->n_outputs, sizeof *g->outputs);
    if (!g->inputs || !g->outputs)
        return arena_status(&g->arena, "a model", err);
    for (size_t i = 0; i < from->n_initializers; i++)
        load_constant(&l, from->initializers[i].name, &from->initializers[i]);
    for (size_t i = 0; i < from->n_inputs; i++)
        load_input(&l, &from->inputs[i]);
    for (size_t i = 0; i < from->n_nodes; i++)
        load_node(&l, &from->nodes[i]);
    for (size_t i = 0; i < from->n_outputs; i++) {
        const int value = find_value(&l, from->outputs[i].name);
        struct value *v = graph_value(g, value);
        if (v)
            g->outputs[g->n_outputs++] = value;
        if (v && !v->node && !v->constant && v->dtype < 0)
            import_refuse(im, NULL, "output '%s' is made by no node", v->name);
    }
    if (from->n_sparse)
        import_refuse(im, NULL, "%zu initializers are sparse tensors", from->n_sparse);
    names_free(&l.index);
    const int status = arena_status(&g->arena, "a model", err);
    return status == STRATA_OK ? graph_sort(g, err) : status;
}
