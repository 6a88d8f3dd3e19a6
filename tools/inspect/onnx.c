/* SPDX-License-Identifier: Apache-2.0
 *
 * strata inspect of an ONNX model: what the file says, before any of it is imported. The
 * weights are counted and not read, so that a large model is listed at once.
 */
#include "tools/inspect/onnx.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/engine_file.h"
#include "io/file.h"
#include "io/onnx/model.h"
#include "tools/explain/explain.h"

/* What is counted over the model, graphs in attributes and functions included. */
struct census {
    const struct onnx_node **nodes;
    const struct onnx_tensor **outside; /* weights in files beside the model */
    const char **named;                 /* weights of the main graph, sorted */
    size_t n_nodes, nodes_capacity, n_outside, outside_capacity;
    size_t weights[ONNX_TYPE_COUNT], n_weights, sparse, constants;
    uint64_t bytes[ONNX_TYPE_COUNT], weight_bytes, outside_bytes, constant_bytes;
    strata_error *err;
};

static int count_graph(struct census *c, const struct onnx_graph *g);

static int count_attribute(struct census *c, const struct onnx_attribute *a)
{
    int status = STRATA_OK;
    const bool tensors = a->kind == ONNX_A_TENSOR || a->kind == ONNX_A_TENSORS;
    const bool graphs = a->kind == ONNX_A_GRAPH || a->kind == ONNX_A_GRAPHS;
    for (size_t i = 0; tensors && a->tensors && i < a->n; i++) {
        c->constants++;
        c->constant_bytes += a->tensors[i].bytes;
    }
    for (size_t i = 0; graphs && a->graphs && i < a->n && status == STRATA_OK; i++)
        status = count_graph(c, &a->graphs[i]);
    return status;
}

static int count_nodes(struct census *c, const struct onnx_node *nodes, size_t n)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        status =
            grow(&c->nodes, &c->nodes_capacity, c->n_nodes, sizeof *c->nodes, c->err);
        if (status == STRATA_OK)
            c->nodes[c->n_nodes++] = &nodes[i];
        for (size_t k = 0; k < nodes[i].n_attributes && status == STRATA_OK; k++)
            status = count_attribute(c, &nodes[i].attributes[k]);
    }
    return status;
}

static int count_weight(struct census *c, const struct onnx_tensor *t)
{
    c->n_weights++;
    c->weights[t->type]++;
    c->bytes[t->type] += t->bytes;
    c->weight_bytes += t->bytes;
    if (!t->location[0])
        return STRATA_OK;
    c->outside_bytes += t->bytes;
    int status =
        grow(&c->outside, &c->outside_capacity, c->n_outside, sizeof *c->outside, c->err);
    if (status == STRATA_OK)
        c->outside[c->n_outside++] = t;
    return status;
}

static int count_graph(struct census *c, const struct onnx_graph *g)
{
    int status = count_nodes(c, g->nodes, g->n_nodes);
    c->sparse += g->n_sparse;
    for (size_t i = 0; i < g->n_initializers && status == STRATA_OK; i++)
        status = count_weight(c, &g->initializers[i]);
    return status;
}

static int by_op(const void *a, const void *b)
{
    const struct onnx_node *x = *(const struct onnx_node *const *)a;
    const struct onnx_node *y = *(const struct onnx_node *const *)b;
    const int order = strcmp(x->domain, y->domain);
    return order ? order : strcmp(x->op, y->op);
}

static int by_location(const void *a, const void *b)
{
    const struct onnx_tensor *x = *(const struct onnx_tensor *const *)a;
    const struct onnx_tensor *y = *(const struct onnx_tensor *const *)b;
    return strcmp(x->location, y->location);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int sort_names(struct census *c, const struct onnx_graph *g)
{
    c->named = zalloc(g->n_initializers, sizeof *c->named, "names of weights", c->err);
    if (!c->named)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < g->n_initializers; i++)
        c->named[i] = g->initializers[i].name;
    qsort(c->named, g->n_initializers, sizeof *c->named, by_name);
    return STRATA_OK;
}

static int take_census(struct census *c, const struct onnx_model *m)
{
    int status = count_graph(c, &m->graph);
    if (status == STRATA_OK)
        status = sort_names(c, &m->graph);
    for (size_t i = 0; i < m->n_functions && status == STRATA_OK; i++)
        status = count_nodes(c, m->functions[i].nodes, m->functions[i].n_nodes);
    if (c->n_nodes)
        qsort(c->nodes, c->n_nodes, sizeof *c->nodes, by_op);
    if (c->n_outside)
        qsort(c->outside, c->n_outside, sizeof *c->outside, by_location);
    return status;
}

/* ---- tables -------------------------------------------------------------------------
 */

static const char *domain_name(const char *domain)
{
    return domain[0] ? domain : "ai.onnx";
}

static const char *type_of(const struct onnx_value *v)
{
    static const char *const forms[] = {[ONNX_SEQUENCE] = "sequence",
                                        [ONNX_MAP] = "map",
                                        [ONNX_OPTIONAL] = "optional",
                                        [ONNX_SPARSE] = "sparse",
                                        [ONNX_UNTYPED] = "not said"};
    if (v->form != ONNX_TENSOR)
        return forms[v->form];
    return v->type == ONNX_UNDEFINED ? "not said" : onnx_type_name(v->type);
}

/* "batch x 3 x ?", "scalar"; "not said" where not even the rank is. */
static void shape_cell(struct table *t, const struct onnx_value *v)
{
    static char text[8 * 4200]; /* 8 symbols of 4,096 bytes */
    size_t used = 0;
    if (v->rank <= 0) {
        table_cell(t, "%s", v->rank ? "not said" : "scalar");
        return;
    }
    for (int d = 0; d < v->rank; d++) {
        const struct onnx_dim *dim = &v->dims[d];
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, dim->value);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", d ? " x " : "",
                                 dim->value >= 0  ? number
                                 : dim->symbol[0] ? dim->symbol
                                                  : "?");
    }
    table_cell(t, "%s", text);
}

static void value_row(struct table *t, const char *port, const struct onnx_value *v)
{
    table_cell(t, "%s", port);
    table_cell(t, "%s", v->name);
    table_cell(t, "%s", type_of(v));
    shape_cell(t, v);
}

/* An input that is a weight as well, as all were before IR 4, has its value. */
static void values_table(struct table *t, const struct onnx_model *m,
                         const struct census *c)
{
    const struct onnx_graph *g = &m->graph;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const bool weight = bsearch(&g->inputs[i].name, c->named, g->n_initializers,
                                    sizeof *c->named, by_name) != NULL;
        value_row(t, weight ? "weight" : "input", &g->inputs[i]);
    }
    for (size_t i = 0; i < g->n_outputs; i++)
        value_row(t, "output", &g->outputs[i]);
}

static void ops_table(struct table *t, const struct onnx_model *m, const struct census *c)
{
    (void)m;
    for (size_t i = 0, next; i < c->n_nodes; i = next) {
        for (next = i + 1; next < c->n_nodes; next++)
            if (by_op(&c->nodes[i], &c->nodes[next]) != 0)
                break;
        table_cell(t, "%s", c->nodes[i]->op);
        table_cell(t, "%s", domain_name(c->nodes[i]->domain));
        table_cell(t, "%zu", next - i);
    }
}

static void weights_table(struct table *t, const struct onnx_model *m,
                          const struct census *c)
{
    (void)m;
    for (int type = 0; type < ONNX_TYPE_COUNT; type++)
        if (c->weights[type]) {
            table_cell(t, "%s", onnx_type_name((enum onnx_type)type));
            table_cell(t, "%zu", c->weights[type]);
            table_cell(t, "%" PRIu64, c->bytes[type]);
        }
}

static void files_table(struct table *t, const struct onnx_model *m,
                        const struct census *c)
{
    (void)m;
    for (size_t i = 0, next; i < c->n_outside; i = next) {
        uint64_t bytes = 0;
        for (next = i; next < c->n_outside; next++) {
            if (by_location(&c->outside[i], &c->outside[next]) != 0)
                break;
            bytes += c->outside[next]->bytes;
        }
        table_cell(t, "%s", c->outside[i]->location);
        table_cell(t, "%zu", next - i);
        table_cell(t, "%" PRIu64, bytes);
    }
}

static void functions_table(struct table *t, const struct onnx_model *m,
                            const struct census *c)
{
    (void)c;
    for (size_t i = 0; i < m->n_functions; i++) {
        const struct onnx_function *f = &m->functions[i];
        table_cell(t, "%s", f->name);
        table_cell(t, "%s", domain_name(f->domain));
        table_cell(t, "%zu", f->n_inputs);
        table_cell(t, "%zu", f->n_outputs);
        table_cell(t, "%zu", f->n_nodes);
    }
}

static const struct listing {
    const char *name;
    void (*fill)(struct table *t, const struct onnx_model *m, const struct census *c);
    const char *columns[5];
    size_t n_columns;
    uint64_t numeric;
    bool always; /* also with no rows */
} listings[] = {
    {"values", values_table, {"port", "name", "type", "shape"}, 4, 0, true},
    {"ops", ops_table, {"op", "domain", "nodes"}, 3, 1 << 2, true},
    {"weights", weights_table, {"type", "weights", "bytes"}, 3, 1 << 1 | 1 << 2, false},
    {"files", files_table, {"file", "weights", "bytes"}, 3, 1 << 1 | 1 << 2, false},
    {"functions",
     functions_table,
     {"function", "domain", "inputs", "outputs", "nodes"},
     5,
     1 << 2 | 1 << 3 | 1 << 4,
     false},
};

static void print_head(const struct onnx_model *m, const struct census *c)
{
    tool_print("%s: ONNX graph %s, IR %" PRId64 ", written by %s%s%s\nopsets", m->path,
               m->graph.name, m->ir_version, m->producer[0] ? m->producer : "(not said)",
               m->producer_version[0] ? " " : "", m->producer_version);
    for (size_t i = 0; i < m->n_opsets; i++)
        tool_print("%s %s %" PRId64, i ? "," : "", domain_name(m->opsets[i].domain),
                   m->opsets[i].version);
    tool_print("\n%zu nodes, %zu of them in the main graph; %zu constants in nodes, "
               "%.2f MiB\n%zu weights, %.2f MiB",
               c->n_nodes, m->graph.n_nodes, c->constants,
               (double)c->constant_bytes / 1048576, c->n_weights,
               (double)c->weight_bytes / 1048576);
    if (c->n_outside)
        tool_print("; %zu of them, %.2f MiB, in files beside the model", c->n_outside,
                   (double)c->outside_bytes / 1048576);
    if (c->sparse)
        tool_print("; %zu sparse ones, which are not read", c->sparse);
    tool_print("\n");
}

static void print_tables(const struct onnx_model *m, const struct census *c, int format)
{
    const bool text = format == TABLE_TEXT || format == TABLE_MARKDOWN;
    bool first = !text;
    if (text)
        print_head(m, c);
    for (size_t i = 0; i < ARRAY_LENGTH(listings); i++) {
        const struct listing *l = &listings[i];
        struct table t;
        table_open(&t, l->columns, l->n_columns, l->numeric);
        l->fill(&t, m, c);
        if (l->always || t.n_cells) {
            fputs(first ? "" : "\n", stdout);
            table_print(&t, format, stdout);
            first = false;
        }
        table_close(&t);
    }
}

/* ---- JSON ---------------------------------------------------------------------------
 */

static json_t *json_of_table(const struct table *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_cells / t->n_columns; i++) {
        json_t *row = json_object();
        for (size_t k = 0; k < t->n_columns; k++) {
            const char *text = t->cells[i * t->n_columns + k];
            json_object_set_new(row, t->columns[k],
                                t->numeric >> k & 1
                                    ? json_integer((json_int_t)strtoll(text, NULL, 10))
                                    : json_string(text));
        }
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *json_of_model(const struct onnx_model *m, const struct census *c)
{
    json_t *opsets = json_object();
    for (size_t i = 0; i < m->n_opsets; i++)
        json_object_set_new(opsets, domain_name(m->opsets[i].domain),
                            json_integer(m->opsets[i].version));
    return json_pack(
        "{s:s, s:I, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "graph", m->graph.name,
        "ir_version", (json_int_t)m->ir_version, "producer", m->producer,
        "producer_version", m->producer_version, "opsets", opsets, "nodes",
        (json_int_t)c->n_nodes, "weights", (json_int_t)c->n_weights, "weight_bytes",
        (json_int_t)c->weight_bytes, "external_bytes", (json_int_t)c->outside_bytes,
        "sparse_weights", (json_int_t)c->sparse);
}

static int print_json(const struct onnx_model *m, const struct census *c, int format)
{
    json_t *model = json_of_model(m, c);
    json_t *j = model ? json_pack("{s:o}", "onnx", model) : NULL;
    bool failed = !j;
    for (size_t i = 0; j && i < ARRAY_LENGTH(listings); i++) {
        struct table t;
        table_open(&t, listings[i].columns, listings[i].n_columns, listings[i].numeric);
        listings[i].fill(&t, m, c);
        failed |= t.failed || json_object_set_new(j, listings[i].name, json_of_table(&t));
        table_close(&t);
    }
    if (failed)
        error_no_memory(c->err, 0, "the listing");
    else if (format == TABLE_JSONL)
        report_print_lines(j);
    else
        tool_print_json(j, JSON_INDENT(1)), fputc('\n', stdout);
    json_decref(j);
    return failed ? STRATA_ENOMEM : STRATA_OK;
}

/* ---- the command --------------------------------------------------------------------
 */

int inspect_onnx(const char *path, int format)
{
    struct onnx_limits limits = onnx_default_limits;
    const struct onnx_model *m = NULL;
    strata_error err;
    struct census c = {.err = &err};
    error_clear(&err);
    limits.loose_bytes = 1; /* bytes are counted, no element is read */
    int status = tool_file_status(onnx_open(&m, path, &limits, &err), &err);
    if (status == STRATA_OK)
        status = take_census(&c, m);
    if (status == STRATA_OK && (format == TABLE_JSON || format == TABLE_JSONL))
        status = print_json(m, &c, format);
    else if (status == STRATA_OK)
        print_tables(m, &c, format);
    free(c.nodes);
    free(c.outside);
    free(c.named);
    onnx_close(m);
    return status == STRATA_OK ? EXIT_OK : tool_fail(&err);
}
