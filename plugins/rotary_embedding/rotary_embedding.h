/* SPDX-License-Identifier: Apache-2.0
 *
 * A RotaryEmbedding as both devices compute it.
 */
#ifndef PLUGINS_ROTARY_EMBEDDING_H
#define PLUGINS_ROTARY_EMBEDDING_H

#include <string.h>

#include <strata/layers.h>

#include "plugins/common/index.h"

enum { ROTARY_X, ROTARY_POSITIONS, ROTARY_COS, ROTARY_SIN, ROTARY_INPUTS };
enum { ROTARY_CACHE_COS, ROTARY_CACHE_SIN }; /* weights */

/* Distances in elements. */
struct rotary_plan {
    int64_t batch, heads, length, dim;
    int64_t half;   /* pairs of a head that turn */
    int64_t turned; /* heads that do; the others behind them stay */
    int64_t x_batch, x_head, x_row, y_batch, y_head, y_row;
    /* Pair i is elements i*step and i*step + apart. */
    int64_t step, apart;
    const void *positions; /* NULL: 0, 1, ... */
    int32_t positions_dtype;
    int32_t first_only;    /* positions are those of the first of each row */
    const void *cos, *sin; /* NULL: computed */
    int32_t cos_dtype, sin_dtype;
    int32_t by_position; /* rows of the caches are positions, else batch x sequence */
    int64_t rows;        /* of the caches */
    int64_t cos_row, sin_row; /* from one to the next */
    double base;
};

static inline const strata_tensor *rotary_input(int n_in, const strata_tensor *in, int i)
{
    return i < n_in && in[i].rank > 0 ? &in[i] : NULL;
}

/* Input `cos` or `sin`, else the weight; NULL: neither. */
static inline const strata_tensor *rotary_cache(int n_in, const strata_tensor *in,
                                                const strata_tensor *weight, int which)
{
    const strata_tensor *given = rotary_input(n_in, in, ROTARY_COS + which);
    return given ? given : weight[which].rank > 0 ? &weight[which] : NULL;
}

static inline int64_t rotary_heads(const strata_rotary_embedding *p,
                                   const strata_tensor *x)
{
    return p->heads ? p->heads : x->dims[1];
}

static inline int64_t rotary_turned(const strata_rotary_embedding *p,
                                    const strata_tensor *x)
{
    return p->turned ? p->turned : rotary_heads(p, x);
}

/* Elements of a head of x, whose shape is right. */
static inline int64_t rotary_dim(const strata_rotary_embedding *p, const strata_tensor *x)
{
    return p->heads ? x->dims[2] / p->heads : x->dims[3];
}

static inline void rotary_places(struct rotary_plan *r, const strata_tensor *x,
                                 const strata_tensor *y)
{
    const int flat = x->rank == 3;
    r->x_batch = x->strides[0];
    r->y_batch = y->strides[0];
    r->x_head = flat ? r->dim : x->strides[1];
    r->y_head = flat ? r->dim : y->strides[1];
    r->x_row = x->strides[x->rank - 2];
    r->y_row = y->strides[y->rank - 2];
}

/* Of a run whose shapes are right. */
static inline struct rotary_plan rotary_plan_of(const strata_run *run)
{
    const strata_rotary_embedding *p = (const strata_rotary_embedding *)run->params;
    const strata_tensor *x = &run->in[ROTARY_X];
    const strata_tensor *at = rotary_input(run->n_in, run->in, ROTARY_POSITIONS);
    const strata_tensor *c = rotary_cache(run->n_in, run->in, run->weight,
                                          ROTARY_CACHE_COS),
                        *s = rotary_cache(run->n_in, run->in, run->weight,
                                          ROTARY_CACHE_SIN);
    struct rotary_plan r;
    memset(&r, 0, sizeof r);
    r.batch = x->dims[0];
    r.heads = rotary_heads(p, x);
    r.turned = rotary_turned(p, x);
    r.length = x->dims[x->rank - 2];
    r.dim = rotary_dim(p, x);
    r.half = (p->dims ? p->dims : r.dim) / 2;
    r.step = p->interleaved ? 2 : 1;
    r.apart = p->interleaved ? 1 : r.half;
    r.base = p->base;
    rotary_places(&r, x, &run->out[0]);
    if (at) {
        r.positions = at->data;
        r.positions_dtype = at->dtype;
        r.first_only = at->rank == 1;
    }
    if (c) {
        r.cos = c->data;
        r.sin = s->data;
        r.cos_dtype = c->dtype;
        r.sin_dtype = s->dtype;
        r.by_position = c->rank == 2;
        r.rows = r.by_position ? c->dims[0] : c->dims[0] * c->dims[1];
        r.cos_row = r.sin_row = r.half;
    }
    return r;
}

INDEX_INLINE int64_t rotary_position(const struct rotary_plan *r, int64_t b, int64_t i)
{
    if (!r->positions)
        return i;
    return r->first_only
               ? index_value(r->positions, r->positions_dtype, b) + i
               : index_value(r->positions, r->positions_dtype, b * r->length + i);
}

/* The row of the caches for token i of row b; -1: outside of them. */
INDEX_INLINE int64_t rotary_cache_row(const struct rotary_plan *r, int64_t b, int64_t i)
{
    const int64_t row = r->by_position ? rotary_position(r, b, i) : b * r->length + i;
    return row >= 0 && row < r->rows ? row : -1;
}

#endif /* PLUGINS_ROTARY_EMBEDDING_H */
