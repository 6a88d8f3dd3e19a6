/* SPDX-License-Identifier: Apache-2.0
 *
 * What tools that quantize models write.
 */
#include <string.h>

#include "core/alloc.h"
#include "network/import/pattern/pattern.h"

/* ---- products of bytes whose scale is computed, back to floats -----------------------
 */

enum { ZEROS = 3 }; /* of the columns, an input of MatMulInteger */

static bool is_one(const struct match *m, const char *name, int dtype)
{
    const struct value *v = match_tensor(m, name);
    return v->dtype == dtype && v->rank <= 1 && value_count(v) == 1;
}

/* One number, or one for each of n columns. */
static bool is_of_columns(const struct value *v, int64_t n)
{
    return value_count(v) == 1 || (v->rank == 1 && v->dims[0] == n);
}

static int zeros_of(const struct match *m)
{
    const struct node *p = match_node(m, "p");
    return p->n_in > ZEROS ? p->in[ZEROS] : VALUE_NONE;
}

static bool is_product(const struct match *m)
{
    const struct value *a = match_tensor(m, "a"), *b = match_tensor(m, "B");
    const struct value *factors = match_tensor(m, "S");
    const struct value *zeros = graph_value(match_graph((struct match *)m), zeros_of(m));
    return a->rank >= 2 && a->dtype == STRATA_UINT8 && b->rank == 2 &&
           value_count(b) > 0 && (b->dtype == STRATA_INT8 || b->dtype == STRATA_UINT8) &&
           is_one(m, "s", STRATA_FP32) && is_one(m, "z", STRATA_UINT8) &&
           factors->dtype == STRATA_FP32 && is_of_columns(factors, b->dims[1]) &&
           (!zeros || is_of_columns(zeros, b->dims[1])) &&
           node_integer(match_node(m, "c"), "to", 0) == ONNX_FLOAT;
}

static bool is_biased(const struct match *m)
{
    const struct value *c = match_tensor(m, "C");
    const int64_t n = match_tensor(m, "B")->rank == 2 ? match_tensor(m, "B")->dims[1] : 0;
    const int64_t count = value_count(c), last = c->rank ? c->dims[c->rank - 1] : 1;
    return is_product(m) && c->dtype == STRATA_FP32 && last == count &&
           (count == 1 || count == n);
}

static struct node *emit(struct match *m)
{
    const int64_t n = match_tensor(m, "B")->dims[1];
    const int64_t factors = value_count(match_tensor(m, "S"));
    const bool biased = match_value(m, "C") >= 0;
    const int in[] = {match_value(m, "a"),
                      match_value(m, "B"),
                      match_value(m, "z"),
                      zeros_of(m),
                      match_value(m, "s"),
                      match_constant(m, "S", 1, &factors, 1),
                      biased ? match_constant(m, "C", 1, &n, 1) : VALUE_NONE};
    return match_own(m, "DynamicProduct", in, ARRAY_LENGTH(in));
}

#define PRODUCT "p = MatMulInteger a B z ...; c = Cast p; k = Mul s S; y = Mul c k"
static const struct pattern product_rows[] = {
    {.text = PRODUCT "; r = Add y C", .check = is_biased, .emit = emit},
    {.text = PRODUCT, .check = is_product, .emit = emit},
};

const struct pattern_table pattern_dynamic = {product_rows, ARRAY_LENGTH(product_rows)};

/* ---- concatenations of several scales, rounded to one --------------------------------
 *
 * Bytes of the result's scale can be moved as they are: what has another gets it before.
 */

enum { SCALED = 4 }; /* inputs at most; with more a plan concatenates floats */

/* The constant that input i of a Quantize or Dequantize is; NULL: absent, a zero of 0. */
static const struct value *constant_of(const struct match *m, const struct node *q, int i)
{
    return i < q->n_in ? graph_value(match_graph((struct match *)m), q->in[i]) : NULL;
}

/* Whether it has one scale of FP32 and one zero, of bytes. */
static bool has_one_scale(const struct match *m, const struct node *q, int dtype)
{
    const struct value *scale = constant_of(m, q, 1), *zero = constant_of(m, q, 2);
    return scale && scale->constant && scale->dtype == STRATA_FP32 &&
           value_count(scale) == 1 && (dtype == STRATA_INT8 || dtype == STRATA_UINT8) &&
           (!zero || (zero->constant && value_count(zero) == 1)) &&
           !node_integer(q, "block_size", 0) && !node_integer(q, "output_dtype", 0);
}

static int type_of(const struct match *m, const struct node *quantize)
{
    const struct value *zero = constant_of(m, quantize, 2);
    return zero ? zero->dtype : STRATA_UINT8;
}

static const struct node *dequantize_of(const struct match *m, int i)
{
    const struct graph *g = match_graph((struct match *)m);
    const struct node *n = graph_value(g, match_node(m, "c")->in[i])->node;
    return n && strcmp(n->op, "DequantizeLinear") == 0 && !*n->domain ? n : NULL;
}

/* Whether input i has the scale and zero of the result already. */
static bool has_scale(const struct match *m, int i)
{
    const struct node *q = match_node(m, "q"), *d = dequantize_of(m, i);
    const struct value *zero = constant_of(m, q, 2), *own = constant_of(m, d, 2);
    return value_real(constant_of(m, q, 1), 0) == value_real(constant_of(m, d, 1), 0) &&
           (zero ? value_real(zero, 0) : 0) == (own ? value_real(own, 0) : 0) &&
           type_of(m, q) == constant_of(m, d, 0)->dtype;
}

static bool is_rescaled(const struct match *m)
{
    const struct node *q = match_node(m, "q"), *c = match_node(m, "c");
    bool other = false;
    if (!has_one_scale(m, q, type_of(m, q)) || c->n_in > SCALED)
        return false;
    for (int i = 0; i < c->n_in; i++) {
        const struct node *d = dequantize_of(m, i);
        if (!d || !has_one_scale(m, d, constant_of(m, d, 0)->dtype))
            return false;
        other |= !has_scale(m, i);
    }
    return other;
}

/* A value as bytes of the result's scale, and floats again. */
static int rescaled(struct match *m, int value)
{
    const struct node *q = match_node(m, "q");
    int in[] = {value, q->in[1], q->n_in > 2 ? q->in[2] : VALUE_NONE};
    const int n = in[2] >= 0 ? 3 : 2;
    const struct node *bytes = match_add(m, "QuantizeLinear", in, n);
    in[0] = bytes ? bytes->out[0] : VALUE_NONE;
    const struct node *floats = match_add(m, "DequantizeLinear", in, n);
    return floats ? floats->out[0] : VALUE_NONE;
}

static struct node *emit_rescaled(struct match *m)
{
    struct graph *g = match_graph(m);
    const struct node *from = match_node(m, "c");
    int in[SCALED];
    for (int i = 0; i < from->n_in; i++)
        in[i] = has_scale(m, i) ? from->in[i] : rescaled(m, from->in[i]);
    struct node *c = match_again(m, "c");
    for (int i = 0; c && i < c->n_in; i++)
        node_set_input(g, c, i, in[i]);
    struct node *q = c ? match_again(m, "q") : NULL;
    if (q)
        node_set_input(g, q, 0, c->out[0]);
    return q;
}

#define ROUNDED "; q = QuantizeLinear c S ..."
static const struct pattern concatenation_rows[] = {
    {.text = "c = Concat w x" ROUNDED, .check = is_rescaled, .emit = emit_rescaled},
    {.text = "c = Concat w x y" ROUNDED, .check = is_rescaled, .emit = emit_rescaled},
    {.text = "c = Concat w x y z" ROUNDED, .check = is_rescaled, .emit = emit_rescaled},
};

const struct pattern_table pattern_concatenations = {concatenation_rows,
                                                     ARRAY_LENGTH(concatenation_rows)};
