/* SPDX-License-Identifier: Apache-2.0
 *
 * Each node through the rows of its operator, oldest change first.
 */
#include "network/import/upgrade.h"

#include <string.h>

#include "io/weights/weights.h"

extern const struct upgrade_table upgrade_broadcast, upgrade_inputs, upgrade_meaning,
    upgrade_widened;

const struct upgrade_table *const upgrade_tables[] = {
    &upgrade_broadcast, &upgrade_inputs, &upgrade_meaning, &upgrade_widened, NULL};

static const struct rewrite_table *const rewrites[] = {&upgrade_microsoft};

bool upgrade_is_for(const struct upgrade *u, int version)
{
    for (const int *v = u->versions; *v; v++)
        if (*v == version)
            return true;
    return false;
}

const struct upgrade *upgrade_next(const char *op, int64_t after, int *version)
{
    const struct upgrade *next = NULL;
    *version = 0;
    for (const struct upgrade_table *const *t = upgrade_tables; *t; t++)
        for (size_t i = 0; i < (*t)->n; i++) {
            const struct upgrade *u = &(*t)->rows[i];
            if (strcmp(u->op, op) != 0)
                continue;
            for (const int *v = u->versions; *v; v++)
                if (*v > after && (!next || *v < *version)) {
                    next = u;
                    *version = *v;
                }
        }
    return next;
}

static const struct rewrite *find_rewrite(const struct node *n)
{
    for (size_t t = 0; t < ARRAY_LENGTH(rewrites); t++)
        for (size_t i = 0; i < rewrites[t]->n; i++) {
            const struct rewrite *r = &rewrites[t]->rows[i];
            if (strcmp(r->op, n->op) == 0 && strcmp(r->domain, n->domain) == 0)
                return r;
        }
    return NULL;
}

static bool is_refused(const struct import *im, const struct node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && im->g.values[n->out[i]].refused)
            return true;
    return false;
}

void upgrade_node(struct import *im, struct node *n)
{
    const struct rewrite *r = find_rewrite(n);
    const struct upgrade *u;
    int version;
    if (r) {
        r->apply(im, n);
        return;
    }
    if (*n->domain)
        return;
    for (int64_t at = n->version; (u = upgrade_next(n->op, at, &version)); at = version) {
        if (u->apply)
            u->apply(im, n);
        if (is_refused(im, n))
            return;
    }
}

/* ---- for the functions of rows -------------------------------------------------------
 */

const struct value *upgrade_input(const struct import *im, const struct node *n, int i)
{
    return i < n->n_in ? graph_value(&im->g, n->in[i]) : NULL;
}

struct node *upgrade_add(struct import *im, const struct node *n, const char *op,
                         const int *in, int n_in)
{
    const int out = graph_add_value(&im->g, "");
    struct node *made = graph_add_node(&im->g, op, in, n_in, &out, 1);
    if (made && *n->name)
        made->name = arena_print(&im->g.arena, "%s/%s", n->name, op);
    if (made && !made->name)
        made->name = "";
    return made;
}

int upgrade_value(const struct node *made)
{
    return made ? made->out[0] : VALUE_NONE;
}

struct node *upgrade_after(struct import *im, struct node *n, int i, const char *op)
{
    struct graph *g = &im->g;
    const int old = n->out[i], fresh = graph_add_value(g, "");
    struct node *made = graph_add_node(g, op, &fresh, 1, &old, 1);
    if (!made || fresh < 0)
        return NULL;
    made->name = n->name;
    n->name = *n->name ? arena_print(&g->arena, "%s/%s", n->name, n->op) : "";
    n->out[i] = fresh;
    g->values[fresh].node = n;
    return n->name ? made : NULL;
}

int upgrade_reshape(struct import *im, const struct node *n, int value, int rank,
                    const int64_t *dims)
{
    const int in[] = {value, graph_add_integers(&im->g, 1, dims, rank)};
    struct node *made = upgrade_add(im, n, "Reshape", in, 2);
    node_set_integer(&im->g, made, "allowzero", 1);
    return upgrade_value(made);
}

int upgrade_reals(struct import *im, int dtype, int rank, const double *v, int64_t n)
{
    struct graph *g = &im->g;
    void *data = arena_get(&g->arena, (size_t)n, sizeof *v);
    if (!data || weights_convert(data, dtype, v, WEIGHT_F64, n, NULL) != STRATA_OK)
        return VALUE_NONE;
    return graph_add_constant(g, "", dtype, rank, &n, data);
}

void upgrade_move(struct import *im, struct node *n, const char *name, int i)
{
    const struct onnx_attribute *a = node_attribute(n, name);
    int value;
    if (!a || (a->kind != ONNX_A_INTEGERS && a->kind != ONNX_A_INTEGER))
        return;
    if (a->kind == ONNX_A_INTEGER)
        value = graph_add_integers(&im->g, 1, &a->integer, 1);
    else
        value = graph_add_integers(&im->g, 1, a->integers, (int64_t)a->n);
    node_remove(n, name);
    node_set_input(&im->g, n, i, value);
}
