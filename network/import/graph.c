/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph's parts, and its order.
 */
#include "network/import/graph.h"

#include <string.h>

#include "formats/format.h"
#include "io/weights/weights.h"

struct value *graph_value(const struct graph *g, int value)
{
    return value >= 0 ? &g->values[value] : NULL;
}

int graph_add_value(struct graph *g, const char *name)
{
    struct value *all = arena_grow(&g->arena, g->values, &g->values_capacity, g->n_values,
                                   sizeof *g->values);
    if (!all)
        return VALUE_NONE;
    g->values = all;
    all[g->n_values] = (struct value){.name = name,
                                      .dtype = -1,
                                      .rank = -1,
                                      .given = VALUE_NONE,
                                      .same = VALUE_NONE,
                                      .whole = VALUE_NONE,
                                      .factors = VALUE_NONE};
    return (int)g->n_values++;
}

int graph_add_constant(struct graph *g, const char *name, int dtype, int rank,
                       const int64_t *dims, const void *data)
{
    const int value = graph_add_value(g, name);
    struct value *v = graph_value(g, value);
    if (!v)
        return VALUE_NONE;
    v->dtype = dtype;
    v->rank = rank;
    for (int d = 0; d < rank; d++)
        v->dims[d] = dims[d];
    v->constant = true;
    v->data = data;
    return value;
}

int graph_add_integers(struct graph *g, int rank, const int64_t *v, int64_t n)
{
    const int64_t *copy = arena_copy(&g->arena, v, (size_t)n * sizeof *v);
    return copy ? graph_add_constant(g, "", STRATA_INT64, rank, &n, copy) : VALUE_NONE;
}

struct node *graph_add_node(struct graph *g, const char *op, const int *in, int n_in,
                            const int *out, int n_out)
{
    struct node **all = arena_grow(&g->arena, g->nodes, &g->nodes_capacity, g->n_nodes,
                                   sizeof(struct node *));
    struct node *n = all ? arena_get(&g->arena, 1, sizeof *n) : NULL;
    int *ports = n ? arena_get(&g->arena, (size_t)(n_in + n_out), sizeof *ports) : NULL;
    if (!ports)
        return NULL;
    *n = (struct node){.name = "",
                       .op = op,
                       .domain = "",
                       .version = GRAPH_OPSET,
                       .n_in = n_in,
                       .n_out = n_out};
    n->in = ports;
    n->out = ports + n_in;
    for (int i = 0; i < n_in; i++) {
        struct value *v = graph_value(g, n->in[i] = in[i]);
        if (v)
            v->readers++;
    }
    for (int i = 0; i < n_out; i++) {
        struct value *v = graph_value(g, n->out[i] = out[i]);
        if (v)
            v->node = n;
    }
    g->nodes = all;
    g->nodes[g->n_nodes++] = n;
    return n;
}

/* ---- order ---------------------------------------------------------------------------
 */

enum { MARK_NEW, MARK_OPEN, MARK_DONE };

/* The next producer that n waits for, or NULL. */
static struct node *next_producer(struct graph *g, struct node *n)
{
    while (n->port < n->n_in) {
        const struct value *v = graph_value(g, n->in[n->port++]);
        if (v && v->node && !v->constant && v->node->mark != MARK_DONE)
            return v->node;
    }
    return NULL;
}

/* Append a node and all that it needs to `order`. A node of a circle, or NULL. */
static const struct node *append_node(struct graph *g, struct node *node,
                                      struct node **stack, struct node **order, size_t *n)
{
    size_t depth = 0;
    if (node->mark == MARK_DONE)
        return NULL;
    for (stack[depth++] = node; depth > 0;) {
        struct node *top = stack[depth - 1], *next = next_producer(g, top);
        top->mark = MARK_OPEN;
        if (next && next->mark == MARK_OPEN)
            return next;
        if (next) {
            stack[depth++] = next;
            continue;
        }
        top->mark = MARK_DONE;
        order[(*n)++] = top;
        depth--;
    }
    return NULL;
}

static void count_readers(struct graph *g)
{
    for (size_t i = 0; i < g->n_values; i++)
        g->values[i].readers = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] >= 0)
                g->values[g->nodes[i]->in[k]].readers++;
    for (size_t i = 0; i < g->n_outputs; i++)
        g->values[g->outputs[i]].readers++;
}

int graph_sort(struct graph *g, strata_error *err)
{
    struct node **stack = arena_get(&g->arena, g->n_nodes, sizeof(struct node *));
    struct node **order = arena_get(&g->arena, g->n_nodes, sizeof(struct node *));
    const struct node *bad = NULL;
    size_t n = 0;
    if (!stack || !order)
        return arena_status(&g->arena, "the order of nodes", err);
    for (size_t i = 0; i < g->n_nodes; i++)
        g->nodes[i]->mark = g->nodes[i]->port = 0;
    for (size_t i = 0; i < g->n_outputs && !bad; i++) {
        const struct value *v = &g->values[g->outputs[i]];
        if (v->node && !v->constant)
            bad = append_node(g, v->node, stack, order, &n);
    }
    if (bad)
        return error_set(err, STRATA_EPARSE, "node '%s' (%s) reads what it makes",
                         bad->name, bad->op);
    if (n > 0)
        memcpy(g->nodes, order, n * sizeof(struct node *));
    g->n_nodes = n;
    count_readers(g);
    return STRATA_OK;
}

/* ---- values of constants -------------------------------------------------------------
 */

int64_t value_count(const struct value *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->rank; d++)
        n *= v->dims[d];
    return n;
}

bool value_is_exact(const struct value *v)
{
    return v->exact && !v->constant;
}

int64_t value_integer(const struct value *v, int64_t i)
{
    const enum weight_dtype from = weight_dtype_of(v->dtype);
    const char *at = (const char *)v->data + (size_t)i * weight_dtype_size(from);
    int64_t out = 0;
    if (v->data && i >= 0 && i < value_count(v))
        weights_convert(&out, STRATA_INT64, at, from, 1, NULL);
    return out;
}

double value_real(const struct value *v, int64_t i)
{
    const enum weight_dtype from = weight_dtype_of(v->dtype);
    const char *at = (const char *)v->data + (size_t)i * weight_dtype_size(from);
    double out = 0;
    if (v->data && i >= 0 && i < value_count(v))
        weights_convert(&out, STRATA_FP64, at, from, 1, NULL);
    return out;
}

bool graph_is_real(int dtype)
{
    return dtype_is_free(dtype) || dtype == STRATA_FP64 || dtype == STRATA_E4M3 ||
           dtype == STRATA_E5M2;
}

/* ---- refusals ------------------------------------------------------------------------
 */

void node_refuse(struct graph *g, const struct node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            g->values[n->out[i]].refused = true;
}

bool node_is_refused(const struct graph *g, const struct node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && g->values[n->out[i]].refused)
            return true;
    return false;
}

/* ---- attributes ----------------------------------------------------------------------
 */

const struct onnx_attribute *node_attribute(const struct node *n, const char *name)
{
    for (size_t i = 0; i < n->n_attributes; i++)
        if (strcmp(n->attributes[i].name, name) == 0)
            return &n->attributes[i];
    return NULL;
}

int64_t node_integer(const struct node *n, const char *name, int64_t otherwise)
{
    const struct onnx_attribute *a = node_attribute(n, name);
    return a && a->kind == ONNX_A_INTEGER ? a->integer : otherwise;
}

double node_real(const struct node *n, const char *name, double otherwise)
{
    const struct onnx_attribute *a = node_attribute(n, name);
    return a && a->kind == ONNX_A_REAL ? a->real : otherwise;
}

const char *node_text(const struct node *n, const char *name, const char *otherwise)
{
    const struct onnx_attribute *a = node_attribute(n, name);
    return a && a->kind == ONNX_A_TEXT ? a->text : otherwise;
}

int64_t node_integers(const struct node *n, const char *name, int64_t *out, int room)
{
    const struct onnx_attribute *a = node_attribute(n, name);
    if (!a || a->kind != ONNX_A_INTEGERS)
        return -1;
    for (size_t i = 0; i < a->n && i < (size_t)room; i++)
        out[i] = a->integers[i];
    return (int64_t)a->n;
}

void node_set(struct graph *g, struct node *n, struct onnx_attribute a)
{
    struct onnx_attribute *all;
    if (!n)
        return;
    node_remove(n, a.name);
    if (!(all = arena_get(&g->arena, n->n_attributes + 1, sizeof *all)))
        return;
    if (n->n_attributes)
        memcpy(all, n->attributes, n->n_attributes * sizeof *all);
    all[n->n_attributes++] = a;
    n->attributes = all;
}

void node_set_integer(struct graph *g, struct node *n, const char *name, int64_t v)
{
    node_set(g, n,
             (struct onnx_attribute){.name = name, .kind = ONNX_A_INTEGER, .integer = v});
}

void node_set_text(struct graph *g, struct node *n, const char *name, const char *v)
{
    node_set(g, n,
             (struct onnx_attribute){
                 .name = name, .kind = ONNX_A_TEXT, .text = v, .text_bytes = strlen(v)});
}

void node_set_real(struct graph *g, struct node *n, const char *name, double v)
{
    node_set(g, n, (struct onnx_attribute){.name = name, .kind = ONNX_A_REAL, .real = v});
}

void node_set_integers(struct graph *g, struct node *n, const char *name,
                       const int64_t *v, size_t count)
{
    const int64_t *copy = arena_copy(&g->arena, v, count * sizeof *v);
    if (copy)
        node_set(
            g, n,
            (struct onnx_attribute){
                .name = name, .kind = ONNX_A_INTEGERS, .integers = copy, .n = count});
}

void node_remove(struct node *n, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->n_attributes; i++)
        if (strcmp(n->attributes[i].name, name) != 0)
            n->attributes[kept++] = n->attributes[i];
    n->n_attributes = kept;
}

void node_set_input(struct graph *g, struct node *n, int i, int value)
{
    struct value *v = graph_value(g, value);
    if (!n)
        return;
    if (v)
        v->readers++;
    int *in = n->in;
    if (i >= n->n_in) {
        if (!(in = arena_get(&g->arena, (size_t)i + 1, sizeof *in)))
            return;
        for (int k = 0; k <= i; k++)
            in[k] = k < n->n_in ? n->in[k] : VALUE_NONE;
        n->in = in;
        n->n_in = i + 1;
    }
    in[i] = value;
}
