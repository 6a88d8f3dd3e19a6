/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedProduct of E4M3, plain and as it is defined. A product of two has 8 bits, so
 * it is exact in FP32; sums round.
 */
#include "plugins/quantized_product/product.h"

#include <strata/narrow.h>

#include "plugins/common/dense.h"

enum {
    WEIGHT = STRATA_QUANTIZED_WEIGHT,
    LANES = 16 /* partial sums */
};

/* ---- plain C ------------------------------------------------------------------- */

int float8_accept(const strata_node *n)
{
    const strata_quantized_product *p = n->params;
    return quantized_accept(n, &p->quantized);
}

/* Sixteen sums, of each sixteenth product from one of the first on, in order; then their
 * sum, in order. */
static float dot(const float *value, const uint8_t *x, const uint8_t *w, int64_t n)
{
    float part[LANES] = {0}, sum = 0;
    for (int64_t k = 0; k < n; k++)
        part[k % LANES] += value[x[k]] * value[w[k]];
    for (int l = 0; l < LANES; l++)
        sum += part[l];
    return sum;
}

static void store(const strata_tensor *out, int64_t at, float y, float scale_out)
{
    if (out->dtype == STRATA_E4M3)
        ((uint8_t *)out->data)[at] = strata_e4m3_of_float(y / scale_out, 1);
    else
        ((float *)out->data)[at] = y;
}

int float8_run(const strata_run *r)
{
    const struct product_plain *c = r->state;
    const strata_quantized_product *p = r->params;
    const uint8_t *x = r->in[0].data, *packed = c->packed;
    const float *bias = r->weight[STRATA_QUANTIZED_BIAS].data;
    const float scale = quantized_scale_out(r);
    const int64_t total = r->out[0].count;
    float value[256]; /* of each E4M3 */
    for (int i = 0; i < 256; i++)
        value[i] = strata_float_of_e4m3((uint8_t)i);
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < total; task++) {
        const int64_t row = task / c->units, u = task % c->units;
        const float sum = dot(value, x + row * c->depth, packed + u * c->depth, c->depth);
        store(
            &r->out[0], task,
            quantized_activate(&p->quantized, sum * c->factor[u] + (bias ? bias[u] : 0)),
            scale);
    }
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

static double activate(const strata_quantized *q, double y)
{
    switch (q->activation - 1) {
    case STRATA_RELU:
        return y < 0 ? 0 : y;
    case STRATA_LEAKY_RELU:
        return y < 0 ? q->alpha * y : y;
    case STRATA_RELU6:
        return y < 0 ? 0 : y > 6 ? 6 : y;
    case STRATA_CLIP:
        return y < q->alpha ? q->alpha : y > q->beta ? q->beta : y;
    default:
        return y;
    }
}

/* All in FP64; what is stored as E4M3 is limited, and rounded by who compares. */
int float8_reference(const strata_node *n, const void *const *in,
                     const void *const *weight, void *const *out)
{
    const strata_quantized_product *p = n->params;
    const strata_quantized *q = &p->quantized;
    const double *x = in[0], *w = weight[WEIGHT];
    const double *bias = weight[STRATA_QUANTIZED_BIAS];
    const double *factor = weight[STRATA_QUANTIZED_FACTORS];
    const double *scale_in = weight[STRATA_QUANTIZED_SCALE_IN];
    const double *scale_out = weight[STRATA_QUANTIZED_SCALE_OUT];
    const int many = n->weight[STRATA_QUANTIZED_FACTORS].dims[0] > 1;
    const int64_t depth = n->in[0].dims[n->in[0].rank - 1];
    const int64_t units = n->out[0].dims[n->out[0].rank - 1];
    for (int64_t e = 0; e < dense_count(&n->out[0]); e++) {
        const int64_t u = e % units, row = e / units;
        double sum = 0;
        for (int64_t k = 0; k < depth; k++)
            sum += x[row * depth + k] * w[p->transposed ? u * depth + k : k * units + u];
        double y =
            activate(q, sum * *scale_in * factor[many ? u : 0] + (bias ? bias[u] : 0));
        if (q->to != 0)
            y = y / *scale_out > 448    ? 448
                : y / *scale_out < -448 ? -448
                                        : y / *scale_out;
        ((double *)out[0])[e] = y;
    }
    return STRATA_OK;
}
