/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes: each layer in order is asked for its weights' dims, then for its outputs'.
 * Then the network's outputs.
 */
#include "network/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"

#define DIMS_TEXT 200   /* bytes for eight dims */
#define TENSOR_TEXT 272 /* for "tensor" and a name */

/* The tensors of one layer's node. */
struct node {
    strata_node node;
    strata_tensor *in, *out, *weight, *expected;
};

/* "64x3x3x3" */
static const char *dims_text(char out[DIMS_TEXT], const int64_t *dims, int rank)
{
    int n = 0;
    out[0] = '\0';
    for (int i = 0; i < rank; i++)
        n +=
            snprintf(out + n, DIMS_TEXT - (size_t)n, "%s%" PRId64, i ? "x" : "", dims[i]);
    return rank ? out : "a scalar";
}

int64_t network_elements(const int64_t *dims, int rank)
{
    int64_t n;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || dims[i] > NETWORK_MAX_DIM)
            return -1;
    return checked_product(dims, rank, &n) && n <= NETWORK_MAX_ELEMENTS ? n : -1;
}

static strata_tensor shape_of(const int64_t *dims, int rank, int dtype)
{
    strata_tensor t = {.rank = rank, .dtype = dtype, .vector_dim = -1, .vector = 1};
    memcpy(t.dims, dims, sizeof t.dims);
    int64_t count = rank > 0 ? network_elements(dims, rank) : 0;
    t.count = t.size = count > 0 ? count : 0;
    return t;
}

void network_node(const strata_network *net, const struct network_layer *layer,
                  strata_node *node, strata_tensor *in, strata_tensor *out,
                  strata_tensor *weight, strata_error *err)
{
    size_t n_weights = layer->type->n_weights;
    memset(in, 0, (size_t)layer->n_ports * sizeof *in);
    for (int i = 0; i < layer->n_inputs; i++) {
        const struct network_tensor *t = &net->tensors[layer->inputs[i]];
        in[network_port(layer, i)] = shape_of(t->dims, t->rank, t->dtype);
    }
    for (int i = 0; i < layer->n_outputs; i++) {
        const struct network_tensor *t = &net->tensors[layer->outputs[i]];
        out[i] = shape_of(t->dims, t->rank, t->dtype);
    }
    for (size_t i = 0; i < n_weights; i++) {
        const struct network_weight *w = &layer->weights[i];
        bool known = w->source != WEIGHT_ABSENT;
        weight[i] = shape_of(w->dims, known ? w->rank : 0, w->dtype);
    }
    *node = (strata_node){.struct_size = sizeof *node,
                          .n_in = layer->n_ports,
                          .n_out = layer->n_outputs,
                          .n_weights = (int32_t)n_weights,
                          .params = layer->params,
                          .in = in,
                          .out = out,
                          .weight = weight,
                          .device = STRATA_HOST,
                          .row = -1,
                          .host = registry_host(),
                          .err = err};
}

static void free_node(struct node *n)
{
    free(n->in);
    free(n->out);
    free(n->weight);
    free(n->expected);
}

static int make_node(struct node *n, const struct network_layer *layer, strata_error *err)
{
    size_t n_weights = layer->type->n_weights;
    n->in = zalloc((size_t)layer->n_ports, sizeof *n->in, "tensors", err);
    n->out = zalloc((size_t)layer->n_outputs, sizeof *n->out, "tensors", err);
    n->weight = zalloc(n_weights, sizeof *n->weight, "tensors", err);
    n->expected = zalloc(n_weights, sizeof *n->expected, "tensors", err);
    return n->in && n->out && n->weight && n->expected ? STRATA_OK : STRATA_ENOMEM;
}

/* "; it reads a (1x3x8x8), b (1x3x4x4)" */
static void append_inputs(struct loader *l, const struct network_layer *layer)
{
    char dims[DIMS_TEXT];
    for (int i = 0; i < layer->n_inputs; i++) {
        const struct network_tensor *t = &l->net->tensors[layer->inputs[i]];
        error_append(l->err, "%s%s (%s)", i ? ", " : "; it reads ", t->name,
                     dims_text(dims, t->dims, t->rank));
    }
}

/* Put a callback's failure into l->err, at the layer or at what it reads. */
static int callback_failed(struct loader *l, const struct network_layer *layer,
                           const char *what, struct config_place place, int status,
                           const strata_error *why)
{
    if (why->status != STRATA_OK)
        error_set(l->err, why->status, "%s", why->message);
    else
        error_set(l->err, status, "%s of %s failed without a message", what,
                  layer->type->full_name);
    error_prefix(l->err, "layer %s", layer->name);
    append_inputs(l, layer);
    config_locate(l->c, place, l->err);
    return why->status != STRATA_OK ? why->status : status;
}

/* A plugin broke its contract. */
static int plugin_defect(struct loader *l, const struct network_layer *layer,
                         const char *what, const strata_tensor *t)
{
    char dims[DIMS_TEXT];
    int rank = t->rank < 0 || t->rank > STRATA_MAX_RANK ? 0 : t->rank;
    error_set(
        l->err, STRATA_EOVERFLOW,
        "layer %s: %s gives %s the dims %s (rank %d, dtype %d); there are 1 to 8 dims of "
        "0 to 2^31 - 1, and at most 2^40 elements",
        layer->name, layer->type->full_name, what,
        rank ? dims_text(dims, t->dims, rank) : "none", t->rank, t->dtype);
    config_locate(l->c, layer->place, l->err);
    return STRATA_EOVERFLOW;
}

bool network_tensor_valid(const strata_tensor *t)
{
    return t->rank >= 1 && t->rank <= STRATA_MAX_RANK && t->dtype >= 0 &&
           t->dtype < STRATA_DTYPE_COUNT && network_elements(t->dims, t->rank) >= 0;
}

/* Equal once dims of 1 are dropped. */
static bool dims_agree(const int64_t *a, int a_rank, const int64_t *b, int b_rank)
{
    int i = 0, k = 0;
    for (;;) {
        while (i < a_rank && a[i] == 1)
            i++;
        while (k < b_rank && b[k] == 1)
            k++;
        if (i == a_rank || k == b_rank)
            return i == a_rank && k == b_rank;
        if (a[i++] != b[k++])
            return false;
    }
}

/* What makes the dims right, where they are those of the other order. */
static const char *turned(const struct draft *d, const struct network_layer *layer,
                          const struct weight_view *found, const strata_tensor *expected)
{
    const struct registry_layer *type = layer->type;
    const struct config_pair *given = config_get(d->section, "transposed");
    bool known = false;
    for (size_t i = 0; i < type->n_attrs; i++)
        known |= strcmp(type->attrs[i].name, "transposed") == 0;
    if (!known || found->rank != 2 || expected->rank != 2 ||
        found->dims[0] != expected->dims[1] || found->dims[1] != expected->dims[0])
        return "";
    return given && !given->invalid && strcmp(given->value, "no") != 0
               ? "; with 'transposed = no' it is read as it is"
               : "; write 'transposed = yes' to have it read so";
}

/* A .npy file is a tensor without a name. */
static const char *its_tensor(char *text, size_t size, const struct weight_view *v)
{
    snprintf(text, size, *v->name ? "tensor '%.255s'" : "the file's array", v->name);
    return text;
}

static void wrong_dims(struct loader *l, const struct draft *d,
                       const struct network_layer *layer, size_t i,
                       const strata_tensor *expected)
{
    const struct network_weight *w = &layer->weights[i];
    char found[DIMS_TEXT], needed[DIMS_TEXT], tensor[TENSOR_TEXT];
    config_error(l->c, d->weight_places[i],
                 "weight '%s' of layer %s: %s has dims %s; %s needs %s%s",
                 layer->type->weights[i].name, layer->name,
                 its_tensor(tensor, sizeof tensor, &w->view),
                 dims_text(found, w->view.dims, w->view.rank), layer->type->full_name,
                 dims_text(needed, expected->dims, expected->rank),
                 turned(d, layer, &w->view, expected));
}

static void wrong_rank(struct loader *l, const struct draft *d,
                       const struct network_layer *layer, size_t i)
{
    const struct network_weight *w = &layer->weights[i];
    char found[DIMS_TEXT], tensor[TENSOR_TEXT];
    config_error(l->c, d->weight_places[i],
                 "weight '%s' of layer %s: %s has dims %s; %s needs %d dims",
                 layer->type->weights[i].name, layer->name,
                 its_tensor(tensor, sizeof tensor, &w->view),
                 dims_text(found, w->view.dims, w->view.rank), layer->type->full_name,
                 layer->type->weights[i].rank);
}

/* Whether neighbours that share an element lie along a dim: of factors any number, of
 * weight 0 two, in a byte. */
static bool may_be_shared(const struct network_layer *layer, size_t i,
                          const strata_tensor *e)
{
    if (e->vector <= 1)
        return true;
    return e->vector_dim >= 0 && e->vector_dim < e->rank &&
           (i == 0 ? e->vector == 2
                   : (layer->type->weights[i].flags & STRATA_FACTORS) != 0);
}

/* Give weight i the dims that the layer expects, or those of the file. */
static int settle_weight(struct loader *l, const struct draft *d,
                         struct network_layer *layer, size_t i, const strata_tensor *e)
{
    struct network_weight *w = &layer->weights[i];
    const strata_weight *declared = &layer->type->weights[i];
    if (w->source == WEIGHT_ABSENT)
        return STRATA_OK;
    if (!e->rank && w->source != WEIGHT_FILE) {
        config_error(l->c, d->weight_places[i],
                     "weight '%s' of layer %s cannot be made up: its dims are not known "
                     "from the layer's attributes and inputs",
                     declared->name, layer->name);
        return STRATA_OK;
    }
    if (!e->rank) {
        strata_tensor given = shape_of(w->view.dims, w->view.rank, w->dtype);
        if (declared->rank >= 0 && declared->rank != w->view.rank)
            wrong_rank(l, d, layer, i);
        else if (w->view.rank && !network_tensor_valid(&given))
            return plugin_defect(l, layer, declared->name, &given);
        if (w->view.rank == 0) { /* a scalar is one element */
            w->rank = 1;
            w->dims[0] = 1;
        }
        return STRATA_OK;
    }
    if (!network_tensor_valid(e) || !may_be_shared(layer, i, e))
        return plugin_defect(l, layer, declared->name, e);
    w->rank = e->rank;
    w->dtype = e->dtype;
    w->shared = e->vector > 1 ? e->vector : 0;
    w->along = e->vector > 1 ? e->vector_dim : 0;
    memcpy(w->dims, e->dims, sizeof w->dims);
    strata_tensor file = *e;
    if (i == 0 && w->shared)
        file.dims[w->along] = network_shares(w->dims[w->along], w->shared);
    if (w->source == WEIGHT_FILE &&
        !dims_agree(w->view.dims, w->view.rank, file.dims, file.rank))
        wrong_dims(l, d, layer, i, &file);
    return STRATA_OK;
}

static int infer_weights(struct loader *l, const struct draft *d,
                         struct network_layer *layer, struct node *n)
{
    const strata_layer *type = &layer->type->layer;
    strata_error why;
    int status = STRATA_OK;
    error_clear(&why);
    network_node(l->net, layer, &n->node, n->in, n->out, n->weight, &why);
    for (size_t i = 0; i < layer->type->n_weights; i++)
        n->expected[i].dtype = layer->weights[i].dtype;
    if (type->weight_shape)
        status = type->weight_shape(&n->node, n->expected);
    if (status != STRATA_OK)
        return callback_failed(l, layer, "weight_shape", layer->place, status, &why);
    for (size_t i = 0; status == STRATA_OK && i < layer->type->n_weights; i++)
        status = settle_weight(l, d, layer, i, &n->expected[i]);
    return status == STRATA_OK ? network_bind_factors(l, d, layer) : status;
}

static int infer_outputs(struct loader *l, const struct draft *d,
                         struct network_layer *layer, struct node *n)
{
    const struct config_place place =
        d->inputs_pair ? d->inputs_pair->value_place : layer->place;
    const strata_layer *type = &layer->type->layer;
    strata_error why;
    char label[32];
    int status = STRATA_OK;
    error_clear(&why);
    network_node(l->net, layer, &n->node, n->in, n->out, n->weight, &why);
    for (int i = 0; i < layer->n_outputs; i++) {
        n->out[i].dtype = layer->n_inputs ? n->in[0].dtype : STRATA_FP32;
        if (!type->shape && layer->n_inputs)
            n->out[i] = n->in[0];
    }
    if (type->shape)
        status = type->shape(&n->node);
    if (status != STRATA_OK)
        return callback_failed(l, layer, "shape", place, status, &why);
    for (int i = 0; i < layer->n_outputs; i++) {
        struct network_tensor *t = &l->net->tensors[layer->outputs[i]];
        snprintf(label, sizeof label, "output %d", i);
        if (!network_tensor_valid(&n->out[i]))
            return plugin_defect(l, layer, label, &n->out[i]);
        t->rank = n->out[i].rank;
        t->exact = n->out[i].exact != 0 || !dtype_is_free(n->out[i].dtype);
        t->dtype = t->exact ? n->out[i].dtype : STRATA_FP32;
        memcpy(t->dims, n->out[i].dims, sizeof t->dims);
    }
    return STRATA_OK;
}

int network_infer(struct loader *l)
{
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < l->net->n_layers; i++) {
        struct network_layer *layer = &l->net->layers[i];
        const struct draft *d = &l->drafts[l->order[i]];
        struct node n = {0};
        size_t before = config_errors(l->c);
        status = make_node(&n, layer, l->err);
        if (status == STRATA_OK)
            status = infer_weights(l, d, layer, &n);
        /* A wrong weight was told; shapes that hang on it would only repeat it. */
        bool stop = config_errors(l->c) != before && config_full(l->c);
        if (status == STRATA_OK && !stop)
            status = infer_outputs(l, d, layer, &n);
        free_node(&n);
        if (stop)
            break;
    }
    return status;
}

/* ---- outputs ---- */

static int add_output(struct loader *l, struct reference r, const struct config_pair *p,
                      const struct config_item *item)
{
    strata_network *net = l->net;
    const struct draft *d = &l->drafts[r.node - (int)net->n_inputs];
    struct network_output *out = &net->outputs[net->n_outputs];
    out->tensor = d->first_tensor + r.port;
    const struct network_tensor *t = &net->tensors[out->tensor];
    for (size_t i = 0; i < net->n_outputs; i++)
        if (net->outputs[i].tensor == out->tensor)
            config_error(l->c,
                         config_value_place(l->c, p, item->offset, strlen(item->text)),
                         "'%s' stands twice", item->text);
    out->format = (struct format){.dtype = t->dtype, .order = ORDER_LINEAR, .vector = 1};
    out->name = duplicate(t->name, l->err);
    net->n_outputs += out->name != NULL;
    return out->name ? STRATA_OK : STRATA_ENOMEM;
}

/* `output_formats =`: one for all outputs, or one for each. */
static void read_output_formats(struct loader *l, const struct config_pair *p)
{
    strata_network *net = l->net;
    struct config_item *items;
    struct format f;
    size_t n;
    if (!config_list(l->c, p, &items, &n))
        return;
    if (n != 1 && n != net->n_outputs)
        config_error(l->c, p->value_place,
                     "%zu formats for %zu outputs; give one, or one "
                     "for each",
                     n, net->n_outputs);
    for (size_t i = 0; n && (n == 1 || n == net->n_outputs) && i < net->n_outputs; i++) {
        const struct config_item *item = &items[n == 1 ? 0 : i];
        const struct network_tensor *t = &net->tensors[net->outputs[i].tensor];
        strata_error why = {0};
        strata_desc desc;
        if (!network_format(l->c, p, item, &f))
            break;
        if (format_desc(&desc, f, t->dims, t->rank, &why) != STRATA_OK)
            config_failed(l->c,
                          config_value_place(l->c, p, item->offset, strlen(item->text)),
                          &why);
        net->outputs[i].format = f;
    }
    config_list_free(items, n);
}

int network_read_outputs(struct loader *l)
{
    struct config_section *s = config_find(l->c, "network");
    const struct config_pair *p = config_get(s, "outputs");
    const struct config_pair *formats = config_get(s, "output_formats");
    struct config_item *items;
    struct reference r;
    size_t n;
    if (!p || !config_list(l->c, p, &items, &n))
        return STRATA_OK;
    l->net->outputs = zalloc(n, sizeof *l->net->outputs, "outputs", l->err);
    int status = l->net->outputs ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; status == STRATA_OK && i < n; i++)
        if (network_reference(l, p, &items[i], &r))
            status = add_output(l, r, p, &items[i]);
    if (status == STRATA_OK && formats)
        read_output_formats(l, formats);
    config_list_free(items, n);
    return status;
}
