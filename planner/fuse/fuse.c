/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers to nodes, one each, and the chains along which one node may compute the next
 * ones in its own pass: epilogues that an impl declares, scales folded into weights,
 * Shuffles composed. Whether it does is the plan's choice.
 */
#include "planner/fuse/members.h"
#include "planner/fuse/notes.h"

#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

#include "planner/solver/buckets.h"

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

static bool has_epilogue(const struct planner *planner, const struct planner_node *n,
                         int flag, int activation)
{
    for (size_t i = 0; i < n->layer->type->n_impls; i++) {
        const strata_impl *impl = &n->layer->type->impls[i].impl;
        if (impl->device == planner->device.properties.kind && impl->epilogues & flag &&
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
static const char *refuse_sum(const struct planner *planner,
                              const struct planner_node *head,
                              const struct network_layer *sum, int port)
{
    const strata_network *net = planner->network;
    int residual = sum->inputs[1 - port];
    if (!has_epilogue(planner, head, STRATA_EPILOGUE_RESIDUAL, 0))
        return "no impl of it adds a residual";
    if (residual == sum->inputs[port])
        return "both operands are the same tensor";
    if (!same_tensors(net, residual, sum->inputs[port]) ||
        !same_tensors(net, residual, sum->outputs[0]))
        return "the operands differ in shape";
    if (!dtype_is_free(net->tensors[residual].dtype))
        return "the operands are not of a float type";
    if (net->tensors[residual].producer >= head->layer - net->layers)
        return "the other operand is made after it";
    return head->n_in < PLAN_MAX_PORTS ? NULL : "it has too many inputs";
}

static const char *refuse_kind(struct planner *planner, struct planner_node *head,
                               const struct network_layer *next, int port,
                               strata_error *err)
{
    enum fuse_kind kind = kind_of(next);
    enum fuse_kind last =
        head->n_tail ? planner->fusions[head->tail[head->n_tail - 1]].kind : FUSE_NOTHING;
    if (head->n_out != 1)
        return "it has several outputs";
    if (head->n_tail >= PLAN_MAX_LABELS)
        return "its chain is as long as one can be";
    if (kind < last || (kind == last && kind != FUSE_SCALE))
        return "an epilogue is activation(x + residual)";
    if (kind == FUSE_SCALE)
        return planner_refuse_fold(planner, head, next);
    if (kind == FUSE_SUM)
        return refuse_sum(planner, head, next, port);
    if (kind == FUSE_ACTIVATION)
        return has_epilogue(planner, head, STRATA_EPILOGUE_ACTIVATION,
                            ((const strata_activation *)next->params)->kind)
                   ? NULL
                   : "no impl of it computes this activation";
    if (!is_type(head->layer, "core::Shuffle@1"))
        return "only a Shuffle is composed with it";
    head->composed = planner_compose(planner->network, head->layer, next, err);
    return head->composed ? NULL : "the reshapes do not compose";
}

/* Who else needs the tensor between two layers, or what the user said of it. */
static const char *refuse_tensor(const struct planner *planner, int tensor,
                                 const struct network_layer *next)
{
    const strata_network *net = planner->network;
    if (planner->is_output[tensor])
        return "its output is a network output";
    if (planner->readers[tensor] > 1)
        return "its output has other readers";
    if (net->tensors[tensor].formats)
        return "the network gives its output a format";
    return next->impl ? "the network asks for an impl of this layer" : NULL;
}

/* ---- chains ------------------------------------------------------------------------ */

static int append(struct planner_node *head, int node, strata_error *err)
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
static int extend(struct planner *planner, int node, int port, strata_error *err)
{
    const struct network_layer *next = planner->nodes[node].layer;
    int tensor = next->inputs[port],
        producer = planner->network->tensors[tensor].producer;
    const char *refused = refuse_tensor(planner, tensor, next);
    int status = STRATA_OK;
    for (int h = producer, after = -1, next_head; h >= 0 && status == STRATA_OK;
         after = h, h = next_head) {
        next_head = planner_head_before(planner, h, after);
        struct planner_node *head = &planner->nodes[h];
        if (h != producer &&
            (head->n_tail == 0 || head->tail[head->n_tail - 1] != producer))
            continue;
        const char *why = refused ? refused : refuse_kind(planner, head, next, port, err);
        if (err && err->status == STRATA_ENOMEM)
            return STRATA_ENOMEM;
        if (!why || !planner->fusions[node].possible) /* another can take it */
            status = notes_say(&planner->fusions[node], !why, h, err, "%s: %s",
                               head->layer->name,
                               why ? why : how[planner->fusions[node].kind]);
        if (why || status != STRATA_OK)
            continue;
        planner->nodes[node].before = producer;
        planner->nodes[node].chain_port = port;
        if (planner->fusions[node].kind == FUSE_SUM)
            head->residual = next->inputs[1 - port];
        status = append(head, node, err);
    }
    return status;
}

/* A sum joins the chain of its later operand first: the earlier one exists by then. */
static int find_chains(struct planner *planner, strata_error *err)
{
    const struct network_tensor *tensors = planner->network->tensors;
    for (size_t i = 0; i < planner->n_nodes; i++) {
        const struct planner_node *n = &planner->nodes[i];
        enum fuse_kind kind = planner->fusions[i].kind;
        int port = 0, status;
        if (kind == FUSE_NOTHING)
            continue;
        if (kind == FUSE_SUM)
            port = tensors[n->in[1]].producer > tensors[n->in[0]].producer;
        status = extend(planner, (int)i, port, err);
        if (status == STRATA_OK && kind == FUSE_SUM && n->before < 0)
            status = extend(planner, (int)i, 1 - port, err);
        if (status != STRATA_OK)
            return status;
    }
    return STRATA_OK;
}

/* ---- nodes ---------------------------------------------------------------------------
 */

static void make_node(struct planner_node *n, const struct network_layer *layer)
{
    n->layer = layer;
    n->in = layer->inputs;
    n->n_in = layer->n_inputs;
    n->n_ports = layer->n_ports;
    n->out = layer->outputs;
    n->n_out = layer->n_outputs;
    n->before = n->residual = n->next = n->previous = -1;
}

/* ---- concatenations of concatenations --------------------------------------------- */

/* By the first two inputs: all of an earlier one are inputs of this one in order. */
static uint64_t hash_join(const struct network_layer *layer)
{
    return buckets_mix(buckets_mix(0, (uint64_t)layer->inputs[0]),
                       (uint64_t)layer->inputs[1]);
}

/* How many inputs of a concatenation are all those of an earlier one, in order; *out is
 * the longest such. */
static int known_prefix(const strata_network *net, const struct network_layer *layer,
                        const struct buckets *joins, const struct network_layer **out)
{
    const strata_concatenation *p = layer->params;
    int longest = 1;
    for (int i = buckets_find(joins, hash_join(layer)); i >= 0; i = joins->before[i]) {
        const struct network_layer *l = &net->layers[i];
        if (l->type != layer->type || l->n_inputs >= layer->n_inputs ||
            l->n_inputs < longest ||
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
static int rewrite_join(const strata_network *net, struct planner_node *n,
                        struct buckets *joins, strata_error *err)
{
    const struct network_layer *before = NULL;
    if (!is_type(n->layer, "core::Concatenation@1") || n->layer->n_inputs < 2)
        return STRATA_OK;
    int known = known_prefix(net, n->layer, joins, &before);
    buckets_add(joins, hash_join(n->layer), (int)(n->layer - net->layers));
    if (!before)
        return STRATA_OK;
    n->n_in = n->n_ports = 1 + n->layer->n_inputs - known;
    n->in = n->rewritten = zalloc((size_t)n->n_in, sizeof *n->rewritten, "a node", err);
    if (!n->rewritten)
        return STRATA_ENOMEM;
    n->rewritten[0] = before->outputs[0];
    for (int i = known; i < n->layer->n_inputs; i++)
        n->rewritten[1 + i - known] = n->layer->inputs[i];
    return STRATA_OK;
}

static int rewrite_joins(struct planner *planner, strata_error *err)
{
    struct buckets joins = {0};
    int status = buckets_open(&joins, planner->n_nodes, "the nodes", err);
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++)
        status = rewrite_join(planner->network, &planner->nodes[i], &joins, err);
    buckets_close(&joins);
    return status;
}

/* Who needs each tensor. */
static int count_readers(struct planner *planner, strata_error *err)
{
    const strata_network *net = planner->network;
    size_t n = net->n_tensors;
    planner->readers = zalloc(n, sizeof *planner->readers, "the nodes", err);
    planner->is_output = zalloc(n, sizeof *planner->is_output, "the nodes", err);
    if (!planner->readers || !planner->is_output)
        return STRATA_ENOMEM;
    for (size_t o = 0; o < net->n_outputs; o++)
        planner->is_output[net->outputs[o].tensor] = true;
    for (size_t i = 0; i < planner->n_nodes; i++)
        for (int k = 0; k < planner->nodes[i].n_in; k++)
            planner->readers[planner->nodes[i].in[k]]++;
    return STRATA_OK;
}

int planner_make_nodes(struct planner *planner, strata_error *err)
{
    const strata_network *net = planner->network;
    int status;
    planner->nodes = zalloc(net->n_layers, sizeof *planner->nodes, "the nodes", err);
    planner->fusions = zalloc(net->n_layers, sizeof *planner->fusions, "the nodes", err);
    if (!planner->nodes || !planner->fusions)
        return STRATA_ENOMEM;
    for (size_t l = 0; l < net->n_layers; l++) {
        planner->fusions[planner->n_fusions++] =
            (struct planner_fusion){.kind = kind_of(&net->layers[l]), .into = -1};
        make_node(&planner->nodes[planner->n_nodes++], &net->layers[l]);
    }
    status = net->build.fusion ? rewrite_joins(planner, err) : STRATA_OK;
    if (status == STRATA_OK)
        status = count_readers(planner, err);
    if (status == STRATA_OK && net->build.fusion)
        status = find_chains(planner, err);
    if (status == STRATA_OK && net->build.fusion)
        status = planner_make_quantized(planner, err);
    if (status == STRATA_OK && net->build.fusion)
        status = planner_make_reductions(planner, err);
    if (status == STRATA_OK && net->build.fusion)
        status = planner_make_projections(planner, err);
    if (status == STRATA_OK && net->build.fusion)
        status = planner_make_attentions(planner, err);
    if (status == STRATA_OK && net->build.fusion)
        status = planner_make_residuals(planner, err);
    if (status == STRATA_OK && net->build.fusion)
        status = planner_make_shortcuts(planner, err);
    if (status == STRATA_OK && net->build.fusion)
        status = planner_make_pooled(planner, err);
    if (status == STRATA_OK && net->build.fusion)
        status = planner_make_perceptrons(planner, err);
    return status == STRATA_OK && net->build.fusion ? planner_make_groups(planner, err)
                                                    : status;
}

/* ---- what came of it --------------------------------------------------------------- */

/* Layers that run nothing: the plan has them as memory of others. */
static int note_free(struct planner *planner, strata_error *err)
{
    static const char *const text[] = {
        [CANDIDATE_ALIAS] = "its output is its input's memory, or a part of it",
        [CANDIDATE_JOIN] = "its inputs are made inside its output",
        [CANDIDATE_UNREAD] = "all that read it compute with its integers",
    };
    for (size_t i = 0; i < planner->n_nodes; i++) {
        enum candidate_kind kind = planner_chosen(planner, planner->plan, i)->kind;
        struct planner_fusion *f = &planner->fusions[i];
        if (kind < CANDIDATE_ALIAS)
            continue;
        free(f->reason);
        f->possible = f->done = true;
        f->into = -1;
        if (!(f->reason = duplicate(text[kind], err)))
            return STRATA_ENOMEM;
    }
    return STRATA_OK;
}

/* A layer that runs as another by itself. */
static int note_alone(struct planner *planner, int node, strata_error *err)
{
    struct planner_fusion *f = &planner->fusions[node];
    f->done = true;
    return notes_say(f, true, node, err, "%s", planner->nodes[node].group->how);
}

/* Whether a layer's reason may tell of a group that it is not in, or of an epilogue. */
static bool tells_of_another(const struct planner_node *n,
                             const struct planner_group *group)
{
    return group->made.kind == MADE_PERCEPTRON || planner_is_block(group) ||
           (group->made.kind == MADE_POINTWISE && n->previous >= 0);
}

/* A layer of a group that begins at node `into`. */
static int note_member(struct planner *planner, int node, int into,
                       const struct planner_group *group, strata_error *err)
{
    struct planner_fusion *f = &planner->fusions[node];
    f->done = true;
    f->into = into;
    return tells_of_another(&planner->nodes[node], group)
               ? notes_say(f, true, into, err, "%s: %s", planner->nodes[into].layer->name,
                           group->how)
               : STRATA_OK;
}

static int note_fused(struct planner *planner, strata_error *err)
{
    for (size_t i = 0; i < planner->n_nodes; i++) {
        const struct planner_candidate *c = planner_chosen(planner, planner->plan, i);
        for (size_t k = 0; c->kind == CANDIDATE_RUN && k < c->fused; k++) {
            struct planner_fusion *f = &planner->fusions[planner->nodes[i].tail[k]];
            f->done = true;
            f->into = (int)i;
        }
        const struct planner_group *group = planner_group_of(&planner->nodes[i], c->kind);
        for (int k = planner->nodes[i].next, left = group ? group->members - 1 : 0;
             left > 0; k = planner->nodes[k].next, left--)
            if (note_member(planner, k, (int)i, group, err) != STRATA_OK)
                return STRATA_ENOMEM;
        if (group && group->members == 1 && note_alone(planner, (int)i, err) != STRATA_OK)
            return STRATA_ENOMEM;
    }
    return STRATA_OK;
}

/* Why no impl of this device runs a node's groups; NULL: one does, or it has none. One
 * that has a price would be taken for all but that. */
static const char *refused_group(const struct planner *planner, int node)
{
    const struct planner_model *m = planner->model;
    const char *why = NULL;
    int64_t cost = 0;
    for (size_t i = m->first[node]; i < m->first[node + 1]; i++) {
        const struct planner_candidate *c = &m->candidates[i];
        if (!planner_group_of(&planner->nodes[node], c->kind))
            continue;
        if (!c->reason)
            return NULL;
        if (c->impl->impl.device != planner->device.properties.kind || c->cost < cost)
            continue;
        why = c->reason;
        cost = c->cost;
    }
    return why;
}

static int note_unused(const struct planner *planner, struct planner_fusion *f, int layer,
                       strata_error *err)
{
    if (f->into == layer)
        return notes_say(f, true, layer, err, "running it as it is costs less");
    const struct planner_node *head = &planner->nodes[f->into];
    bool epilogue = false;
    for (size_t i = 0; i < head->n_tail; i++)
        epilogue |= head->tail[i] == layer;
    const char *why = epilogue ? NULL : refused_group(planner, f->into);
    return notes_say(f, true, f->into, err, "%s: %s", head->layer->name,
                     why ? why : "running it by itself costs less");
}

int planner_note_fusions(struct planner *planner, strata_error *err)
{
    const struct network_layer *layers = planner->network->layers;
    if (planner_unnote_fusions(planner, err) != STRATA_OK ||
        note_free(planner, err) != STRATA_OK || note_fused(planner, err) != STRATA_OK)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < planner->n_fusions; i++) {
        struct planner_fusion *f = &planner->fusions[i];
        const char *layer = layers[i].name;
        if (f->reason && f->possible && !f->done && f->into >= 0 &&
            note_unused(planner, f, (int)i, err) != STRATA_OK)
            return STRATA_ENOMEM;
        if (f->done && f->into < 0)
            log_line(STRATA_LOG_INFO, "erased '%s': %s", layer, f->reason);
        else if (f->done && f->into == (int)i)
            log_line(STRATA_LOG_INFO, "replaced '%s': %s", layer, f->reason);
        else if (f->done)
            log_line(STRATA_LOG_INFO, "fused '%s' into '%s'", layer,
                     layers[f->into].name);
        else if (f->reason)
            log_line(STRATA_LOG_INFO, "did not fuse '%s': %s", layer, f->reason);
    }
    return STRATA_OK;
}

void planner_free_nodes(struct planner *planner)
{
    for (size_t i = 0; i < planner->n_nodes; i++) {
        struct planner_node *n = &planner->nodes[i];
        free(n->tail);
        free(n->composed);
        free(n->rewritten);
        free(n->group);
        free(n->longer);
    }
    free(planner->nodes);
    free(planner->readers);
    free(planner->is_output);
    planner_free_fusions(planner);
}
