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

/* Call tile for rows of one scale each, with the operands y, x, scale and zero. Whether
 * they are such: floats and integers lie in one piece along the last dim, and what
 * broadcasts to them stands still there. */
static inline int quantize_rows_run(const struct quantize_operands *o, span_tile *tile)
{
    const strata_tensor *operand[] = {&o->y, &o->x, &o->scale, &o->zero};
    const int32_t last = o->y.rank - 1;
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
