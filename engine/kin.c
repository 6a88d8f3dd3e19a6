/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts that an engine has from another one of the same planner, whose plan runs most
 * nodes alike: weights, what was packed of them and the impl's state are not made again.
 * Both hold them, and the last one frees them. Engines of one build alone do so, on its
 * thread.
 */
#include "engine/engine.h"

static bool same_value(const struct execution *x, int a, const struct execution *y, int b)
{
    if (a < 0 || b < 0)
        return a < 0 && b < 0;
    const struct execution_value *v = &x->values[a], *w = &y->values[b];
    return v->tensor == w->tensor && v->format == w->format && v->pad == w->pad &&
           v->pitched == w->pitched && strata_desc_equal(&v->desc, &w->desc);
}

static bool is_constant(const struct execution *x, int value)
{
    return x->values[value].constant >= 0;
}

/* Whether setup would be told the same of both, and so gives the same. */
static bool same_node(const struct execution *x, const struct execution_node *a,
                      const struct execution *y, const struct execution_node *b)
{
    bool same = a->candidate == b->candidate && a->workspace == b->workspace &&
                a->n_in == b->n_in && a->n_out == b->n_out &&
                same_value(x, a->residual_value, y, b->residual_value);
    for (int i = 0; i < a->n_in && same; i++)
        same = same_value(x, a->in_values[i], y, b->in_values[i]);
    for (int i = 0; i < a->n_out && same; i++)
        same = same_value(x, a->out_values[i], y, b->out_values[i]) &&
               is_constant(x, a->out_values[i]) == is_constant(y, b->out_values[i]);
    return same;
}

uint64_t engine_part_bytes(const struct engine_part *part)
{
    const struct execution_node *n = &part->execution->nodes[part->node];
    uint64_t bytes = part->packs.bytes + part->constant_bytes;
    for (size_t w = 0; w < n->layer->type->n_weights; w++)
        if (part->data[w] > DATA_LENT)
            bytes += (uint64_t)part->weights[w].size *
                     strata_dtype_size(part->weights[w].dtype);
    return bytes;
}

static struct engine_part *find(const struct engine_pool *pool, const struct execution *x,
                                const struct execution_node *n)
{
    for (size_t i = 0; pool && i < pool->n; i++) {
        const struct engine_part *p = pool->list[i];
        if (same_node(x, n, p->execution, &p->execution->nodes[p->node]))
            return pool->list[i];
    }
    return NULL;
}

/* Whether a part has the memory of one that is not the engine's, as no earlier one of the
 * engine's nodes does. */
static bool has_others(const strata_engine *e, size_t node)
{
    const struct engine_part *twin = e->parts[node] ? e->parts[node]->twin : NULL;
    bool others = twin != NULL;
    for (size_t i = 0; i < node && others; i++)
        others = e->parts[i] != twin && !(e->parts[i] && e->parts[i]->twin == twin);
    return others;
}

/* Candidates are in the order of nodes, and twins are before the parts that have them. */
void engine_take_parts(strata_engine *e, const strata_engine *kin,
                       const struct engine_pool *pool)
{
    const struct execution *x = e->execution, *y = kin->execution;
    for (size_t i = 0, k = 0; i < x->n_nodes; i++) {
        const struct execution_node *n = &x->nodes[i];
        while (k < y->n_nodes && y->nodes[k].candidate < n->candidate)
            k++;
        e->parts[i] = k < y->n_nodes && same_node(x, n, y, &y->nodes[k])
                          ? kin->parts[k]
                          : find(pool, x, n);
        if (!e->parts[i])
            continue;
        e->parts[i]->holders++;
        e->weight_bytes += engine_part_bytes(e->parts[i]);
        if (has_others(e, i))
            e->weight_bytes += engine_part_bytes(e->parts[i]->twin);
    }
}
