/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights as int8.
 */
#include "calibrate/weights.h"

#include <math.h>
#include <stdlib.h>

#include "calibrate/method/method.h"
#include "core/alloc.h"

int64_t int8_weight_channel(const int64_t order[3], int64_t i)
{
    return i / order[ORDER_INNER] % order[ORDER_CHANNELS];
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
    return *out ? network_weight_load(w, *out, err) : STRATA_ENOMEM;
}

/* The largest magnitude is 127 steps. */
static int find_scales(struct int8_weight *w, const float *from, const int64_t order[3],
                       const char *name, strata_error *err)
{
    for (int64_t i = 0; i < w->count; i++) {
        float *most = &w->scales[int8_weight_channel(order, i)];
        if (!isfinite(from[i]))
            return error_set(err, STRATA_EINVAL,
                             "weight '%s': element %lld is %s; a weight of int8 is a "
                             "number",
                             name, (long long)i, isnan(from[i]) ? "NaN" : "infinite");
        *most = fmaxf(*most, fabsf(from[i]));
    }
    for (int64_t k = 0; k < w->channels; k++)
        w->scales[k] = (float)quant_scale(&quant_int8, (double)w->scales[k]);
    return STRATA_OK;
}

static void round_values(struct int8_weight *w, const float *from, const int64_t order[3])
{
    const double most = quant_int8.steps;
    for (int64_t i = 0; i < w->count; i++) {
        const double scale = (double)w->scales[int8_weight_channel(order, i)];
        const double x = (double)from[i];
        const double q = fmax(fmin(nearbyint(x / scale), most), -most);
        w->values[i] = (int8_t)q;
        w->signal += x * x;
        w->noise += (x - q * scale) * (x - q * scale);
    }
}

int int8_weight_make(struct int8_weight *out, const struct network_layer *layer,
                     const struct computes *c, strata_error *err)
{
    const struct network_weight *w = &layer->weights[scheme_weight(layer, c->weight)];
    float *from = NULL;
    int64_t order[3];
    *out = (struct int8_weight){.count = 0};
    int status = load(&from, &out->count, w, err);
    if (status != STRATA_OK)
        goto done;
    c->order(layer, w->dims, w->rank, order);
    out->channels = order[ORDER_CHANNELS];
    out->values = zalloc((size_t)out->count, sizeof *out->values, w->name, err);
    out->scales = zalloc((size_t)out->channels, sizeof *out->scales, w->name, err);
    status = out->values && out->scales ? STRATA_OK : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = find_scales(out, from, order, w->name, err);
    if (status == STRATA_OK)
        round_values(out, from, order);
done:
    free(from);
    if (status != STRATA_OK)
        int8_weight_free(out);
    return status;
}
