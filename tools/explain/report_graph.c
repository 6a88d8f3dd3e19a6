/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph of a report: what an engine file says is drawn without its plugins and
 * without its device. Tensors inside a fused node have no edge.
 */
#include "tools/explain/explain.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* "fp32:nhwc (pads any)" begins with the name of a format. */
static int add_edge(struct graph *g, int from, int to, const char *label, int rank,
                    strata_error *err)
{
    char name[FORMAT_NAME_SIZE];
    struct format f;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(label, " "), label);
    if (from < 0 || to < 0 || format_parse(&f, name, NULL) != STRATA_OK ||
        format_index(f) < 0)
        return STRATA_OK;
    int status = grow(&g->edges, &g->edge_capacity, g->n_edges, sizeof *g->edges, err);
    if (status == STRATA_OK)
        g->edges[g->n_edges++] = (struct edge){from, to, format_index(f), rank};
    return status;
}

/* Vertices in order: tensors nobody computes, nodes, reformats, outputs. */
struct drawing {
    struct graph *g;
    const json_t *report;
    int *node, *reformat; /* vertex of each entry, or -1 */
    strata_error *err;
};

/* Index of the entry whose key has the value; -1: none. */
static int find(const json_t *list, const char *key, const char *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(text_of(json_array_get(list, i), key), value) == 0)
            return (int)i;
    return -1;
}

/* Entry of the node that computes a layer: itself, or the one it is fused into. */
static int running_node(const struct drawing *d, const char *layer)
{
    const json_t *nodes = json_object_get(d->report, "nodes");
    const json_t *fusions = json_object_get(d->report, "fusions");
    for (size_t hop = 0; hop <= json_array_size(fusions); hop++) {
        int at = find(nodes, "name", layer);
        if (at >= 0 &&
            strcmp(text_of(json_array_get(nodes, (size_t)at), "impl"), "(fused)") != 0)
            return at;
        at = find(fusions, "name", layer);
        if (at < 0)
            return -1;
        layer = text_of(json_array_get(fusions, (size_t)at), "into");
    }
    return -1;
}

static int add_nodes(struct drawing *d)
{
    const json_t *nodes = json_object_get(d->report, "nodes");
    int status = STRATA_OK;
    for (size_t i = 0; i < json_array_size(nodes) && status == STRATA_OK; i++) {
        const json_t *n = json_array_get(nodes, i);
        const char *impl = text_of(n, "impl");
        int64_t cost = json_integer_value(json_object_get(n, "cost"));
        struct vertex v = {.kind = *impl == '(' ? VERTEX_RELABEL : VERTEX_NODE,
                           .cost = cost};
        d->node[i] = -1;
        if (strcmp(impl, "(fused)") == 0)
            continue;
        v.title = text_print("%s", text_of(n, "computes"));
        v.detail = text_print("%s · %s · %.1f us", text_of(n, "layer"), impl,
                              explain_microseconds(cost));
        v.hint = text_print("%s", "");
        d->node[i] = (int)d->g->n_vertices;
        status = graph_add_vertex(d->g, v, d->err);
    }
    return status;
}

static int add_reformats(struct drawing *d)
{
    const json_t *list = json_object_get(d->report, "reformats");
    int status = STRATA_OK;
    for (size_t i = 0; i < json_array_size(list) && status == STRATA_OK; i++) {
        const json_t *r = json_array_get(list, i);
        bool paid = strcmp(text_of(r, "kind"), "reformat") == 0;
        int64_t cost = json_integer_value(json_object_get(r, "cost"));
        struct vertex v = {.kind = paid ? VERTEX_REFORMAT : VERTEX_RELABEL, .cost = cost};
        d->reformat[i] = -1;
        if (strstr(text_of(r, "to"), "(unused)"))
            continue;
        v.title = paid ? text_print("REFORMAT · %.1f us · %s", explain_microseconds(cost),
                                    text_of(r, "reason"))
                       : text_print("re-label · free");
        v.detail = text_print("%s → %s", text_of(r, "from"), text_of(r, "to"));
        v.hint = paid ? text_print("%s.\n%s.\n%s.", text_of(r, "why"), text_of(r, "text"),
                                   text_of(r, "hint"))
                      : text_print("%s", "");
        d->reformat[i] = (int)d->g->n_vertices;
        status = graph_add_vertex(d->g, v, d->err);
    }
    return status;
}

/* The vertex that makes a tensor in a format: a reformat, or else its producer. */
static int maker_of(const struct drawing *d, const char *tensor, const char *label,
                    int producer)
{
    const json_t *list = json_object_get(d->report, "reformats");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *r = json_array_get(list, i);
        if (strcmp(text_of(r, "tensor"), tensor) == 0 &&
            strcmp(text_of(r, "to"), label) == 0)
            return d->reformat[i];
    }
    return producer;
}

static int add_bound(struct drawing *d, enum vertex_kind kind, const char *name,
                     const char *label)
{
    struct vertex v = {
        .kind = kind,
        .title = text_print("%s %s", kind == VERTEX_INPUT ? "input" : "output", name),
        .detail = text_print("%s", label),
        .hint = text_print("%s", "")};
    return graph_add_vertex(d->g, v, d->err);
}

/* From a tensor's producer to its reformats and readers. */
static int add_tensor(struct drawing *d, const json_t *t)
{
    const json_t *list = json_object_get(d->report, "reformats");
    const json_t *wanted = json_object_get(t, "wanted");
    const char *name = text_of(t, "name"), *made = text_of(t, "produced");
    int rank = (int)json_array_size(json_object_get(t, "shape")), producer, status;
    bool input = strcmp(text_of(t, "impl"), "(bound)") == 0;
    int by = running_node(d, text_of(t, "by"));
    if (input && (status = add_bound(d, VERTEX_INPUT, name, made)) != STRATA_OK)
        return status;
    producer = input ? (int)d->g->n_vertices - 1 : by < 0 ? -1 : d->node[by];
    status = STRATA_OK;
    for (size_t i = 0; i < json_array_size(list) && status == STRATA_OK; i++) {
        const json_t *r = json_array_get(list, i);
        if (strcmp(text_of(r, "tensor"), name) == 0)
            status = add_edge(d->g, maker_of(d, name, text_of(r, "from"), producer),
                              d->reformat[i], text_of(r, "from"), rank, d->err);
    }
    for (size_t i = 0; i < json_array_size(wanted) && status == STRATA_OK; i++) {
        const json_t *w = json_array_get(wanted, i);
        const char *label = text_of(w, "format");
        bool output = json_is_true(json_object_get(w, "output"));
        if (strstr(label, "(fused)") || strstr(label, "(unused)"))
            continue;
        int reader = output ? -1 : running_node(d, text_of(w, "by"));
        if (output)
            status = add_bound(d, VERTEX_OUTPUT, text_of(w, "by"), label);
        int to = output ? (int)d->g->n_vertices - 1 : reader < 0 ? -1 : d->node[reader];
        if (status == STRATA_OK)
            status = add_edge(d->g, maker_of(d, name, label, producer), to, label, rank,
                              d->err);
    }
    return status;
}

int graph_of_report(struct graph *g, const json_t *report, strata_error *err)
{
    const json_t *tensors = json_object_get(report, "tensors");
    struct drawing d = {.g = g, .report = report, .err = err};
    *g = (struct graph){0};
    d.node = zalloc(json_array_size(json_object_get(report, "nodes")), sizeof(int),
                    "a drawing", err);
    d.reformat = zalloc(json_array_size(json_object_get(report, "reformats")),
                        sizeof(int), "a drawing", err);
    int status = d.node && d.reformat ? add_nodes(&d) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = add_reformats(&d);
    for (size_t i = 0; i < json_array_size(tensors) && status == STRATA_OK; i++)
        status = add_tensor(&d, json_array_get(tensors, i));
    free(d.node);
    free(d.reformat);
    if (status != STRATA_OK)
        graph_free(g);
    return status;
}
