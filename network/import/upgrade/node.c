/* SPDX-License-Identifier: Apache-2.0
 *
 * What the functions of rows make nodes of.
 */
#include "network/import/upgrade.h"

#include "io/weights/weights.h"

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

int upgrade_two(struct import *im, const struct node *n, const char *op, int a, int b)
{
    return upgrade_value(upgrade_add(im, n, op, (const int[]){a, b}, 2));
}

int upgrade_part(struct import *im, const struct node *n, int value, int64_t begin,
                 int64_t end)
{
    struct graph *g = &im->g;
    const int64_t last = 2;
    const int in[] = {value, graph_add_integers(g, 1, &begin, 1),
                      graph_add_integers(g, 1, &end, 1),
                      graph_add_integers(g, 1, &last, 1)};
    return upgrade_value(upgrade_add(im, n, "Slice", in, 4));
}

void upgrade_standard(struct node *n, const char *op)
{
    n->op = op;
    n->domain = "";
    n->version = GRAPH_OPSET;
}

int upgrade_cast(struct import *im, const struct node *n, int value, enum onnx_type to)
{
    struct node *made = upgrade_add(im, n, "Cast", &value, 1);
    node_set_integer(&im->g, made, "to", to);
    return upgrade_value(made);
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
