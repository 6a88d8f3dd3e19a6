/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands of Quantize and Dequantize on the host: scales and zeros broadcast to the
 * values, blocks being a dim of their own.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_OPERANDS_H
#define PLUGINS_COMMON_QUANTIZED_OPERANDS_H

#include "plugins/common/pointwise/span.h"
#include "plugins/common/quantized/quantize.h"

#define QUANTIZE_STRETCH 4096 /* values of a row at once */

struct quantize_operands {
    strata_tensor x, y, scale, zero; /* zero: 0 where the layer has none */
};

static inline struct quantize_operands quantize_operands(const strata_run *r)
{
    static float nothing[1] = {0};
    const strata_quantize *p = (const strata_quantize *)r->params;
    const int32_t axis = quantize_axis(p, r->in[0].rank);
    struct quantize_operands o = {
        .x = r->in[0],
        .y = r->out[0],
        .scale = quantize_view(p, &r->in[0], &r->weight[0]),
        .zero = {.data = nothing, .count = 1, .rank = 1, .dims = {1}},
    };
    o.zero.vector = 1;
    o.zero.vector_dim = -1;
    if (r->weight[1].rank > 0)
        o.zero = quantize_view(p, &r->in[0], &r->weight[1]);
    if (p->block > 0) {
        o.x = quantize_split(&o.x, axis, p->block);
        o.y = quantize_split(&o.y, axis, p->block);
    }
    return o;
}

/* Whether all values have one scale and lie in one piece, x and y in the same order. */
static inline int quantize_is_flat(const struct quantize_operands *o)
{
    if (o->scale.count > 1 || o->zero.count > 1 || o->x.rank != o->y.rank ||
        o->x.size != o->x.count || o->y.size != o->y.count)
        return 0;
    for (int d = 0; d < o->x.rank; d++)
        if (o->x.dims[d] > 1 && o->x.strides[d] != o->y.strides[d])
            return 0;
    return 1;
}

/* The values of one that is flat, in the order of memory. */
static inline strata_tensor quantize_flat(const strata_tensor *t)
{
    strata_tensor v = *t;
    v.rank = 1;
    v.dims[0] = t->count;
    v.strides[0] = 1;
    v.vector = 1;
    v.vector_dim = -1;
    return v;
}

/* Call tile for rows of one scale each, with the operands y, x, scale and zero. Whether
 * they are such: floats and integers lie in one piece along the last dim, and what
 * broadcasts to them stands still there. */
static inline int quantize_rows_run(const struct quantize_operands *o, span_tile *tile)
{
    const strata_tensor *operand[] = {&o->y, &o->x, &o->scale, &o->zero};
    const int32_t last = o->y.rank - 1;
    if (quantize_is_flat(o)) {
        const strata_tensor one = {
            .count = 1, .rank = 1, .dims = {1}, .vector = 1, .vector_dim = -1};
        const strata_tensor y = quantize_flat(&o->y), x = quantize_flat(&o->x);
        const strata_tensor *flat[] = {&y, &x, &one, &one};
        span_run(flat, 4, QUANTIZE_STRETCH, tile, o);
        return 1;
    }
    if (last < 0 || o->y.dims[last] <= 1 || o->x.strides[last] != 1 ||
        o->y.strides[last] != 1)
        return 0;
    for (int i = 2; i < 4; i++)
        if (operand[i]->count > 1 && operand[i]->dims[operand[i]->rank - 1] != 1)
            return 0;
    span_run(operand, 4, QUANTIZE_STRETCH, tile, o);
    return 1;
}

#endif /* PLUGINS_COMMON_QUANTIZED_OPERANDS_H */
