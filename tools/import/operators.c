/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators that are imported, as a table: what docs/onnx.md has is printed by this.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "network/import/control/control.h"
#include "network/import/map.h"
#include "network/import/upgrade.h"
#include "tools/import/model.h"

struct op {
    const char *domain, *name;
    bool told;
};

/* The table, and the operators that it is of; NULL: all of them. */
struct listing {
    struct table t;
    struct op *ops;
    size_t n, capacity;
};

/* ---- the operators of a model ---------------------------------------------------------
 */

static struct op *find_op(struct listing *l, const char *domain, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->ops[i].name, name) == 0 && strcmp(l->ops[i].domain, domain) == 0)
            return &l->ops[i];
    return NULL;
}

static int add_nodes(struct listing *l, const struct onnx_node *nodes, size_t n,
                     strata_error *err);

static int add_graphs(struct listing *l, const struct onnx_node *n, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < n->n_attributes; i++) {
        const struct onnx_attribute *a = &n->attributes[i];
        const bool has = a->kind == ONNX_A_GRAPH || a->kind == ONNX_A_GRAPHS;
        for (size_t k = 0; has && a->graphs && k < a->n && status == STRATA_OK; k++)
            status = add_nodes(l, a->graphs[k].nodes, a->graphs[k].n_nodes, err);
    }
    return status;
}

static int add_nodes(struct listing *l, const struct onnx_node *nodes, size_t n,
                     strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        status = add_graphs(l, &nodes[i], err);
        if (status == STRATA_OK && !find_op(l, nodes[i].domain, nodes[i].op) &&
            (status = grow(&l->ops, &l->capacity, l->n, sizeof *l->ops, err)) ==
                STRATA_OK)
            l->ops[l->n++] = (struct op){nodes[i].domain, nodes[i].op, false};
    }
    return status;
}

/* What the model calls of its functions is no operator. */
static int add_model(struct listing *l, const struct onnx_model *m, strata_error *err)
{
    int status = grow(&l->ops, &l->capacity, 0, sizeof *l->ops, err);
    if (status == STRATA_OK)
        status = add_nodes(l, m->graph.nodes, m->graph.n_nodes, err);
    for (size_t i = 0; i < m->n_functions && status == STRATA_OK; i++)
        status = add_nodes(l, m->functions[i].nodes, m->functions[i].n_nodes, err);
    for (size_t i = 0; i < m->n_functions; i++) {
        struct op *call = find_op(l, m->functions[i].domain, m->functions[i].name);
        if (call)
            call->told = true;
    }
    return status;
}

/* ---- the table ------------------------------------------------------------------------
 */

static void put_row(struct listing *l, const char *family, const char *domain,
                    const char *op, const char *becomes, const char *note)
{
    struct table *t = &l->t;
    struct op *chosen = find_op(l, domain, op);
    if (l->ops && !chosen)
        return;
    if (chosen)
        chosen->told = true;
    table_cell(t, "%s", family);
    table_cell(t, "%s%s%s", domain, *domain ? "::" : "", op);
    table_cell(t, "%s", becomes);
    table_cell(t, "%s", note);
}

static void put_family(struct listing *l, const struct map_table *family)
{
    for (size_t i = 0; i < family->n; i++) {
        const struct map_rule *r = &family->rules[i];
        const char *domain = r->domain ? r->domain : "";
        if (strcmp(domain, "strata") != 0) /* what patterns make */
            put_row(l, family->title, domain, r->op,
                    r->layer                 ? r->layer
                    : family == &map_refused ? "none"
                                             : "several",
                    r->note ? r->note : "");
    }
}

static void put_controls(struct listing *l, const struct control *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_row(l, "Control and lists", all[i].domain ? all[i].domain : "", all[i].op,
                "put in place", all[i].note);
}

static void put_rewrites(struct listing *l, const struct rewrite_table *all)
{
    for (size_t i = 0; i < all->n; i++)
        put_row(l, "Rewritten", all->rows[i].domain, all->rows[i].op,
                "standard operators", "");
}

static void put_all(struct listing *l)
{
    for (const struct map_table *const *family = map_tables; *family; family++)
        if (*family != &map_refused)
            put_family(l, *family);
    put_controls(l, control_graphs, control_n_graphs);
    put_controls(l, control_sequences, control_n_sequences);
    put_rewrites(l, &upgrade_attention);
    put_rewrites(l, &upgrade_few_bits);
    put_rewrites(l, &upgrade_microsoft);
    put_rewrites(l, &upgrade_quantized);
    put_rewrites(l, &upgrade_deform);
    put_family(l, &map_refused);
    for (size_t i = 0; i < l->n; i++)
        if (!l->ops[i].told)
            put_row(l, "Unknown", l->ops[i].domain, l->ops[i].name, "none",
                    "but the layer of a plugin that has its domain and name");
}

int operators_print(const char *path, int format)
{
    static const char *const columns[] = {"family", "operator", "becomes",
                                          "what is taken, or not"};
    struct listing l = {0};
    struct onnx_limits limits = onnx_default_limits;
    const struct onnx_model *m = NULL;
    strata_error err;
    error_clear(&err);
    if (format < 0)
        return tool_error("-o: --operators prints md, csv, json or jsonl");
    limits.loose_bytes = 1; /* no weight is looked at */
    int status =
        path ? tool_file_status(onnx_open(&m, path, &limits, &err), &err) : STRATA_OK;
    if (status == STRATA_OK && path)
        status = add_model(&l, m, &err);
    if (status == STRATA_OK) {
        table_open(&l.t, columns, 4, 0);
        put_all(&l);
        table_print(&l.t, format, stdout);
        table_close(&l.t);
    }
    free(l.ops);
    onnx_close(m);
    return status == STRATA_OK ? EXIT_OK : tool_fail(&err);
}
