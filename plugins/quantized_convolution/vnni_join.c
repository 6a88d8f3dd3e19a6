/* SPDX-License-Identifier: Apache-2.0
 *
 * A second input in two FMAs. The definition takes two products, a sum and a quotient,
 * each rounded, of a whole number of steps and a byte: 65,536 pairs, which setup looks
 * at, all of them. Where factors give another byte for one pair, their neighbours may
 * not.
 */
#include "plugins/quantized_convolution/end.h"

#ifdef __x86_64__
#include <math.h>

#include "plugins/common/quantized/quotient.h"
#include "plugins/quantized_convolution/end_avx512.h"

enum { BYTES = 256, WAYS = 3, TRIES = WAYS * WAYS * WAYS };

/* steps: the least one before the sum; zero: what stands for 0 in the second input as
 * UINT8; low: the least output's distance from its zero. */
struct pairs {
    float scale_between, scale_addend, scale_out;
    int32_t steps, zero, low;
};

static struct pairs pairs_of(const strata_node *n)
{
    const strata_quantized_convolution *p = n->params;
    const strata_tensor *w = n->weight;
    const int32_t flip = n->in[1].dtype == STRATA_INT8 ? 128 : 0;
    return (struct pairs){
        .scale_between = *(const float *)w[STRATA_QUANTIZED_SCALE_BETWEEN].data,
        .scale_addend = *(const float *)w[STRATA_QUANTIZED_SCALE_ADDEND].data,
        .scale_out = *(const float *)w[STRATA_QUANTIZED_SCALE_OUT].data,
        .steps = (p->between == 2 ? 0 : -128) - (int32_t)p->zero_between,
        .zero = (int32_t)p->zero_addend + flip,
        .low = (p->quantized.to == 2 ? 0 : -128) - (int32_t)p->quantized.zero_out,
    };
}

INSIDE __m512i cut(const struct pairs *p, __m512 quotient)
{
    const __m512i whole = _mm512_cvtps_epi32(quotient);
    return _mm512_min_epi32(_mm512_max_epi32(whole, _mm512_set1_epi32(p->low)),
                            _mm512_set1_epi32(p->low + BYTES - 1));
}

/* Whether 16 bytes from `first` on give the definition's with so many steps. */
INSIDE int agree(const struct pairs *p, const struct vnni_join *j, float steps, int first)
{
    const __m512i count =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i b = _mm512_add_epi32(count, _mm512_set1_epi32(first));
    const __m512 value =
        _mm512_cvtepi32_ps(_mm512_sub_epi32(b, _mm512_set1_epi32(p->zero)));
    const __m512 y = _mm512_add_ps(_mm512_set1_ps(steps * p->scale_between),
                                   _mm512_mul_ps(value, _mm512_set1_ps(p->scale_addend)));
    const __m512 quick =
        _mm512_fmadd_ps(_mm512_set1_ps(steps), _mm512_set1_ps(j->between),
                        _mm512_fmadd_ps(_mm512_cvtepi32_ps(b), _mm512_set1_ps(j->addend),
                                        _mm512_set1_ps(j->rest)));
    return _mm512_cmpneq_epi32_mask(
               cut(p, _mm512_div_ps(y, _mm512_set1_ps(p->scale_out))), cut(p, quick)) ==
           0;
}

TARGET static int is_exact(const struct pairs *p, const struct vnni_join *j)
{
    for (int32_t i = 0; i < BYTES; i++)
        for (int first = 0; first < BYTES; first += VNNI_LANES)
            if (!agree(p, j, (float)(p->steps + i), first))
                return 0;
    return 1;
}

static float neighbour(float x, int way)
{
    return way == 0 ? x : nextafterf(x, way == 1 ? INFINITY : -INFINITY);
}

/* Quotients stay within 32 bits. */
static int is_tame(const struct pairs *p)
{
    return quotient_is_middling(p->scale_between) &&
           quotient_is_middling(p->scale_addend) && quotient_is_middling(p->scale_out) &&
           512 * (p->scale_between + p->scale_addend) < 0x1p30F * p->scale_out;
}

struct vnni_join vnni_find_join(const strata_node *n)
{
    const strata_quantized_convolution *params = n->params;
    struct vnni_join found = {0};
    if (n->n_in < 2 || params->between == 0 || params->quantized.to == 0)
        return found;
    const struct pairs p = pairs_of(n);
    if (!is_tame(&p))
        return found;
    const double between = (double)p.scale_between / (double)p.scale_out;
    const double addend = (double)p.scale_addend / (double)p.scale_out;
    for (int i = 0; i < TRIES && !found.is_exact; i++) {
        found.between = neighbour((float)between, i % WAYS);
        found.addend = neighbour((float)addend, i / WAYS % WAYS);
        found.rest = neighbour((float)(-p.zero * addend), i / WAYS / WAYS);
        found.is_exact = is_exact(&p, &found);
    }
    return found;
}
#else
struct vnni_join vnni_find_join(const strata_node *n)
{
    (void)n;
    return (struct vnni_join){0};
}
#endif
