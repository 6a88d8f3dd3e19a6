/* SPDX-License-Identifier: Apache-2.0
 *
 * Names to values, attributes to those of the call, calls to the nodes of functions.
 */
#include "network/import/inline.h"

#include <string.h>

#include "network/import/carry/carry.h"

/* ---- names ---------------------------------------------------------------------------
 */

void inline_begin(struct inlining *x, struct import *im, const struct scope *scope,
                  strata_error *err)
{
    *x = (struct inlining){.im = im, .scope = scope, .err = err};
}

static void put_name(struct inlining *x, struct names *map, const char *name, int value)
{
    if (names_put(map, name, value, x->err) != STRATA_OK)
        x->im->g.arena.full = true;
}

void inline_name(struct inlining *x, const char *name, int value)
{
    if (!*name)
        return;
    if (names_get(&x->index, name) >= 0)
        import_refuse(x->im, NULL, "'%s%s' is made twice; a name has one value",
                      x->scope->prefix, name);
    else
        put_name(x, &x->index, name, value + 1);
}

int inline_find(const struct inlining *x, const char *name)
{
    const int slot = names_get(&x->index, name);
    return slot > 0 ? slot - 1 : VALUE_NONE;
}

int inline_value(struct import *im, const struct scope *scope, const char *name)
{
    struct graph *g = &im->g;
    return graph_add_value(
        g, *scope->prefix ? arena_print(&g->arena, "%s%s", scope->prefix, name) : name);
}

void inline_constant(struct import *im, int value, const struct onnx_tensor *t)
{
    struct value *v = graph_value(&im->g, value);
    if (!v)
        return;
    carry_constant(&im->g, value, t);
    if (v->dtype >= 0)
        return;
    v->refused = true;
    import_refuse(im, NULL, "tensor '%s' has elements of type %s; Strata has none",
                  v->name, onnx_type_name(t->type));
}

void inline_results(struct inlining *x, const struct inline_port *results, size_t n)
{
    x->results = results;
    x->n_results = n;
    for (size_t i = 0; i < n; i++) {
        struct value *v = graph_value(&x->im->g, results[i].value);
        if (v)
            v->node = NULL;
        if (v && names_get(&x->asked, results[i].name) < 0)
            put_name(x, &x->asked, results[i].name, (int)i);
    }
}

/* What a node makes by that name. */
static int make_value(struct inlining *x, const char *name)
{
    if (!*name)
        return VALUE_NONE;
    if (x->forward)
        return inline_find(x, name);
    const int asked = names_get(&x->asked, name);
    const int value =
        asked >= 0 ? x->results[asked].value : inline_value(x->im, x->scope, name);
    inline_name(x, name, value);
    return value;
}

void inline_forward(struct inlining *x, const struct onnx_node *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i].n_outputs; k++)
            if (*nodes[i].outputs[k])
                make_value(x, nodes[i].outputs[k]);
    x->forward = true;
}

void inline_end(struct inlining *x)
{
    struct graph *g = &x->im->g;
    for (size_t i = 0; i < x->n_results; i++) {
        const char *name = x->results[i].name;
        const int to = x->results[i].value;
        int from = inline_find(x, name);
        if (to < 0 || from == to)
            continue;
        if (from >= 0) {
            graph_add_node(g, "Identity", &from, 1, &to, 1);
            continue;
        }
        import_refuse(x->im, NULL, "output '%s%s' is made by no node", x->scope->prefix,
                      name);
        g->values[to].refused = true;
    }
    names_free(&x->index);
    names_free(&x->asked);
}

/* ---- what a node's graphs read from around it ----------------------------------------
 */

struct level {
    struct names made;
    const struct level *outer;
};

struct capture {
    struct inlining *x;
    struct names seen;
    const char **names;
    int *values;
    size_t n, names_capacity, values_capacity;
};

static void note_made(struct inlining *x, struct level *l, const char *name)
{
    if (*name && names_get(&l->made, name) < 0)
        put_name(x, &l->made, name, 0);
}

static void note_read(struct capture *c, const struct level *l, const char *name)
{
    struct arena *a = &c->x->im->g.arena;
    for (; l; l = l->outer)
        if (names_get(&l->made, name) >= 0)
            return;
    if (!*name || names_get(&c->x->index, name) < 0 || names_get(&c->seen, name) >= 0)
        return;
    const char **names =
        arena_grow(a, c->names, &c->names_capacity, c->n, sizeof(const char *));
    int *values = arena_grow(a, c->values, &c->values_capacity, c->n, sizeof *values);
    if (!names || !values)
        return;
    c->names = names;
    c->values = values;
    names[c->n] = name;
    values[c->n++] = inline_find(c->x, name);
    put_name(c->x, &c->seen, name, 0);
}

static void capture_graph(struct capture *c, const struct onnx_graph *graph,
                          const struct level *outer);

static void capture_attribute(struct capture *c, const struct onnx_attribute *a,
                              const struct level *outer)
{
    const size_t n = a->kind == ONNX_A_GRAPH ? 1 : a->kind == ONNX_A_GRAPHS ? a->n : 0;
    for (size_t i = 0; i < n; i++)
        capture_graph(c, &a->graphs[i], outer);
}

/* The reader bounds how deep graphs are in each other. */
static void capture_graph(struct capture *c, const struct onnx_graph *graph,
                          const struct level *outer)
{
    struct level l = {.outer = outer};
    for (size_t i = 0; i < graph->n_inputs; i++)
        note_made(c->x, &l, graph->inputs[i].name);
    for (size_t i = 0; i < graph->n_initializers; i++)
        note_made(c->x, &l, graph->initializers[i].name);
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < graph->nodes[i].n_outputs; k++)
            note_made(c->x, &l, graph->nodes[i].outputs[k]);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct onnx_node *n = &graph->nodes[i];
        for (size_t k = 0; k < n->n_inputs; k++)
            note_read(c, &l, n->inputs[k]);
        for (size_t k = 0; k < n->n_attributes; k++)
            capture_attribute(c, &n->attributes[k], &l);
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        note_read(c, &l, graph->outputs[i].name);
    names_free(&l.made);
}

static void capture_node(struct inlining *x, struct node *n)
{
    struct capture c = {.x = x};
    for (size_t i = 0; i < n->n_attributes; i++)
        capture_attribute(&c, &n->attributes[i], NULL);
    names_free(&c.seen);
    n->captured = c.names;
    n->n_captured = (int)c.n;
    for (size_t i = 0; i < c.n; i++)
        node_set_input(&x->im->g, n, n->n_in, c.values[i]);
}

/* ---- nodes ---------------------------------------------------------------------------
 */

static const struct onnx_attribute *find_attribute(const struct onnx_attribute *all,
                                                   size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

/* The node's attributes, where those of its function stand for some; *n of them. */
static struct onnx_attribute *substitute(struct inlining *x, const struct onnx_node *from,
                                         size_t *n)
{
    const struct scope *s = x->scope;
    struct onnx_attribute *all =
        arena_get(&x->im->g.arena, from->n_attributes, sizeof *all);
    *n = 0;
    for (size_t i = 0; all && i < from->n_attributes; i++) {
        const struct onnx_attribute *a = &from->attributes[i];
        const struct onnx_attribute *given = a;
        if (*a->reference && s->function) {
            given = find_attribute(s->attributes, s->n_attributes, a->reference);
            if (!given)
                given = find_attribute(s->function->defaults, s->function->n_defaults,
                                       a->reference);
        }
        if (!given || (*given->reference && given == a))
            continue; /* absent in the call */
        all[*n] = *given;
        all[(*n)++].name = a->name;
    }
    return all;
}

static const char *plain_domain(const char *domain)
{
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static int64_t find_opset(const struct onnx_opset *all, size_t n, const char *domain)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(plain_domain(all[i].domain), domain) == 0)
            return all[i].version;
    return 0;
}

static int64_t opset_of(const struct inlining *x, const char *domain)
{
    const struct onnx_model *m = x->im->model;
    const int64_t own = find_opset(x->scope->opsets, x->scope->n_opsets, domain);
    const int64_t models = own ? own : find_opset(m->opsets, m->n_opsets, domain);
    return models ? models : 1;
}

/* What a function is found by: a line's end parts them. */
static const char *function_key(struct import *im, const char *domain, const char *name,
                                const char *overload)
{
    return arena_print(&im->g.arena, "%s\n%s\n%s", plain_domain(domain), name, overload);
}

void inline_functions(struct import *im)
{
    for (size_t i = 0; i < im->model->n_functions; i++) {
        const struct onnx_function *f = &im->model->functions[i];
        const char *key = function_key(im, f->domain, f->name, f->overload);
        if (key && names_get(&im->functions, key) < 0)
            im->g.arena.full |= names_put(&im->functions, key, (int)i, NULL) != STRATA_OK;
    }
}

static const struct onnx_function *find_function(struct import *im,
                                                 const struct onnx_node *n)
{
    if (im->model->n_functions == 0)
        return NULL;
    const char *key = function_key(im, n->domain, n->op, n->overload);
    const int i = key ? names_get(&im->functions, key) : -1;
    return i >= 0 ? &im->model->functions[i] : NULL;
}

/* What a node is called: by its name, else by what it makes. */
static const char *calling_name(const struct onnx_node *n)
{
    for (size_t i = 0; !*n->name && i < n->n_outputs; i++)
        if (*n->outputs[i])
            return n->outputs[i];
    return *n->name ? n->name : n->op;
}

/* Values that a node reads; false, and refused, where one is made by nothing. */
static bool read_values(struct inlining *x, const struct onnx_node *from, int *in)
{
    for (size_t i = 0; i < from->n_inputs; i++) {
        const char *name = from->inputs[i];
        in[i] = inline_find(x, name);
        if (in[i] >= 0 || !*name || names_get(&x->index, name) >= 0)
            continue;
        import_refuse(x->im, NULL,
                      "node '%s%s' (%s) reads '%s', which no input, no initializer and "
                      "no node%s makes",
                      x->scope->prefix, calling_name(from), from->op, name,
                      x->forward ? "" : " before it");
        return false;
    }
    return true;
}

static void call_function(struct inlining *x, const struct onnx_node *from,
                          const struct onnx_function *f, const int *in, const int *out)
{
    struct arena *a = &x->im->g.arena;
    struct scope *s = arena_get(a, 1, sizeof *s);
    struct inline_port *results = arena_get(a, f->n_outputs, sizeof *results);
    struct inlining y;
    if (!s || !results)
        return;
    *s = (struct scope){.prefix =
                            arena_print(a, "%s%s/", x->scope->prefix, calling_name(from)),
                        .opsets = f->opsets,
                        .n_opsets = f->n_opsets,
                        .function = f,
                        .depth = x->scope->depth + 1};
    s->attributes = substitute(x, from, &s->n_attributes);
    if (!s->prefix || !s->attributes)
        return;
    inline_begin(&y, x->im, s, x->err);
    for (size_t i = 0; i < f->n_inputs; i++)
        inline_name(&y, f->inputs[i], i < from->n_inputs ? in[i] : VALUE_NONE);
    for (size_t i = 0; i < f->n_outputs; i++)
        results[i] = (struct inline_port){f->outputs[i],
                                          i < from->n_outputs ? out[i] : VALUE_NONE};
    inline_results(&y, results, f->n_outputs);
    inline_nodes(&y, f->nodes, f->n_nodes);
    inline_end(&y);
}

/* Whether the function can be called so. */
static bool may_call(struct inlining *x, const struct onnx_node *from,
                     const struct onnx_function *f)
{
    const char *name = calling_name(from);
    if (x->scope->depth >= INLINE_DEPTH) {
        import_refuse(x->im, NULL,
                      "functions call each other more than %d deep, '%s' too",
                      INLINE_DEPTH, from->op);
        x->im->n_inlined = INLINE_NODES + 1; /* there may be many more such calls */
    } else if (from->n_inputs > f->n_inputs || from->n_outputs > f->n_outputs)
        import_refuse(x->im, NULL,
                      "node '%s%s' (%s) has %zu inputs and %zu outputs; the function "
                      "has %zu and %zu",
                      x->scope->prefix, name, from->op, from->n_inputs, from->n_outputs,
                      f->n_inputs, f->n_outputs);
    else
        return true;
    return false;
}

static void add_node(struct inlining *x, const struct onnx_node *from, const int *in,
                     const int *out)
{
    struct graph *g = &x->im->g;
    struct node *n =
        graph_add_node(g, from->op, in, (int)from->n_inputs, out, (int)from->n_outputs);
    if (!n)
        return;
    n->name = *x->scope->prefix && *from->name
                  ? arena_print(&g->arena, "%s%s", x->scope->prefix, from->name)
                  : from->name;
    n->domain = plain_domain(from->domain);
    n->version = opset_of(x, n->domain);
    n->scope = x->scope;
    n->attributes = substitute(x, from, &n->n_attributes);
    if (n->attributes && n->name)
        capture_node(x, n);
}

/* Whether a further node is allowed; one refusal says that it is not. */
static bool count_node(struct import *im)
{
    if (im->n_inlined++ < INLINE_NODES)
        return true;
    import_refuse(im, NULL,
                  "the model has more than %d nodes with its functions in place",
                  INLINE_NODES);
    return false;
}

static void load_node(struct inlining *x, const struct onnx_node *from)
{
    struct graph *g = &x->im->g;
    const struct onnx_function *f = find_function(x->im, from);
    int *in = arena_get(&g->arena, from->n_inputs + from->n_outputs, sizeof *in);
    if (!in || !count_node(x->im))
        return;
    int *out = in + from->n_inputs;
    bool good = read_values(x, from, in);
    for (size_t i = 0; i < from->n_outputs; i++)
        out[i] = make_value(x, from->outputs[i]);
    good = good && (!f || may_call(x, from, f));
    if (good && f)
        call_function(x, from, f, in, out);
    else if (good)
        add_node(x, from, in, out);
    for (size_t i = 0; !good && i < from->n_outputs; i++)
        if (out[i] >= 0)
            g->values[out[i]].refused = true;
}

void inline_nodes(struct inlining *x, const struct onnx_node *nodes, size_t n)
{
    for (size_t i = 0; i < n && x->im->n_inlined <= INLINE_NODES; i++)
        load_node(x, &nodes[i]);
}

const struct scope *inline_scope(struct import *im, const struct node *n,
                                 const char *more)
{
    struct arena *a = &im->g.arena;
    struct scope *s = arena_copy(a, n->scope, sizeof *s);
    const char *name = n->name;
    for (int i = 0; !*name && i < n->n_out; i++)
        if (n->out[i] >= 0)
            name = im->g.values[n->out[i]].name;
    if (s)
        s->prefix = arena_print(a, "%s/%s", *name ? name : n->op, more);
    return s && s->prefix ? s : NULL;
}
