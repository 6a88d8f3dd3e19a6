/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that a model has as INT8 or E4M3 and a scale: where a layer's weight is such a
 * product, the layer is given both, so that it may compute with the integers.
 */
#include "network/import/map.h"

#include <string.h>

#include "core/alloc.h"

/* Layers that take `weight_scale`; dim of the weight along which scales may differ, and
 * an attribute that makes it the other of two. */
static const struct taker {
    const char *layer, *weight;
    int dim;
    const char *turned;
} takers[] = {
    {"Convolution", "weight", 0, NULL},
    {"Deconvolution", "weight", 1, NULL},
    {"FullyConnected", "weight", 0, "transposed"},
    {"MatrixMultiply", "b", 1, "transpose_b"},
};

static const struct taker *taker_of(const struct section *s)
{
    for (size_t i = 0; i < ARRAY_LENGTH(takers); i++)
        if (strcmp(takers[i].layer, s->type) == 0)
            return &takers[i];
    return NULL;
}

static bool has_flag(const struct section *s, const char *key)
{
    for (int i = 0; key && i < s->n_attrs; i++)
        if (strcmp(s->attrs[i].key, key) == 0)
            return strcmp(s->attrs[i].value, "yes") == 0;
    return false;
}

static bool is_zero(const struct value *v)
{
    for (int64_t i = 0; v && i < value_count(v); i++)
        if (value_real(v, i) != 0)
            return false;
    return true;
}

/* The constants whose product a constant is, scales differing along *dim, or, -1, each
 * an output channel; or false. */
static bool find_product(const struct graph *g, const struct value *v, int *whole,
                         int *factors, int64_t *dim)
{
    const struct node *n = v->node;
    *dim = -1;
    *whole = v->whole;
    *factors = v->factors;
    if (v->whole >= 0 || !n || strcmp(n->op, "DequantizeLinear") != 0 || *n->domain ||
        n->n_in < 2 || node_integer(n, "block_size", 0))
        return v->whole >= 0;
    *whole = n->in[0];
    *factors = n->in[1];
    *dim = node_integer(n, "axis", 1);
    *dim += *dim < 0 ? v->rank : 0;
    return n->n_in < 3 || n->in[2] < 0 ||
           (g->values[n->in[2]].constant && is_zero(&g->values[n->in[2]]));
}

void map_factors(const struct graph *g, struct section *s)
{
    const struct taker *t = taker_of(s);
    int whole, factors, k = 0;
    int64_t dim;
    while (t && k < s->n_weights && strcmp(s->weights[k].name, t->weight) != 0)
        k++;
    if (!t || k == s->n_weights)
        return;
    const struct value *v = &g->values[s->weights[k].value];
    if (!v->constant || !find_product(g, v, &whole, &factors, &dim) || whole < 0 ||
        factors < 0)
        return;
    const struct value *q = &g->values[whole], *f = &g->values[factors];
    const int wanted = has_flag(s, t->turned) ? 1 - t->dim : t->dim;
    if (!q->constant || (q->dtype != STRATA_INT8 && q->dtype != STRATA_E4M3) ||
        !f->constant || f->rank > 1 || f->dtype != STRATA_FP32 ||
        (value_count(f) != 1 && dim >= 0 && dim != wanted))
        return;
    s->weights[k].value = whole;
    section_weight(s, "weight_scale", factors);
}
