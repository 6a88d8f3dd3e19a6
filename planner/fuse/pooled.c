/* SPDX-License-Identifier: Apache-2.0
 *
 * A Convolution, an Activation or none, and the maxima of windows of that as one
 * PooledConvolution: what lies between is not written. Prices decide whether it runs.
 */
#include "planner/fuse/members.h"

#include <stdlib.h>

enum {
    MOST_MEMBERS = 3,
    WEIGHT = 0, /* of a Convolution */
    BIAS = 1
};

static const char together[] = "all in one PooledConvolution";

struct chain {
    int nodes[MOST_MEMBERS];
    int n;
    const strata_activation *activation; /* or NULL */
    const strata_pooling *pooling;
};

/* Maxima of windows that are not the whole image. */
static bool is_maxima(const struct network_layer *l)
{
    const strata_pooling *p = l->params;
    return is_type(l, "core::Pooling@1") && p->kind == STRATA_POOL_MAX && !p->global &&
           !p->indices;
}

/* The maxima behind a node, or -1. They may also be rounded in their own pass, which is a
 * group that begins with them. */
static int maxima_behind(const struct planner *planner, int node, const int *reader)
{
    const int next =
        members_are_joined(planner, node) ? reader[planner->nodes[node].out[0]] : -1;
    return next >= 0 && members_may_end(planner, next) &&
                   is_maxima(planner->nodes[next].layer)
               ? next
               : -1;
}

/* Whether a Convolution begins one. */
static bool find_chain(struct chain *c, const struct planner *planner, const int *reader,
                       int node)
{
    *c = (struct chain){.nodes = {node}, .n = 1};
    const int next = members_next(planner, node, reader);
    if (next >= 0 && is_type(planner->nodes[next].layer, "core::Activation@1") &&
        planner->nodes[next].layer->n_inputs == 1) {
        c->activation = planner->nodes[next].layer->params;
        c->nodes[c->n++] = node = next;
    }
    node = maxima_behind(planner, node, reader);
    if (node < 0)
        return false;
    c->pooling = planner->nodes[node].layer->params;
    c->nodes[c->n++] = node;
    return true;
}

static int add_group(struct planner *planner, const struct chain *c, strata_error *err)
{
    const struct network_layer *first = planner->nodes[c->nodes[0]].layer;
    const struct network_layer *last = planner->nodes[c->nodes[c->n - 1]].layer;
    struct made_layer m = {.kind = MADE_POOLED_CONVOLUTION};
    strata_pooled_convolution *p = &m.params.pooled_convolution;
    m.layer = (struct network_layer){.name = first->name,
                                     .type = planner->network->pooled_convolution,
                                     .place = first->place,
                                     .n_inputs = 1,
                                     .n_outputs = 1};
    m.inputs[0] = first->inputs[0];
    m.output = last->outputs[0];
    m.weights[WEIGHT] = first->weights[WEIGHT];
    m.weights[BIAS] = first->weights[BIAS];
    p->convolution = *(const strata_convolution *)first->params;
    p->pooling = *c->pooling;
    p->activation = c->activation ? 1 + c->activation->kind : 0;
    p->alpha = c->activation ? c->activation->alpha : STRATA_KIND_DEFAULT;
    p->beta = c->activation ? c->activation->beta : STRATA_KIND_DEFAULT;
    members_link(planner, c->nodes, c->n);
    const int status = planner_add_group(planner, c->nodes[0], &m, c->n, together, err);
    return status == STRATA_OK ? members_note(planner, c->nodes, c->n, together, err)
                               : status;
}

int planner_make_pooled(struct planner *planner, strata_error *err)
{
    if (!planner_has_impl(planner, planner->network->pooled_convolution))
        return STRATA_OK;
    int *reader = planner_find_readers(planner, "pooled convolutions", err);
    int status = reader ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++) {
        struct chain c;
        if (members_may_convolve(planner, (int)i) &&
            find_chain(&c, planner, reader, (int)i))
            status = add_group(planner, &c, err);
    }
    free(reader);
    return status;
}
