/* SPDX-License-Identifier: Apache-2.0
 *
 * The file's graph as values and nodes: initializers become constants, inputs get the
 * dims that the model or the options say.
 */
#include "network/import/cache/cache.h"
#include "network/import/inline.h"

#include <string.h>

#include "network/network.h"

#define IR_OLDEST 3 /* version that is known */

static const struct scope file_scope = {.prefix = ""};

static void load_constant(struct inlining *x, const char *name,
                          const struct onnx_tensor *t)
{
    const int value = inline_value(x->im, x->scope, name);
    inline_name(x, name, value);
    inline_constant(x->im, value, t);
}

static const struct import_shape *find_shape(const struct import_options *o,
                                             const char *name)
{
    for (size_t i = 0; i < o->n_shapes; i++)
        if (strcmp(o->shapes[i].name, name) == 0)
            return &o->shapes[i];
    return NULL;
}

static const struct onnx_tensor *find_constant(const struct import_options *o,
                                               const char *name)
{
    for (size_t i = 0; i < o->n_constants; i++)
        if (strcmp(o->constants[i].name, name) == 0)
            return o->constants[i].tensor;
    return NULL;
}

/* The size that a dim is given that is no symbol of the network; -1: none. */
static int64_t given_size(const struct import *im, const struct onnx_dim *dim)
{
    const struct import_options *o = &im->options;
    for (size_t i = 0; i < o->n_symbols; i++)
        if (*dim->symbol && strcmp(o->symbols[i].name, dim->symbol) == 0 &&
            o->symbols[i].n == 1)
            return o->symbols[i].values[0];
    return -1;
}

/* The dims of an input: given, the model's, or those that its symbols are given. */
static void load_dims(struct inlining *x, const struct onnx_value *in, struct value *v)
{
    const struct import_shape *given = find_shape(&x->im->options, in->name);
    v->rank = given ? given->rank : in->rank;
    if (v->rank < 0)
        import_refuse(x->im, NULL, "input '%s' has no rank: --shape %s=1x...", in->name,
                      in->name);
    for (int d = 0; d < v->rank; d++) {
        const struct onnx_dim *dim = &in->dims[d];
        const bool free = !given && dim->value < 0;
        const int symbol = free ? import_find_symbol(x->im, dim, d == 0) : -1;
        v->symbols[d] = (int8_t)(symbol + 1);
        v->dims[d] = given         ? given->dims[d]
                     : symbol >= 0 ? x->im->symbols[symbol].value
                     : free        ? given_size(x->im, dim)
                                   : dim->value;
        if (v->dims[d] < 0 && *dim->symbol)
            import_refuse(x->im, NULL, "input '%s' has the free dim '%s': --dim %s=N",
                          in->name, dim->symbol, dim->symbol);
        else if (v->dims[d] < 0)
            import_refuse(x->im, NULL, "dim %d of input '%s' is free: --shape %s=1x...",
                          d, in->name, in->name);
    }
    if (v->rank > 0 && network_elements(v->dims, v->rank) < 0)
        v->refused = true;
}

/* INT64 that an INT32 can hold; false: it cannot, or memory is out. */
static bool narrow(struct import *im, struct onnx_tensor *t)
{
    const int64_t *wide = t->data;
    int32_t *data = arena_get(&im->g.arena, (size_t)t->count, sizeof *data);
    for (int64_t i = 0; data && i < t->count; i++) {
        if (wide[i] != (int32_t)wide[i])
            return false;
        data[i] = (int32_t)wide[i];
    }
    t->type = ONNX_INT32;
    t->data = data;
    return data != NULL;
}

/* INT64 that a float holds; false: one does not, or memory is out. */
static bool make_real(struct import *im, struct onnx_tensor *t)
{
    const int64_t *whole = t->data;
    float *data = arena_get(&im->g.arena, (size_t)t->count, sizeof *data);
    for (int64_t i = 0; data && i < t->count; i++) {
        if (whole[i] > 1 << 24 || whole[i] < -(1 << 24))
            return false;
        data[i] = (float)whole[i];
    }
    t->type = ONNX_FLOAT;
    t->data = data;
    return data != NULL;
}

/* Integers that a text or a file gives, as the input has them. */
static bool retype(struct import *im, struct onnx_tensor *t, enum onnx_type wanted)
{
    return t->type == wanted ||
           (t->type == ONNX_INT64 && ((wanted == ONNX_INT32 && narrow(im, t)) ||
                                      (wanted == ONNX_FLOAT && make_real(im, t))));
}

/* What an option says that an input is; one element is a scalar or a list, as the model
 * has it. */
static void load_given(struct inlining *x, const struct onnx_value *in,
                       const struct onnx_tensor *given)
{
    struct onnx_tensor t = *given;
    const bool tensor = in->form == ONNX_TENSOR;
    if (t.count == 1 && (in->rank == 0 || in->rank == 1)) {
        t.rank = in->rank;
        t.dims[0] = 1;
    }
    if (tensor && in->rank >= 0 && in->rank != t.rank)
        import_refuse(x->im, NULL, "--constant %s: it has %d dims; the input has %d",
                      in->name, t.rank, in->rank);
    else if (tensor && !retype(x->im, &t, in->type))
        import_refuse(x->im, NULL,
                      "--constant %s: it has elements of type %s; the input "
                      "has %s",
                      in->name, onnx_type_name(t.type), onnx_type_name(in->type));
    load_constant(x, in->name, &t);
}

static void load_input(struct inlining *x, const struct onnx_value *in)
{
    static const char *const forms[] = {[ONNX_SPARSE] = "a sparse tensor",
                                        [ONNX_SEQUENCE] = "a sequence",
                                        [ONNX_MAP] = "a map",
                                        [ONNX_OPTIONAL] = "an optional value",
                                        [ONNX_UNTYPED] = "of no type"};
    struct import *im = x->im;
    const struct onnx_tensor *constant = find_constant(&im->options, in->name);
    if (graph_value(&im->g, inline_find(x, in->name)))
        return; /* an initializer: listed as an input before IR 4, a default since */
    if (constant) {
        load_given(x, in, constant);
        return;
    }
    const int value = inline_value(im, x->scope, in->name);
    struct value *v = graph_value(&im->g, value);
    if (!v)
        return;
    inline_name(x, in->name, value);
    im->g.inputs[im->g.n_inputs++] = value;
    v->dtype = onnx_type_carrier(in->type);
    v->carried = onnx_type_core(in->type) < 0 ? in->type : ONNX_UNDEFINED;
    if (in->form != ONNX_TENSOR)
        import_refuse(im, NULL, "input '%s' is %s; Strata has tensors", in->name,
                      forms[in->form]);
    else if (v->dtype < 0)
        import_refuse(im, NULL, "input '%s' has elements of type %s; Strata has none",
                      in->name, onnx_type_name(in->type));
    else
        load_dims(x, in, v);
    v = graph_value(&im->g, value);
    v->refused |= v->dtype < 0 || v->rank < 0;
}

static void check_version(struct import *im)
{
    const struct onnx_model *m = im->model;
    if (m->ir_version < IR_OLDEST)
        import_refuse(im, NULL,
                      "IR version %lld is older than %d; onnx.version_converter or a "
                      "newer exporter can write the model anew",
                      (long long)m->ir_version, IR_OLDEST);
}

static bool is_listed(const int *values, size_t n, int value)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] == value)
            return true;
    return false;
}

static void load_outputs(struct inlining *x, const struct onnx_graph *from)
{
    struct graph *g = &x->im->g;
    if (from->n_outputs == 0)
        import_refuse(x->im, NULL, "the model has no outputs; a network has");
    for (size_t i = 0; i < from->n_outputs; i++) {
        const int value = inline_find(x, from->outputs[i].name);
        if (value >= 0 && is_listed(g->outputs, g->n_outputs, value))
            log_line(STRATA_LOG_WARNING,
                     "%s: output '%s' stands twice, and once in the network",
                     x->im->model->path, from->outputs[i].name);
        else if (value >= 0)
            g->outputs[g->n_outputs++] = value;
        else
            import_refuse(x->im, NULL, "output '%s' is made by no node",
                          from->outputs[i].name);
    }
}

int import_load(struct import *im, strata_error *err)
{
    const struct onnx_graph *from = &im->model->graph;
    struct graph *g = &im->g;
    struct inlining x;
    g->name = im->options.name ? im->options.name : from->name;
    g->inputs = arena_get(&g->arena, from->n_inputs + 1, sizeof *g->inputs);
    g->outputs = arena_get(&g->arena, from->n_outputs + 1, sizeof *g->outputs);
    if (!g->inputs || !g->outputs)
        return arena_status(&g->arena, "a model", err);
    check_version(im);
    inline_functions(im);
    inline_begin(&x, im, &file_scope, err);
    for (size_t i = 0; i < from->n_initializers; i++) {
        const struct onnx_tensor *own = &from->initializers[i], *given;
        given = find_constant(&im->options, own->name); /* an input with a default */
        load_constant(&x, own->name, given ? given : own);
    }
    for (size_t i = 0; i < from->n_inputs; i++)
        load_input(&x, &from->inputs[i]);
    cache_load(im);
    inline_forward(&x, from->nodes, from->n_nodes);
    inline_nodes(&x, from->nodes, from->n_nodes);
    load_outputs(&x, from);
    inline_end(&x);
    if (from->n_sparse)
        import_refuse(im, NULL, "%zu initializers are sparse tensors", from->n_sparse);
    const int status = arena_status(&g->arena, "a model", err);
    return status == STRATA_OK ? graph_sort(g, err) : status;
}
