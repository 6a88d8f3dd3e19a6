/* SPDX-License-Identifier: Apache-2.0
 *
 * A factor and an addend for each column of a product by a constant, or for each channel
 * of a transposed convolution, go into the constant and the bias: w'[k] = w[k]*factor[k],
 * bias'[k] = bias[k]*factor[k] + addend[k], in FP64, rounded once. Those of other
 * convolutions the planner folds, of networks that are no models, too.
 */
#include <math.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "network/import/pattern/pattern.h"

#define PRODUCT "MatMul|strata::MatrixMultiply|Gemm"

/* Of n columns. */
struct affine {
    double *factor, *addend;
    int64_t n;
};

enum { SCALE = 1, SHIFT, MEAN, VARIANCE, BATCH_INPUTS }; /* of a BatchNormalization */

static const struct value *input_of(const struct match *m, const char *node, int i)
{
    const struct node *n = match_node(m, node);
    return n->n_in > i ? graph_value(match_graph(m), n->in[i]) : NULL;
}

/* The product's bias, or NULL. */
static const struct value *bias_of(const struct match *m)
{
    return input_of(m, "p", 2);
}

static int64_t columns_of(const struct match *m)
{
    const struct value *p = match_tensor(m, "p");
    return p->rank > 0 ? p->dims[p->rank - 1] : 0;
}

/* One number for all, or one for each of n columns. */
static bool is_of_columns(const struct value *v, int64_t n)
{
    return value_count(v) == 1 ||
           (value_count(v) == n && v->rank > 0 && v->dims[v->rank - 1] == n);
}

/* Whether p is a product by a matrix of FP32, whose bias is one of columns. */
static bool is_product(const struct match *m)
{
    const struct value *w = match_tensor(m, "W"), *b = bias_of(m);
    const int64_t n = columns_of(m);
    return w->rank == 2 && w->dtype == STRATA_FP32 && n > 0 &&
           (!b || is_of_columns(b, n));
}

/* Of the normalization y, whose channels are dim 1 of `input`. */
static bool is_batch(const struct match *m, const char *input, int64_t n)
{
    const struct value *x = match_tensor(m, input);
    for (int i = SCALE; i < BATCH_INPUTS; i++) {
        const struct value *v = input_of(m, "y", i);
        if (!v || value_count(v) != n)
            return false;
    }
    return !node_integer(match_node(m, "y"), "training_mode", 0) && x->rank >= 2 &&
           x->dims[1] == n;
}

static bool is_normalized(const struct match *m)
{
    const char *input = match_node(m, "r") ? "r" : "p";
    return is_product(m) && match_tensor(m, input)->rank == 2 &&
           is_batch(m, input, columns_of(m));
}

/* One number for each column, not one for all. */
static bool is_scaled(const struct match *m)
{
    const struct value *a = match_tensor(m, "A");
    const int64_t n = columns_of(m);
    return is_product(m) && n > 1 && value_count(a) == n && is_of_columns(a, n) &&
           dtype_is_free(a->dtype);
}

static struct affine begin(struct match *m, int64_t n)
{
    double *of = arena_get(&match_graph(m)->arena, (size_t)n, 2 * sizeof *of);
    return (struct affine){of, of ? of + n : NULL, of ? n : 0};
}

static struct affine affine_of(struct match *m, int64_t n)
{
    const struct value *scale = input_of(m, "y", SCALE), *shift = input_of(m, "y", SHIFT);
    const struct value *mean = input_of(m, "y", MEAN);
    const struct value *variance = input_of(m, "y", VARIANCE);
    const double epsilon = node_real(match_node(m, "y"), "epsilon", 1e-5);
    struct affine a = begin(m, n);
    for (int64_t k = 0; k < a.n; k++) {
        a.factor[k] = value_real(scale, k) / sqrt(value_real(variance, k) + epsilon);
        a.addend[k] = value_real(shift, k) - value_real(mean, k) * a.factor[k];
    }
    return a;
}

/* Bias `b`, if there is one, of which the product takes `beta`. */
static int bias(struct match *m, const struct value *b, double beta,
                const struct affine *a)
{
    struct graph *g = match_graph(m);
    float *to = arena_get(&g->arena, (size_t)a->n, sizeof *to);
    for (int64_t k = 0; to && k < a->n; k++) {
        const double old = b ? beta * value_real(b, value_count(b) == 1 ? 0 : k) : 0;
        to[k] = (float)(old * a->factor[k] + a->addend[k]);
    }
    return to ? graph_add_constant(g, b ? b->name : "", STRATA_FP32, 1, &a->n, to)
              : VALUE_NONE;
}

/* The constant, whose element i belongs to column i / inner % n. */
static int weight(struct match *m, int64_t inner, const struct affine *a)
{
    struct graph *g = match_graph(m);
    const struct value *w = match_tensor(m, "W");
    const int64_t count = value_count(w);
    float *to = arena_get(&g->arena, (size_t)count, sizeof *to);
    for (int64_t i = 0; to && a->n > 0 && i < count; i++)
        to[i] = (float)(value_real(w, i) * a->factor[i / inner % a->n]);
    return to ? graph_add_constant(g, w->name, STRATA_FP32, w->rank, w->dims, to)
              : VALUE_NONE;
}

static struct node *fold(struct match *m, const struct affine *a)
{
    struct graph *g = match_graph(m);
    const struct value *old = bias_of(m);
    const bool gemm = match_op(m, "p", "Gemm");
    struct node *p = match_again(m, "p");
    if (!p || a->n == 0)
        return NULL;
    const bool turned =
        node_integer(p, "transpose_b", 0) != 0 || node_integer(p, "transB", 0) != 0;
    const double beta = gemm ? node_real(p, "beta", 1) : 1;
    if (gemm) {
        node_remove(p, "beta");
    } else {
        p->op = "MatrixMultiply";
        p->domain = PATTERN_DOMAIN;
    }
    node_set_input(g, p, 1, weight(m, turned ? match_tensor(m, "W")->dims[1] : 1, a));
    node_set_input(g, p, 2, bias(m, old, beta, a));
    return p;
}

/* The product in the place of y, or of r and y. */
static struct node *emit_normalized(struct match *m)
{
    const struct affine a = affine_of(m, columns_of(m));
    struct node *p = fold(m, &a);
    struct node *r = p && match_node(m, "r") ? match_again(m, "r") : NULL;
    if (!r)
        return p;
    node_set_input(match_graph(m), r, 0, p->out[0]);
    return r;
}

static struct node *emit_scaled(struct match *m)
{
    const struct value *v = match_tensor(m, "A");
    struct affine a = begin(m, columns_of(m));
    for (int64_t k = 0; k < a.n; k++) {
        a.factor[k] = value_real(v, k);
        a.addend[k] = 0;
    }
    return fold(m, &a);
}

/* ---- transposed convolutions ---------------------------------------------------------
 */

/* Of one group: channels are dim 1 of its constant. */
static bool is_deconvolved(const struct match *m)
{
    const struct value *w = match_tensor(m, "W"), *b = bias_of(m);
    return w->rank >= 3 && w->dtype == STRATA_FP32 &&
           node_integer(match_node(m, "p"), "group", 1) == 1 &&
           (!b || value_count(b) == w->dims[1]) && is_batch(m, "p", w->dims[1]);
}

static struct node *emit_deconvolved(struct match *m)
{
    const struct value *w = match_tensor(m, "W"), *old = bias_of(m);
    const struct affine a = affine_of(m, w->dims[1]);
    struct node *p = match_again(m, "p");
    int64_t inner = 1;
    for (int d = 2; d < w->rank; d++)
        inner *= w->dims[d];
    if (!p || a.n == 0)
        return NULL;
    node_set_input(match_graph(m), p, 1, weight(m, inner, &a));
    node_set_input(match_graph(m), p, 2, bias(m, old, 1, &a));
    return p;
}

static const struct pattern rows[] = {
    {.text = "p = " PRODUCT " x W ...; r = Reshape|Flatten p ...; "
             "y = BatchNormalization r ...",
     .check = is_normalized,
     .emit = emit_normalized},
    {.text = "p = " PRODUCT " x W ...; y = BatchNormalization p ...",
     .check = is_normalized,
     .emit = emit_normalized},
    {.text = "p = " PRODUCT " x W ...; y = Mul p A",
     .check = is_scaled,
     .emit = emit_scaled},
    {.text = "p = ConvTranspose x W ...; y = BatchNormalization p ...",
     .check = is_deconvolved,
     .emit = emit_deconvolved},
};

const struct pattern_table pattern_columns = {rows, ARRAY_LENGTH(rows)};
