/* SPDX-License-Identifier: Apache-2.0
 *
 * Factors of weights: a weight that is stored as INT8, as FP8 or as two values of 4 bits
 * in a byte, beside an FP32 weight that says by what the values are multiplied: one
 * element for all, or one along a dim, or one for each group of neighbours there.
 */
#include "network/private.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define NIBBLES 2     /* values in a byte */
#define NIBBLE_ZERO 8 /* what stands for 0 */

static bool is_packed(const struct network_weight *w)
{
    return w->factors && w->shared;
}

/* What is stored in few bits and stands for floats. */
static bool is_narrow(const struct network_weight *w)
{
    const enum weight_dtype dtype = w->view.dtype;
    return w->shared
               ? dtype == WEIGHT_U8
               : dtype == WEIGHT_I8 || dtype == WEIGHT_F8_E4M3 || dtype == WEIGHT_F8_E5M2;
}

/* NULL, or why a layer's first weight has no factors. */
static const char *refuse(const struct network_weight *w)
{
    if (w->source != WEIGHT_FILE)
        return "it is not in a file";
    if (!is_narrow(w))
        return w->shared ? "it is not U8 in the file, whose bytes hold two values"
                         : "it is neither I8 nor F8 in the file";
    return w->dtype == STRATA_FP32 ? NULL : "the layer computes with it as it is";
}

/* Every dim is the weight's or 1, or that of its groups: a contract of weight_shape. */
static bool broadcasts(const struct network_weight *f, const struct network_weight *w)
{
    bool fits = f->rank == w->rank && f->dtype == STRATA_FP32;
    for (int d = 0; d < w->rank && fits; d++) {
        const bool groups = f->shared && d == f->along;
        fits =
            f->dims[d] == 1 ||
            f->dims[d] == (groups ? network_shares(w->dims[d], f->shared) : w->dims[d]);
    }
    return fits;
}

/* Factors i of a layer that has them. */
static int bind_factors(struct loader *l, const struct draft *d,
                        struct network_layer *layer, size_t i)
{
    const struct registry_layer *type = layer->type;
    const char *why = refuse(&layer->weights[0]);
    if (why)
        config_error(l->c, d->weight_places[i],
                     "layer %s has '%s', which multiplies weight '%s', but %s; "
                     "leave '%s' out, or give '%s' as %s of a safetensors file",
                     layer->name, type->weights[i].name, type->weights[0].name, why,
                     type->weights[i].name, type->weights[0].name,
                     layer->weights[0].shared ? "U8" : "I8");
    else if (config_errors(l->c)) /* its dims may not be what the layer said */
        return STRATA_OK;
    else if (!broadcasts(&layer->weights[i], &layer->weights[0]))
        return error_set(l->err, STRATA_EMODULE,
                         "%s: weight_shape gives '%s' dims that do not stretch to "
                         "those of '%s'",
                         type->full_name, type->weights[i].name, type->weights[0].name);
    else
        layer->weights[0].factors = &layer->weights[i];
    return STRATA_OK;
}

int network_bind_factors(struct loader *l, const struct draft *d,
                         struct network_layer *layer)
{
    const struct registry_layer *type = layer->type;
    const char *name = NULL;
    int status = STRATA_OK;
    bool given = false;
    for (size_t i = 1; i < type->n_weights && status == STRATA_OK; i++) {
        if (!(type->weights[i].flags & STRATA_FACTORS))
            continue;
        name = type->weights[i].name;
        given |= network_has_weight(layer, i);
        if (network_has_weight(layer, i))
            status = bind_factors(l, d, layer, i);
    }
    if (status != STRATA_OK || given || !network_has_weight(layer, 0) ||
        !layer->weights[0].shared)
        return status;
    if (!name)
        status = error_set(l->err, STRATA_EMODULE,
                           "%s: weight_shape gives '%s' two values in a byte, but it "
                           "declares no factors of them",
                           type->full_name, type->weights[0].name);
    else
        config_error(l->c, d->weight_places[0],
                     "weight '%s' of layer %s has two values of 4 bits in a byte, and "
                     "nothing says by what they are multiplied; give '%s'",
                     type->weights[0].name, layer->name, name);
    return status;
}

struct network_weight network_weight_stored(const struct network_weight *w)
{
    struct network_weight stored = *w;
    if (!w->factors)
        return stored;
    if (is_packed(w))
        stored.dims[w->along] = network_shares(w->dims[w->along], w->shared);
    stored.stored = w->source == WEIGHT_JOINED;
    stored.factors = NULL;
    stored.shared = 0;
    stored.dtype = weight_dtype_core(w->view.dtype);
    return stored;
}

struct network_weight network_weight_seen(const struct network_layer *layer,
                                          int32_t impl_flags, size_t i)
{
    if (impl_flags & STRATA_WEIGHT_STORED)
        return i == 0 ? network_weight_stored(&layer->weights[i]) : layer->weights[i];
    if (layer->type->weights[i].flags & STRATA_FACTORS)
        return (struct network_weight){.source = WEIGHT_ABSENT};
    return layer->weights[i];
}

/* Whether pairs are left out of a network, or of what it is made of. */
static bool lacks_pairs(const strata_network *net)
{
    while (net && !(net->merged && net->merged->pairs))
        net = net->base;
    return net != NULL;
}

bool network_has_plain_weight(const strata_network *net,
                              const struct network_layer *layer)
{
    if (!network_has_factors(layer))
        return true;
    const struct network_weight *w = &layer->weights[0];
    const int producer = layer->n_inputs ? net->tensors[layer->inputs[0]].producer : -1;
    const bool rounded = producer >= 0 && strcmp(net->layers[producer].type->full_name,
                                                 "core::Dequantize@1") == 0;
    return lacks_pairs(net) && !w->shared && !w->factors->shared && !rounded;
}

/* ---- values ---- */

/* Elements of the dims before one, and behind it. */
static int64_t around(const struct network_weight *w, bool behind)
{
    int64_t n = 1;
    for (int d = behind ? w->along + 1 : 0; d < (behind ? w->rank : w->along); d++)
        n *= w->dims[d];
    return n;
}

static void unpack(const struct network_weight *w, float *values, const uint8_t *bytes)
{
    const int64_t outer = around(w, false), inner = around(w, true);
    const int64_t depth = w->dims[w->along], rows = network_shares(depth, NIBBLES);
    for (int64_t o = 0; o < outer; o++, bytes += rows * inner)
        for (int64_t i = 0; i < depth; i++, values += inner) {
            const uint8_t *row = bytes + i / NIBBLES * inner;
            const int shift = i % NIBBLES > 0 ? 4 : 0;
            for (int64_t k = 0; k < inner; k++)
                values[k] = (float)((row[k] >> shift & 15) - NIBBLE_ZERO);
        }
}

int network_weight_unpack(const struct network_weight *w, void *values, int64_t count,
                          strata_error *err)
{
    if (!is_packed(w))
        return weights_convert(values, w->dtype, w->view.data, w->view.dtype, count, err);
    unpack(w, values, w->view.data);
    return STRATA_OK;
}

/* Where the factor is of index `at` of the first n dims. */
static int64_t factor_of(const struct network_weight *w, int n, int64_t at)
{
    const struct network_weight *f = w->factors;
    int64_t place = 0, step = 1;
    for (int d = n - 1; d >= 0; at /= w->dims[d], d--) {
        const int64_t index = at % w->dims[d];
        if (f->dims[d] != 1)
            place += (f->shared && d == f->along ? index / f->shared : index) * step;
        step *= f->dims[d];
    }
    return place;
}

/* In rows: of the last dim where factors differ along it, else of all last dims along
 * which they do not. */
void network_weight_multiply(const struct network_weight *w, float *values, int64_t count,
                             const float *factors)
{
    const int64_t *along = w->factors->dims;
    const int last = w->rank - 1;
    const bool differ = w->rank > 0 && along[last] != 1;
    const int64_t each = differ && w->factors->shared && w->factors->along == last
                             ? w->factors->shared
                             : 1;
    int outer = w->rank;
    int64_t row = 1;
    if (differ)
        row = w->dims[--outer];
    while (!differ && outer > 0 && along[outer - 1] == 1)
        row *= w->dims[--outer];
    for (int64_t i = 0; row > 0 && i < count / row; i++, values += row) {
        const float *f = factors + factor_of(w, outer, i) * (differ ? along[last] : 1);
        for (int64_t k = 0; k < row; k++)
            values[k] *= f[differ ? k / each : 0];
    }
}
