/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pairs there are, and the regions by which they are left out.
 */
#include "network/pairs/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

#include "core/alloc.h"
#include "core/text.h"

enum { SCALE, ZERO }; /* weights of Quantize and Dequantize */
/* Layers behind each other that are asked whether they give less than 0. */
enum { MOST_LAYERS = 8 };

static const char quantize[] = "core::Quantize@1", dequantize[] = "core::Dequantize@1";

static bool is_type(const struct network_layer *layer, const char *name)
{
    return strcmp(layer->type->full_name, name) == 0;
}

/* ---- one scale ----------------------------------------------------------------------
 */

/* A weight of one element; 0 where there is none. False: it has more, or none that can be
 * read. */
static bool read_one(float *out, const struct network_layer *layer, size_t w)
{
    *out = 0;
    if (!network_has_weight(layer, w))
        return true;
    const struct network_weight *x = &layer->weights[w];
    return x->dtype == STRATA_FP32 && network_elements(x->dims, x->rank) == 1 &&
           network_weight_load(x, out, NULL) == STRATA_OK;
}

static bool same_scale(const struct network_layer *a, const struct network_layer *b)
{
    float scale[2], zero[2];
    return read_one(&scale[0], a, SCALE) && read_one(&scale[1], b, SCALE) &&
           read_one(&zero[0], a, ZERO) && read_one(&zero[1], b, ZERO) &&
           scale[0] == scale[1] && zero[0] == zero[1];
}

/* ---- what would be lost -------------------------------------------------------------
 */

static bool is_positive(const struct network_layer *l)
{
    const strata_activation *a = l->params;
    if (is_type(l, "core::Softmax@1"))
        return true;
    if (!is_type(l, "core::Activation@1"))
        return false;
    return a->kind == STRATA_RELU || a->kind == STRATA_RELU6 ||
           a->kind == STRATA_SIGMOID || a->kind == STRATA_SOFTPLUS ||
           a->kind == STRATA_HARD_SIGMOID ||
           (a->kind == STRATA_CLIP && strata_activation_alpha(a) >= 0);
}

/* Whether the least integer of a Quantize stands for 0, or for more. */
static bool ends_at_zero(const strata_network *net, const struct network_layer *q)
{
    const int dtype = net->tensors[q->outputs[0]].dtype;
    float zero;
    return (dtype == STRATA_INT8 || dtype == STRATA_UINT8) && read_one(&zero, q, ZERO) &&
           zero <= (dtype == STRATA_INT8 ? -128 : 0);
}

/* Layers that only move values, or take averages and maxima of them. */
static bool passes_sign(const struct network_layer *l)
{
    static const char *const types[] = {
        "core::Pooling@1",       "core::Shuffle@1", "core::Slice@1", "core::Identity@1",
        "core::Concatenation@1", quantize,          dequantize};
    bool passes = false;
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++)
        passes |= is_type(l, types[i]);
    return passes;
}

/* Whether no value of a tensor is below 0, as far as `layers` before it tell. */
static bool has_no_negatives(const strata_network *net, int tensor, int layers)
{
    const int producer = net->tensors[tensor].producer;
    if (producer < 0 || layers == 0)
        return false;
    const struct network_layer *l = &net->layers[producer];
    if (is_positive(l) || (is_type(l, quantize) && ends_at_zero(net, l)))
        return true;
    bool none = passes_sign(l) && l->n_inputs > 0;
    for (int i = 0; i < l->n_inputs && none; i++)
        none = has_no_negatives(net, l->inputs[i], layers - 1);
    return none;
}

/* Tools leave out a relu, or a relu6, where the range of the integers does its work. */
static bool stands_for_activation(const strata_network *net,
                                  const struct network_layer *q)
{
    return ends_at_zero(net, q) && !has_no_negatives(net, q->inputs[0], MOST_LAYERS);
}

/* ---- pairs --------------------------------------------------------------------------
 */

struct finding {
    const strata_network *net;
    struct network_pairs *out;
    bool *is_output;   /* each tensor */
    int *first_reader; /* each tensor; -1: none */
    int *last_reader;  /* where a network output is one, behind all layers */
    bool *other;   /* each tensor: somebody reads it who is no Dequantize of its scale */
    int *pair_of;  /* each layer: its pair; -1: it is of none */
    int *class_of; /* each tensor: the one that it would be without all pairs */
};

static void *list_of(size_t n, int value, strata_error *err)
{
    int *list = zalloc(n, sizeof *list, "pairs", err);
    for (size_t i = 0; list && i < n; i++)
        list[i] = value;
    return list;
}

static int open_finding(struct finding *f, strata_error *err)
{
    const strata_network *net = f->net;
    f->is_output = zalloc(net->n_tensors, sizeof *f->is_output, "pairs", err);
    f->other = zalloc(net->n_tensors, sizeof *f->other, "pairs", err);
    f->first_reader = list_of(net->n_tensors, -1, err);
    f->last_reader = list_of(net->n_tensors, -1, err);
    f->class_of = list_of(net->n_tensors, -1, err);
    f->pair_of = list_of(net->n_layers, -1, err);
    return f->is_output && f->other && f->first_reader && f->last_reader && f->class_of &&
                   f->pair_of
               ? STRATA_OK
               : STRATA_ENOMEM;
}

static void close_finding(struct finding *f)
{
    free(f->is_output);
    free(f->other);
    free(f->first_reader);
    free(f->last_reader);
    free(f->class_of);
    free(f->pair_of);
}

/* A float tensor of which the user says nothing. */
static bool is_free(const struct finding *f, int tensor)
{
    const struct network_tensor *t = &f->net->tensors[tensor];
    return dtype_is_free(t->dtype) && !t->exact && !t->formats;
}

static bool is_own(const struct network_layer *l)
{
    return l->impl || l->formats;
}

/* Whether a layer gives the floats back that a Quantize has rounded. */
static bool gives_back(const struct finding *f, const struct network_layer *q,
                       const struct network_layer *d)
{
    const struct network_tensor *x = &f->net->tensors[q->inputs[0]];
    return is_type(d, dequantize) && !is_own(d) && is_free(f, d->outputs[0]) &&
           !f->is_output[d->outputs[0]] &&
           f->net->tensors[d->outputs[0]].dtype == x->dtype && same_scale(q, d);
}

static void read_readers(struct finding *f)
{
    const strata_network *net = f->net;
    for (size_t i = 0; i < net->n_layers; i++) {
        const struct network_layer *l = &net->layers[i];
        for (int k = 0; k < l->n_inputs; k++) {
            const int t = l->inputs[k], producer = net->tensors[t].producer;
            if (f->first_reader[t] < 0)
                f->first_reader[t] = (int)i;
            f->last_reader[t] = (int)i;
            if (producer >= 0 && is_type(&net->layers[producer], quantize))
                f->other[t] |= !gives_back(f, &net->layers[producer], l);
        }
    }
    for (size_t o = 0; o < net->n_outputs; o++)
        f->last_reader[net->outputs[o].tensor] = (int)net->n_layers;
}

static bool is_pair(const struct finding *f, const struct network_layer *l)
{
    return is_type(l, quantize) && !is_own(l) && l->n_inputs == 1 &&
           is_free(f, l->inputs[0]) && !f->net->tensors[l->outputs[0]].formats &&
           !f->is_output[l->outputs[0]] && f->last_reader[l->outputs[0]] >= 0 &&
           !f->other[l->outputs[0]] && !stands_for_activation(f->net, l);
}

static int add_pair(struct finding *f, int layer, strata_error *err)
{
    struct network_pairs *p = f->out;
    int status = grow(&p->list, &p->capacity, p->n, sizeof *p->list, err);
    if (status != STRATA_OK)
        return status;
    f->pair_of[layer] = (int)p->n;
    p->list[p->n++] = (struct network_pair){.quantize = layer, .region = -1};
    return STRATA_OK;
}

static int list_pairs(struct finding *f, strata_error *err)
{
    const strata_network *net = f->net;
    int status = STRATA_OK;
    for (size_t t = 0; t < net->n_tensors; t++)
        f->class_of[t] = (int)t;
    for (size_t i = 0; i < net->n_layers && status == STRATA_OK; i++) {
        const struct network_layer *l = &net->layers[i];
        const int producer = l->n_inputs ? net->tensors[l->inputs[0]].producer : -1;
        if (is_pair(f, l))
            status = add_pair(f, (int)i, err);
        else if (producer >= 0 && is_type(&net->layers[producer], quantize))
            f->pair_of[i] = f->pair_of[producer];
        if (f->pair_of[i] >= 0)
            f->class_of[l->outputs[0]] = f->class_of[l->inputs[0]];
    }
    return status;
}

/* ---- regions ------------------------------------------------------------------------
 */

/* The last layer that reads each tensor, or what it is with pairs behind it. */
static int *find_last(const struct finding *f, strata_error *err)
{
    const strata_network *net = f->net;
    int *last = list_of(net->n_tensors, -1, err);
    for (size_t t = 0; last && t < net->n_tensors; t++) {
        const int class = f->class_of[t], reader = f->last_reader[t];
        const bool inside = reader >= 0 && reader < (int)net->n_layers &&
                            f->pair_of[reader] >= 0; /* what that makes is of the class */
        if (!inside && reader > last[class])
            last[class] = reader;
    }
    return last;
}

/* Float tensors are alive from who makes them to who reads them last; network inputs only
 * where a pair reads them, as others, masks say, may be read by every block. out[0]: how
 * many are alive before all layers; out[1 + i]: how many more are behind layer i. */
static int find_changes(int **out, const struct finding *f, strata_error *err)
{
    const strata_network *net = f->net;
    int *changes = *out = zalloc(net->n_layers + 2, sizeof *changes, "pairs", err);
    int *last = find_last(f, err);
    bool *paired = zalloc(net->n_tensors, sizeof *paired, "pairs", err);
    for (size_t t = 0; paired && t < net->n_tensors; t++)
        if (f->class_of[t] != (int)t)
            paired[f->class_of[t]] = true;
    for (size_t t = 0; changes && last && paired && t < net->n_tensors; t++) {
        const int producer = net->tensors[t].producer;
        if (f->class_of[t] != (int)t || last[t] <= producer ||
            (producer < 0 && !paired[t]) || !dtype_is_free(net->tensors[t].dtype))
            continue;
        changes[1 + producer]++;
        changes[1 + last[t]]--;
    }
    const bool made = changes && last && paired;
    free(last);
    free(paired);
    return made ? STRATA_OK : STRATA_ENOMEM;
}

/* Whether a layer reads floats that a pair makes. */
static bool reads_pair(const struct finding *f, const struct network_layer *l)
{
    bool reads = false;
    for (int i = 0; i < l->n_inputs; i++) {
        const int producer = f->net->tensors[l->inputs[i]].producer;
        reads |= producer >= 0 && f->pair_of[producer] >= 0;
    }
    return reads;
}

/* The layers of no pair, in order; regions begin where at most one tensor is alive. */
static int list_regions(struct finding *f, const int *changes, strata_error *err)
{
    const strata_network *net = f->net;
    struct network_pairs *p = f->out;
    int alive = changes[0], status = STRATA_OK;
    for (size_t i = 0; i < net->n_layers && status == STRATA_OK; i++) {
        const struct network_layer *l = &net->layers[i];
        if (f->pair_of[i] < 0 && (alive <= 1 || p->n_regions == 0) && reads_pair(f, l)) {
            status = grow(&p->regions, &p->regions_capacity, p->n_regions,
                          sizeof *p->regions, err);
            if (status == STRATA_OK)
                p->regions[p->n_regions++] = (struct network_region){(int)i, (int)i};
        }
        p->region_of[i] = (int)p->n_regions - 1;
        if (f->pair_of[i] < 0 && p->n_regions > 0)
            p->regions[p->n_regions - 1].last = (int)i;
        alive += changes[1 + i];
    }
    return status;
}

/* Each pair to the region that reads it first. */
static void place_pairs(struct finding *f)
{
    const strata_network *net = f->net;
    for (size_t i = net->n_layers; i-- > 0;) {
        const struct network_layer *l = &net->layers[i];
        for (int k = 0; k < l->n_inputs && f->pair_of[i] < 0; k++) {
            const int producer = net->tensors[l->inputs[k]].producer;
            if (producer >= 0 && f->pair_of[producer] >= 0)
                f->out->list[f->pair_of[producer]].region = f->out->region_of[i];
        }
    }
    /* Others, too: no layer reads their floats. */
    for (size_t i = 0; i < f->out->n; i++) {
        struct network_pair *pair = &f->out->list[i];
        const int at = f->out->region_of[pair->quantize];
        if (pair->region < 0)
            pair->region = at < 0 ? 0 : at;
    }
}

static int find(struct finding *f, strata_error *err)
{
    int *changes = NULL;
    int status = open_finding(f, err);
    if (status != STRATA_OK)
        return status;
    for (size_t o = 0; o < f->net->n_outputs; o++)
        f->is_output[f->net->outputs[o].tensor] = true;
    read_readers(f);
    status = list_pairs(f, err);
    if (status == STRATA_OK && f->out->n > 0)
        status = find_changes(&changes, f, err);
    if (changes && status == STRATA_OK)
        status = list_regions(f, changes, err);
    if (changes && status == STRATA_OK)
        place_pairs(f);
    free(changes);
    if (f->out->n_regions == 0)
        f->out->n = 0; /* they lead nowhere */
    return status;
}

int network_find_pairs(struct network_pairs *out, const strata_network *net,
                       strata_error *err)
{
    struct finding f = {.net = net, .out = out};
    *out = (struct network_pairs){0};
    if (!net->build.fusion)
        return STRATA_OK;
    if (!(out->region_of = list_of(net->n_layers, -1, err)))
        return STRATA_ENOMEM;
    const int status = find(&f, err);
    close_finding(&f);
    if (status != STRATA_OK)
        network_free_pairs(out);
    return status;
}

void network_free_pairs(struct network_pairs *p)
{
    free(p->list);
    free(p->regions);
    free(p->region_of);
    *p = (struct network_pairs){0};
}

char *network_region_name(const strata_network *net, const struct network_region *r,
                          strata_error *err)
{
    const char *first = net->layers[r->first].name, *last = net->layers[r->last].name;
    char *name =
        r->first == r->last ? text_print("%s", first) : text_print("%s..%s", first, last);
    if (!name)
        error_no_memory(err, 0, "a region's name");
    return name;
}
