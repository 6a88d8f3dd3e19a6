/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers to nodes, one each, and the chains along which one node may compute the next
 * ones in its own pass: epilogues that an impl declares, scales folded into weights,
 * Shuffles composed. Whether it does is the plan's choice.
 */
#include "engine/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

static bool is_type(const struct network_layer *layer, const char *name)
{
    return strcmp(layer->type->full_name, name) == 0;
}

static enum fuse_kind kind_of(const struct network_layer *layer)
{
    static const struct {
        const char *type;
        enum fuse_kind kind;
    } kinds[] = {
        {"core::Shuffle@1", FUSE_SHUFFLE},
        {"core::Scale@1", FUSE_SCALE},
        {"core::ElementWise@1", FUSE_SUM},
        {"core::Activation@1", FUSE_ACTIVATION},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (is_type(layer, kinds[i].type))
            return kinds[i].kind == FUSE_SUM &&
                           (((const strata_elementwise *)layer->params)->op !=
                                STRATA_SUM ||
                            layer->n_inputs != 2)
                       ? FUSE_NOTHING
                       : kinds[i].kind;
    return FUSE_NOTHING;
}

/* ---- what a node can take -------------------------------------------------------- */

static bool has_epilogue(const strata_engine *e, const struct engine_node *n, int flag,
                         int activation)
{
    for (size_t i = 0; i < n->layer->type->n_impls; i++) {
        const strata_impl *impl = &n->layer->type->impls[i].impl;
        if (impl->device == e->handle->properties.kind && impl->epilogues & flag &&
            (flag != STRATA_EPILOGUE_ACTIVATION ||
             impl->activations & UINT64_C(1) << activation) &&
            (!n->layer->impl || strcmp(n->layer->impl, impl->name) == 0))
            return true;
    }
    return false;
}

static bool same_tensors(const strata_network *net, int a, int b)
{
    const struct network_tensor *x = &net->tensors[a], *y = &net->tensors[b];
    return x->rank == y->rank && x->dtype == y->dtype &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

/* A residual must exist when the head runs: nodes run after what they read. */
static const char *refuse_sum(const strata_engine *e, const struct engine_node *head,
                              const struct network_layer *sum, int port)
{
    const strata_network *net = e->network;
    int residual = sum->inputs[1 - port];
    if (!has_epilogue(e, head, STRATA_EPILOGUE_RESIDUAL, 0))
        return "no impl of it adds a residual";
    if (residual == sum->inputs[port])
        return "both operands are the same tensor";
    if (!same_tensors(net, residual, sum->inputs[port]) ||
        !same_tensors(net, residual, sum->outputs[0]))
        return "the operands differ in shape";
    if (!is_float(net->tensors[residual].dtype))
        return "the operands are not of a float type";
    if (net->tensors[residual].producer >= head->layer - net->layers)
        return "the other operand is made after it";
    return head->n_in < PLAN_MAX_PORTS ? NULL : "it has too many inputs";
}

static const char *refuse_kind(strata_engine *e, struct engine_node *head,
                               const struct network_layer *next, int port,
                               strata_error *err)
{
    enum fuse_kind kind = kind_of(next);
    enum fuse_kind last =
        head->n_tail ? e->fusions[head->tail[head->n_tail - 1]].kind : FUSE_NOTHING;
    if (head->n_out != 1)
        return "it has several outputs";
    if (kind < last || (kind == last && kind != FUSE_SCALE))
        return "an epilogue is activation(x + residual)";
    if (kind == FUSE_SCALE)
        return engine_refuse_fold(e, head, next);
    if (kind == FUSE_SUM)
        return refuse_sum(e, head, next, port);
    if (kind == FUSE_ACTIVATION)
        return has_epilogue(e, head, STRATA_EPILOGUE_ACTIVATION,
                            ((const strata_activation *)next->params)->kind)
                   ? NULL
                   : "no impl of it computes this activation";
    if (!is_type(head->layer, "core::Shuffle@1"))
        return "only a Shuffle is composed with it";
    head->composed = engine_compose(e->network, head->layer, next, err);
    return head->composed ? NULL : "the reshapes do not compose";
}

/* Who else needs the tensor between two layers, or what the user said of it. */
static const char *refuse_tensor(const strata_engine *e, int tensor,
                                 const struct network_layer *next)
{
    const strata_network *net = e->network;
    int readers = 0;
    for (size_t o = 0; o < net->n_outputs; o++)
        if (net->outputs[o].tensor == tensor)
            return "its output is a network output";
    for (size_t n = 0; n < e->n_nodes; n++)
        for (int i = 0; i < e->nodes[n].n_in; i++)
            readers += e->nodes[n].in[i] == tensor;
    if (readers > 1)
        return "its output has other readers";
    if (net->tensors[tensor].formats)
        return "the network gives its output a format";
    return next->impl ? "the network asks for an impl of this layer" : NULL;
}

/* ---- chains ------------------------------------------------------------------------ */

static int note(struct engine_fusion *f, bool possible, int into, strata_error *err,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

static int note(struct engine_fusion *f, bool possible, int into, strata_error *err,
                const char *format, ...)
{
    char text[400];
    va_list list;
    if (f->possible && !possible)
        return STRATA_OK; /* another can take it */
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    free(f->reason);
    f->possible = possible;
    f->into = into;
    return (f->reason = duplicate(text, err)) ? STRATA_OK : STRATA_ENOMEM;
}

static int append(struct engine_node *head, int node, strata_error *err)
{
    int status =
        grow(&head->tail, &head->tail_capacity, head->n_tail, sizeof *head->tail, err);
    if (status == STRATA_OK)
        head->tail[head->n_tail++] = node;
    return status;
}

static const char *const how[] = {
    [FUSE_SHUFFLE] = "both are one Shuffle",
    [FUSE_SCALE] = "folded into its weights",
    [FUSE_SUM] = "added in its epilogue",
    [FUSE_ACTIVATION] = "applied in its epilogue",
};

/* Append a node to every chain that ends at its producer through `port`. */
static int extend(strata_engine *e, int node, int port, strata_error *err)
{
    const struct network_layer *next = e->nodes[node].layer;
    int tensor = next->inputs[port], producer = e->network->tensors[tensor].producer;
    const char *refused = refuse_tensor(e, tensor, next);
    int status = STRATA_OK;
    for (int h = producer; h >= 0 && status == STRATA_OK; h = e->nodes[h].before) {
        struct engine_node *head = &e->nodes[h];
        if (h != producer &&
            (head->n_tail == 0 || head->tail[head->n_tail - 1] != producer))
            continue;
        const char *why = refused ? refused : refuse_kind(e, head, next, port, err);
        if (err->status == STRATA_ENOMEM)
            return STRATA_ENOMEM;
        status = note(&e->fusions[node], !why, h, err, "%s: %s", head->layer->name,
                      why ? why : how[e->fusions[node].kind]);
        if (why || status != STRATA_OK)
            continue;
        e->nodes[node].before = producer;
        e->nodes[node].chain_port = port;
        if (e->fusions[node].kind == FUSE_SUM)
            head->residual = next->inputs[1 - port];
        status = append(head, node, err);
    }
    return status;
}

/* A sum joins the chain of its later operand first: the earlier one exists by then. */
static int find_chains(strata_engine *e, strata_error *err)
{
    const struct network_tensor *tensors = e->network->tensors;
    for (size_t i = 0; i < e->n_nodes; i++) {
        const struct engine_node *n = &e->nodes[i];
        enum fuse_kind kind = e->fusions[i].kind;
        int port = 0, status;
        if (kind == FUSE_NOTHING)
            continue;
        if (kind == FUSE_SUM)
            port = tensors[n->in[1]].producer > tensors[n->in[0]].producer;
        status = extend(e, (int)i, port, err);
        if (status == STRATA_OK && kind == FUSE_SUM && n->before < 0)
            status = extend(e, (int)i, 1 - port, err);
        if (status != STRATA_OK)
            return status;
    }
    return STRATA_OK;
}

/* ---- nodes ---------------------------------------------------------------------------
 */

static int make_node(strata_engine *e, struct engine_node *n,
                     const struct network_layer *layer, strata_error *err)
{
    n->layer = layer;
    n->in = layer->inputs;
    n->n_in = layer->n_inputs;
    n->out = layer->outputs;
    n->n_out = layer->n_outputs;
    n->before = n->residual = n->residual_value = -1;
    n->name = duplicate(layer->name, err);
    n->in_values = zalloc((size_t)n->n_in, sizeof *n->in_values, "a node", err);
    n->out_values = zalloc((size_t)n->n_out, sizeof *n->out_values, "a node", err);
    n->weights = zalloc(layer->type->n_weights, sizeof *n->weights, "a node", err);
    if (!n->name || !n->in_values || !n->out_values || !n->weights)
        return STRATA_ENOMEM;
    return engine_weights(e, n, 0, n->weights, err);
}

/* How many inputs of a concatenation are all those of an earlier one, in order; *out is
 * the longest such. */
static int known_prefix(const strata_network *net, const struct network_layer *layer,
                        const struct network_layer **out)
{
    const strata_concatenation *p = layer->params;
    int longest = 1;
    for (const struct network_layer *l = net->layers; l < layer; l++) {
        if (l->type != layer->type || l->n_inputs >= layer->n_inputs ||
            l->n_inputs <= longest ||
            ((const strata_concatenation *)l->params)->axis != p->axis ||
            memcmp(l->inputs, layer->inputs, (size_t)l->n_inputs * sizeof *l->inputs))
            continue;
        longest = l->n_inputs;
        *out = l;
    }
    return longest;
}

/* A list that grows, concatenated anew each time, reads the concatenation before it:
 * each part is then copied once, or not at all. */
static int rewrite_join(const strata_network *net, struct engine_node *n,
                        strata_error *err)
{
    const struct network_layer *before = NULL;
    if (!is_type(n->layer, "core::Concatenation@1"))
        return STRATA_OK;
    int known = known_prefix(net, n->layer, &before);
    if (!before)
        return STRATA_OK;
    n->n_in = 1 + n->layer->n_inputs - known;
    n->in = n->rewritten = zalloc((size_t)n->n_in, sizeof *n->rewritten, "a node", err);
    if (!n->rewritten)
        return STRATA_ENOMEM;
    n->in[0] = before->outputs[0];
    for (int i = known; i < n->layer->n_inputs; i++)
        n->in[1 + i - known] = n->layer->inputs[i];
    return STRATA_OK;
}

int engine_make_nodes(strata_engine *e, strata_error *err)
{
    const strata_network *net = e->network;
    int status = STRATA_OK;
    e->nodes = zalloc(net->n_layers, sizeof *e->nodes, "the engine's nodes", err);
    e->fusions = zalloc(net->n_layers, sizeof *e->fusions, "the engine's nodes", err);
    if (!e->nodes || !e->fusions)
        return STRATA_ENOMEM;
    for (size_t l = 0; l < net->n_layers && status == STRATA_OK; l++) {
        e->fusions[e->n_fusions++] =
            (struct engine_fusion){.kind = kind_of(&net->layers[l]), .into = -1};
        status = make_node(e, &e->nodes[e->n_nodes++], &net->layers[l], err);
    }
    for (size_t i = 0; i < e->n_nodes && status == STRATA_OK && net->build.fusion; i++)
        status = rewrite_join(net, &e->nodes[i], err);
    return status == STRATA_OK && net->build.fusion ? find_chains(e, err) : status;
}

int engine_output(const strata_engine *e, const struct engine_node *n, size_t fused,
                  int port)
{
    return fused ? e->network->layers[n->tail[fused - 1]].outputs[0]
                 : n->layer->outputs[port];
}

strata_epilogue engine_epilogue(const strata_engine *e, const struct engine_node *n,
                                size_t fused)
{
    strata_epilogue epilogue = {0};
    for (size_t i = 0; i < fused; i++) {
        enum fuse_kind kind = e->fusions[n->tail[i]].kind;
        if (kind == FUSE_SUM)
            epilogue.flags |= STRATA_EPILOGUE_RESIDUAL;
        if (kind != FUSE_ACTIVATION)
            continue;
        const strata_activation *a = e->network->layers[n->tail[i]].params;
        epilogue.flags |= STRATA_EPILOGUE_ACTIVATION;
        epilogue.activation = a->kind;
        epilogue.alpha = strata_activation_alpha(a);
        epilogue.beta = strata_activation_beta(a);
    }
    return epilogue;
}

static int name_node(const strata_engine *e, struct engine_node *n, strata_error *err)
{
    size_t size = strlen(n->layer->name) + 1, used;
    for (size_t i = 0; i < n->n_fused; i++)
        size += strlen(e->network->layers[n->tail[i]].name) + 3;
    free(n->name);
    n->name = zalloc(size, 1, "a node's name", err);
    if (!n->name)
        return STRATA_ENOMEM;
    used = (size_t)snprintf(n->name, size, "%s", n->layer->name);
    for (size_t i = 0; i < n->n_fused; i++)
        used += (size_t)snprintf(n->name + used, size - used, " + %s",
                                 e->network->layers[n->tail[i]].name);
    return STRATA_OK;
}

int engine_note_fusions(strata_engine *e, strata_error *err)
{
    for (size_t i = 0; i < e->n_nodes; i++) {
        struct engine_node *n = &e->nodes[i];
        if (name_node(e, n, err) != STRATA_OK)
            return STRATA_ENOMEM;
        for (size_t k = 0; n->impl && k < n->n_fused; k++) {
            e->fusions[n->tail[k]].done = true;
            e->fusions[n->tail[k]].into = (int)i;
        }
    }
    for (size_t i = 0; i < e->n_fusions; i++) {
        struct engine_fusion *f = &e->fusions[i];
        const char *layer = e->network->layers[i].name;
        if (f->reason && f->possible && !f->done && f->into >= 0 &&
            note(f, true, f->into, err, "%s: running it by itself costs less",
                 e->network->layers[f->into].name) != STRATA_OK)
            return STRATA_ENOMEM;
        if (f->done && f->into < 0)
            log_line(STRATA_LOG_INFO, "erased '%s': %s", layer, f->reason);
        else if (f->done)
            log_line(STRATA_LOG_INFO, "fused '%s' into '%s'", layer,
                     e->network->layers[f->into].name);
        else if (f->reason)
            log_line(STRATA_LOG_INFO, "did not fuse '%s': %s", layer, f->reason);
    }
    return STRATA_OK;
}

void engine_free_node(struct engine_node *n)
{
    free(n->name);
    free(n->in_values);
    free(n->out_values);
    free(n->weights);
    free(n->packs);
    free(n->tail);
    free(n->composed);
    free(n->rewritten);
}

void engine_free_nodes(strata_engine *e)
{
    for (size_t i = 0; e->nodes && i < e->n_nodes; i++)
        engine_free_node(&e->nodes[i]);
    free(e->nodes);
    for (size_t i = 0; i < e->n_fusions; i++)
        free(e->fusions[i].reason);
    free(e->fusions);
}
