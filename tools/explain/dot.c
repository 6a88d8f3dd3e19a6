/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan in Graphviz's language; Netron opens it too.
 */
#include "tools/explain/explain.h"

#include "io/stream.h"

static void put_escaped(const char *text, FILE *out)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p == '\n')
            fputs("\\n", out);
        else
            fputc(*p < 0x20 ? ' ' : *p, out);
}

static const char *const styles[] = {
    [VERTEX_INPUT] = "shape=ellipse, fillcolor=\"#e8eef7\"",
    [VERTEX_NODE] = "fillcolor=\"#ffffff\"",
    [VERTEX_REFORMAT] = "fillcolor=\"#d6006c\", fontcolor=\"#ffffff\"",
    [VERTEX_RELABEL] = "fillcolor=\"#eeeeee\", fontcolor=\"#666666\"",
    [VERTEX_OUTPUT] = "shape=ellipse, fillcolor=\"#e8eef7\"",
};

void graph_write_dot(const struct graph *g, const strata_engine *e, FILE *out)
{
    fputs("digraph \"", out);
    put_escaped(e && e->network->name ? e->network->name : "network", out);
    fputs("\" {\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n"
          "  edge [fontname=\"sans-serif\", fontsize=10];\n",
          out);
    for (size_t i = 0; i < g->n_vertices; i++) {
        const struct vertex *v = &g->vertices[i];
        fprintf(out, "  v%zu [label=\"", i);
        put_escaped(v->title, out);
        fputs("\\n", out);
        put_escaped(v->detail, out);
        fputs("\", tooltip=\"", out);
        put_escaped(*v->hint ? v->hint : v->title, out);
        fprintf(out, "\", %s];\n", styles[v->kind]);
    }
    for (size_t i = 0; i < g->n_edges; i++)
        fprintf(out, "  v%d -> v%d [label=\"%s\"];\n", g->edges[i].from, g->edges[i].to,
                format_mask_name(UINT64_C(1) << g->edges[i].format, g->edges[i].rank));
    fputs("}\n", out);
}

int graph_save_dot(const struct graph *g, const strata_engine *e, const char *path,
                   strata_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = text_stream(&text, &size);
    if (!f)
        return error_no_memory(err, 0, "a drawing");
    graph_write_dot(g, e, f);
    if (!text_finish(f, &text))
        return error_no_memory(err, 0, "a drawing");
    int status = tool_write(path, text, size, err);
    free(text);
    return status;
}
