/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedConvolution's second input: what it must be, and how it joins a sum.
 */
#ifndef PLUGINS_QUANTIZED_CONVOLUTION_JOIN_H
#define PLUGINS_QUANTIZED_CONVOLUTION_JOIN_H

#include "plugins/common/quantized/quantized.h"

/* What becomes of y, a sum that was scaled: then comes the activation. */
static inline float join_value(const strata_quantized_convolution *p, float y, int32_t b,
                               float scale_addend, float scale_between)
{
    const int32_t zero = (int32_t)p->zero_between;
    if (p->between) {
        const strata_quantized to = {.to = p->between, .zero_out = zero};
        y = (float)(quantized_round(&to, y, scale_between) - zero) * scale_between;
    }
    return y + (float)(b - (int32_t)p->zero_addend) * scale_addend;
}

static inline int join_check_between(const strata_node *n,
                                     const strata_quantized_convolution *p)
{
    const int low = p->between == 2 ? 0 : -128, high = low + 255;
    if (n->weight[STRATA_QUANTIZED_SCALE_BETWEEN].rank == 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "sums are rounded before they are added, and there is no "
                           "scale_between; give one");
    if (p->zero_between < low || p->zero_between > high)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "zero_between is %lld; its dtype has %d to %d",
                           (long long)p->zero_between, low, high);
    return STRATA_OK;
}

/* Once the output's dims are known. */
static inline int join_check(const strata_node *n)
{
    const strata_quantized_convolution *p =
        (const strata_quantized_convolution *)n->params;
    if (n->n_in < 2)
        return p->between == 0
                   ? STRATA_OK
                   : STRATA_FAIL(n, STRATA_EINVAL,
                                 "`between` is for a sum with a second input; give one");
    const strata_tensor *b = &n->in[1], *y = &n->out[0];
    int status = quantized_check_byte(n, b, p->zero_addend);
    int same = b->rank == y->rank;
    for (int d = 0; d < b->rank && same; d++)
        same = b->dims[d] == y->dims[d];
    if (status == STRATA_OK && !same)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the second input differs in shape from the output; it must "
                           "not");
    if (status == STRATA_OK && n->weight[STRATA_QUANTIZED_SCALE_ADDEND].rank == 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the second input has no scale_addend; give one");
    return status || !p->between ? status : join_check_between(n, p);
}

#endif /* PLUGINS_QUANTIZED_CONVOLUTION_JOIN_H */
