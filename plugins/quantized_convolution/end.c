/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes and ends for the impls of AVX-512.
 */
#include "plugins/quantized_convolution/end.h"

#include <float.h>

#include "plugins/common/quantized/quotient.h"

int vnni_is_there(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return 0;
#endif
}

int vnni_allocate(const strata_node *n, size_t count, size_t size, void **out)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes)
               ? STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory")
               : quantized_pack(n, bytes, out);
}

/* ---- lanes ------------------------------------------------------------------------- */

/* The largest magnitude; infinite where one is no number. */
static float largest(const float *x, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++)
        most = fabsf(x[i]) <= FLT_MAX ? fmaxf(most, fabsf(x[i])) : INFINITY;
    return most;
}

static int is_short(const strata_node *n, int w)
{
    const strata_tensor *t = &n->weight[w];
    if (t->rank == 0)
        return 1;
    const float scale = *(const float *)t->data;
    return quotient_is_middling(scale) && quotient_is_short(scale);
}

/* -zero*sum of a filter's weights. */
static int32_t correction_of(const int8_t *weight, int64_t depth, int32_t zero)
{
    int64_t sum = 0; /* of fewer than 65,536 */
    for (int64_t i = 0; i < depth; i++)
        sum += weight[i];
    return (int32_t)(-zero * sum);
}

int vnni_make_lanes(const strata_node *n, size_t lanes, int64_t depth, int32_t flip,
                    vnni_filter_of *filter_of, const void *user, struct vnni_lanes *out)
{
    const strata_quantized_convolution *p = n->params;
    const strata_tensor *factors = &n->weight[STRATA_QUANTIZED_FACTORS];
    const float *scale = factors->data, *bias = n->weight[STRATA_QUANTIZED_BIAS].data;
    const int8_t *weight = n->weight[STRATA_QUANTIZED_WEIGHT].data;
    const float in = *(const float *)n->weight[STRATA_QUANTIZED_SCALE_IN].data;
    const int32_t zero = (int32_t)p->quantized.zero_in + flip;
    void *memory;
    int status = vnni_allocate(n, lanes, 2 * sizeof(float) + sizeof(int32_t), &memory);
    if (status != STRATA_OK)
        return status;
    float *factor = memory, *added = factor + lanes;
    int32_t *correction = (int32_t *)(void *)(added + lanes);
    for (size_t i = 0; i < lanes; i++) {
        const int64_t k = filter_of(user, (int64_t)i);
        factor[i] = k < 0 ? 0 : in * scale[factors->count > 1 ? k : 0];
        added[i] = k < 0 || n->weight[STRATA_QUANTIZED_BIAS].rank == 0 ? 0 : bias[k];
        correction[i] = k < 0 ? 0 : correction_of(weight + k * depth, depth, zero);
    }
    const float steepest = largest(factor, lanes), most = largest(added, lanes);
    *out = (struct vnni_lanes){
        .correction = correction,
        .factor = factor,
        .bias = added,
        .multiplies = steepest < 0x1p30F && most < 0x1p60F,
        .reach = (float)(depth + 3) * 255 * 128 * steepest + most,
        .is_short = is_short(n, STRATA_QUANTIZED_SCALE_OUT) &&
                    is_short(n, STRATA_QUANTIZED_SCALE_BETWEEN),
    };
    return STRATA_OK;
}

/* ---- ends -------------------------------------------------------------------------- */

static float one_of(const strata_run *r, int w)
{
    return r->weight[w].rank > 0 ? *(const float *)r->weight[w].data : 1;
}

/* To bytes from 0 or -128 on, of which `zero` stands for 0. */
static struct vnni_step step_of(float scale, int is_unsigned, int64_t zero)
{
    const float least = is_unsigned ? 0 : -128;
    return (struct vnni_step){scale, 1 / scale, quotient_rest(scale), least - (float)zero,
                              least + 255 - (float)zero};
}

/* An activation's bounds, as quotients where those are rounded: the upper one is applied
 * last, and is never below the least byte. */
static void bound(struct vnni_step *s, float low, float high, int to_bytes)
{
    const float least = s->low, most = s->high;
    s->low = to_bytes ? fmaxf(least, low / s->scale) : low;
    s->high = to_bytes ? fmaxf(fminf(most, high / s->scale), least) : high;
}

struct vnni_end vnni_end_of(const strata_run *r, const struct vnni_lanes *lanes)
{
    const strata_quantized_convolution *p = r->params;
    const strata_quantized *q = &p->quantized;
    const int has_addend = r->n_in > 1;
    const int32_t flip = has_addend && r->in[1].dtype == STRATA_INT8 ? 128 : 0;
    float low, high;
    struct vnni_end e = {.params = p,
                         .between = step_of(one_of(r, STRATA_QUANTIZED_SCALE_BETWEEN),
                                            p->between == 2, p->zero_between),
                         .out = step_of(quantized_scale_out(r), q->to == 2, q->zero_out),
                         .scale_addend = one_of(r, STRATA_QUANTIZED_SCALE_ADDEND),
                         .zero = (int32_t)q->zero_out,
                         .zero_addend = (int32_t)p->zero_addend + flip,
                         .addend_flip = flip,
                         .has_addend = has_addend,
                         .has_between = p->between != 0,
                         .to_bytes = q->to != 0};
    quantized_bounds(q, &e.slope, &low, &high);
    e.has_slope = e.slope != 1;
    e.multiplies =
        lanes->multiplies && low <= high && quotient_is_middling(e.out.scale) &&
        quotient_is_middling(e.between.scale) && quotient_is_middling(e.scale_addend) &&
        quotient_is_bounded(e.slope, low, high);
    const struct vnni_step bytes = e.out;
    const float reach = fmaxf(lanes->reach, 512 * e.between.scale) + 512 * e.scale_addend;
    bound(&e.out, low, high, e.to_bytes);
    e.packs = e.multiplies && e.to_bytes && !e.has_slope && e.out.low == bytes.low &&
              e.out.high == bytes.high && reach < 0x1p30F * e.out.scale;
    return e;
}
