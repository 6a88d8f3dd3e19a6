/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in few bits.
 */
#include "calibrate/weights.h"

#include <math.h>
#include <stdlib.h>

#include "calibrate/method/method.h"
#include "core/alloc.h"

#define NIBBLE_ZERO 8  /* what stands for 0 in 4 bits */
#define PARALLEL 65536 /* values that pay for a thread team */

/* ---- where things lie ----------------------------------------------------------------
 */

static bool channels_last(const struct int8_weight *w)
{
    return w->order[ORDER_INNER] == 1;
}

/* How far down its channel an element of a matrix is, whichever way that lies. */
static int64_t depth_of(const struct int8_weight *w, int64_t i)
{
    const int64_t inner = w->order[ORDER_INNER];
    return i / (inner * w->channels) * inner + i % inner;
}

int64_t int8_weight_scale(const struct int8_weight *w, int64_t i)
{
    const int64_t channel = i / w->order[ORDER_INNER] % w->channels;
    if (w->groups == 1)
        return channel;
    const int64_t group = depth_of(w, i) / w->group;
    return channels_last(w) ? group * w->channels + channel : channel * w->groups + group;
}

void int8_weight_free(struct int8_weight *w)
{
    free(w->values);
    free(w->scales);
    *w = (struct int8_weight){.count = 0};
}

static int load(float **out, int64_t *count, const struct network_weight *w,
                strata_error *err)
{
    *count = network_elements(w->dims, w->rank);
    *out = zalloc((size_t)*count, sizeof **out, w->name, err);
    if (!*out)
        return STRATA_ENOMEM;
    int status = network_weight_load(w, *out, err);
    for (int64_t i = 0; i < *count && status == STRATA_OK; i++)
        if (!isfinite((*out)[i]))
            status =
                error_set(err, STRATA_EINVAL,
                          "weight '%s': element %lld is %s; a weight of few bits is "
                          "a number",
                          w->name, (long long)i, isnan((*out)[i]) ? "NaN" : "infinite");
    return status;
}

/* ---- 8 bits --------------------------------------------------------------------------
 */

/* The largest magnitude is the type's. */
static void find_scales(struct int8_weight *w, const float *from,
                        const struct quant_type *type)
{
    for (int64_t i = 0; i < w->count; i++) {
        float *most = &w->scales[int8_weight_scale(w, i)];
        *most = fmaxf(*most, fabsf(from[i]));
    }
    for (int64_t k = 0; k < w->channels * w->groups; k++)
        w->scales[k] = (float)quant_scale(type, (double)w->scales[k]);
}

/* ---- 4 bits --------------------------------------------------------------------------
 */

/* How many steps the largest of a group may be from 0, either way, and those between. */
enum { LEAST_STEPS = 6, MOST_STEPS = 9, STEPS_EACH = 2 };

static float round_nibble(float x)
{
    const float low = x < -NIBBLE_ZERO ? -NIBBLE_ZERO : x;
    const float in = low > NIBBLE_ZERO - 1 ? NIBBLE_ZERO - 1 : low;
    return (in + 0x1.8p23f) - 0x1.8p23f; /* to the nearest */
}

/* Values `step` apart that share a scale. */
struct group {
    const float *x;
    int64_t n, step;
};

/* The scale that is best for what rounding by another gives, and how much of the squares
 * it leaves less: (sum xq)^2 / sum qq. */
static float refit(const struct group *g, float scale, double *gain)
{
    const float each = 1 / scale;
    float xq = 0, qq = 0;
    for (int64_t i = 0; i < g->n; i++) {
        const float x = g->x[i * g->step], q = round_nibble(x * each);
        xq += x * q;
        qq += q * q;
    }
    *gain = qq > 0 ? (double)xq * (double)xq / (double)qq : 0;
    return qq > 0 ? xq / qq : 1;
}

/* Of the least squared error: -8 has no twin, so that the element of the largest
 * magnitude may be on either side, and it need not be in range. */
static float nibble_scale(const struct group *g)
{
    float most = 0, best = 1;
    double best_gain = -1;
    for (int64_t i = 0; i < g->n; i++)
        if (fabsf(g->x[i * g->step]) > fabsf(most))
            most = g->x[i * g->step];
    if (fabsf(most) < 0x1p-60f) /* squares would be none; all rounds to 0 */
        return 1;
    for (int step = LEAST_STEPS * STEPS_EACH; step <= MOST_STEPS * STEPS_EACH; step++)
        for (int side = -1; side <= 1; side += 2) {
            double gain;
            const float scale = most * (float)STEPS_EACH / (float)(side * step);
            const float refitted = refit(g, scale, &gain);
            if (gain > best_gain) {
                best_gain = gain;
                best = refitted;
            }
        }
    return best;
}

static void find_nibble_scales(struct int8_weight *w, const float *from)
{
    const int64_t depth = w->channels > 0 ? w->count / w->channels : 0;
    const bool last = channels_last(w);
#pragma omp parallel for if (w->count > PARALLEL)
    for (int64_t c = 0; c < w->channels; c++)
        for (int64_t k = 0; k < depth; k += w->group) {
            const int64_t first = last ? k * w->channels + c : c * depth + k;
            const int64_t n = depth - k < w->group ? depth - k : w->group;
            const struct group g = {from + first, n, last ? w->channels : 1};
            w->scales[int8_weight_scale(w, first)] = nibble_scale(&g);
        }
}

uint8_t *int8_weight_pack(const struct int8_weight *w, int64_t dims[2], strata_error *err)
{
    const int64_t depth = w->channels > 0 ? w->count / w->channels : 0;
    const bool last = channels_last(w);
    const int64_t rows = depth / 2 + depth % 2;
    dims[0] = last ? rows : w->channels;
    dims[1] = last ? w->channels : rows;
    uint8_t *bytes = zalloc((size_t)(rows * w->channels), 1, "weights of 4 bits", err);
    for (int64_t i = 0; bytes && i < w->count; i++) {
        const int64_t k = depth_of(w, i), n = i / w->order[ORDER_INNER] % w->channels;
        const int nibble = (int8_t)w->values[i] + NIBBLE_ZERO;
        bytes[last ? k / 2 * w->channels + n : n * rows + k / 2] |=
            (uint8_t)(nibble << (k % 2 > 0 ? 4 : 0));
    }
    return bytes;
}

/* ---- both ----------------------------------------------------------------------------
 */

static uint8_t nibble_code(double steps)
{
    return (uint8_t)(int8_t)fmax(fmin(nearbyint(steps), NIBBLE_ZERO - 1), -NIBBLE_ZERO);
}

static void round_values(struct int8_weight *w, const float *from,
                         uint8_t (*code)(double), double (*value)(uint8_t))
{
    for (int64_t i = 0; i < w->count; i++) {
        const double scale = (double)w->scales[int8_weight_scale(w, i)];
        const double x = (double)from[i];
        w->values[i] = code(x / scale);
        const double left = x - value(w->values[i]) * scale;
        w->signal += x * x;
        w->noise += left * left;
    }
}

/* Groups of a channel's values, and memory for values and scales. */
static int begin(struct int8_weight *w, const struct weight_form *form, const char *name,
                 strata_error *err)
{
    const int64_t depth = w->channels > 0 ? w->count / w->channels : 0;
    w->group = form && form->group > 0 && form->group < depth ? form->group
               : depth > 0                                    ? depth
                                                              : 1;
    w->groups = depth > 0 ? network_shares(depth, w->group) : 1;
    w->values = zalloc((size_t)w->count, sizeof *w->values, name, err);
    w->scales = zalloc((size_t)(w->channels * w->groups), sizeof *w->scales, name, err);
    return w->values && w->scales ? STRATA_OK : STRATA_ENOMEM;
}

int int8_weight_make(struct int8_weight *out, const struct network_layer *layer,
                     const struct computes *c, const struct quant_type *type,
                     const struct weight_form *form, strata_error *err)
{
    const struct network_weight *w = &layer->weights[scheme_weight(layer, c->weight)];
    const bool nibbles = form && form->bits == 4;
    float *from = NULL;
    *out = (struct int8_weight){.count = 0};
    int status = load(&from, &out->count, w, err);
    if (status != STRATA_OK)
        goto done;
    c->order(layer, w->dims, w->rank, out->order);
    out->channels = out->order[ORDER_CHANNELS];
    status = begin(out, form, w->name, err);
    if (status == STRATA_OK && nibbles)
        find_nibble_scales(out, from);
    else if (status == STRATA_OK)
        find_scales(out, from, type);
    if (status == STRATA_OK && nibbles)
        round_values(out, from, nibble_code, quant_int8.value);
    else if (status == STRATA_OK)
        round_values(out, from, type->code, type->value);
done:
    free(from);
    if (status != STRATA_OK)
        int8_weight_free(out);
    return status;
}
