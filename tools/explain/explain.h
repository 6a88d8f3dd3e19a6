/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms that `strata explain` shows a plan in, one file each.
 */
#ifndef TOOLS_EXPLAIN_EXPLAIN_H
#define TOOLS_EXPLAIN_EXPLAIN_H

#include "planner/explain/explain.h"
#include "tools/tool.h"

/* ---- table.c
 * ------------------------------------------------------------------- */
int explain_print_steps(const strata_engine *e, int format, strata_error *err);
/* Layers that [build] formats cannot bind. */
void explain_print_wishes(const strata_engine *e);
void explain_print_tensors(const strata_engine *e, int format);
void explain_print_reformats(const strata_engine *e, const struct explain *x, int format);
void explain_print_fusions(const strata_engine *e, int format);
void explain_print_refused(const strata_engine *e, int format);
/* An output's own copy of a value that something else owns. */
bool explain_is_copy(const strata_engine *e, const struct execution_step *s);
/* "fp32:nchw" */
const char *explain_value_format(const strata_engine *e, int value);

/* ---- summary.c ------------------------------------------------------------------ */
void explain_print_summary(const strata_engine *e);
extern const char *const explain_cost_sources[]; /* by enum cost_kind */

/* ---- merges.c ------------------------------------------------------------------- */
/* A line, and a table with both prices of each group; nothing where there is none. */
void explain_print_merge_summary(const strata_engine *e);
void explain_print_merges(const strata_engine *e, int format);
/* Of the layer that one is merged into, or its own. */
const char *explain_merged_name(const strata_engine *e, const char *layer);

/* ---- mixes.c -------------------------------------------------------------------- */
/* The same of regions that are quantised. */
void explain_print_mix_summary(const strata_engine *e);
void explain_print_mixes(const strata_engine *e, int format);

/* ---- sizes.c -------------------------------------------------------------------- */
/* A row for each combination of listed sizes, and for those half way between. */
int explain_print_sizes(const strata_engine *e, int format, strata_error *err);

/* ---- quantised.c ----------------------------------------------------------------- */
int explain_print_quantised(const strata_engine *e, int format, strata_error *err);

/* ---- report.c ------------------------------------------------------------------- */
/* Of a saved plan, an engine file, or a network that is planned for it. */
int report_open(json_t **out, const struct tool_options *o, const char *path,
                strata_error *err);
/* Sections of a report as tables. */
void report_print_nodes(const json_t *report, int format);
void report_print_reformats(const json_t *report, int format);
void report_print_fusions(const json_t *report, int format);
/* One object a line; `kind` names the section it is an entry of. */
void report_print_lines(const json_t *report);

/* ---- impls.c ------------------------------------------------------------ */
/* ENOTFOUND for a layer that the network lacks, with a near name. Before it is planned
 * that of a merged one, which is made of theirs, may yet come. */
int explain_look_for(const void *layer, const strata_network *net, strata_error *err);
int explain_print_impls(const strata_engine *e, const char *layer, int format,
                        strata_error *err);

/* ---- verify.c ----------------------------------------------------------- */
/* "proved: lower bound = cost = N", or the gap. */
int explain_print_verify(const strata_engine *e, strata_error *err);

/* ---- diff.c
 * -------------------------------------------------------------------- */
/* Of two files that report_open takes: EXIT_OK if the plans agree, EXIT_MISMATCH if not.
 */
int explain_diff_files(char *const paths[2], const struct tool_options *o);

/* ---- graph.c
 * ------------------------------------------------------------------- */
enum vertex_kind {
    VERTEX_INPUT,
    VERTEX_NODE,
    VERTEX_REFORMAT,
    VERTEX_RELABEL,
    VERTEX_OUTPUT
};

struct vertex {
    enum vertex_kind kind;
    char *title, *detail; /* two lines, UTF-8 */
    char *hint;           /* reasons of a reformat; "" else */
    int64_t cost;
    /* Set by the layout, in pixels; x and y are the centre. */
    double x, y, width, height;
};

struct edge {
    int from, to;
    int format; /* table index */
    int rank;
};

struct graph {
    struct vertex *vertices; /* sources come first */
    struct edge *edges;
    size_t n_vertices, n_edges, vertex_capacity, edge_capacity;
};
/* x may be NULL: then there are no hints. */
int graph_make(struct graph *g, const strata_engine *e, const struct explain *x,
               strata_error *err);
void graph_free(struct graph *g);
/* Takes the vertex's texts, even if it fails or one of them is NULL. */
int graph_add_vertex(struct graph *g, struct vertex v, strata_error *err);
/* The same of a report, without the engine. report_graph.c */
int graph_of_report(struct graph *g, const json_t *report, strata_error *err);

/* ---- dot.c, svg.c
 * ------------------------------------------------------ */
/* e may be NULL, for a graph without a name. */
int graph_save_dot(const struct graph *g, const strata_engine *e, const char *path,
                   strata_error *err); /* "-": standard output */
void graph_write_dot(const struct graph *g, const strata_engine *e, FILE *out);
int graph_write_svg(struct graph *g, const strata_engine *e, FILE *out,
                    strata_error *err);

/* ---- layout.c
 * ------------------------------------------------------------------ */
/* A vertex, or a bend of an edge that passes a layer. */
struct place {
    int vertex; /* -1: a bend */
    int layer, order, column;
    double x, y, width;
};

/* Layers stand below each other until a column is full. */
struct column {
    int first, end;     /* layers */
    double left, right; /* pixels */
    size_t lanes;       /* edges that go on in a later column */
};

struct layout {
    struct place *places; /* the vertices, then bends */
    struct column *columns;
    size_t n_places, n_columns;
    int *first_bend; /* of each edge: its bends are consecutive, one a layer; -1: none */
    int n_layers;
    double width, height;
};
/* Layers from the top, few crossings, straight edges; sets the vertices' x and y. */
int layout_make(struct layout *l, struct graph *g, strata_error *err);
void layout_free(struct layout *l);

/* inside.c: "made inside cat in place, at a pitch of 96 channels; reads ...", or "". */
enum { EXPLAIN_INSIDE = 900 };
void explain_inside(char text[EXPLAIN_INSIDE], const strata_engine *e,
                    const struct execution_node *n);

/* ---- columns.c
 * ----------------------------------------------------------------- */
enum { LANE = 8 }; /* pixels between edges on the way to the next column */
/* Break the layers into columns and fix every position. */
int layout_columns(struct layout *l, struct graph *g, strata_error *err);
/* An edge's number among those that leave a column. */
size_t layout_lane(const struct layout *l, const struct graph *g, size_t edge,
                   int column);

#endif /* TOOLS_EXPLAIN_EXPLAIN_H */
