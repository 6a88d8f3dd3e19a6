/* SPDX-License-Identifier: Apache-2.0
 *
 * See scores.h.
 */
#include "network/import/pattern/scores.h"

#include <math.h>

enum { CHAIN = 12 }; /* operators between softmax and product, at most */

static double number(const struct graph *g, int value)
{
    const struct value *v = graph_value(g, value);
    return v && v->constant && value_count(v) == 1 ? value_real(v, 0) : NAN;
}

/* The other operand of a multiplication or division by a number, which goes to *factor;
 * VALUE_NONE: it is none. */
static int unscaled(const struct graph *g, int value, double *factor)
{
    const struct node *n = maker(g, value);
    const bool by = is_op(n, "Mul"), over = is_op(n, "Div");
    for (int i = 0; (by || over) && n->n_in == 2 && i < (by ? 2 : 1); i++) {
        const double x = number(g, n->in[1 - i]);
        const struct value *v = graph_value(g, n->in[i]);
        const struct value *y = graph_value(g, value);
        if (isfinite(x) && x != 0 && v && v->rank == y->rank) {
            *factor *= by ? x : 1 / x;
            return n->in[i];
        }
    }
    return VALUE_NONE;
}

static int strip_factors(const struct graph *g, int value, double *factor)
{
    for (int i = 0; i < CHAIN; i++) {
        const int inner = unscaled(g, value, factor);
        if (inner < 0)
            break;
        value = inner;
    }
    return value;
}

/* Whether two shapes are one but for leading dims of 1. */
static bool same_but_ones(const struct value *a, const struct value *b)
{
    int i = 0, k = 0;
    while (i < a->rank && a->rank - i > 1 && a->dims[i] == 1)
        i++;
    while (k < b->rank && b->rank - k > 1 && b->dims[k] == 1)
        k++;
    return a->rank - i == b->rank - k &&
           memcmp(a->dims + i, b->dims + k, (size_t)(a->rank - i) * sizeof *a->dims) == 0;
}

static bool leads_to_product(const struct graph *g, int value, int depth)
{
    const struct node *n = maker(g, value);
    double factor = 1;
    const int inner = unscaled(g, value, &factor);
    if (!n || depth == 0 || is_op(n, "MatMul"))
        return n && depth > 0;
    if (inner >= 0 || is_op(n, "Reshape"))
        return leads_to_product(g, inner >= 0 ? inner : n->in[0], depth - 1);
    if (is_op(n, "Where"))
        return leads_to_product(g, n->in[number(g, n->in[1]) < 0 ? 2 : 1], depth - 1);
    return is_op(n, "Add") && (leads_to_product(g, n->in[0], depth - 1) ||
                               leads_to_product(g, n->in[1], depth - 1));
}

/* Whether each query keeps some key. */
static bool keeps_some(const struct value *v, bool filled)
{
    const int64_t keys = v->rank > 0 ? v->dims[v->rank - 1] : 1, n = value_count(v);
    for (int64_t row = 0; row < n; row += keys) {
        int64_t i = 0;
        while (i < keys && (value_integer(v, row + i) != 0) == filled)
            i++;
        if (i == keys)
            return false;
    }
    return true;
}

/* Whether a Where fills in what a softmax makes zeros of. A fill that is not so large
 * would show in a query that keeps no key, and addends with it. The port of the scores,
 * or -1. */
static int masks(const struct graph *g, const struct node *n, struct addend *out)
{
    if (!is_op(n, "Where") || n->n_in != 3)
        return -1;
    const int scores = number(g, n->in[1]) < 0 ? 2 : 1;
    const struct value *v = graph_value(g, n->in[0]);
    *out = (struct addend){n->in[0], n->in[3 - scores], scores == 2};
    const double fill = number(g, out->fill);
    const bool all =
        fill <= -1e30 || (fill <= -1e4 && v && v->constant && keeps_some(v, out->filled));
    return all && v && graph_value(g, out->fill)->rank == 0 ? scores : -1;
}

/* What is added, or filled in, by the last operator. The port of the scores, or -1. */
static int find_addend(const struct graph *g, const struct node *n, struct addend *out)
{
    if (!is_op(n, "Add"))
        return masks(g, n, out);
    const int scores = leads_to_product(g, n->in[0], CHAIN) ? 0 : 1;
    *out = (struct addend){n->in[1 - scores], VALUE_NONE, false};
    return scores;
}

/* From what the softmax reads down to the product: addends, then factors. */
static const struct node *find_product(const struct graph *g, struct scores *s, int value)
{
    const struct node *n = maker(g, value);
    for (int i = 0; n && i < CHAIN; i++, n = maker(g, value)) {
        const struct value *y = graph_value(g, value);
        if (y->readers != 1)
            return NULL;
        if (is_op(n, "MatMul"))
            return n;
        const int inner = unscaled(g, value, &s->scale);
        if (inner >= 0) {
            value = strip_factors(g, inner, &s->scale);
            n = maker(g, value);
            return is_op(n, "MatMul") ? n : NULL;
        }
        if (is_op(n, "Reshape") && same_but_ones(y, graph_value(g, n->in[0]))) {
            value = n->in[0];
            continue;
        }
        const int scores =
            s->n < SCORES_ADDENDS ? find_addend(g, n, &s->addend[s->n]) : -1;
        if (scores < 0)
            return NULL;
        s->n++;
        value = n->in[scores];
    }
    return NULL;
}

bool scores_find(const struct graph *g, int value, struct scores *out)
{
    *out = (struct scores){.scale = 1};
    const struct node *product = find_product(g, out, value);
    if (!product)
        return false;
    out->queries = strip_factors(g, product->in[0], &out->scale);
    out->keys = strip_factors(g, product->in[1], &out->scale);
    return true;
}
