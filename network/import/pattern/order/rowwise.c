/* SPDX-License-Identifier: Apache-2.0
 *
 * See rowwise.h.
 */
#include "network/import/pattern/order/rowwise.h"

#include <string.h>

#include "core/alloc.h"
#include "network/import/pattern/order/order.h"
#include "network/import/pattern/pattern.h"

/* Whether input i is no more than a row: a number, or one for each column. */
static bool is_shared(const struct graph *g, const struct node *n, int i)
{
    const struct value *v = graph_value(g, n->in[i]);
    for (int d = 0; v && d < v->rank - 1; d++)
        if (!v->constant || v->dims[d] != 1)
            return false;
    return true;
}

static bool shares_rest(const struct graph *g, const struct node *n, int from)
{
    for (int i = from; i < n->n_in; i++)
        if (!is_shared(g, n, i))
            return false;
    return true;
}

static bool is_matrix(const struct value *v)
{
    return v && v->rank == 2;
}

static bool takes_product(const struct graph *g, const struct node *n, unsigned *rows)
{
    *rows = 1;
    return n->n_in > 1 && is_matrix(graph_value(g, n->in[1])) && shares_rest(g, n, 2) &&
           !node_integer(n, "transpose_a", 0);
}

/* One that MatrixMultiply can say: what is added is a constant, and a number a column. */
static bool takes_gemm(const struct graph *g, const struct node *n, unsigned *rows)
{
    const struct value *b = n->n_in > 1 ? graph_value(g, n->in[1]) : NULL;
    const struct value *c = n->n_in > 2 ? graph_value(g, n->in[2]) : NULL;
    const struct value *y = graph_value(g, n->out[0]);
    *rows = 1;
    return is_matrix(b) && !node_integer(n, "transA", 0) &&
           (!c || (c->constant && c->rank == 1 && c->dims[0] == y->dims[y->rank - 1] &&
                   node_real(n, "beta", 1) == 1));
}

static bool is_concat(const struct node *n)
{
    return strcmp(n->op, "Concat") == 0;
}

static bool takes_last(const struct graph *g, const struct node *n, unsigned *rows)
{
    const struct value *x = graph_value(g, n->in[0]);
    const bool lists = is_concat(n) || strcmp(n->op, "Split") == 0;
    const int64_t axis = node_integer(n, "axis", lists ? 0 : -1);
    *rows = is_concat(n) ? (1u << n->n_in) - 1 : 1;
    return x && (axis == -1 || axis == x->rank - 1) &&
           (is_concat(n) ? n->n_in < 32 : shares_rest(g, n, 1));
}

static bool same_groups(const struct value *a, const struct value *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)(a->rank - 1) * sizeof *a->dims) == 0;
}

static bool takes_each(const struct graph *g, const struct node *n, unsigned *rows)
{
    const struct value *y = graph_value(g, n->out[0]);
    *rows = 0;
    for (int i = 0; i < n->n_in && n->n_in < 32; i++) {
        const struct value *v = graph_value(g, n->in[i]);
        if (v && !v->constant && same_groups(v, y))
            *rows |= 1u << i;
        else if (!is_shared(g, n, i))
            return false;
    }
    return *rows != 0;
}

static bool takes_regroup(const struct graph *g, const struct node *n, unsigned *rows)
{
    const struct value *x = graph_value(g, n->in[0]), *y = graph_value(g, n->out[0]);
    struct order order;
    *rows = 1;
    if (strcmp(n->op, "Transpose") == 0)
        return order_of(&order, g, n) && order_is_same(&order);
    return x && x->rank > 1 && x->dims[x->rank - 1] == y->dims[y->rank - 1];
}

#define OWN PATTERN_DOMAIN
#define EACH(name)                                                                       \
    {                                                                                    \
        "", name, ROWWISE_EACH, takes_each                                               \
    }

static const struct {
    const char *domain, *op;
    enum rowwise_kind kind;
    bool (*takes)(const struct graph *g, const struct node *n, unsigned *rows);
} kinds[] = {
    {"", "MatMul", ROWWISE_PRODUCT, takes_product},
    {OWN, "MatrixMultiply", ROWWISE_PRODUCT, takes_product},
    {"", "Gemm", ROWWISE_GEMM, takes_gemm},
    {"", "LayerNormalization", ROWWISE_LAST, takes_last},
    {"", "RMSNormalization", ROWWISE_LAST, takes_last},
    {"", "Softmax", ROWWISE_LAST, takes_last},
    {"", "LogSoftmax", ROWWISE_LAST, takes_last},
    {"", "Split", ROWWISE_LAST, takes_last},
    {"", "Concat", ROWWISE_LAST, takes_last},
    {"", "Reshape", ROWWISE_REGROUP, takes_regroup},
    {"", "Flatten", ROWWISE_REGROUP, takes_regroup},
    {"", "Squeeze", ROWWISE_REGROUP, takes_regroup},
    {"", "Unsqueeze", ROWWISE_REGROUP, takes_regroup},
    {"", "Transpose", ROWWISE_REGROUP, takes_regroup},
    {OWN, "Activation", ROWWISE_EACH, takes_each},
    EACH("Abs"),
    EACH("Add"),
    EACH("Cast"),
    EACH("Celu"),
    EACH("Clip"),
    EACH("Div"),
    EACH("Elu"),
    EACH("Erf"),
    EACH("Exp"),
    EACH("Gelu"),
    EACH("HardSigmoid"),
    EACH("HardSwish"),
    EACH("LeakyRelu"),
    EACH("Log"),
    EACH("Max"),
    EACH("Min"),
    EACH("Mish"),
    EACH("Mul"),
    EACH("Neg"),
    EACH("Pow"),
    EACH("Reciprocal"),
    EACH("Relu"),
    EACH("Selu"),
    EACH("Sigmoid"),
    EACH("Softplus"),
    EACH("Softsign"),
    EACH("Sqrt"),
    EACH("Sub"),
    EACH("Swish"),
    EACH("Tanh"),
};

/* Whether all that the node makes has rows in the dims of its first output. */
static bool gives_rows(const struct graph *g, const struct node *n)
{
    const struct value *y = n->n_out ? graph_value(g, n->out[0]) : NULL;
    if (order_rows(y) < 2)
        return false;
    for (int i = 1; i < n->n_out; i++) {
        const struct value *v = graph_value(g, n->out[i]);
        if (v && strcmp(n->op, "Split") == 0 ? !same_groups(v, y) : v && v->readers > 0)
            return false;
    }
    return true;
}

static bool reads_rows(const struct graph *g, const struct node *n, unsigned rows)
{
    const int64_t wanted = order_rows(graph_value(g, n->out[0]));
    for (int i = 0; i < n->n_in; i++)
        if (rows >> i & 1) {
            const struct value *v = graph_value(g, n->in[i]);
            if (!v || v->constant || order_rows(v) != wanted)
                return false;
        }
    return true;
}

enum rowwise_kind rowwise_find(const struct graph *g, const struct node *n,
                               unsigned *rows)
{
    for (size_t i = 0; n && n->n_in > 0 && i < ARRAY_LENGTH(kinds); i++)
        if (strcmp(n->op, kinds[i].op) == 0 && strcmp(n->domain, kinds[i].domain) == 0)
            return gives_rows(g, n) && kinds[i].takes(g, n, rows) &&
                           reads_rows(g, n, *rows)
                       ? kinds[i].kind
                       : ROWWISE_NO;
    return ROWWISE_NO;
}

/* ---- copies --------------------------------------------------------------------------
 */

/* A constant of leading dims of 1, without them: it would else say how many dims there
 * are. */
static int as_row(struct graph *g, int value)
{
    const struct value *v = graph_value(g, value);
    if (!v || v->rank < 2)
        return value;
    const int64_t columns = v->dims[v->rank - 1];
    return graph_add_constant(g, v->name, v->dtype, 1, &columns, v->data);
}

static void say_gemm(struct graph *g, struct node *n)
{
    const int64_t turned = node_integer(n, "transB", 0);
    node_remove(n, "beta");
    node_remove(n, "transA");
    node_remove(n, "transB");
    n->op = "MatrixMultiply";
    n->domain = OWN;
    if (turned)
        node_set_integer(g, n, "transpose_b", 1);
}

struct node *rowwise_again(struct graph *g, const struct node *n, int *in, int rank)
{
    unsigned rows;
    int *out = arena_get(&g->arena, (size_t)n->n_out + 1, sizeof *out);
    const enum rowwise_kind kind = rowwise_find(g, n, &rows);
    for (int i = 0; out && i < n->n_out; i++)
        out[i] =
            n->out[i] >= 0 ? graph_add_value(g, g->values[n->out[i]].name) : VALUE_NONE;
    for (int i = 0; kind == ROWWISE_EACH && i < n->n_in; i++)
        if (!(rows >> i & 1))
            in[i] = as_row(g, in[i]);
    struct node *y = out ? graph_add_node(g, n->op, in, n->n_in, out, n->n_out) : NULL;
    if (!y)
        return NULL;
    y->name = n->name;
    y->domain = n->domain;
    y->from = n->from;
    y->derived = n->derived;
    y->attributes =
        arena_copy(&g->arena, n->attributes, n->n_attributes * sizeof *n->attributes);
    y->n_attributes = y->attributes ? n->n_attributes : 0;
    if (kind == ROWWISE_GEMM)
        say_gemm(g, y);
    if (kind == ROWWISE_LAST && node_integer(n, "axis", -1) >= 0)
        node_set_integer(g, y, "axis", rank - 1);
    return y;
}
