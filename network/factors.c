/* SPDX-License-Identifier: Apache-2.0
 *
 * Factors of weights: a weight that is stored as INT8 or FP8 beside an FP32 weight, of
 * one element or one along a dim, that says by what the values are multiplied.
 */
#include "network/private.h"

/* What is stored in few bits and stands for floats. */
static bool is_narrow(enum weight_dtype dtype)
{
    return dtype == WEIGHT_I8 || dtype == WEIGHT_F8_E4M3 || dtype == WEIGHT_F8_E5M2;
}

/* NULL, or why a layer's first weight has no factors. */
static const char *refuse(const struct network_weight *w)
{
    if (w->source != WEIGHT_FILE)
        return "it is not in a file";
    if (!is_narrow(w->view.dtype))
        return "it is neither I8 nor F8 in the file";
    return w->dtype == STRATA_FP32 ? NULL : "the layer computes with it as it is";
}

/* Every dim is the weight's or 1: a contract of weight_shape. */
static bool broadcasts(const struct network_weight *f, const struct network_weight *w)
{
    bool fits = f->rank == w->rank && f->dtype == STRATA_FP32;
    for (int d = 0; d < w->rank && fits; d++)
        fits = f->dims[d] == 1 || f->dims[d] == w->dims[d];
    return fits;
}

int network_bind_factors(struct loader *l, const struct draft *d,
                         struct network_layer *layer)
{
    const struct registry_layer *type = layer->type;
    for (size_t i = 1; i < type->n_weights; i++) {
        if (!(type->weights[i].flags & STRATA_FACTORS) || !network_has_weight(layer, i))
            continue;
        const char *why = refuse(&layer->weights[0]);
        if (why)
            config_error(l->c, d->weight_places[i],
                         "layer %s has '%s', which multiplies weight '%s', but %s; "
                         "leave '%s' out, or give '%s' as I8 of a safetensors file",
                         layer->name, type->weights[i].name, type->weights[0].name, why,
                         type->weights[i].name, type->weights[0].name);
        else if (config_errors(l->c)) /* its dims may not be what the layer said */
            return STRATA_OK;
        else if (!broadcasts(&layer->weights[i], &layer->weights[0]))
            return error_set(l->err, STRATA_EMODULE,
                             "%s: weight_shape gives '%s' dims that do not stretch to "
                             "those of '%s'",
                             type->full_name, type->weights[i].name,
                             type->weights[0].name);
        else
            layer->weights[0].factors = &layer->weights[i];
    }
    return STRATA_OK;
}

struct network_weight network_weight_stored(const struct network_weight *w)
{
    struct network_weight stored = *w;
    if (w->factors) {
        stored.factors = NULL;
        stored.dtype = weight_dtype_core(w->view.dtype);
    }
    return stored;
}

/* Where the factor is of index `at` of the first n dims, which are equal or 1. */
static int64_t factor_of(const struct network_weight *w, int n, int64_t at)
{
    int64_t place = 0, step = 1;
    for (int d = n - 1; d >= 0; at /= w->dims[d], d--) {
        if (w->factors->dims[d] != 1)
            place += at % w->dims[d] * step;
        step *= w->factors->dims[d];
    }
    return place;
}

/* In rows: of the last dim where factors differ along it, else of all last dims along
 * which they do not. */
void network_weight_multiply(const struct network_weight *w, float *values, int64_t count,
                             const float *factors)
{
    const int64_t *along = w->factors->dims;
    const bool differ = w->rank > 0 && along[w->rank - 1] != 1;
    int outer = w->rank;
    int64_t row = 1;
    if (differ)
        row = w->dims[--outer];
    while (!differ && outer > 0 && along[outer - 1] == 1)
        row *= w->dims[--outer];
    for (int64_t i = 0; row > 0 && i < count / row; i++, values += row) {
        const float *f = factors + factor_of(w, outer, i) * (differ ? row : 1);
        for (int64_t k = 0; k < row; k++)
            values[k] *= f[differ ? k : 0];
    }
}
