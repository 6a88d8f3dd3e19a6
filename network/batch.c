/* SPDX-License-Identifier: Apache-2.0
 *
 * A network for another batch: the shapes of its tensors, worked out anew by the layers
 * themselves, everything else shared. Rows, which are what dim 0 counts, must not know of
 * each other: the first n of the outputs are then those of the first n of the inputs,
 * whatever the others hold.
 */
#include "network/network.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

#include "core/alloc.h"

int network_batch(const strata_network *net, int64_t *batch, strata_error *err)
{
    const struct network_input *first = NULL;
    *batch = 1;
    for (size_t i = 0; i < net->n_inputs - net->n_states; i++) {
        const struct network_input *in = &net->inputs[i];
        const int64_t rows = net->tensors[in->tensor].dims[0];
        if (net->batch_symbol >= 0 && in->symbols[0] != net->batch_symbol)
            continue;
        if (first && rows != *batch)
            return error_set(err, STRATA_EUNSUPPORTED,
                             "inputs '%s' and '%s' have %" PRId64 " and %" PRId64
                             " as their first dims; to say which is the batch, give a "
                             "name two values in [profile] and begin shapes with it",
                             first->name, in->name, *batch, rows);
        first = in;
        *batch = rows;
    }
    if (first && *batch > 0)
        return STRATA_OK;
    return error_set(err, STRATA_EUNSUPPORTED, "the network has no inputs%s",
                     first ? " with rows" : "");
}

/* ---- rows apart ------------------------------------------------------------------ */

static bool is_first(int64_t axis, int rank)
{
    return axis == 0 || axis == -rank;
}

/* Whether an attribute called axis or axes names the batch. */
static bool works_along_batch(const struct registry_layer *type, const void *params,
                              int rank)
{
    for (size_t i = 0; i < type->n_attrs; i++) {
        const strata_attr *a = &type->attrs[i];
        const void *value = (const char *)params + a->offset;
        if (a->type == STRATA_I64 && strcmp(a->name, "axis") == 0 &&
            is_first(*(const int64_t *)value, rank))
            return true;
        if (a->type != STRATA_INTS || strcmp(a->name, "axes") != 0)
            continue;
        const strata_ints *axes = value;
        for (int64_t k = 0; k < axes->n; k++)
            if (is_first(axes->v[k], rank))
                return true;
    }
    return false;
}

static const char *mixes_shuffle(const void *params)
{
    const strata_shuffle *p = params;
    return (p->first.n && p->first.v[0] != 0) || (p->second.n && p->second.v[0] != 0)
               ? "it transposes the batch"
               : NULL;
}

static const char *mixes_slice(const void *params)
{
    const strata_slice *p = params;
    return p->axes.n == 0 && !p->like.n && ((p->begin.n && p->begin.v[0] != 0) ||
                              (p->step.n && p->step.v[0] != 1))
               ? "it selects from the batch"
               : NULL;
}

static const char *mixes_steps(const void *params)
{
    const strata_reverse_sequence *p = params;
    return p->batch_axis == 0 ? NULL : "its sequences do not lie along the batch";
}

static const char *mixes_regions(const void *params)
{
    (void)params;
    return "its regions may be of any image";
}

static const char *mixes_boxes(const void *params)
{
    (void)params;
    return "its rows are those of all images, without gaps";
}

static const char *mixes_sequences(const void *params)
{
    const strata_rnn *p = params;
    return p->layout == STRATA_RNN_BATCH ? NULL : "its rows are steps, one after another";
}

static const char *mixes_shape(const void *params)
{
    const strata_shape *p = params;
    return p->axes.n == 0 ? "it tells the batch" : NULL;
}

bool network_reads_rows(const struct registry_layer *type, int input)
{
    return input == 0 || (strcmp(type->full_name, "core::Slice@1") != 0 &&
                          strcmp(type->full_name, "core::Resize@1") != 0);
}

bool network_gives_rows(const struct registry_layer *type)
{
    return strcmp(type->full_name, "core::Shape@1") != 0;
}

const char *network_mixes_rows(const struct registry_layer *type, const void *params,
                               int rank)
{
    static const struct {
        const char *type;
        const char *(*mixes)(const void *params);
    } rules[] = {
        {"core::Shuffle@1", mixes_shuffle},
        {"core::Slice@1", mixes_slice},
        {"core::ReverseSequence@1", mixes_steps},
        {"core::RNN@1", mixes_sequences},
        {"core::RoiAlign@1", mixes_regions},
        {"core::NonMaxSuppression@1", mixes_boxes},
        {"core::Shape@1", mixes_shape},
    };
    if (works_along_batch(type, params, rank))
        return "it works along the batch";
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (strcmp(type->full_name, rules[i].type) == 0)
            return rules[i].mixes(params);
    return NULL;
}

/* ---- shapes ---------------------------------------------------------------------- */

struct rebatch {
    const strata_network *base;
    strata_network *net;
    int64_t from, to;
    bool *carries; /* tensors whose dim 0 is the batch */
    strata_tensor *tensors;
};

static bool same_dims(const struct network_tensor *a, const strata_tensor *b, int first)
{
    return memcmp(a->dims + first, b->dims + first,
                  (size_t)(a->rank - first) * sizeof *a->dims) == 0;
}

/* NULL, or why an output is not what a batch makes of it. */
static const char *settle_output(struct rebatch *r, int index, const strata_tensor *found,
                                 bool carries)
{
    struct network_tensor *t = &r->net->tensors[index];
    if (found->rank != t->rank)
        return "the rank of its output hangs on the batch";
    r->carries[index] = carries;
    if (!carries)
        return same_dims(t, found, 0) ? NULL : "its shape is not always the same";
    if (t->rank < 1 || t->dims[0] != r->from || found->dims[0] != r->to)
        return "the first dim of its output is not the batch";
    if (!same_dims(t, found, 1))
        return "other dims of its output than the first hang on the batch";
    memcpy(t->dims, found->dims, sizeof t->dims);
    return NULL;
}

static const char *infer(struct rebatch *r, const struct network_layer *layer,
                         strata_error *why)
{
    const strata_layer *type = &layer->type->layer;
    strata_tensor *in = r->tensors, *out = in + layer->n_ports;
    strata_node node;
    bool carries = false;
    int rank = 0;
    network_node(r->net, layer, &node, in, out, out + layer->n_outputs, why);
    for (int i = 0; i < layer->n_inputs; i++) {
        const int in_rank = in[network_port(layer, i)].rank;
        if (!network_reads_rows(layer->type, i))
            continue;
        carries |= r->carries[layer->inputs[i]];
        rank = in_rank > rank ? in_rank : rank;
    }
    carries |= network_begins_with(layer, r->base->batch_symbol);
    const char *problem =
        carries ? network_mixes_rows(layer->type, layer->params, rank) : NULL;
    for (int i = 0; i < layer->n_outputs && !type->shape && layer->n_inputs; i++)
        out[i] = in[0];
    if (!problem && type->shape && type->shape(&node) != STRATA_OK)
        problem = why->status != STRATA_OK ? why->message : "it refuses the shape";
    for (int i = 0; i < layer->n_outputs && !problem; i++)
        problem = settle_output(r, layer->outputs[i], &out[i],
                                carries && network_gives_rows(layer->type));
    return problem;
}

static int infer_layers(struct rebatch *r, strata_error *err)
{
    for (size_t i = 0; i < r->net->n_layers; i++) {
        const struct network_layer *layer = &r->net->layers[i];
        strata_error why = {0};
        const char *problem = infer(r, layer, &why);
        if (problem)
            return error_set(err, STRATA_EUNSUPPORTED,
                             "layer '%s' (%s:%d) cannot have a batch of %" PRId64
                             ", only %" PRId64 ": %s",
                             layer->name, r->net->path, layer->place.line, r->to, r->from,
                             problem);
    }
    return STRATA_OK;
}

static void set_inputs(struct rebatch *r)
{
    for (size_t i = 0; i < r->net->n_inputs; i++) {
        const struct network_input *in = &r->net->inputs[i];
        const struct network_tensor *t = &r->base->tensors[in->tensor];
        const bool state = i >= r->net->n_inputs - r->net->n_states;
        if (r->base->batch_symbol >= 0 ? in->symbols[0] != r->base->batch_symbol
                                       : state && t->dims[0] != r->from)
            continue;
        r->carries[in->tensor] = true;
        r->net->tensors[in->tensor].dims[0] = r->to;
    }
}

int network_rebatch(strata_network **out, const strata_network *net, int64_t batch,
                    strata_error *err)
{
    struct rebatch r = {.base = net, .to = batch};
    *out = NULL;
    int status = network_batch(net, &r.from, err);
    if (status != STRATA_OK)
        return status;
    r.carries = zalloc(net->n_tensors, sizeof *r.carries, "tensors", err);
    r.tensors = zalloc(network_most_tensors(net), sizeof *r.tensors, "tensors", err);
    status = r.carries && r.tensors ? network_version(&r.net, net, err) : STRATA_ENOMEM;
    if (status == STRATA_OK) {
        int64_t sizes[NETWORK_MAX_SYMBOLS];
        for (size_t i = 0; i < net->n_symbols; i++)
            sizes[i] = (int)i == net->batch_symbol ? batch : -1;
        set_inputs(&r);
        network_name_sizes(r.net, sizes);
        status = infer_layers(&r, err);
    }
    free(r.carries);
    free(r.tensors);
    if (status != STRATA_OK)
        strata_network_destroy(r.net);
    else
        *out = r.net;
    return status;
}
