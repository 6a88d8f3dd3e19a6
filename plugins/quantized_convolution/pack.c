/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in the order in which products of four bytes read them.
 */
#include "plugins/common/window.h"
#include "plugins/quantized_convolution/end.h"

/* Of a block's filters in byte `i` of row r: every fourth byte of `to`. */
static void pack_byte(const struct vnni_packing *p, const int8_t *weight, int64_t first,
                      int64_t lanes, int64_t r, int64_t i, int8_t *to)
{
    const int64_t depth = p->channels * p->taps, row = depth / p->rows;
    const int64_t filters = window_min(lanes, p->filters - first);
    const int64_t tap = r * (p->taps / p->rows) + i / p->channels;
    const int8_t *from = weight + first * depth + i % p->channels * p->taps + tap;
    for (int64_t k = 0; k < lanes; k++)
        to[k * 4] = i < row && k < filters ? from[k * depth] : 0;
}

void vnni_pack(const struct vnni_packing *p, const int8_t *weight, int8_t *to)
{
    for (int64_t first = 0; first < p->filters; first += p->vectors * VNNI_LANES) {
        const int64_t left = (p->filters - first + VNNI_LANES - 1) / VNNI_LANES;
        const int64_t lanes = window_min(left, p->vectors) * VNNI_LANES;
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t i = 0; i < p->words; i++, to += lanes * 4)
                for (int b = 0; b < 4; b++)
                    pack_byte(p, weight, first, lanes, r, i * 4 + b, to + b);
    }
}
