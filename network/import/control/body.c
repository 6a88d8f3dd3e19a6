/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs in attributes, put in place and folded: mutual recursion with fold.c, which
 * comes here again for the operators in them. And what the operators' outputs are.
 */
#include "network/import/control/control.h"

#include "io/weights/weights.h"

/* ---- graphs in attributes ------------------------------------------------------------
 */

bool body_open(struct body *b, struct import *im, struct node *n, const char *name,
               int n_in, int n_out)
{
    const struct onnx_attribute *a = node_attribute(n, name);
    *b = (struct body){.im = im, .node = n};
    if (!a || a->kind != ONNX_A_GRAPH || !n->scope) {
        import_refuse_node(im, n, NULL, "'%s' must be a graph", name);
        return false;
    }
    b->graph = a->graphs;
    if (b->graph->n_inputs != (size_t)n_in ||
        (n_out >= 0 && b->graph->n_outputs != (size_t)n_out)) {
        import_refuse_node(im, n, NULL,
                           "'%s' has %zu inputs and %zu outputs, which do not fit the "
                           "node's %d and %d",
                           name, b->graph->n_inputs, b->graph->n_outputs,
                           control_inputs(n), n->n_out);
        return false;
    }
    const struct scope *scope = inline_scope(im, n, "");
    const size_t count = b->graph->n_initializers;
    b->constants = arena_get(&im->g.arena, count, sizeof *b->constants);
    for (size_t i = 0; scope && b->constants && i < count; i++) {
        const struct onnx_tensor *t = &b->graph->initializers[i];
        b->constants[i] = inline_value(im, scope, t->name);
        inline_constant(im, b->constants[i], t);
    }
    return scope && b->constants;
}

int body_run(struct body *b, const char *more, const int *in, const int *out,
             strata_error *err)
{
    struct import *im = b->im;
    const struct onnx_graph *graph = b->graph;
    const struct node *n = b->node;
    const size_t first = im->g.n_nodes;
    const struct scope *scope = inline_scope(im, n, more);
    struct inline_port *results =
        arena_get(&im->g.arena, graph->n_outputs, sizeof *results);
    struct inlining x;
    if (!scope || !results)
        return arena_status(&im->g.arena, "a graph", err);
    inline_begin(&x, im, scope, err);
    for (int i = 0; i < n->n_captured; i++)
        inline_name(&x, n->captured[i], n->in[control_inputs(n) + i]);
    for (size_t i = 0; i < graph->n_inputs; i++)
        inline_name(&x, graph->inputs[i].name, in[i]);
    for (size_t i = 0; i < graph->n_initializers; i++)
        if (inline_find(&x, graph->initializers[i].name) < 0)
            inline_name(&x, graph->initializers[i].name, b->constants[i]);
    for (size_t i = 0; i < graph->n_outputs; i++)
        results[i] = (struct inline_port){graph->outputs[i].name, out[i]};
    inline_results(&x, results, graph->n_outputs);
    inline_nodes(&x, graph->nodes, graph->n_nodes);
    inline_end(&x);
    const int status = arena_status(&im->g.arena, "a graph", err);
    return status == STRATA_OK ? import_fold_from(im, first, err) : status;
}

bool body_count(struct body *b, size_t first)
{
    const size_t n = b->im->g.n_nodes - first;
    b->im->n_unrolled += n ? n : 1;
    if (b->im->n_unrolled <= CONTROL_NODES)
        return true;
    import_refuse_node(b->im, b->node, NULL,
                       "the model's loops are more than %d nodes one after the other",
                       CONTROL_NODES);
    return false;
}

/* ---- ports ---------------------------------------------------------------------------
 */

int control_inputs(const struct node *n)
{
    return n->n_in - n->n_captured;
}

bool control_integer(struct import *im, struct node *n, int value, const char *what,
                     int64_t *out)
{
    const struct value *v = graph_value(&im->g, value);
    if (v && v->constant && value_count(v) == 1) {
        *out = value_integer(v, 0);
        return true;
    }
    if (v && v->counted) {
        import_refuse_node(im, n, NULL,
                           "%s hangs on how many rows values tell (of a NonZero or a "
                           "NonMaxSuppression), and has to be constant: export the "
                           "network up to there, as to boxes and scores, and do the rest "
                           "behind it (docs/onnx.md)",
                           what);
        return false;
    }
    const char *origin = v ? import_want(im, v) : NULL;
    if (v && *v->name && origin)
        import_refuse_node(im, n, NULL,
                           "%s is not constant; it is '%s': give --constant %s=FILE, "
                           "where FILE may be a number, true or false",
                           what, v->name, origin);
    else
        import_refuse_node(im, n, NULL,
                           v && *v->name ? "%s is not constant; it is '%s': give "
                                           "--constant NAME=FILE for what it comes from"
                                         : "%s is not constant; it hangs on values%s",
                           what, v ? v->name : "");
    return false;
}

static bool has_output(const struct node *n, int i)
{
    return i < n->n_out && n->out[i] >= 0;
}

void control_give(struct import *im, struct node *n, int i, int value)
{
    const struct value *v = graph_value(&im->g, value);
    if (!has_output(n, i) || !v)
        return;
    if (v->sequence)
        control_give_list(im, n, i, v->sequence->values, v->sequence->n);
    else
        graph_add_node(&im->g, "Identity", &value, 1, &n->out[i], 1);
}

void control_give_integer(struct import *im, struct node *n, int i, int dtype, int64_t v)
{
    void *data = arena_get(&im->g.arena, 1, sizeof v);
    if (!has_output(n, i) || !data ||
        weights_convert(data, dtype, &v, WEIGHT_I64, 1, NULL) != STRATA_OK)
        return;
    struct value *out = graph_value(&im->g, n->out[i]);
    out->dtype = dtype;
    out->rank = 0;
    out->constant = true;
    out->data = data;
}

void control_give_list(struct import *im, struct node *n, int i, const int *values,
                       int n_values)
{
    struct sequence *list = arena_get(&im->g.arena, 1, sizeof *list);
    if (!has_output(n, i) || !list)
        return;
    list->n = n_values;
    list->values = arena_get(&im->g.arena, (size_t)n_values, sizeof *values);
    if (!list->values)
        return;
    for (int k = 0; k < n_values; k++) {
        list->values[k] = values[k];
        im->g.values[values[k]].readers++;
    }
    im->g.values[n->out[i]].sequence = list;
}

/* A constant without elements, as the file says what it would have been. */
static void give_empty(struct import *im, struct node *n, int i, int64_t axis,
                       const struct onnx_value *like)
{
    struct value *out = graph_value(&im->g, n->out[i]);
    const int rank = like ? like->rank + 1 : 0;
    bool known = like && like->rank >= 0 && rank <= STRATA_MAX_RANK &&
                 onnx_type_core(like->type) >= 0;
    const int64_t at = axis < 0 ? axis + rank : axis;
    for (int d = 0; known && d < rank; d++) {
        out->dims[d] = d == at ? 0 : like->dims[d - (d > at)].value;
        known = out->dims[d] >= 0;
    }
    if (!known) {
        import_refuse_node(im, n, NULL,
                           "output %d joins nothing, and its dims are not said", i);
        return;
    }
    out->dtype = onnx_type_core(like->type);
    out->rank = rank;
    out->constant = true;
}

void control_stack(struct import *im, struct node *n, int i, const int *values,
                   int n_values, int64_t axis, const struct onnx_value *like)
{
    struct graph *g = &im->g;
    int *parts = arena_get(&g->arena, (size_t)n_values, sizeof *parts);
    if (!has_output(n, i) || !parts)
        return;
    if (n_values == 0) {
        give_empty(im, n, i, axis, like);
        return;
    }
    for (int k = 0; k < n_values; k++) {
        const int axes = graph_add_integers(g, 1, &axis, 1);
        parts[k] = upgrade_two(im, n, "Unsqueeze", values[k], axes);
    }
    struct node *joined = graph_add_node(g, "Concat", parts, n_values, &n->out[i], 1);
    node_set_integer(g, joined, "axis", axis);
}

int control_pick(struct import *im, struct node *n, int value, int64_t i, int64_t axis)
{
    const int in[] = {value, graph_add_integers(&im->g, 0, &i, 1)};
    struct node *made = upgrade_add(im, n, "Gather", in, 2);
    node_set_integer(&im->g, made, "axis", axis);
    return upgrade_value(made);
}
