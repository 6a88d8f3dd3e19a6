/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as a graph: inputs, nodes, conversions and outputs, with a format on each edge.
 */
#include "tools/explain/explain.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/text.h"

int graph_add_vertex(struct graph *g, struct vertex v, strata_error *err)
{
    int status = STRATA_ENOMEM;
    if (v.title && v.detail && v.hint)
        status = grow(&g->vertices, &g->vertex_capacity, g->n_vertices,
                      sizeof *g->vertices, err);
    if (status == STRATA_OK) {
        g->vertices[g->n_vertices++] = v;
        return STRATA_OK;
    }
    free(v.title);
    free(v.detail);
    free(v.hint);
    return error_no_memory(err, sizeof v, "a drawing");
}

/* From a value's maker to the vertex added last. */
static int add_edge(struct graph *g, const strata_engine *e, const int *maker, int value,
                    strata_error *err)
{
    const struct execution *x = e->execution;
    int status = grow(&g->edges, &g->edge_capacity, g->n_edges, sizeof *g->edges, err);
    if (status == STRATA_OK)
        g->edges[g->n_edges++] =
            (struct edge){maker[value], (int)g->n_vertices - 1, x->values[value].format,
                          x->values[value].desc.rank};
    return status;
}

static int add_node(struct graph *g, const strata_engine *e,
                    const struct execution_step *s, int *maker, strata_error *err)
{
    const struct execution_node *n = &e->execution->nodes[s->node];
    struct vertex v = {.kind = VERTEX_NODE, .cost = s->cost};
    v.title = text_print("%s", n->name);
    v.detail = text_print("%s · %s · %.1f us", n->layer->type->layer.name,
                          n->impl->impl.name, explain_microseconds(s->cost));
    v.hint = text_print("%s", "");
    int status = graph_add_vertex(g, v, err);
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++)
        status = add_edge(g, e, maker, n->in_values[i], err);
    if (n->residual_value >= 0 && status == STRATA_OK)
        status = add_edge(g, e, maker, n->residual_value, err);
    for (int i = 0; i < n->n_out; i++)
        maker[n->out_values[i]] = (int)g->n_vertices - 1;
    return status;
}

/* Why, what forbidding it costs, what would remove it. */
static char *hint_of(const strata_engine *e, const struct explain_reformat *r)
{
    char *out = NULL;
    if (!r)
        return text_print("%s", "");
    char *why = explain_why(e->planner, r), *cost = explain_forbidding(e->planner, r);
    char *remedy = explain_remedy_text(e->planner, r);
    if (why && cost && remedy)
        out = text_print("%s.\n%s.\n%s.", why, cost, remedy);
    free(why);
    free(cost);
    free(remedy);
    return out;
}

/* The label of a value, or -1. */
static int label_of(const strata_engine *e, const struct execution_value *v)
{
    const struct plan_problem *p = &e->planner->model->problem;
    for (int l = 0; l < p->n_labels; l++)
        if (p->labels[l].format == v->format && p->labels[l].pad == v->pad &&
            p->labels[l].stage == v->stage)
            return l;
    return -1;
}

/* Whether a later step adds to the same value: parts of a concatenation join it one by
 * one, and the last stands for all of them. */
static bool joins_later(const strata_engine *e, const struct execution_step *s)
{
    const struct execution *x = e->execution;
    for (const struct execution_step *t = s + 1; t < x->steps + x->n_steps; t++)
        if (t->kind == s->kind && t->to == s->to)
            return true;
    return false;
}

static int add_sources(struct graph *g, const strata_engine *e,
                       const struct execution_step *last, const int *maker,
                       strata_error *err)
{
    int status = STRATA_OK;
    for (const struct execution_step *s = e->execution->steps;
         s <= last && status == STRATA_OK; s++)
        if (s->kind == last->kind && s->to == last->to)
            status = add_edge(g, e, maker, s->from, err);
    return status;
}

static bool is_join(const strata_engine *e, const struct execution_step *s)
{
    const struct execution *x = e->execution;
    return x->values[s->from].tensor != x->values[s->to].tensor;
}

static int add_conversion(struct graph *g, const strata_engine *e,
                          const struct explain *x, const struct execution_step *s,
                          int *maker, strata_error *err)
{
    const struct execution_value *to = &e->execution->values[s->to];
    if (s->kind == STEP_RELABEL && joins_later(e, s))
        return STRATA_OK;
    const struct explain_reformat *r =
        !x ? NULL
           : explain_find(x, e->planner->model->index_of[to->tensor], label_of(e, to));
    bool copy = explain_is_copy(e, s), relabel = s->kind == STEP_RELABEL || copy;
    struct vertex v = {.kind = relabel ? VERTEX_RELABEL : VERTEX_REFORMAT,
                       .cost = s->cost};
    v.title = copy ? text_print("copy · %.1f us", explain_microseconds(s->cost))
              : relabel && is_join(e, s)
                  ? text_print("%s · in place", e->network->tensors[to->tensor].name)
              : relabel
                  ? text_print("re-label · free")
                  : text_print("REFORMAT · %.1f us · %s", explain_microseconds(s->cost),
                               explain_reason_name(s->reason));
    char from[FORMAT_NAME_SIZE];
    snprintf(from, sizeof from, "%s", explain_value_format(e, s->from));
    v.detail = text_print("%s → %s", from, explain_value_format(e, s->to));
    v.hint = hint_of(e, r);
    int status = graph_add_vertex(g, v, err);
    if (status == STRATA_OK)
        status = add_sources(g, e, s, maker, err);
    maker[s->to] = (int)g->n_vertices - 1;
    return status;
}

static int add_binding(struct graph *g, const strata_engine *e,
                       const struct execution_binding *b, int *maker, strata_error *err)
{
    const struct execution_value *value = &e->execution->values[b->value];
    char dims[128];
    tool_dims(dims, sizeof dims, value->desc.dims, value->desc.rank);
    struct vertex v = {.kind = b->is_input ? VERTEX_INPUT : VERTEX_OUTPUT};
    v.title = text_print("%s %s", b->is_input ? "input" : "output", b->name);
    v.detail = text_print("%s · %s", explain_value_format(e, b->value), dims);
    v.hint = text_print("%s", "");
    int status = graph_add_vertex(g, v, err);
    if (b->is_input)
        maker[b->value] = (int)g->n_vertices - 1;
    else if (status == STRATA_OK)
        status = add_edge(g, e, maker, b->value, err);
    return status;
}

int graph_make(struct graph *g, const strata_engine *e, const struct explain *x,
               strata_error *err)
{
    const struct execution *run = e->execution;
    int status = STRATA_OK;
    int *maker = zalloc(run->n_values, sizeof *maker, "a drawing", err);
    if (!maker)
        return STRATA_ENOMEM;
    *g = (struct graph){0};
    for (size_t i = 0; i < run->n_inputs && status == STRATA_OK; i++)
        status = add_binding(g, e, &run->bindings[i], maker, err);
    for (size_t i = 0; i < run->n_steps && status == STRATA_OK; i++) {
        const struct execution_step *s = &run->steps[i];
        status = s->kind == STEP_RUN ? add_node(g, e, s, maker, err)
                                     : add_conversion(g, e, x, s, maker, err);
    }
    for (size_t i = run->n_inputs; i < run->n_bindings && status == STRATA_OK; i++)
        status = add_binding(g, e, &run->bindings[i], maker, err);
    free(maker);
    if (status != STRATA_OK)
        graph_free(g);
    return status;
}

void graph_free(struct graph *g)
{
    for (size_t i = 0; i < g->n_vertices; i++) {
        free(g->vertices[i].title);
        free(g->vertices[i].detail);
        free(g->vertices[i].hint);
    }
    free(g->vertices);
    free(g->edges);
    *g = (struct graph){0};
}
