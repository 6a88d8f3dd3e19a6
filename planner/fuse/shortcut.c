/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of two Convolutions as one ShortcutConvolution, as the first blocks of a ResNet's
 * stages end: a Convolution, behind it one of a pixel each of a tensor that is there
 * before, their sum, and an Activation or none. The first may be the last of another
 * chain, as it is of a Bottleneck. Each is a group at its first layer, and prices decide
 * whether it runs.
 */
#include "planner/fuse/members.h"

#include <stdlib.h>

enum {
    MOST_MEMBERS = 4,
    WEIGHT = 0, /* of a Convolution */
    BIAS = 1
};

static const char together[] = "all in one ShortcutConvolution";

struct chain {
    int nodes[MOST_MEMBERS]; /* the convolution, the shortcut, the sum, the activation */
    int n;
    const strata_activation *activation; /* or NULL */
};

enum { CONVOLUTION, SHORTCUT, SUM };

/* A Convolution of images with windows of all channels. */
static bool is_dense(const struct planner *planner, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    return members_convolves(planner, node) &&
           tensor_of(planner, l->inputs[0])->rank == 4 &&
           ((const strata_convolution *)l->params)->groups == 1;
}

/* Of one pixel each, perhaps of every second or third. */
static bool is_shortcut(const struct planner *planner, int node)
{
    if (!is_dense(planner, node) || !members_may_have(planner, node))
        return false;
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_convolution *p = l->params;
    const struct network_weight *w = &l->weights[WEIGHT];
    bool pads = false;
    for (int64_t i = 0; i < p->pad.n; i++)
        pads |= p->pad.v[i] != 0;
    return !pads && network_elements(w->dims + 2, w->rank - 2) == 1;
}

/* The node behind `sum`'s other operand, if it is a shortcut of what is there before the
 * first; or -1. */
static int shortcut_of(const struct planner *planner, int first, int sum)
{
    const struct network_layer *l = planner->nodes[sum].layer;
    const int own = planner->nodes[first].out[0];
    const int node = tensor_of(planner, l->inputs[l->inputs[0] == own])->producer;
    return node > first && is_shortcut(planner, node) &&
                   members_are_joined(planner, node) &&
                   tensor_of(planner, planner->nodes[node].in[0])->producer < first &&
                   members_are_alike(planner, own, planner->nodes[node].out[0])
               ? node
               : -1;
}

/* Whether a Convolution begins one. */
static bool find_chain(struct chain *c, const struct planner *planner, const int *reader,
                       int node)
{
    const int sum = members_next(planner, node, reader);
    *c = (struct chain){.nodes = {[CONVOLUTION] = node, [SUM] = sum}, .n = SUM + 1};
    if (sum < 0 || !members_are_summed(planner, sum))
        return false;
    c->nodes[SHORTCUT] = shortcut_of(planner, node, sum);
    if (c->nodes[SHORTCUT] < 0)
        return false;
    const int next = members_next(planner, sum, reader);
    if (next >= 0 && is_type(planner->nodes[next].layer, "core::Activation@1") &&
        planner->nodes[next].layer->n_inputs == 1) {
        c->activation = planner->nodes[next].layer->params;
        c->nodes[c->n++] = next;
    }
    return true;
}

static struct made_layer make(const struct planner *planner, const struct chain *c)
{
    const struct network_layer *first = planner->nodes[c->nodes[CONVOLUTION]].layer;
    const struct network_layer *other = planner->nodes[c->nodes[SHORTCUT]].layer;
    struct made_layer m = {.kind = MADE_SHORTCUT_CONVOLUTION};
    strata_shortcut_convolution *p = &m.params.shortcut_convolution;
    m.layer = (struct network_layer){.name = first->name,
                                     .type = planner->network->shortcut_convolution,
                                     .place = first->place,
                                     .n_inputs = 2,
                                     .n_outputs = 1};
    m.inputs[0] = first->inputs[0];
    m.inputs[1] = other->inputs[0];
    m.output = planner->nodes[c->nodes[c->n - 1]].layer->outputs[0];
    for (int i = WEIGHT; i <= BIAS; i++) {
        m.weights[STRATA_SHORTCUT_CONVOLUTION_WEIGHT + i] = first->weights[i];
        m.weights[STRATA_SHORTCUT_CONVOLUTION_SHORTCUT + i] = other->weights[i];
    }
    m.weights[STRATA_SHORTCUT_CONVOLUTION_SHORTCUT].rank = 2; /* a pixel has no more */
    p->convolution = *(const strata_convolution *)first->params;
    p->convolution.groups = 0; /* its windows alone */
    p->shortcut_stride = ((const strata_convolution *)other->params)->stride;
    p->activation = c->activation ? 1 + c->activation->kind : 0;
    p->alpha = c->activation ? c->activation->alpha : STRATA_KIND_DEFAULT;
    p->beta = c->activation ? c->activation->beta : STRATA_KIND_DEFAULT;
    return m;
}

static int add_group(struct planner *planner, const struct chain *c, strata_error *err)
{
    const int first = c->nodes[CONVOLUTION];
    const struct made_layer made = make(planner, c);
    members_link(planner, c->nodes, c->n);
    const int status = planner_add_group(planner, first, &made, c->n, together, err);
    return status == STRATA_OK ? members_note(planner, c->nodes, c->n, together, err)
                               : status;
}

int planner_make_shortcuts(struct planner *planner, strata_error *err)
{
    if (!planner_has_impl(planner, planner->network->shortcut_convolution))
        return STRATA_OK;
    int *reader = planner_find_readers(planner, "the shortcuts", err);
    int status = reader ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++) {
        struct chain c;
        if (is_dense(planner, (int)i) && members_may_begin(planner, (int)i) &&
            find_chain(&c, planner, reader, (int)i))
            status = add_group(planner, &c, err);
    }
    free(reader);
    return status;
}
