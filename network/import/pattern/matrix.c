/* SPDX-License-Identifier: Apache-2.0
 *
 * What a product of matrices takes with it: an operand that is turned, a factor, a bias.
 * One at a time; the product is then one of our own, which takes the next.
 */
#include <math.h>

#include "core/alloc.h"
#include "network/import/pattern/pattern.h"

#define PRODUCT "MatMul|strata::MatrixMultiply"

/* The product y, or m where y is what follows it, as one of our own that reads a and b.
 */
static struct node *product(struct match *m, const char *name, const char *a,
                            const char *b)
{
    struct node *n = match_again(m, name);
    if (!n)
        return NULL;
    n->op = "MatrixMultiply";
    n->domain = PATTERN_DOMAIN;
    node_set_input(match_graph(m), n, 0, match_value(m, a));
    node_set_input(match_graph(m), n, 1, match_value(m, b));
    return n;
}

/* Whether a Transpose changes the last two dims for each other, and nothing else. */
static bool turns(const struct match *m)
{
    const struct node *t = match_node(m, "t");
    const int rank = match_tensor(m, "t")->rank;
    int64_t perm[STRATA_MAX_RANK];
    const int64_t n = node_integers(t, "perm", perm, STRATA_MAX_RANK);
    if (n < 0)
        return rank == 2;
    for (int d = 0; d < rank - 2; d++)
        if (perm[d] != d)
            return false;
    return n == rank && rank >= 2 && perm[rank - 2] == rank - 1 &&
           perm[rank - 1] == rank - 2;
}

static struct node *toggle(struct match *m, struct node *n, const char *flag)
{
    if (n)
        node_set_integer(match_graph(m), n, flag, !node_integer(n, flag, 0));
    return n;
}

static struct node *emit_turned_a(struct match *m)
{
    return toggle(m, product(m, "y", "x", "w"), "transpose_a");
}

static struct node *emit_turned_b(struct match *m)
{
    return toggle(m, product(m, "y", "x", "w"), "transpose_b");
}

static bool is_factor(const struct match *m)
{
    const double v = match_number(m, "A");
    return isfinite(v) && v != 0;
}

/* `s` multiplies or divides by A. */
static struct node *scale(struct match *m, struct node *n)
{
    const double v = match_number(m, "A");
    const double factor = match_op(m, "s", "Div") ? 1 / v : v;
    if (n)
        node_set_real(match_graph(m), n, "alpha",
                      (float)(node_real(n, "alpha", 1) * factor));
    return n;
}

static struct node *emit_scaled_operand(struct match *m)
{
    return scale(m, product(m, "y", "x", "w"));
}

static struct node *emit_scaled(struct match *m)
{
    return scale(m, product(m, "p", "x", "w"));
}

static int64_t columns(const struct match *m, const char *product)
{
    const struct value *y = match_tensor(m, product);
    return y->rank > 0 ? y->dims[y->rank - 1] : 0;
}

/* One number for each column, or one for all. */
static bool is_bias(const struct match *m)
{
    const struct value *w = match_tensor(m, "W"), *b = match_tensor(m, "B");
    const int64_t count = value_count(b), last = b->rank ? b->dims[b->rank - 1] : 1;
    return w->rank == 2 && last == count && (count == 1 || count == columns(m, "p"));
}

static struct node *emit_bias(struct match *m)
{
    const int64_t n = columns(m, "p");
    const int bias = match_constant(m, "B", 1, &n, 1);
    struct node *y = bias >= 0 ? product(m, "p", "x", "W") : NULL;
    node_set_input(match_graph(m), y, 2, bias);
    return y;
}

static struct node *emit_gemm_bias(struct match *m)
{
    struct node *y = match_again(m, "p");
    node_set_input(match_graph(m), y, 2, match_value(m, "B"));
    if (y)
        node_remove(y, "beta");
    return y;
}

static const struct pattern rows[] = {
    {.text = "p = " PRODUCT " x W; y = Add p B", .check = is_bias, .emit = emit_bias},
    {.text = "p = Gemm x W; y = Add p B", .check = is_bias, .emit = emit_gemm_bias},
    {.text = "p = " PRODUCT " x w; s = Mul|Div p A",
     .check = is_factor,
     .emit = emit_scaled},
    {.text = "s = Mul|Div x A; y = " PRODUCT " s w",
     .check = is_factor,
     .emit = emit_scaled_operand},
    {.text = "s = Mul|Div w A; y = " PRODUCT " x s",
     .check = is_factor,
     .emit = emit_scaled_operand},
    {.text = "t = Transpose x; y = " PRODUCT " t w",
     .check = turns,
     .emit = emit_turned_a},
    {.text = "t = Transpose w; y = " PRODUCT " x t",
     .check = turns,
     .emit = emit_turned_b},
};

const struct pattern_table pattern_products = {rows, ARRAY_LENGTH(rows)};

/* ---- images as rows ------------------------------------------------------------------
 */

/* The product y of a Reshape that makes a row of each image, by FullyConnected, which
 * takes images in whatever format they are. */
static bool is_flat(const struct match *m)
{
    const struct value *x = match_tensor(m, "x"), *f = match_tensor(m, "f");
    const struct value *w = match_tensor(m, "W");
    const struct node *y = match_node(m, "y");
    const struct value *bias =
        y->n_in > 2 ? graph_value(match_graph((struct match *)m), y->in[2]) : NULL;
    return x->rank > 2 && f->rank == 2 && f->dims[0] == x->dims[0] && w->rank == 2 &&
           !node_integer(y, "transpose_a", 0) && !node_integer(y, "transA", 0) &&
           match_near(node_real(y, "alpha", 1), 1) &&
           match_near(node_real(y, "beta", 1), 1) &&
           (!bias || value_count(bias) == columns(m, "y"));
}

static struct node *emit_flat(struct match *m)
{
    struct graph *g = match_graph(m);
    const struct node *y = match_node(m, "y");
    const struct value *x = match_tensor(m, "x");
    const int64_t dims[] = {x->dims[0], columns(m, "y")};
    const int in[] = {match_value(m, "x"), match_value(m, "W"),
                      y->n_in > 2 ? y->in[2] : VALUE_NONE};
    const bool turned = node_integer(y, "transpose_b", 0) || node_integer(y, "transB", 0);
    struct node *dense = match_own(m, "FullyConnected", in, in[2] >= 0 ? 3 : 2);
    if (!dense)
        return NULL;
    node_set_integer(g, dense, "transposed", !turned);
    const int shaped[] = {dense->out[0], graph_add_integers(g, 1, dims, 2)};
    return match_add(m, "Reshape", shaped, 2);
}

static const struct pattern flat_rows[] = {
    {.text = "f = Reshape|Flatten x ...; y = " PRODUCT "|Gemm f W ...",
     .check = is_flat,
     .emit = emit_flat},
};

const struct pattern_table pattern_flats = {flat_rows, ARRAY_LENGTH(flat_rows)};
