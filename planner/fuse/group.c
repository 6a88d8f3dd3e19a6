/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups: chains of layers that compute element by element, as one layer of type
 * Pointwise that reads and writes memory once. Each layer of a chain may begin a group
 * that goes to the chain's end; whether it does is the plan's choice.
 *
 * A layer continues the latest of its inputs' producers if nobody else needs the tensor
 * between, the shapes are the same, and program and inputs stay within what Pointwise
 * takes. The program names a group's inputs x0, x1, ... and results r0, r1, ...
 */
#include "planner/fuse/notes.h"
#include "planner/fuse/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

static const char together[] = "both in one pass";

/* ---- chains ------------------------------------------------------------------------ */

static int reads(const struct network_layer *layer, int tensor)
{
    int n = 0;
    for (int i = 0; i < layer->n_inputs; i++)
        n += layer->inputs[i] == tensor;
    return n;
}

/* Why the tensor between two layers must exist; NULL: it need not. */
static const char *refuse_link(const struct planner *planner,
                               const struct planner_node *p,
                               const struct planner_node *next)
{
    const strata_network *net = planner->network;
    const int tensor = p->layer->outputs[0];
    const struct network_tensor *a = &net->tensors[tensor],
                                *b = &net->tensors[next->layer->outputs[0]];
    if (planner->is_output[tensor])
        return "its output is a network output";
    if (planner->readers[tensor] != reads(next->layer, tensor))
        return "its output has other readers";
    if (a->formats)
        return "the network gives its output a format";
    if (p->layer->impl)
        return "the network asks for an impl of it";
    if (a->rank != b->rank || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims))
        return "the shapes differ";
    return p->next >= 0 ? "another continues it" : NULL;
}

/* The latest made of a layer's inputs that a layer of the kind makes; -1: none. */
static int latest_producer(const struct planner *planner, const struct network_layer *l)
{
    int latest = -1;
    for (int i = 0; i < l->n_inputs; i++) {
        int producer = planner->network->tensors[l->inputs[i]].producer;
        if (producer > latest && planner->nodes[producer].groups)
            latest = producer;
    }
    return latest;
}

/* ---- groups ------------------------------------------------------------------------ */

/* Index of a tensor among the group's inputs, appended at need; -1: there is no room. */
static int input_of(struct made_layer *m, int tensor, int room)
{
    for (int i = 0; i < m->layer.n_inputs; i++)
        if (m->inputs[i] == tensor)
            return i;
    if (m->layer.n_inputs == room)
        return -1;
    m->inputs[m->layer.n_inputs] = tensor;
    return m->layer.n_inputs++;
}

enum fit {
    FIT_WHOLE,
    FIT_LATE, /* an operand is made after the first layer */
    FIT_FULL  /* too many inputs or instructions */
};

/* Append a layer to the program; `before` is the tensor that its last result is. */
static bool write_member(struct program_writer *w, const struct network_layer *layer,
                         int before, int room)
{
    struct program_operand operands[PLAN_MAX_PORTS];
    for (int i = 0; i < layer->n_inputs; i++) {
        const bool inner = layer->inputs[i] == before;
        const int x = inner ? w->results - 1 : input_of(w->out, layer->inputs[i], room);
        if (x < 0)
            return false;
        snprintf(operands[i].text, sizeof operands[i].text, inner ? "r%d" : "x%d", x);
    }
    program_write(w, layer, operands);
    w->out->output = layer->outputs[0];
    return !w->full && w->results <= PROGRAM_INSTRUCTIONS;
}

/* The layers from node `first` to the end of its chain. */
static enum fit write_group(struct made_layer *out, const struct planner *planner,
                            int first)
{
    const struct planner_node *head = &planner->nodes[first];
    struct program_writer w = {.out = out};
    const int room = PLAN_MAX_PORTS - (head->residual >= 0);
    enum fit fit = FIT_WHOLE;
    int before = -1;
    *out = (struct made_layer){.layer = {.name = head->layer->name,
                                         .type = planner->network->pointwise,
                                         .place = head->layer->place,
                                         .n_outputs = 1}};
    /* The first one's own, in order, as the operation has them. */
    for (int i = 0; i < head->n_in; i++)
        out->inputs[out->layer.n_inputs++] = head->in[i];
    for (int i = first; i >= 0; i = planner->nodes[i].next) {
        const struct network_layer *layer = planner->nodes[i].layer;
        for (int k = 0; k < layer->n_inputs; k++)
            if (i != first && layer->inputs[k] != before &&
                planner->network->tensors[layer->inputs[k]].producer >= first)
                fit = FIT_LATE;
        if (!write_member(&w, layer, before, room))
            return FIT_FULL;
        before = layer->outputs[0];
    }
    made_layer_settle(out);
    return fit;
}

/* Let a node continue the chain of one before it. A chain ends where its program from
 * the first layer on is full: all groups that begin in it have the same end. An operand
 * that is made within the chain only rules out to begin before that. */
static int link_node(struct planner *planner, int node, int *first, strata_error *err)
{
    struct planner_node *next = &planner->nodes[node];
    struct made_layer made;
    const int before = latest_producer(planner, next->layer);
    first[node] = node;
    if (next->groups && next->previous >= 0 && planner->nodes[next->previous].groups)
        first[node] = first[next->previous]; /* a block's links, which stay */
    if (!next->groups || next->previous >= 0 || before < 0)
        return STRATA_OK;
    const char *why = refuse_link(planner, &planner->nodes[before], next);
    if (!why && next->layer->impl)
        why = "the network asks for an impl of this layer";
    if (!why) {
        planner->nodes[before].next = node;
        if (write_group(&made, planner, first[before]) == FIT_FULL)
            why = "its pass reads and computes as much as one can";
        else if (write_group(&made, planner, before) == FIT_LATE)
            why = "another operand is made after it";
        if (why)
            planner->nodes[before].next = -1;
    }
    if (why)
        return notes_add(&planner->fusions[node], false, before, err, "%.200s: %s",
                         planner->nodes[before].layer->name, why);
    next->previous = before;
    first[node] = first[before];
    return notes_add(&planner->fusions[node], true, before, err, "%.200s: %s",
                     planner->nodes[before].layer->name, together);
}

static int make_group(struct planner *planner, int node, strata_error *err)
{
    struct planner_node *n = &planner->nodes[node];
    struct made_layer made;
    int members = 0;
    if (!n->groups || n->next < 0 || write_group(&made, planner, node) != FIT_WHOLE)
        return STRATA_OK;
    for (int i = node; i >= 0; i = planner->nodes[i].next)
        members++;
    return planner_add_group(planner, node, &made, members, together, err);
}

static int make(struct planner_group **out, const struct made_layer *made, int members,
                bool farther, const char *how, strata_error *err)
{
    struct planner_group *g = *out = zalloc(1, sizeof *g, "a group", err);
    if (!g)
        return STRATA_ENOMEM;
    g->made = *made;
    g->members = members;
    g->farther = farther || made->kind == MADE_SHORTCUT_CONVOLUTION;
    g->how = how;
    made_layer_settle(&g->made);
    g->node = (struct planner_node){.layer = &g->made.layer,
                                    .in = g->made.inputs,
                                    .out = &g->made.output,
                                    .n_in = g->made.layer.n_inputs,
                                    .n_out = 1,
                                    .n_ports = g->made.layer.n_ports,
                                    .before = -1,
                                    .residual = -1,
                                    .next = -1,
                                    .previous = -1};
    return STRATA_OK;
}

bool planner_has_impl(const struct planner *planner, const struct registry_layer *type)
{
    for (size_t i = 0; type && i < type->n_impls; i++)
        if (type->impls[i].impl.device == planner->device.properties.kind)
            return true;
    return false;
}

int *planner_find_readers(const struct planner *planner, const char *what,
                          strata_error *err)
{
    int *reader = zalloc(planner->network->n_tensors, sizeof *reader, what, err);
    for (size_t i = 0; reader && i < planner->n_nodes; i++)
        for (int k = 0; k < planner->nodes[i].n_in; k++)
            reader[planner->nodes[i].in[k]] = (int)i;
    return reader;
}

int planner_add_group(struct planner *planner, int node, const struct made_layer *made,
                      int members, const char *how, strata_error *err)
{
    return make(&planner->nodes[node].group, made, members, false, how, err);
}

int planner_add_longer(struct planner *planner, int node, const struct made_layer *made,
                       int members, const char *how, strata_error *err)
{
    return make(&planner->nodes[node].longer, made, members, true, how, err);
}

bool planner_is_block(const struct planner_group *group)
{
    return group->made.kind == MADE_INVERTED_RESIDUAL ||
           group->made.kind == MADE_BOTTLENECK ||
           group->made.kind == MADE_SHORTCUT_CONVOLUTION ||
           group->made.kind == MADE_POOLED_CONVOLUTION;
}

/* Whether a group lets others begin with its member that `behind` follow: a block does
 * with its last one, and with others where its tensors are told from another group's. */
static bool leaves(const struct planner_group *group, int members, int behind)
{
    return !group || group->members < members - behind ||
           (group->members == members && planner_is_block(group) &&
            (behind == 0 || group->farther));
}

/* Whether a node is in no chain, or at the end of blocks': where these do not run, groups
 * that begin here may. */
static bool may_begin(const struct planner *planner, const struct planner_node *n)
{
    int behind = 0;
    if (n->previous < 0)
        return n->next < 0;
    for (int i = n->next; i >= 0; i = planner->nodes[i].next, behind++)
        if (!program_has(planner->network, planner->nodes[i].layer))
            return false;
    int members = 1 + behind;
    for (int i = n->previous; i >= 0; i = planner->nodes[i].previous) {
        const struct planner_node *head = &planner->nodes[i];
        members++;
        if (!leaves(head->group, members, behind) ||
            !leaves(head->longer, members, behind))
            return false;
    }
    return true;
}

int planner_make_groups(struct planner *planner, strata_error *err)
{
    const size_t n = planner->n_nodes;
    if (!planner->network->pointwise)
        return STRATA_OK;
    int *first = zalloc(n, sizeof *first, "the groups", err);
    int status = first ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        struct planner_node *node = &planner->nodes[i];
        node->groups =
            may_begin(planner, node) && program_has(planner->network, node->layer);
        status = node->groups ? link_node(planner, (int)i, first, err) : STRATA_OK;
    }
    for (size_t i = 0; i < n && status == STRATA_OK; i++)
        status = make_group(planner, (int)i, err);
    free(first);
    return status;
}

void made_layer_settle(struct made_layer *m)
{
    if (m->kind == MADE_POINTWISE || m->kind == MADE_FUNCTION)
        m->params.pointwise.program = (strata_string){m->program, strlen(m->program)};
    if (m->kind == MADE_REDUCE)
        m->params.reduce.axes.v = m->axes;
    for (size_t w = 0; w < ARRAY_LENGTH(m->weights); w++)
        if (m->weights[w].source == WEIGHT_AFFINE)
            m->weights[w].affine = &m->affine[w];
    m->layer.params = m->own_params ? (void *)m->own_params : &m->params;
    m->layer.weights = m->weights;
    m->layer.inputs = m->inputs;
    m->layer.outputs = &m->output;
    m->layer.ports = m->ported ? m->ports : NULL;
    m->layer.n_ports =
        m->ported ? m->ports[m->layer.n_inputs - 1] + 1 : m->layer.n_inputs;
}
