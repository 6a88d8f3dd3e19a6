/* SPDX-License-Identifier: Apache-2.0
 *
 * The network with siblings as one chain each. What it makes for itself is a list of
 * blocks, freed together; layers, tensors and weights that stay are the base's.
 */
#include "network/merge/merge.h"

#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

#include "core/alloc.h"
#include "core/checked.h"

struct merging {
    strata_network *net; /* that is made */
    const strata_network *base;
    const struct network_groups *groups;
    int *group_of;  /* of each layer of the base: by its first layer; -1: none */
    int *joined_of; /* the same by the Concatenation behind a group */
    int *whole;     /* of each group: what the one chain ends in, once that is made */
    bool *dropped;  /* layers of the base that another does for */
};

/* ---- memory -------------------------------------------------------------------------
 */

/* Takes a block, which may be NULL for want of memory. */
static void *keep(strata_network *net, void *block, strata_error *err)
{
    struct network_merged *m = net->merged;
    if (block &&
        grow(&m->blocks, &m->capacity, m->n, sizeof *m->blocks, err) != STRATA_OK) {
        free(block);
        return NULL;
    }
    if (block)
        m->blocks[m->n++] = block;
    return block;
}

static void *get(strata_network *net, size_t n, size_t size, strata_error *err)
{
    return keep(net, zalloc(n, size, "merged layers", err), err);
}

/* ---- one layer of several -----------------------------------------------------------
 */

static const struct network_layer *
member(const struct merging *m, const struct network_siblings *g, int chain, int k)
{
    return &m->base->layers[network_sibling(g, chain, k)];
}

/* Results of a chain's k-th layer. */
static int64_t results_of(const struct merging *m, const struct network_siblings *g,
                          int chain, int k, int axis)
{
    return m->base->tensors[member(m, g, chain, k)->outputs[0]].dims[axis];
}

static int join_weight(struct merging *m, struct network_weight *out,
                       const struct network_siblings *g, int k, size_t w, int axis,
                       const struct network_joint *joint, strata_error *err)
{
    struct network_join *join = get(m->net, 1, sizeof *join, err);
    const struct network_weight **parts =
        get(m->net, (size_t)g->n, sizeof(struct network_weight *), err);
    int64_t *counts = get(m->net, (size_t)g->n, sizeof *counts, err);
    if (!join || !parts || !counts)
        return STRATA_ENOMEM;
    *join = (struct network_join){parts, counts, g->n, joint->weight_axis[w]};
    const struct network_weight *like = NULL;
    int64_t sum = 0;
    for (int c = 0; c < g->n; c++) {
        parts[c] = &member(m, g, c, k)->weights[w];
        counts[c] = results_of(m, g, c, k, axis);
        sum += counts[c]; /* at most 2^31 each */
        if (parts[c]->source != WEIGHT_ABSENT)
            like = like ? like : parts[c];
    }
    if (!like) {
        *out = *parts[0];
        return STRATA_OK;
    }
    *out = *like;
    out->source = WEIGHT_JOINED;
    out->join = join;
    out->dims[join->axis] = sum;
    if (sum > NETWORK_MAX_DIM || network_elements(out->dims, out->rank) < 0)
        return error_set(err, STRATA_EOVERFLOW, "%s with those beside it: too large",
                         like->name);
    return STRATA_OK;
}

static int join_weights(struct merging *m, struct network_layer *layer,
                        const struct network_siblings *g, int k, int axis,
                        const struct network_joint *joint, strata_error *err)
{
    const size_t n = layer->type->n_weights;
    int status = STRATA_OK;
    layer->weights = get(m->net, n, sizeof *layer->weights, err);
    if (!layer->weights)
        return STRATA_ENOMEM;
    for (size_t w = 0; w < n && status == STRATA_OK; w++)
        status = join_weight(m, &layer->weights[w], g, k, w, axis, joint, err);
    const struct network_weight *first = member(m, g, 0, k)->weights;
    if (n > 0 && first->factors)
        layer->weights[0].factors = &layer->weights[first->factors - first];
    return status;
}

/* The first member's parameters, with as many results as all have. */
static int join_params(struct merging *m, struct network_layer *layer,
                       const strata_attr *count, int64_t results, strata_error *err)
{
    const size_t size = layer->type->layer.params_size;
    const void *first = layer->params;
    layer->params = get(m->net, size, 1, err);
    if (!layer->params)
        return STRATA_ENOMEM;
    memcpy(layer->params, first, size);
    if (count)
        memcpy((char *)layer->params + count->offset, &results, sizeof results);
    return STRATA_OK;
}

/* A tensor behind the base's, like one of those but for a dim. */
static int add_tensor(struct merging *m, const char *name, int like, int axis,
                      int64_t results, strata_error *err)
{
    struct network_tensor *t = &m->net->tensors[m->net->n_tensors];
    *t = m->base->tensors[like];
    t->dims[axis] = results;
    t->name = keep(m->net, duplicate(name, err), err);
    t->port = 0;
    if (!t->name)
        return -1;
    if (results > NETWORK_MAX_DIM || network_elements(t->dims, t->rank) < 0) {
        error_set(err, STRATA_EOVERFLOW, "tensor '%s': too large", name);
        return -1;
    }
    return (int)m->net->n_tensors++;
}

/* The k-th layers of all chains as one that reads `input`; *output is what it writes. */
static int join_layer(struct merging *m, const struct network_siblings *g, int k,
                      int axis, int input, int *output, strata_error *err)
{
    const struct network_layer *first = member(m, g, 0, k);
    const struct network_joint joint = network_joint_of(m->base, first);
    struct network_layer *layer = &m->net->layers[m->net->n_layers];
    int64_t results = 0;
    for (int c = 0; c < g->n; c++)
        results += results_of(m, g, c, k, axis);
    *layer = *first;
    layer->name = keep(m->net, network_siblings_name(m->base, g, k, err), err);
    int *ends = get(m->net, 2, sizeof *ends, err);
    if (!layer->name || !ends)
        return STRATA_ENOMEM;
    int status = join_params(m, layer, joint.count, results, err);
    if (status == STRATA_OK)
        status = join_weights(m, layer, g, k, axis, &joint, err);
    if (status != STRATA_OK)
        return status;
    *output = add_tensor(m, layer->name, first->outputs[0], axis, results, err);
    if (*output < 0)
        return err && err->status ? err->status : STRATA_ENOMEM;
    ends[0] = input;
    ends[1] = *output;
    layer->inputs = &ends[0];
    layer->outputs = &ends[1];
    m->net->n_layers++;
    return STRATA_OK;
}

/* ---- behind the chain ---------------------------------------------------------------
 */

/* One RotaryEmbedding of all heads that turns those of the first chains. */
static int join_turns(struct merging *m, const struct network_siblings *g, int input,
                      int *output, strata_error *err)
{
    const struct network_siblings turns = {
        .layers = g->layers + g->n * g->length, .n = g->n_behind, .length = 1};
    const struct network_layer *first = member(m, &turns, 0, 0);
    struct network_layer *layer = &m->net->layers[m->net->n_layers];
    const int64_t width = m->net->tensors[input].dims[2];
    strata_rotary_embedding *p = get(m->net, 1, sizeof *p, err);
    int *ends = get(m->net, (size_t)first->n_inputs + 1, sizeof *ends, err);
    *layer = *first;
    layer->name = keep(m->net, network_siblings_name(m->base, &turns, 0, err), err);
    if (!p || !ends || !layer->name)
        return STRATA_ENOMEM;
    *p = *(const strata_rotary_embedding *)first->params;
    const int64_t head = m->base->tensors[first->inputs[0]].dims[2] / p->heads;
    p->heads = width / head;
    for (int i = 0; i < turns.n; i++)
        p->turned += m->base->tensors[member(m, &turns, i, 0)->inputs[0]].dims[2] / head;
    *output = add_tensor(m, layer->name, first->outputs[0], 2, width, err);
    if (*output < 0)
        return err && err->status ? err->status : STRATA_ENOMEM;
    memcpy(ends, first->inputs, (size_t)first->n_inputs * sizeof *ends);
    ends[0] = input;
    ends[first->n_inputs] = *output;
    layer->params = p;
    layer->inputs = ends;
    layer->outputs = &ends[first->n_inputs];
    m->net->n_layers++;
    return STRATA_OK;
}

/* One with one input, the first of `ends`; behind it stand its outputs. */
static void add_layer(struct merging *m, char *name, const struct registry_layer *type,
                      void *params, int *ends, int outputs, struct config_place place)
{
    m->net->layers[m->net->n_layers++] = (struct network_layer){.name = name,
                                                                .type = type,
                                                                .params = params,
                                                                .inputs = &ends[0],
                                                                .outputs = &ends[1],
                                                                .n_inputs = 1,
                                                                .n_outputs = outputs,
                                                                .n_ports = 1,
                                                                .place = place};
}

/* Both chains' results as halves that a Gated reads, in place of its Activation and its
 * product. */
static int add_gated(struct merging *m, const struct network_siblings *g, int axis,
                     int whole, strata_error *err)
{
    const struct network_layer *gate = &m->base->layers[network_behind_layer(g, 0)];
    const struct network_layer *product = &m->base->layers[network_behind_layer(g, 1)];
    const strata_activation *f = gate->params;
    strata_gated *p = get(m->net, 1, sizeof *p, err);
    int *ends = get(m->net, 2, sizeof *ends, err);
    if (!p || !ends)
        return STRATA_ENOMEM;
    ends[0] = whole;
    ends[1] = product->outputs[0];
    *p =
        (strata_gated){.kind = f->kind, .axis = axis, .alpha = f->alpha, .beta = f->beta};
    add_layer(m, product->name, m->base->gated, p, ends, 1, product->place);
    return STRATA_OK;
}

/* What the chains end in, as parts of what the one chain ends in. */
static int add_slice(struct merging *m, const struct network_siblings *g, int axis,
                     int whole, strata_error *err)
{
    static const char behind[] = " apart";
    const char *of = m->net->tensors[whole].name;
    const size_t n = (size_t)g->n;
    strata_slice *p = get(m->net, 1, sizeof *p, err);
    int64_t *split = get(m->net, n, sizeof *split, err);
    int *ends = get(m->net, n + 1, sizeof *ends, err);
    char *name = get(m->net, strlen(of) + sizeof behind, 1, err);
    if (!p || !split || !ends || !name)
        return STRATA_ENOMEM;
    memcpy(name, of, strlen(of));
    memcpy(name + strlen(of), behind, sizeof behind);
    ends[0] = whole;
    for (int c = 0; c < g->n; c++) {
        const int part = network_siblings_result(m->base, g, c);
        split[c] = m->base->tensors[part].dims[axis];
        ends[1 + c] = part;
    }
    *p = (strata_slice){.split = {split, g->n}, .axis = axis};
    add_layer(m, name, m->base->slice, p, ends, g->n, member(m, g, 0, 0)->place);
    return STRATA_OK;
}

/* A list of one number. */
static strata_ints one(struct merging *m, int64_t value, strata_error *err)
{
    int64_t *v = get(m->net, 1, sizeof *v, err);
    if (v)
        *v = value;
    return (strata_ints){v, v ? 1 : 0};
}

/* A Concatenation's result as the range from `begin` on of a larger one's. */
static int add_range(struct merging *m, const struct network_layer *join, int larger,
                     int64_t begin, strata_error *err)
{
    const int result = join->outputs[0];
    strata_slice *p = get(m->net, 1, sizeof *p, err);
    int *ends = get(m->net, 2, sizeof *ends, err);
    if (!p || !ends)
        return STRATA_ENOMEM;
    ends[0] = larger;
    ends[1] = result;
    *p = (strata_slice){.axis = 1, /* not the batch */
                        .axes = one(m, 1, err),
                        .begin = one(m, begin, err),
                        .end = one(m, begin + m->base->tensors[result].dims[1], err)};
    if (!p->axes.n || !p->begin.n || !p->end.n)
        return STRATA_ENOMEM;
    add_layer(m, join->name, m->base->slice, p, ends, 1, join->place);
    return STRATA_OK;
}

/* A Concatenation with the whole chain's result in place of some chains'. */
static int add_larger(struct merging *m, const struct network_layer *join, int whole,
                      struct network_joined j, int *larger, strata_error *err)
{
    static const char more[] = " whole";
    struct network_layer *layer = &m->net->layers[m->net->n_layers];
    const int n = join->n_inputs - j.n + 1;
    int64_t channels = 0;
    char *name = get(m->net, strlen(join->name) + sizeof more, 1, err);
    int *ends = get(m->net, (size_t)n + 1, sizeof *ends, err);
    if (!name || !ends)
        return STRATA_ENOMEM;
    memcpy(name, join->name, strlen(join->name));
    memcpy(name + strlen(join->name), more, sizeof more);
    memcpy(&ends[j.first], &join->inputs[j.first ? j.n : 0],
           (size_t)(n - 1) * sizeof *ends);
    ends[j.first ? 0 : n - 1] = whole;
    for (int i = 0; i < n; i++)
        channels += m->net->tensors[ends[i]].dims[1]; /* at most 2^31 each */
    *larger = ends[n] = add_tensor(m, name, join->outputs[0], 1, channels, err);
    if (*larger < 0)
        return err && err->status ? err->status : STRATA_ENOMEM;
    *layer = *join;
    layer->name = name;
    layer->inputs = &ends[0];
    layer->outputs = &ends[n];
    layer->n_inputs = layer->n_ports = n;
    layer->ports = NULL;
    m->net->n_layers++;
    return STRATA_OK;
}

static int join_concatenation(struct merging *m, const struct network_siblings *g,
                              int whole, strata_error *err)
{
    const struct network_layer *join = &m->base->layers[network_behind_layer(g, 0)];
    const struct network_joined j = network_joined_of(m->base, g);
    int larger;
    int status = add_larger(m, join, whole, j, &larger, err);
    if (status != STRATA_OK)
        return status;
    const int64_t beside =
        m->net->tensors[larger].dims[1] - m->base->tensors[join->outputs[0]].dims[1];
    return add_range(m, join, larger, j.first ? beside : 0, err);
}

static int join_group(struct merging *m, const struct network_siblings *g, int *whole,
                      strata_error *err)
{
    const struct network_layer *first = member(m, g, 0, 0);
    const int axis = network_joint_of(m->base, first).axis;
    int tensor = first->inputs[0], status = STRATA_OK;
    for (int k = 0; k < g->length && status == STRATA_OK; k++)
        status = join_layer(m, g, k, axis, tensor, &tensor, err);
    if (status == STRATA_OK && g->behind == BEHIND_GATED)
        return add_gated(m, g, axis, tensor, err);
    if (status == STRATA_OK && g->behind == BEHIND_TURNED)
        status = join_turns(m, g, tensor, &tensor, err);
    *whole = tensor;
    return status == STRATA_OK ? add_slice(m, g, axis, tensor, err) : status;
}

/* ---- the network --------------------------------------------------------------------
 */

/* The base with room for what is made; nothing else of its own yet. */
static int open_network(struct merging *m, strata_error *err)
{
    const strata_network *base = m->base;
    size_t layers = base->n_layers, tensors = base->n_tensors;
    for (size_t i = 0; i < m->groups->n; i++) {
        const struct network_siblings *g = &m->groups->list[i];
        layers += (size_t)(network_siblings_made(g) + network_siblings_joined(g));
        tensors += (size_t)network_siblings_made(g) - 1;
        tensors += g->behind == BEHIND_JOINED;
    }
    strata_network *net = zalloc(1, sizeof *net, "a network", err);
    struct network_merged *merged = zalloc(1, sizeof *merged, "a network", err);
    struct network_tensor *all = zalloc(tensors, sizeof *all, "tensors", err);
    if (!net || !merged || !all) {
        free(net);
        free(merged);
        free(all);
        return STRATA_ENOMEM;
    }
    *net = *base;
    atomic_init(&net->references, 0);
    net->base = network_retain(base);
    net->merged = merged;
    net->tensors = memcpy(all, base->tensors, base->n_tensors * sizeof *all);
    net->n_layers = 0;
    net->layers = get(net, layers, sizeof *net->layers, err);
    m->net = net;
    m->group_of = zalloc(base->n_layers, sizeof *m->group_of, "merged layers", err);
    m->joined_of = zalloc(base->n_layers, sizeof *m->joined_of, "merged layers", err);
    m->whole = zalloc(m->groups->n, sizeof *m->whole, "merged layers", err);
    m->dropped = zalloc(base->n_layers, sizeof *m->dropped, "merged layers", err);
    return net->layers && m->group_of && m->joined_of && m->whole && m->dropped
               ? STRATA_OK
               : STRATA_ENOMEM;
}

static void mark(struct merging *m)
{
    memset(m->group_of, -1, m->base->n_layers * sizeof *m->group_of);
    memset(m->joined_of, -1, m->base->n_layers * sizeof *m->joined_of);
    for (size_t i = 0; i < m->groups->n; i++) {
        const struct network_siblings *g = &m->groups->list[i];
        int first = network_sibling(g, 0, 0);
        for (int c = 1; c < g->n; c++)
            first = network_sibling(g, c, 0) < first ? network_sibling(g, c, 0) : first;
        m->group_of[first] = (int)i;
        if (g->behind == BEHIND_JOINED)
            m->joined_of[network_behind_layer(g, 0)] = (int)i;
        for (int k = 0; k < network_siblings_count(g); k++)
            m->dropped[g->layers[k]] = true;
    }
}

/* A joined chain stands where the first of its layers did: what it reads is made by then,
 * and who reads any of it comes later. */
static int place_layers(struct merging *m, strata_error *err)
{
    const struct network_siblings *groups = m->groups->list;
    int status = STRATA_OK;
    for (size_t i = 0; i < m->base->n_layers && status == STRATA_OK; i++) {
        const int g = m->group_of[i], j = m->joined_of[i];
        if (g >= 0)
            status = join_group(m, &groups[g], &m->whole[g], err);
        else if (j >= 0)
            status = join_concatenation(m, &groups[j], m->whole[j], err);
        else if (!m->dropped[i])
            m->net->layers[m->net->n_layers++] = m->base->layers[i];
    }
    return status;
}

/* Tensors inside the chains that are joined have none any more. */
static void set_producers(strata_network *net)
{
    for (size_t t = 0; t < net->n_tensors; t++)
        net->tensors[t].producer = -1;
    for (size_t i = 0; i < net->n_layers; i++)
        for (int k = 0; k < net->layers[i].n_outputs; k++) {
            net->tensors[net->layers[i].outputs[k]].producer = (int)i;
            net->tensors[net->layers[i].outputs[k]].port = k;
        }
}

int network_merge(strata_network **out, const strata_network *base,
                  const struct network_groups *groups, strata_error *err)
{
    struct merging m = {.base = base, .groups = groups};
    *out = NULL;
    if (!base->slice)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "layers cannot be merged: there is no core::Slice here");
    int status = open_network(&m, err);
    if (status == STRATA_OK) {
        mark(&m);
        status = place_layers(&m, err);
    }
    if (status == STRATA_OK)
        set_producers(m.net);
    free(m.group_of);
    free(m.joined_of);
    free(m.whole);
    free(m.dropped);
    if (status == STRATA_OK)
        *out = m.net;
    else
        strata_network_destroy(m.net);
    return status;
}
