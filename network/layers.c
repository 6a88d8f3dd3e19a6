/* SPDX-License-Identifier: Apache-2.0
 *
 * [layer] sections: type, attributes, formats, impl, weights; inputs as written.
 */
#include "network/private.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "network/attributes.h"
#include "network/merge/merge.h"

#define KEYS_MAX 512 /* known keys a hint is chosen from */

static const char *const reserved[] = {"type", "inputs", "weights", "format", "impl"};

/* Where plugins were looked for is the same for every type that is missing. */
static void say_once(struct loader *l, strata_error *why)
{
    char *at = strstr(why->message, "\n  namespaces:");
    if (!at)
        at = strstr(why->message, "\n  searched:");
    if (at && l->told_search) {
        *at = '\0';
        why->length = (uint32_t)(at - why->message);
    }
    l->told_search |= at != NULL;
}

/* Look a type up once; a failing look-up is slow, and past the limit nobody reads why. */
static int find_type(struct loader *l, const struct config_pair *p,
                     const struct registry_layer **out)
{
    strata_error why;
    int known = names_get(&l->type_index, p->value);
    *out = known >= 0 ? l->types[known] : NULL;
    if (known >= 0 || config_full(l->c)) /* a missing type is reported once */
        return STRATA_OK;
    error_clear(&why); /* cheaper than zeroing it for each layer */
    int status = registry_find(l->registry, p->value, out, &why);
    if (status == STRATA_ENOMEM)
        return error_set(l->err, status, "%s",
                         why.length ? why.message : "out of memory for a layer type");
    if (status != STRATA_OK) {
        *out = NULL;
        say_once(l, &why);
        config_failed(l->c, p->value_place, &why);
    }
    if (grow(&l->types, &l->types_capacity, l->n_types, sizeof *l->types, l->err) !=
        STRATA_OK)
        return STRATA_ENOMEM;
    l->types[l->n_types] = *out;
    return names_put(&l->type_index, p->value, (int)l->n_types++, l->err);
}

/* Number of outputs, from the descriptor or its callback. */
static int count_outputs(struct loader *l, struct draft *d)
{
    const strata_layer *type = &d->layer.type->layer;
    int n = type->n_out >= 0 ? type->n_out
            : type->outputs  ? type->outputs(d->layer.params)
                             : -1;
    if (n < 1 || n > NETWORK_MAX_OUTPUTS) {
        config_error(l->c, d->section->place,
                     "%s gives %d outputs for these attributes; 1 to %d are allowed",
                     d->layer.type->full_name, n, NETWORK_MAX_OUTPUTS);
        return 1;
    }
    return n;
}

static bool has_impl_for(const struct registry_layer *type, int device)
{
    for (size_t i = 0; i < type->n_impls; i++)
        if (type->impls[i].impl.device == device)
            return true;
    return false;
}

static void read_impl(struct loader *l, struct draft *d)
{
    const struct registry_layer *type = d->layer.type;
    const struct config_pair *p = config_get(d->section, "impl");
    const char *names[64];
    size_t n = 0;
    if (!p || p->invalid)
        return;
    for (size_t i = 0; i < type->n_impls; i++) {
        const char *name = type->impls[i].impl.name;
        if (strcmp(name, p->value) == 0) {
            d->layer.impl = duplicate(p->value, l->err);
            return;
        }
        if (n < ARRAY_LENGTH(names))
            names[n++] = name;
    }
    const char *near = config_full(l->c) ? NULL : suggest(p->value, names, n);
    config_error(l->c, p->value_place,
                 "%s has no impl '%s'%s%s%s; it has %zu, see "
                 "`strata describe`%s",
                 type->full_name, p->value, near ? ", did you mean '" : "",
                 near ? near : "", near ? "'?" : "", type->n_impls,
                 has_impl_for(type, STRATA_CUDA)
                     ? ""
                     : "; those for CUDA are in modules that are not here");
}

static void check_keys(struct config *c, const struct draft *d)
{
    const struct registry_layer *type = d->layer.type;
    const char *names[KEYS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(reserved); i++)
        names[n++] = reserved[i];
    for (size_t i = 0; i < type->n_attrs && n < KEYS_MAX; i++)
        names[n++] = type->attrs[i].name;
    for (size_t i = 0; i < type->n_weights && n < KEYS_MAX; i++)
        names[n++] = type->weights[i].name;
    config_unknown(c, d->section, names, n);
}

static int read_attributes(struct loader *l, struct draft *d)
{
    struct network_layer *layer = &d->layer;
    struct attribute_names names = {0};
    int status = attributes_read(l->c, d->section, layer->type, layer->params,
                                 &layer->params_memory, &names, l->err);
    if (status == STRATA_OK && names.n &&
        !(layer->names = zalloc(names.n, sizeof *layer->names, "names", l->err)))
        status = STRATA_ENOMEM;
    for (size_t i = 0; layer->names && i < names.n; i++) {
        const struct attribute_name *n = &names.v[i];
        const int symbol = network_symbol_of(l->net, l->c, n->part.symbol),
                  plus = network_symbol_of(l->net, l->c, n->part.plus);
        if (symbol < 0) /* more than there may be: its error was recorded */
            continue;
        if ((n->part.plus >= 0 || n->part.more) && l->net->batch_symbol >= 0 &&
            (symbol == l->net->batch_symbol || plus == l->net->batch_symbol))
            config_error(l->c, d->section->place,
                         "'%s' is the batch, and stands in a sum of %s",
                         l->net->symbols[l->net->batch_symbol].name, n->attr->name);
        layer->names[layer->n_names++] = (struct network_name){
            n->attr, n->entry, symbol, n->part.times, n->part.over, plus, n->part.more};
    }
    free(names.v);
    return status;
}

/* Attributes, outputs, formats and weights of a draft whose type is known. */
static int read_draft(struct loader *l, struct draft *d)
{
    struct network_layer *layer = &d->layer;
    struct config_section *s = d->section;
    const struct config_pair *formats = config_get(s, "format");
    size_t before = config_errors(l->c);
    layer->params = zalloc(layer->type->layer.params_size, 1, "parameters", l->err);
    if (!layer->params)
        return STRATA_ENOMEM;
    int status = read_attributes(l, d);
    if (status != STRATA_OK) {
        error_prefix(l->err, "layer %s", layer->name);
        return status;
    }
    bool good = config_errors(l->c) == before && !s->broken;
    layer->n_outputs = good ? count_outputs(l, d) : 1;
    d->broken = d->broken || !good;
    if (formats)
        network_formats(l->c, formats, &layer->formats);
    read_impl(l, d);
    return network_bind_weights(l, d);
}

/* Both an input and a layer may not have the name. */
static int register_name(struct loader *l, struct draft *d, int node)
{
    int earlier = names_get(&l->node_index, d->section->name);
    if (strcmp(d->section->name, "none") == 0)
        config_error(l->c, d->section->place,
                     "'none' cannot be a name: in 'inputs =' it stands for an absent "
                     "input");
    if (earlier >= 0) {
        config_error(l->c, d->section->place, "'%s' is the name of an input already",
                     d->section->name);
        return STRATA_OK;
    }
    return names_put(&l->node_index, d->section->name, node, l->err);
}

static int read_layer(struct loader *l, struct config_section *s)
{
    if (l->n_drafts == NETWORK_MAX_LAYERS) {
        config_error(l->c, s->place, "more than %d layers", NETWORK_MAX_LAYERS);
        return STRATA_OK;
    }
    if (grow(&l->drafts, &l->drafts_capacity, l->n_drafts, sizeof *l->drafts, l->err) !=
        STRATA_OK)
        return STRATA_ENOMEM;
    struct draft *d = &l->drafts[l->n_drafts];
    d->section = s;
    int status = register_name(l, d, (int)(l->net->n_inputs + l->n_drafts));
    l->n_drafts++;
    d->layer.name = duplicate(s->name, l->err);
    d->layer.n_outputs = 1;
    d->layer.place = s->place;
    if (status != STRATA_OK || !d->layer.name)
        return STRATA_ENOMEM;
    d->inputs_pair = config_get(s, "inputs");
    if (d->inputs_pair)
        d->broken = !config_list(l->c, d->inputs_pair, &d->inputs, &d->n_inputs);
    const struct config_pair *type = config_require(l->c, s, "type");
    if (type && !type->invalid)
        status = find_type(l, type, &d->layer.type);
    if (status != STRATA_OK || !d->layer.type) {
        d->broken = true;
        return status;
    }
    status = read_draft(l, d);
    check_keys(l->c, d);
    return status;
}

/* A type of layers that the planner makes; of none it makes none. */
static int find_made(struct loader *l, const char *name,
                     const struct registry_layer **out)
{
    strata_error why;
    error_clear(&why);
    if (registry_find(l->registry, name, out, &why) == STRATA_ENOMEM)
        return error_set(l->err, STRATA_ENOMEM, "%s",
                         why.length ? why.message : "out of memory for a layer type");
    return STRATA_OK;
}

static bool has_type(const struct loader *l, const char *name)
{
    for (size_t i = 0; i < l->n_types; i++)
        if (l->types[i] && strcmp(l->types[i]->full_name, name) == 0)
            return true;
    return false;
}

/* What the planner makes of layers, and of which: of all of them, or of any one. */
static const struct made {
    const char *type;
    size_t field; /* of strata_network */
    const char *of[3];
    bool any;
} made[] = {
#define MADE(name, member)                                                               \
    .type = "core::" name "@1", .field = offsetof(strata_network, member)
    {MADE("Projection", projection), .of = {"core::MatrixMultiply@1"}},
    {MADE("Perceptron", perceptron),
     .of = {"core::Convolution@1", "core::FullyConnected@1", "core::MatrixMultiply@1"},
     .any = true},
    {MADE("InvertedResidual", inverted_residual), .of = {"core::Convolution@1"}},
    {MADE("Bottleneck", bottleneck), .of = {"core::Convolution@1"}},
    {MADE("ShortcutConvolution", shortcut_convolution),
     .of = {"core::Convolution@1", "core::ElementWise@1"}},
    {MADE("PooledConvolution", pooled_convolution),
     .of = {"core::Convolution@1", "core::Pooling@1"}},
    {MADE("SelfAttention", self_attention),
     .of = {"core::MatrixMultiply@1", "core::Attention@1"}},
    {MADE("Pooling", pooling), .of = {"core::Reduce@1"}},
    {MADE("QuantizedConvolution", quantized_convolution), .of = {"core::Dequantize@1"}},
    {MADE("QuantizedDeconvolution", quantized_deconvolution),
     .of = {"core::Dequantize@1"}},
    {MADE("QuantizedProduct", quantized_product), .of = {"core::Dequantize@1"}},
    {MADE("QuantizedSum", quantized_sum), .of = {"core::Dequantize@1"}},
    {MADE("QuantizedPooling", quantized_pooling), .of = {"core::Dequantize@1"}},
    {MADE("QuantizedPointwise", quantized_pointwise),
     .of = {"core::Dequantize@1", "core::Quantize@1"}},
    {MADE("QuantizedAttention", quantized_attention),
     .of = {"core::Dequantize@1", "core::Attention@1"}},
#undef MADE
};

static bool may_make(const struct loader *l, const struct made *m)
{
    size_t n = 0, found = 0;
    for (; n < ARRAY_LENGTH(m->of) && m->of[n]; n++)
        found += has_type(l, m->of[n]);
    return m->any ? found > 0 : found == n;
}

static int find_made_types(struct loader *l)
{
    int status = STRATA_OK;
    if (!l->net->build.fusion)
        return STRATA_OK;
    if (l->n_drafts > 1)
        status = find_made(l, "core::Pointwise@1", &l->net->pointwise);
    for (size_t i = 0; status == STRATA_OK && i < ARRAY_LENGTH(made); i++)
        if (may_make(l, &made[i]))
            status = find_made(
                l, made[i].type,
                (const struct registry_layer **)((char *)l->net + made[i].field));
    return status;
}

int network_find_slice(struct loader *l)
{
    struct network_groups groups;
    int status = network_find_siblings(&groups, l->net, l->err);
    if (status == STRATA_OK && groups.n > 0) /* without it they stay apart */
        status = find_made(l, "core::Slice@1", &l->net->slice);
    if (status == STRATA_OK && groups.n > 0)
        status = find_made(l, "core::Gated@1", &l->net->gated);
    network_free_groups(&groups);
    return status;
}

int network_read_layers(struct loader *l)
{
    int status = network_each(l, "layer", read_layer);
    return status == STRATA_OK ? find_made_types(l) : status;
}
