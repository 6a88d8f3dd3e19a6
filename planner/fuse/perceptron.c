/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of small products as one Perceptron: the mean of planes (a global average
 * Pooling, or a Reduce that is one), or none; up to three products by constants, each
 * with an Activation; and what ends it, a Softmax of the results, or the product of the
 * planes with them channel by channel (squeeze-and-excite). Shuffles between that only
 * drop dims of 1 do nothing there.
 *
 * Each chain is a group at its first layer: to the last product, and a longer one with
 * the end. Prices decide whether either runs, in place of a launch for each layer.
 */
#include "planner/fuse/members.h"

#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

enum {
    MOST_MEMBERS = 2 + 3 * STRATA_PERCEPTRON_PRODUCTS + 2,
    MOST_ROWS = 32,         /* whose products are few enough to wait for each other */
    MOST_WEIGHTS = 4 << 20, /* of all products: a cluster of blocks reads them */
    WEIGHT = 0,             /* of all layers that multiply */
    BIAS = 1
};

static const char together[] = "all in one Perceptron";

/* A chain that begins at a node. */
struct chain {
    int nodes[MOST_MEMBERS];
    int n;     /* nodes so far */
    int whole; /* of them to the last product and its Activation: a group without end */
    int ended; /* with the end; 0: it has none */
    int x, rows, products;
    int64_t weights;
    bool mean;
    struct made_layer made;
};

/* ---- what can be part of one ----------------------------------------------------- */

/* (N, C), or that with dims of 1 behind. */
static bool is_vector(const struct network_tensor *t)
{
    return t->rank >= 2 && network_elements(t->dims + 2, t->rank - 2) == 1;
}

/* Of all of each plane. A Reduce has been found to be such a Pooling by itself. */
static bool is_mean(const struct planner *planner, int node)
{
    const struct planner_node *n = &planner->nodes[node];
    const struct network_layer *l = n->layer;
    if (tensor_of(planner, n->in[0])->rank < 3)
        return false;
    if (n->group && n->group->made.kind == MADE_POOLING && n->group->members == 1)
        return n->next < 0 && n->previous < 0 && !l->impl;
    const strata_pooling *p = l->params;
    return is_type(l, "core::Pooling@1") && members_may_have(planner, node) &&
           p->kind == STRATA_POOL_AVERAGE && p->global && l->n_outputs == 1;
}

static bool is_zero(strata_ints pad)
{
    for (int64_t i = 0; i < pad.n; i++)
        if (pad.v[i] != 0)
            return false;
    return true;
}

/* A weight as units x depth, or depth x units; false: the layer is no such product. */
static bool is_product(const struct planner *planner, const struct chain *c, int node,
                       bool *transposed)
{
    const struct network_layer *l = planner->nodes[node].layer;
    const struct network_tensor *x = tensor_of(planner, l->inputs[0]);
    const bool convolution = is_type(l, "core::Convolution@1");
    const bool full = is_type(l, "core::FullyConnected@1");
    if ((!convolution && !full && !is_type(l, "core::MatrixMultiply@1")) ||
        l->n_inputs != 1 || !network_has_weight(l, WEIGHT) ||
        !network_has_plain_weight(planner->network, l) ||
        l->weights[WEIGHT].dtype != STRATA_FP32)
        return false;
    const struct network_weight *w = &l->weights[WEIGHT];
    if (convolution) {
        const strata_convolution *p = l->params;
        *transposed = false;
        return c->mean && is_vector(x) && p->groups == 1 && is_zero(p->pad) &&
               network_elements(w->dims + 2, w->rank - 2) == 1;
    }
    if (full) {
        *transposed = ((const strata_fully_connected *)l->params)->transposed;
        return is_vector(x) && (c->mean || x->rank == 2);
    }
    const strata_matrix_multiply *p = l->params;
    *transposed = !p->transpose_b;
    return w->rank == 2 && !p->transpose_a && p->alpha == 1 && p->weight_bits == 0 &&
           (!c->mean || x->rank == 2);
}

/* From (N, C) and dims of 1 to (N, C): elements stay where they are. */
static bool is_flattening(const struct planner *planner, const struct chain *c, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    if (!c->mean || !is_type(l, "core::Shuffle@1"))
        return false;
    const strata_shuffle *p = l->params;
    const struct network_tensor *from = tensor_of(planner, l->inputs[0]);
    const struct network_tensor *to = tensor_of(planner, l->outputs[0]);
    return is_vector(from) && to->rank == 2 && p->first.n == 0 && p->second.n == 0 &&
           from->dims[0] == to->dims[0] && from->dims[1] == to->dims[1];
}

static bool is_softmax(const struct planner *planner, const struct chain *c, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_softmax *p = l->params;
    const int rank = tensor_of(planner, l->inputs[0])->rank;
    return is_type(l, "core::Softmax@1") && !p->log &&
           (p->axis < 0 ? p->axis + rank : p->axis) == (c->mean ? 1 : rank - 1);
}

/* What reads it could compute it in its own pass, with more. */
static bool is_pointwise(const struct planner *planner, const int *reader, int node)
{
    static const char *const types[] = {
        "core::Unary@1", "core::ElementWise@1", "core::Compare@1",   "core::Select@1",
        "core::Cast@1",  "core::Scale@1",       "core::Activation@1"};
    const int next =
        members_are_joined(planner, node) ? reader[planner->nodes[node].out[0]] : -1;
    for (size_t i = 0; i < ARRAY_LENGTH(types) && next >= 0; i++)
        if (is_type(planner->nodes[next].layer, types[i]))
            return true;
    return false;
}

/* The planes times the results, an element a channel. */
static bool is_excitation(const struct planner *planner, const struct chain *c,
                          const int *reader, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    const int factors = planner->nodes[c->nodes[c->n - 1]].out[0];
    if (!c->mean || !is_type(l, "core::ElementWise@1") || l->n_inputs != 2 ||
        ((const strata_elementwise *)l->params)->op != STRATA_PRODUCT ||
        is_pointwise(planner, reader, node))
        return false;
    const struct network_tensor *x = tensor_of(planner, c->x);
    const struct network_tensor *y = tensor_of(planner, l->outputs[0]);
    const struct network_tensor *f = tensor_of(planner, factors);
    return l->inputs[l->inputs[0] == factors] == c->x && f->rank == x->rank &&
           f->dims[1] == x->dims[1] && y->rank == x->rank &&
           memcmp(y->dims, x->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

/* ---- chains ---------------------------------------------------------------------- */

/* The node that alone reads a chain's last, if it may belong to one; or -1. */
static int next_of(const struct planner *planner, const struct chain *c,
                   const int *reader)
{
    return c->n < MOST_MEMBERS ? members_next(planner, c->nodes[c->n - 1], reader) : -1;
}

static bool add_product(struct chain *c, const struct planner *planner, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    const struct network_weight *w = &l->weights[WEIGHT];
    bool transposed = false;
    if (c->products == STRATA_PERCEPTRON_PRODUCTS ||
        !is_product(planner, c, node, &transposed))
        return false;
    const int64_t count = network_elements(w->dims, w->rank);
    if (count < 1 || count > MOST_WEIGHTS - c->weights)
        return false;
    strata_perceptron_product *p = &c->made.params.perceptron.product[c->products];
    struct network_weight *to = &c->made.weights[2 * c->products++];
    to[WEIGHT] = *w;
    to[WEIGHT].rank = 2; /* a window of one pixel has no more */
    to[BIAS] = l->weights[BIAS];
    p->units = w->dims[transposed ? 1 : 0];
    p->transposed = transposed;
    p->alpha = p->beta = STRATA_KIND_DEFAULT;
    c->weights += count;
    c->nodes[c->n++] = node;
    c->whole = c->n;
    return true;
}

static bool add_activation(struct chain *c, const struct planner *planner, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    if (!is_type(l, "core::Activation@1") || l->n_inputs != 1 || c->products == 0)
        return false;
    const strata_activation *a = l->params;
    strata_perceptron_product *p = &c->made.params.perceptron.product[c->products - 1];
    if (p->activation > 0 || c->n != c->whole)
        return false;
    p->activation = 1 + a->kind;
    p->alpha = a->alpha;
    p->beta = a->beta;
    c->nodes[c->n++] = node;
    c->whole = c->n;
    return true;
}

static bool add_end(struct chain *c, const struct planner *planner, const int *reader,
                    int node)
{
    if (c->products == 0)
        return false;
    const bool softmax = is_softmax(planner, c, node);
    if (!softmax && !is_excitation(planner, c, reader, node))
        return false;
    c->made.params.perceptron.end =
        softmax ? STRATA_PERCEPTRON_SOFTMAX : STRATA_PERCEPTRON_FACTORS;
    c->nodes[c->n++] = node;
    c->ended = c->n;
    return true;
}

static void follow(struct chain *c, const struct planner *planner, const int *reader)
{
    for (int next; (next = next_of(planner, c, reader)) >= 0;) {
        if (add_product(c, planner, next) || add_activation(c, planner, next))
            continue;
        if (!is_flattening(planner, c, next)) {
            add_end(c, planner, reader, next);
            return;
        }
        c->nodes[c->n++] = next;
    }
}

/* False: nothing begins there, or it is one layer. */
static bool find_chain(struct chain *c, const struct planner *planner, const int *reader,
                       int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    const struct network_tensor *x = tensor_of(planner, l->inputs[0]);
    *c = (struct chain){.x = l->inputs[0], .mean = is_mean(planner, node)};
    int64_t rows = x->dims[0];
    for (int d = 1; d < x->rank - 1 && !c->mean; d++)
        if (__builtin_mul_overflow(rows, x->dims[d], &rows))
            return false;
    if (rows < 1 || rows > MOST_ROWS || x->rank < 2)
        return false;
    if (c->mean)
        c->nodes[c->n++] = node;
    else if (!members_may_have(planner, node) || !add_product(c, planner, node))
        return false;
    follow(c, planner, reader);
    return c->products > 0 && (c->mean || c->products > 1 || c->ended);
}

/* ---- groups ---------------------------------------------------------------------- */

/* The first `members` of a chain; without its end, if they are fewer. */
static struct made_layer make(const struct chain *c, const struct planner *planner,
                              int members)
{
    const struct network_layer *first = planner->nodes[c->nodes[0]].layer;
    const struct network_layer *last = planner->nodes[c->nodes[members - 1]].layer;
    struct made_layer m = c->made;
    strata_perceptron *p = &m.params.perceptron;
    m.layer = (struct network_layer){.name = first->name,
                                     .type = planner->network->perceptron,
                                     .place = first->place,
                                     .n_inputs = 1,
                                     .n_outputs = 1};
    m.kind = MADE_PERCEPTRON;
    m.inputs[0] = c->x;
    m.output = last->outputs[0];
    p->mean = c->mean;
    p->keep_dims = c->mean && tensor_of(planner, m.output)->rank > 2;
    if (members != c->ended)
        p->end = STRATA_PERCEPTRON_PLAIN;
    return m;
}

/* The shorter first, which may be one that was there. */
static int add_groups(struct planner *planner, const struct chain *c, strata_error *err)
{
    const int first = c->nodes[0], members = c->ended ? c->ended : c->whole;
    const struct made_layer all = make(c, planner, members);
    const bool shorter = c->ended && c->whole > 1 && !planner->nodes[first].group;
    int status = STRATA_OK;
    members_link(planner, c->nodes, members);
    if (shorter) {
        const struct made_layer most = make(c, planner, c->whole);
        status = planner_add_group(planner, first, &most, c->whole, together, err);
    }
    if (status == STRATA_OK)
        status = planner->nodes[first].group
                     ? planner_add_longer(planner, first, &all, members, together, err)
                     : planner_add_group(planner, first, &all, members, together, err);
    return status == STRATA_OK ? members_note(planner, c->nodes, members, together, err)
                               : status;
}

int planner_make_perceptrons(struct planner *planner, strata_error *err)
{
    const strata_network *net = planner->network;
    int status = STRATA_OK;
    if (!planner_has_impl(planner, net->perceptron))
        return STRATA_OK;
    int *reader = planner_find_readers(planner, "the perceptrons", err);
    if (!reader)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++) {
        struct chain c;
        if (planner->nodes[i].layer->n_inputs > 0 &&
            find_chain(&c, planner, reader, (int)i))
            status = add_groups(planner, &c, err);
    }
    free(reader);
    return status;
}
