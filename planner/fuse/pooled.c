/* SPDX-License-Identifier: Apache-2.0
 *
 * A Convolution, an Activation or none, and the maxima of windows of that as one
 * PooledConvolution: what lies between is not written. Where the maxima are rounded to 8
 * bits in their pass, a longer one does that, too. Prices decide whether either runs.
 */
#include "planner/fuse/members.h"

#include <math.h>
#include <stdlib.h>

enum {
    MOST_MEMBERS = 4,
    WEIGHT = 0,    /* of a Convolution */
    BIAS = 1,      /* of that, too */
    SCALE_OUT = 2, /* of a PooledConvolution */
    POOLING_SCALE_OUT = 1
};

static const char together[] = "all in one PooledConvolution";

struct chain {
    int nodes[MOST_MEMBERS];
    int n, whole;                        /* members; those to the maxima */
    const strata_activation *activation; /* or NULL */
    const strata_pooling *pooling;
    const struct made_layer *rounded; /* maxima and their Quantize, or NULL */
};

/* Maxima of windows that are not the whole image. */
static bool is_maxima(const struct network_layer *l)
{
    const strata_pooling *p = l->params;
    return is_type(l, "core::Pooling@1") && p->kind == STRATA_POOL_MAX && !p->global &&
           !p->indices;
}

/* Maxima and a Quantize that are one group already (quantize.c); or NULL. */
static const struct made_layer *rounded_in_pass(const struct planner *planner, int node)
{
    const struct planner_group *g = planner->nodes[node].group;
    return g && g->members == 2 && !planner->nodes[node].longer &&
                   g->made.layer.type == planner->network->quantized_pooling
               ? &g->made
               : NULL;
}

/* An infinite quotient is no whole number, nor is one by no number. */
static bool has_scale(const struct made_layer *rounded)
{
    float scale = 0;
    return network_weight_load(&rounded->weights[POOLING_SCALE_OUT], &scale, NULL) ==
               STRATA_OK &&
           scale > 0 && isfinite(scale);
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
    c->whole = c->n;
    c->rounded = rounded_in_pass(planner, node);
    if (c->rounded && has_scale(c->rounded))
        c->nodes[c->n++] = planner->nodes[node].next;
    return true;
}

static struct made_layer make(const struct planner *planner, const struct chain *c,
                              int members)
{
    const struct network_layer *first = planner->nodes[c->nodes[0]].layer;
    const struct network_layer *last = planner->nodes[c->nodes[members - 1]].layer;
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
    if (members > c->whole) {
        const strata_quantized *to = &c->rounded->params.quantized_pooling.quantized;
        m.weights[SCALE_OUT] = c->rounded->weights[POOLING_SCALE_OUT];
        p->to = to->to;
        p->zero_out = to->zero_out;
    }
    return m;
}

static int add_groups(struct planner *planner, const struct chain *c, strata_error *err)
{
    const int first = c->nodes[0];
    const struct made_layer whole = make(planner, c, c->whole);
    members_link(planner, c->nodes, c->n);
    int status = planner_add_group(planner, first, &whole, c->whole, together, err);
    if (status == STRATA_OK && c->n > c->whole) {
        const struct made_layer all = make(planner, c, c->n);
        status = planner_add_longer(planner, first, &all, c->n, together, err);
    }
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
            status = add_groups(planner, &c, err);
    }
    free(reader);
    return status;
}
