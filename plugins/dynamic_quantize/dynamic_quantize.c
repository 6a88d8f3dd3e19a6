/* SPDX-License-Identifier: Apache-2.0
 *
 * DynamicQuantize: floats as UINT8 with the scale and the zero that their own range asks
 * for, in which 0 is. One pass finds the range, one rounds.
 */
#include <math.h>
#include <string.h>

#include "plugins/common/dense.h"
#include "plugins/common/element.h"
#include "plugins/common/bytes/rows.h"
#include "plugins/common/walk.h"

#ifdef ELEMENT_X86
#include <immintrin.h>
#endif

enum { Y, SCALE, ZERO };

static int dynamic_shape(const strata_node *n)
{
    if (n->in[0].dtype != STRATA_FP32 && n->in[0].dtype != STRATA_FP16 &&
        n->in[0].dtype != STRATA_BF16)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the input is neither fp32 nor a narrower float; put a Cast "
                           "before it");
    n->out[Y].rank = n->in[0].rank;
    memcpy(n->out[Y].dims, n->in[0].dims, sizeof n->out[Y].dims);
    n->out[Y].dtype = n->out[ZERO].dtype = STRATA_UINT8;
    n->out[SCALE].dtype = STRATA_FP32;
    for (int i = SCALE; i <= ZERO; i++) {
        n->out[i].rank = 1;
        n->out[i].dims[0] = 1;
    }
    return STRATA_OK;
}

/* ---- the range --------------------------------------------------------------------- */

struct range {
    float low, high;
};

/* r, and n values; a NaN has no part in it. */
typedef struct range range_row(struct range r, const float *x, int64_t n);

static struct range range_plain(struct range r, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        r.low = x[i] < r.low ? x[i] : r.low;
        r.high = x[i] > r.high ? x[i] : r.high;
    }
    return r;
}

#ifdef ELEMENT_X86
/* The second operand is what is left where one is no number. */
__attribute__((target("avx2,fma"))) static struct range
range_avx2(struct range r, const float *x, int64_t n)
{
    enum { LANES = 8, VECTORS = 4 };
    __m256 low[VECTORS], high[VECTORS];
    float lows[LANES], highs[LANES];
    int64_t i = 0;
    for (int k = 0; k < VECTORS; k++) {
        low[k] = _mm256_set1_ps(r.low);
        high[k] = _mm256_set1_ps(r.high);
    }
    for (; i + LANES * VECTORS <= n; i += LANES * VECTORS)
#pragma GCC unroll 4
        for (int k = 0; k < VECTORS; k++) {
            const __m256 v = _mm256_loadu_ps(x + i + k * LANES);
            low[k] = _mm256_min_ps(v, low[k]);
            high[k] = _mm256_max_ps(v, high[k]);
        }
    for (int k = 1; k < VECTORS; k++) {
        low[0] = _mm256_min_ps(low[k], low[0]);
        high[0] = _mm256_max_ps(high[k], high[0]);
    }
    _mm256_storeu_ps(lows, low[0]);
    _mm256_storeu_ps(highs, high[0]);
    r.low = range_plain(r, lows, LANES).low;
    r.high = range_plain(r, highs, LANES).high;
    return range_plain(r, x + i, n - i);
}
#endif

static range_row *range_for(void)
{
#ifdef ELEMENT_X86
    if (element_has_f16c())
        return range_avx2;
#endif
    return range_plain;
}

static struct range range_of(const float *x, int64_t n)
{
    range_row *row = range_for();
    float low = 0, high = 0;
#pragma omp parallel for schedule(static) reduction(min                                  \
                                                    : low)                               \
    reduction(max                                                                        \
              : high) if (n >= WALK_PARALLEL)
    for (int64_t at = 0; at < n; at += WALK_GRAIN) {
        const struct range r = row((struct range){low, high}, x + at,
                                   n - at < WALK_GRAIN ? n - at : WALK_GRAIN);
        low = r.low;
        high = r.high;
    }
    return (struct range){low, high};
}

/* ---- plain C ----------------------------------------------------------------------- */

/* Both ends are the results of FP32's operations, one by one; 0/0 gives 0. */
static struct quantize_scale scale_of(struct range r)
{
    const float scale = (r.high - r.low) / 255, share = rintf(-(r.low / scale));
    return (struct quantize_scale){
        .scale = scale,
        .zero = share > 0 ? (share < 255 ? share : 255) : 0,
        .high = 255,
    };
}

static int dynamic_run(const strata_run *r)
{
    const float *x = r->in[0].data;
    uint8_t *y = r->out[Y].data;
    const int64_t n = r->in[0].count;
    const struct quantize_scale s = scale_of(range_of(x, n));
    quantize_row *row = quantize_row_for(&s);
#pragma omp parallel for schedule(static) if (n >= WALK_PARALLEL)
    for (int64_t at = 0; at < n; at += WALK_GRAIN)
        row(y + at, x + at, &s, n - at < WALK_GRAIN ? n - at : WALK_GRAIN);
    *(float *)r->out[SCALE].data = s.scale;
    *(uint8_t *)r->out[ZERO].data = (uint8_t)s.zero;
    return STRATA_OK;
}

/* ---- the definition ---------------------------------------------------------------- */

static int dynamic_reference(const strata_node *n, const void *const *in,
                             const void *const *weight, void *const *out)
{
    const double *x = in[0];
    const int64_t count = dense_count(&n->in[0]);
    double low = 0, high = 0;
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    const float scale = ((float)high - (float)low) / 255;
    const double share = nearbyint((double)((float)low / scale));
    const double zero = isnan(share) ? 0 : fmin(fmax(-share, 0), 255);
    for (int64_t i = 0; i < count; i++) {
        const double v = nearbyint((double)((float)x[i] / scale)) + zero;
        ((int64_t *)out[Y])[i] = isnan(v) ? 0 : (int64_t)fmin(fmax(v, 0), 255);
    }
    *(double *)out[SCALE] = (double)scale;
    *(int64_t *)out[ZERO] = (int64_t)zero;
    return STRATA_OK;
}

static const void *dynamic_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     dynamic_reference};
    return dense_extension_typed(id, &reference);
}

/* ---- tables ------------------------------------------------------------------------ */

static const strata_row rows[] = {
    {{STRATA_F32_NCHW}, {STRATA_U8_NCHW, STRATA_F32_NCHW, STRATA_U8_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.16,
     .bandwidth = 0.6,
     .run = dynamic_run},
};

static const strata_layer dynamic_quantize = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "DynamicQuantize",
    .doc = "Floats as UINT8 times the scale of their range, and that scale and its zero",
    .min_in = 1,
    .max_in = 1,
    .n_out = 3,
    .impls = STRATA_ARRAY(impls),
    .shape = dynamic_shape,
    .extension = dynamic_extension,
};

static const strata_layer *const layers[] = {&dynamic_quantize};
STRATA_MODULE("core", "1.0.0", "DynamicQuantize", layers)
