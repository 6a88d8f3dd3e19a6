/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers between a Dequantize and a Quantize as one that computes in 8 bits. A layer all
 * of whose inputs a Dequantize makes (but for masks and the like), and whose weight is
 * INT8 (E4M3 where they are), begins a group that reads the integers instead; a Scale of
 * channels after it goes into its factors and bias, an Activation and a Quantize into its
 * pass. A layer that only moves or picks elements takes the integers as they are, where
 * what goes in and what comes out have the same scale. Whether a group runs is the plan's
 * choice; a Dequantize all of whose readers do without it then makes nothing.
 */
#include "planner/fuse/chain.h"
#include "planner/fuse/members.h"
#include "planner/fuse/notes.h"

#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

static bool is_byte(int dtype)
{
    return dtype == STRATA_INT8 || dtype == STRATA_UINT8;
}

/* Of what a Dequantize reads, a Quantize makes. */
static int read_dtype(const struct planner *planner, const struct network_layer *l)
{
    return planner->network->tensors[l->inputs[0]].dtype;
}

static int made_dtype(const struct planner *planner, const struct network_layer *l)
{
    return planner->network->tensors[l->outputs[0]].dtype;
}

/* ---- chains ------------------------------------------------------------------------ */

/* NULL, or why not all that a layer reads is dequantised. */
static const char *find_inputs(struct chain *c, const struct planner *planner, int node)
{
    const strata_network *net = planner->network;
    const struct planner_node *n = &planner->nodes[node];
    const int dequantised = chain_inputs(n->layer);
    const char *why = NULL;
    c->n_plain = n->n_in - dequantised;
    if (n->n_in < 1 || n->n_out != 1 || n->rewritten ||
        (n->layer->ports && c->n_plain == 0) ||
        2 * n->n_in + (n->residual >= 0) > PLAN_MAX_PORTS)
        return "it has too many inputs";
    for (int i = 0; i < dequantised && !why; i++) {
        const int producer = net->tensors[n->in[i]].producer;
        if (producer < 0 || !is_type(&net->layers[producer], "core::Dequantize@1"))
            return "not all that it reads is dequantised";
        c->from[c->n_from++] = &net->layers[producer];
        why = chain_refuse_scale(c->from[i], read_dtype(planner, c->from[i]));
    }
    return why;
}

/* Kinds that are exact in FP32, whoever computes them. */
static bool is_fusible(const struct network_layer *layer)
{
    return is_type(layer, "core::Activation@1") &&
           ((const strata_activation *)layer->params)->kind <= STRATA_CLIP;
}

/* Whether a Scale after a layer may go into its factors and bias. */
static bool folds_scale(const struct planner *planner, int node, int next)
{
    const struct network_layer *layer = planner->nodes[node].layer;
    return is_type(planner->nodes[next].layer, "core::Scale@1") &&
           !is_type(layer, "core::Scale@1") &&
           !planner_refuse_fold(planner, &planner->nodes[node],
                                planner->nodes[next].layer);
}

static int append(struct chain *c, const struct planner *planner, const int *reader,
                  int node)
{
    c->nodes[c->n++] = node;
    return members_only_reader(planner, reader, node);
}

/* Whether a node is a Quantize with one scale, to integers if the chain reads them. */
static bool is_quantize(const struct planner *planner, const struct chain *c, int node)
{
    if (node < 0 || !is_type(planner->nodes[node].layer, "core::Quantize@1"))
        return false;
    const struct network_layer *q = planner->nodes[node].layer;
    return !chain_refuse_scale(q, made_dtype(planner, q)) &&
           is_byte(made_dtype(planner, q)) == is_byte(read_dtype(planner, c->from[0]));
}

/* An Activation and a Quantize, from a node on. */
static void find_end(struct chain *c, const struct planner *planner, const int *reader,
                     int next, bool computes)
{
    if (next >= 0 && computes && is_fusible(planner->nodes[next].layer)) {
        c->activation = planner->nodes[next].layer;
        next = append(c, planner, reader, next);
    }
    if (!is_quantize(planner, c, next))
        return;
    c->to = planner->nodes[next].layer;
    c->nodes[c->n++] = next;
}

/* The layer and a Scale; -1 or what comes then. */
static int find_begin(struct chain *c, const struct planner *planner, const int *reader,
                      int node, bool computes)
{
    int next = append(c, planner, reader, node);
    if (next >= 0 && computes && folds_scale(planner, node, next)) {
        c->scale = planner->nodes[next].layer;
        next = append(c, planner, reader, next);
    }
    return next;
}

/* Of a sum of two tensors of one shape: the Dequantize that makes what is added to
 * `tensor`, of integers that are there when the chain's first node runs; or NULL. */
static const struct network_layer *addend_of(const struct planner *planner,
                                             const struct chain *c, int sum, int tensor)
{
    const strata_network *net = planner->network;
    const struct network_layer *l = planner->nodes[sum].layer;
    if (!is_type(l, "core::ElementWise@1") || l->n_inputs != 2 || l->ports ||
        ((const strata_elementwise *)l->params)->op != STRATA_SUM ||
        l->inputs[0] == l->inputs[1])
        return NULL;
    const int other = l->inputs[l->inputs[0] == tensor];
    const struct network_tensor *a = &net->tensors[tensor], *b = &net->tensors[other];
    if (b->producer < 0 || a->rank != b->rank ||
        memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0)
        return NULL;
    const struct network_layer *d = &net->layers[b->producer];
    return is_type(d, "core::Dequantize@1") &&
                   !chain_refuse_scale(d, read_dtype(planner, d)) &&
                   is_byte(read_dtype(planner, d)) &&
                   net->tensors[d->inputs[0]].producer < c->nodes[0]
               ? d
               : NULL;
}

/* The chain that goes on with a sum, after a Quantize and a Dequantize or without. */
static bool find_longer(struct chain *c, const struct planner *planner, const int *reader,
                        int node)
{
    int next = find_begin(c, planner, reader, node, true);
    if (is_quantize(planner, c, next)) {
        c->between = planner->nodes[next].layer;
        next = append(c, planner, reader, next);
        if (next < 0 || !is_type(planner->nodes[next].layer, "core::Dequantize@1") ||
            !chain_same_scale(c->between, planner->nodes[next].layer))
            return false;
        next = append(c, planner, reader, next);
    }
    if (next < 0)
        return false;
    c->addend =
        addend_of(planner, c, next, planner->nodes[c->nodes[c->n - 1]].layer->outputs[0]);
    if (c->addend)
        find_end(c, planner, reader, append(c, planner, reader, next), true);
    return c->addend;
}

/* NULL and the layer that a chain becomes; or why there is none. */
static const char *make_chain(struct made_layer *m, const struct chain *c,
                              const struct planner *planner)
{
    const struct network_layer *layer = planner->nodes[c->nodes[0]].layer;
    *m = (struct made_layer){
        .layer = {.name = layer->name,
                  .place = layer->place,
                  .n_inputs = c->n_from + c->n_plain + (c->addend != NULL),
                  .n_outputs = 1},
        .kind = MADE_QUANTIZED};
    for (int i = 0; i < c->n_from; i++)
        m->inputs[i] = c->from[i]->inputs[0];
    for (int i = c->n_from; i < c->n_from + c->n_plain; i++)
        m->inputs[i] = planner->nodes[c->nodes[0]].in[i];
    if (c->addend)
        m->inputs[c->n_from] = c->addend->inputs[0];
    m->output = planner->nodes[c->nodes[c->n - 1]].layer->outputs[0];
    const char *why = chain_make(m, planner, layer, c);
    return why || planner_has_impl(planner, m->layer.type)
               ? why
               : "no impl in 8 bits is for this device";
}

/* The same of a node. */
static const char *make(struct made_layer *m, struct chain *c,
                        const struct planner *planner, const int *reader, int node)
{
    const struct network_layer *layer = planner->nodes[node].layer;
    const char *why = chain_refuse(layer);
    if (!why)
        why = find_inputs(c, planner, node);
    if (!why && layer->impl)
        why = "the network asks for an impl of it";
    if (why)
        return why;
    const bool computes = chain_computes(layer);
    find_end(c, planner, reader, find_begin(c, planner, reader, node, computes),
             computes);
    return make_chain(m, c, planner);
}

/* ---- notes ------------------------------------------------------------------------- */

/* Of each Dequantize that a node reads, and of the Quantize that reads the node. */
static int note_refusal(struct planner *planner, const int *reader, int node,
                        const char *why, strata_error *err)
{
    const strata_network *net = planner->network;
    const struct network_layer *layer = planner->nodes[node].layer;
    int status = STRATA_OK;
    for (int i = 0; i < layer->n_inputs && status == STRATA_OK; i++) {
        const int p = net->tensors[layer->inputs[i]].producer;
        if (p >= 0 && is_type(&net->layers[p], "core::Dequantize@1"))
            status = notes_add(&planner->fusions[p], false, node, err, "%s: %s",
                               layer->name, why);
    }
    for (int k = 0; k < layer->n_outputs && status == STRATA_OK; k++) {
        const int next = reader[layer->outputs[k]];
        if (next >= 0 && is_type(&net->layers[next], "core::Quantize@1"))
            status = notes_add(&planner->fusions[next], false, node, err, "%s: %s",
                               layer->name, why);
    }
    return status;
}

/* ---- groups ------------------------------------------------------------------------ */

static int note_group(struct planner *planner, const struct chain *c, strata_error *err)
{
    const char *how = is_byte(read_dtype(planner, c->from[0])) ? "computed with integers"
                                                               : "computed in e4m3";
    const struct network_layer *first = planner->network->layers;
    const int node = c->nodes[0];
    const char *name = planner->nodes[node].layer->name;
    int status = STRATA_OK;
    for (int i = 0; i < c->n_from && status == STRATA_OK; i++)
        status = notes_add(&planner->fusions[c->from[i] - first], true, node, err,
                           "%s: %s", name, how);
    if (c->addend && status == STRATA_OK)
        status = notes_add(&planner->fusions[c->addend - first], true, node, err,
                           "%s: %s", name, how);
    for (int i = 1; i < c->n && status == STRATA_OK; i++)
        status = notes_add(&planner->fusions[c->nodes[i]], true, node, err, "%s: %s",
                           name, how);
    return status;
}

static int add_longer(struct planner *planner, const int *reader,
                      const struct chain *shorter, strata_error *err)
{
    const int node = shorter->nodes[0];
    struct chain c = {.n_from = shorter->n_from};
    struct made_layer made;
    memcpy(c.from, shorter->from, sizeof c.from);
    if (!chain_adds(planner->nodes[node].layer) ||
        !find_longer(&c, planner, reader, node) || c.n <= shorter->n ||
        make_chain(&made, &c, planner))
        return STRATA_OK;
    members_link(planner, c.nodes, c.n);
    int status = planner_add_longer(planner, node, &made, c.n, "with integers", err);
    if (status != STRATA_OK)
        return status;
    planner->nodes[node].longer->instead = true;
    return note_group(planner, &c, err);
}

/* A layer of floats and the Quantize that alone reads it. */
static int add_rounded(struct planner *planner, const int *reader, int node,
                       strata_error *err)
{
    const struct network_layer *layer = planner->nodes[node].layer;
    struct made_layer made = {.layer = {.name = layer->name,
                                        .place = layer->place,
                                        .n_inputs = 1,
                                        .n_outputs = 1},
                              .kind = MADE_QUANTIZED};
    const int next = layer->n_inputs == 1 && layer->n_outputs == 1 && !layer->impl
                         ? members_only_reader(planner, reader, node)
                         : -1;
    const struct network_layer *to = next >= 0 ? planner->nodes[next].layer : NULL;
    if (!to || !is_type(to, "core::Quantize@1") || !is_byte(made_dtype(planner, to)) ||
        chain_refuse_scale(to, made_dtype(planner, to)) ||
        !dtype_is_free(planner->network->tensors[layer->inputs[0]].dtype) ||
        chain_round(&made, planner, layer, to) ||
        !planner_has_impl(planner, made.layer.type))
        return STRATA_OK;
    made.inputs[0] = layer->inputs[0];
    made.output = to->outputs[0];
    planner->nodes[node].next = next;
    planner->nodes[next].previous = node;
    int status = planner_add_group(planner, node, &made, 2, "rounded in its pass", err);
    return status == STRATA_OK ? notes_add(&planner->fusions[next], true, node, err,
                                           "%s: rounded in its pass", layer->name)
                               : status;
}

static int add_group(struct planner *planner, const int *reader, int node,
                     strata_error *err)
{
    struct chain c = {.n = 0};
    struct made_layer made;
    const char *why = make(&made, &c, planner, reader, node);
    if (why) {
        bool added = false;
        int status = function_add(planner, reader, node, &added, err);
        if (status != STRATA_OK || added)
            return status;
        int refused = note_refusal(planner, reader, node, why, err);
        return refused == STRATA_OK ? add_rounded(planner, reader, node, err) : refused;
    }
    members_link(planner, c.nodes, c.n);
    int status = planner_add_group(
        planner, node, &made, c.n,
        is_byte(read_dtype(planner, c.from[0])) ? "with integers" : "in e4m3", err);
    if (status != STRATA_OK)
        return status;
    planner->nodes[node].group->instead = true;
    status = note_group(planner, &c, err);
    return status == STRATA_OK ? add_longer(planner, reader, &c, err) : status;
}

static bool computes(const struct planner_group *group, int distance)
{
    return group && group->instead && distance < group->members;
}

/* Whether a group of integers computes a node that is not its first. */
static bool is_joined(const struct planner *planner, int node)
{
    int distance = 1;
    for (int h = planner->nodes[node].previous; h >= 0;
         h = planner->nodes[h].previous, distance++)
        if (computes(planner->nodes[h].group, distance) ||
            computes(planner->nodes[h].longer, distance))
            return true;
    return false;
}

/* Whether a node's group reads what a Dequantize makes itself, as an Attention its mask.
 */
static bool reads_too(const struct planner_node *n, int tensor)
{
    bool any = false;
    for (int k = 0; n->group && k < n->group->node.n_in; k++)
        any |= n->group->node.in[k] == tensor;
    return any;
}

/* Whether each reader of a Dequantize may be a group that reads its integers. */
static bool has_instead(const struct planner *planner, int tensor)
{
    bool all = !planner->is_output[tensor] && planner->readers[tensor] > 0;
    for (size_t i = 0; i < planner->n_nodes && all; i++) {
        const struct planner_node *n = &planner->nodes[i];
        bool reads = false;
        for (int k = 0; k < n->n_in; k++)
            reads |= n->in[k] == tensor;
        all = !reads || (n->group && n->group->instead && !reads_too(n, tensor)) ||
              is_joined(planner, (int)i);
    }
    return all;
}

int planner_make_quantized(struct planner *planner, strata_error *err)
{
    const strata_network *net = planner->network;
    bool added;
    int status = STRATA_OK, *reader;
    if (!net->quantized_convolution && !net->quantized_deconvolution &&
        !net->quantized_product && !net->quantized_sum && !net->quantized_pooling &&
        !net->quantized_attention && !net->quantized_pointwise)
        return STRATA_OK; /* nothing is dequantised */
    if (!(reader = malloc(net->n_tensors * sizeof *reader)))
        return error_no_memory(err, net->n_tensors * sizeof *reader, "the groups");
    memset(reader, -1, net->n_tensors * sizeof *reader);
    for (size_t i = 0; i < planner->n_nodes; i++)
        for (int k = 0; k < planner->nodes[i].n_in; k++)
            reader[planner->nodes[i].in[k]] = (int)i;
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++)
        if (is_type(planner->nodes[i].layer, "core::Quantize@1"))
            status = function_add(planner, reader, (int)i, &added, err);
        else if (!is_type(planner->nodes[i].layer, "core::Dequantize@1"))
            status = add_group(planner, reader, (int)i, err);
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++)
        planner->nodes[i].unread =
            is_type(planner->nodes[i].layer, "core::Dequantize@1") &&
            has_instead(planner, planner->nodes[i].layer->outputs[0]);
    free(reader);
    return status;
}
