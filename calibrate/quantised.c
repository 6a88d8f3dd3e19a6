/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a quantised network.
 */
#include "calibrate/quantised.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

#include "calibrate/method/method.h"
#include "calibrate/weights.h"
#include "core/alloc.h"
#include "ini/names.h"
#include "core/text.h"

/* What is written, and where its pieces are until then. */
struct writing {
    const struct quantising *q;
    const strata_network *net;
    struct weight_view *views;
    size_t n_views, views_capacity;
    void **owned; /* names and values of views */
    size_t n_owned, owned_capacity;
    struct names views_by_name;
    /* Of each tensor: what the names of its two layers begin with, and that of the
     * second; or NULL. */
    char **steps, **floats;
    bool *lost;                     /* memory ran out while the text was written */
    strata_matrix_multiply *params; /* of the layer that is written */
    strata_error *err;
};

float quantised_scale(const struct quant_type *type, const struct range *r)
{
    return (float)quant_scale(type, fmax(fabs(r->low), fabs(r->high)));
}

static void close_writing(struct writing *w)
{
    for (size_t i = 0; i < w->n_owned; i++)
        free(w->owned[i]);
    for (size_t t = 0; w->steps && t < w->net->n_tensors; t++)
        free(w->steps[t]);
    for (size_t t = 0; w->floats && t < w->net->n_tensors; t++)
        free(w->floats[t]);
    free(w->floats);
    names_free(&w->views_by_name);
    free(w->owned);
    free(w->views);
    free(w->steps);
}

/* Takes the memory, freed here after a failure. */
static int own(struct writing *w, void *memory)
{
    int status =
        memory ? grow(&w->owned, &w->owned_capacity, w->n_owned, sizeof *w->owned, w->err)
               : error_no_memory(w->err, 0, "weights");
    if (status == STRATA_OK)
        w->owned[w->n_owned++] = memory;
    else
        free(memory);
    return status;
}

/* Takes the values, which are dense. */
static int add_view(struct writing *w, char *name, void *values, int dtype,
                    const int64_t *dims, int rank)
{
    int status = own(w, name);
    const int kept = own(w, values);
    status = status == STRATA_OK ? kept : status;
    if (status == STRATA_OK)
        status =
            grow(&w->views, &w->views_capacity, w->n_views, sizeof *w->views, w->err);
    if (status != STRATA_OK)
        return status;
    struct weight_view *v = &w->views[w->n_views++];
    *v = (struct weight_view){
        .name = name, .dtype = weight_dtype_of(dtype), .rank = rank, .data = values};
    memcpy(v->dims, dims, (size_t)rank * sizeof *dims);
    v->bytes = (size_t)network_elements(dims, rank) * strata_dtype_size(dtype);
    return STRATA_OK;
}

/* ---- names of Quantize and Dequantize ------------------------------------------------
 */

static bool name_is_free(const struct writing *w, const char *step)
{
    const size_t n = strlen(step);
    for (size_t t = 0; t < w->net->n_tensors; t++) {
        const char *name = w->net->tensors[t].name;
        const char *rest = strncmp(name, step, n) == 0 ? name + n : "";
        if (strncmp(rest, ".quantize", 9) == 0 || strncmp(rest, ".dequantize", 11) == 0)
            return false;
    }
    for (size_t t = 0; t < w->net->n_tensors; t++)
        if (w->steps[t] && strcmp(w->steps[t], step) == 0)
            return false;
    return true;
}

/* The tensor's name, "split:1" as "split.1", with '_' until it is nobody else's. */
static int name_steps(struct writing *w)
{
    const struct scheme *s = w->q->scheme;
    w->steps = zalloc(w->net->n_tensors, sizeof *w->steps, "names", w->err);
    w->floats = zalloc(w->net->n_tensors, sizeof *w->floats, "names", w->err);
    if (!w->steps || !w->floats)
        return STRATA_ENOMEM;
    for (size_t t = 0; t < w->net->n_tensors; t++) {
        if (!s->tensors[t])
            continue;
        char *name = text_print("%s", w->net->tensors[t].name);
        for (char *c = name; c && *c; c++)
            *c = *c == ':' ? '.' : *c;
        while (name && !name_is_free(w, name)) {
            char *longer = text_print("%s_", name);
            free(name);
            name = longer;
        }
        if (!name)
            return error_no_memory(w->err, 0, "names");
        w->steps[t] = name;
        w->floats[t] = text_print("%s.dequantize", name);
        if (!w->floats[t])
            return error_no_memory(w->err, 0, "names");
    }
    return STRATA_OK;
}

/* ---- weights -------------------------------------------------------------------------
 */

static int add_scalars(struct writing *w, char *name, const float *values, int64_t n)
{
    float *copy = zalloc((size_t)n, sizeof *copy, "a scale", w->err);
    if (copy)
        memcpy(copy, values, (size_t)n * sizeof *copy);
    return add_view(w, name, copy, STRATA_FP32, &n, 1);
}

static int add_tensor(struct writing *w, size_t t)
{
    const char *name = w->net->tensors[t].name;
    const struct range *r = ranges_find(w->q->ranges, name);
    if (!r)
        return error_set(w->err, STRATA_ENOTFOUND,
                         "there is no range for tensor '%s', which is to be %s; "
                         "collect the ranges anew, or add its line",
                         name, w->q->scheme->type->name);
    const float scale = quantised_scale(w->q->scheme->type, r);
    const float range[] = {(float)r->low, (float)r->high,
                           w->q->saturated ? (float)w->q->saturated[t] : NAN};
    int status = add_scalars(w, text_print("%s.quantize.scale", w->steps[t]), &scale, 1);
    return status == STRATA_OK
               ? add_scalars(w, text_print(QUANTISED_RANGES "%s", w->steps[t]), range, 3)
               : status;
}

/* As it is in its file; made, where it is in none. */
static int add_plain(struct writing *w, const struct network_layer *l, size_t i)
{
    const struct network_weight *from = &l->weights[i];
    char *name = text_print("%s.%s", l->name, l->type->weights[i].name);
    if (from->source == WEIGHT_FILE) {
        int status = own(w, name);
        if (status == STRATA_OK)
            status =
                grow(&w->views, &w->views_capacity, w->n_views, sizeof *w->views, w->err);
        if (status != STRATA_OK)
            return status;
        w->views[w->n_views] = from->view;
        w->views[w->n_views++].name = name;
        return STRATA_OK;
    }
    const int64_t n = network_elements(from->dims, from->rank);
    void *values = zalloc((size_t)n, strata_dtype_size(from->dtype), from->name, w->err);
    int status = values ? network_weight_load(from, values, w->err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        return add_view(w, name, values, from->dtype, from->dims, from->rank);
    free(name);
    free(values);
    return status;
}

/* The bias with what corrects the layer's mean; made where there is none. */
static int add_bias(struct writing *w, const struct network_layer *l,
                    const struct computes *c, const double *correction)
{
    const int64_t channels = scheme_channels(w->net, l, c);
    const int at = scheme_weight(l, c->bias);
    const bool has = network_has_weight(l, (size_t)at);
    if (!has && !correction)
        return STRATA_OK;
    if (!correction)
        return add_plain(w, l, (size_t)at);
    float *values = zalloc((size_t)channels, sizeof *values, "a bias", w->err);
    int status = values ? STRATA_OK : STRATA_ENOMEM;
    if (status == STRATA_OK && has)
        status = network_weight_load(&l->weights[at], values, w->err);
    for (int64_t k = 0; k < channels && status == STRATA_OK; k++)
        values[k] = (float)((double)values[k] + correction[k]);
    if (status == STRATA_OK)
        return add_view(w, text_print("%s.%s", l->name, c->bias), values, STRATA_FP32,
                        &channels, 1);
    free(values);
    return status;
}

/* One dim where channels have a scale each, else two, as the operand's. */
static int add_scales(struct writing *w, const struct network_layer *l,
                      struct int8_weight *made)
{
    const bool last = made->order[ORDER_INNER] == 1;
    const int64_t dims[2] = {last ? made->groups : made->channels,
                             last ? made->channels : made->groups};
    const int64_t channels = made->channels;
    float *scales = made->scales;
    made->scales = NULL; /* taken */
    return add_view(w, text_print("%s.weight_scale", l->name), scales, STRATA_FP32,
                    made->groups > 1 ? dims : &channels, made->groups > 1 ? 2 : 1);
}

static int add_quantised(struct writing *w, const struct network_layer *l,
                         const struct computes *c, const double *correction)
{
    const struct network_weight *from = &l->weights[scheme_weight(l, c->weight)];
    const struct weight_form *form = w->q->scheme->weights_only;
    struct int8_weight made;
    int status = int8_weight_make(&made, l, c, w->q->scheme->type, form, w->err);
    if (status != STRATA_OK)
        return status;
    status = add_scales(w, l, &made);
    if (status == STRATA_OK && form && form->bits == 4) {
        int64_t dims[2];
        uint8_t *bytes = int8_weight_pack(&made, dims, w->err);
        status = add_view(w, text_print("%s.%s", l->name, c->weight), bytes, STRATA_UINT8,
                          dims, 2);
    } else if (status == STRATA_OK) {
        status = add_view(w, text_print("%s.%s", l->name, c->weight), made.values,
                          w->q->scheme->type->dtype, from->dims, from->rank);
        made.values = NULL; /* taken */
    }
    int8_weight_free(&made);
    return status == STRATA_OK ? add_bias(w, l, c, correction) : status;
}

static int add_layer(struct writing *w, size_t layer)
{
    const struct network_layer *l = &w->net->layers[layer];
    const struct computes *c = w->q->scheme->computes[layer];
    int status = STRATA_OK;
    if (c)
        status =
            add_quantised(w, l, c, w->q->corrections ? w->q->corrections[layer] : NULL);
    for (size_t i = 0; i < l->type->n_weights && status == STRATA_OK; i++) {
        const char *name = l->type->weights[i].name;
        const bool made =
            c && (strcmp(name, c->weight) == 0 || strcmp(name, c->bias) == 0);
        if (!made && network_has_weight(l, i))
            status = add_plain(w, l, i);
    }
    return status;
}

/* ---- text ----------------------------------------------------------------------------
 */

static const char *said_input(const void *of, const struct network_layer *l, int i)
{
    const struct writing *w = of;
    const int t = l->inputs[i];
    return w->q->scheme->reads[l - w->net->layers] && w->floats[t]
               ? w->floats[t]
               : w->net->tensors[t].name;
}

static const char *said_weight(const void *of, const struct network_layer *l, size_t i)
{
    const struct writing *w = of;
    char *name = text_print("%s.%s", l->name, l->type->weights[i].name);
    const int at = name ? names_get(&w->views_by_name, name) : -1;
    *w->lost |= !name;
    free(name);
    return at >= 0 ? w->views[at].name : NULL;
}

/* How few the bits are is said by attributes. */
static const void *said_params(const void *of, const struct network_layer *l)
{
    const struct writing *w = of;
    const struct scheme *s = w->q->scheme;
    if (!s->weights_only || !s->computes[l - w->net->layers])
        return l->params;
    *w->params = *(const strata_matrix_multiply *)l->params;
    w->params->weight_bits = s->weights_only->bits == 4 ? 4 : 0;
    w->params->weight_group = s->weights_only->group;
    return w->params;
}

static int index_views(struct writing *w)
{
    int status = STRATA_OK;
    for (size_t k = 0; k < w->n_views && status == STRATA_OK; k++)
        status = names_put(&w->views_by_name, w->views[k].name, (int)k, w->err);
    return status;
}

static void print_steps(const struct writing *w, int t, FILE *f)
{
    const char *step = w->steps[t];
    fprintf(f,
            "\n[layer %s.quantize]\ntype = Quantize\ninputs = %s\ndtype = %s\n"
            "weights = w:%s.quantize\n",
            step, w->net->tensors[t].name, w->q->scheme->type->name, step);
    fprintf(f,
            "\n[layer %s.dequantize]\ntype = Dequantize\ninputs = %s.quantize\n"
            "weights = w:%s.quantize\n",
            step, step, step);
}

static void print_behind(const void *of, const struct network_layer *l, FILE *f)
{
    const struct writing *w = of;
    for (int i = 0; l && i < l->n_outputs; i++)
        if (w->steps[l->outputs[i]])
            print_steps(w, l->outputs[i], f);
    for (size_t i = 0; !l && i < w->net->n_inputs; i++)
        if (w->steps[w->net->inputs[i].tensor])
            print_steps(w, w->net->inputs[i].tensor, f);
}

int quantised_make(struct quantised *out, const struct quantising *q,
                   const struct quantised_names *names, strata_error *err)
{
    bool lost = false;
    strata_matrix_multiply params;
    struct writing w = {
        .q = q, .net = q->scheme->net, .lost = &lost, .params = &params, .err = err};
    const bool alone = names->weights == NULL;
    const struct network_edit edit = {.of = &w,
                                      .weights =
                                          alone ? NETWORK_MEMORY_WEIGHTS : names->weights,
                                      .labels = names->labels,
                                      .alone = alone,
                                      .input = said_input,
                                      .weight = said_weight,
                                      .params = said_params,
                                      .behind = print_behind};
    *out = (struct quantised){.text = NULL};
    int status = name_steps(&w);
    for (size_t t = 0; t < w.net->n_tensors && status == STRATA_OK; t++)
        status = q->scheme->tensors[t] ? add_tensor(&w, t) : STRATA_OK;
    for (size_t i = 0; i < w.net->n_layers && status == STRATA_OK; i++)
        status = add_layer(&w, i);
    if (status == STRATA_OK)
        status = index_views(&w);
    if (status == STRATA_OK)
        status =
            weights_write(&out->weights, &out->weights_size, w.views, w.n_views, err);
    if (status == STRATA_OK)
        status = network_print_edited(&out->text, &out->text_size, w.net, q->registry,
                                      &edit, err);
    if (status == STRATA_OK && lost)
        status = error_no_memory(err, 0, "a network's text");
    close_writing(&w);
    if (status != STRATA_OK)
        quantised_free(out);
    return status;
}

void quantised_free(struct quantised *q)
{
    free(q->text);
    free(q->weights);
    *q = (struct quantised){.text = NULL};
}
