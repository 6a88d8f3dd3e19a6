/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverted residuals as one layer: a 1x1 Convolution that expands the channels, a
 * depthwise one, a 1x1 one that projects them, each with an Activation or none, and a sum
 * with what was there before. Either product may be missing: a first block expands
 * nothing, and where squeeze-and-excite stands before the projection, only what is before
 * it is one.
 *
 * Each chain is a group at its first layer, and a longer one with the sum. Prices decide
 * whether either runs.
 */
#include "planner/fuse/members.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_MEMBERS = 7,
    WEIGHT = 0, /* of a Convolution */
    BIAS = 1
};

static const char together[] = "all in one InvertedResidual";

/* A chain that begins at a node. */
struct chain {
    int nodes[MOST_MEMBERS];
    int n;
    int ended; /* of them with the sum; 0: there is none */
    int whole; /* without it */
    int x, addend;
    bool expands, projects;
    struct made_layer made; /* with the sum */
    int32_t before;         /* the activation of what is projected, without the sum */
};

/* ---- what can be part of one ----------------------------------------------------- */

/* Of images, by constants of FP32. */
static bool is_convolution(const struct planner *planner, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    return is_type(l, "core::Convolution@1") && members_may_have(planner, node) &&
           l->n_inputs == 1 && tensor_of(planner, l->inputs[0])->rank == 4 &&
           network_has_weight(l, WEIGHT) && !network_has_factors(l) &&
           l->weights[WEIGHT].dtype == STRATA_FP32;
}

/* Whether a list of spatial dims says but one thing. */
static bool is_all(strata_ints list, int64_t value)
{
    for (int64_t i = 0; i < list.n; i++)
        if (list.v[i] != value)
            return false;
    return true;
}

/* A product of each pixel. */
static bool is_point(const struct planner *planner, int node)
{
    if (!is_convolution(planner, node))
        return false;
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_convolution *p = l->params;
    const struct network_weight *w = &l->weights[WEIGHT];
    return p->groups == 1 && is_all(p->stride, 1) && is_all(p->pad, 0) &&
           network_elements(w->dims + 2, w->rank - 2) == 1;
}

static bool is_depthwise(const struct planner *planner, int node)
{
    if (!is_convolution(planner, node))
        return false;
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_convolution *p = l->params;
    return p->groups > 1 && p->groups == tensor_of(planner, l->inputs[0])->dims[1] &&
           p->groups == tensor_of(planner, l->outputs[0])->dims[1];
}

/* Whether a node adds to the last of a chain what is there before the first. */
static bool is_sum(const struct planner *planner, const struct chain *c, int node,
                   int *addend)
{
    const struct network_layer *l = planner->nodes[node].layer;
    const int last = planner->nodes[c->nodes[c->n - 1]].out[0];
    if (!is_type(l, "core::ElementWise@1") || l->n_inputs != 2 ||
        ((const strata_elementwise *)l->params)->op != STRATA_SUM ||
        l->inputs[0] == l->inputs[1])
        return false;
    *addend = l->inputs[l->inputs[0] == last];
    const struct network_tensor *a = tensor_of(planner, *addend);
    const struct network_tensor *y = tensor_of(planner, last);
    return a->producer < c->nodes[0] && dtype_is_free(a->dtype) && a->rank == y->rank &&
           memcmp(a->dims, y->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* ---- chains ---------------------------------------------------------------------- */

/* The node that alone reads a chain's last, if it may belong to one; or -1. */
static int next_of(const struct planner *planner, const struct chain *c,
                   const int *reader)
{
    const int last = c->nodes[c->n - 1];
    const int next = c->n < MOST_MEMBERS && members_are_joined(planner, last)
                         ? reader[planner->nodes[last].out[0]]
                         : -1;
    return next >= 0 && members_may_have(planner, next) ? next : -1;
}

static void add_weights(struct chain *c, const struct planner *planner, int node,
                        int weight, int rank)
{
    const struct network_layer *l = planner->nodes[node].layer;
    c->made.weights[weight] = l->weights[WEIGHT];
    c->made.weights[weight].rank = rank; /* a window of one pixel has no more */
    c->made.weights[weight + 1] = l->weights[BIAS];
    c->nodes[c->n++] = node;
}

/* The activation behind a chain's last, if there is one. */
static void add_activation(struct chain *c, const struct planner *planner,
                           const int *reader, int stage)
{
    const int next = next_of(planner, c, reader);
    if (next < 0)
        return;
    const struct network_layer *l = planner->nodes[next].layer;
    if (!is_type(l, "core::Activation@1") || l->n_inputs != 1)
        return;
    const strata_activation *a = l->params;
    strata_inverted_residual *p = &c->made.params.inverted_residual;
    p->activation[stage] = 1 + a->kind;
    p->alpha[stage] = a->alpha;
    p->beta[stage] = a->beta;
    c->nodes[c->n++] = next;
}

static bool add_expand(struct chain *c, const struct planner *planner, const int *reader,
                       int node)
{
    if (!is_point(planner, node))
        return false;
    const struct network_layer *l = planner->nodes[node].layer;
    c->made.params.inverted_residual.expanded = l->weights[WEIGHT].dims[0];
    c->expands = true;
    add_weights(c, planner, node, STRATA_INVERTED_EXPAND, 2);
    add_activation(c, planner, reader, STRATA_INVERTED_EXPANDED);
    return true;
}

static void add_depthwise(struct chain *c, const struct planner *planner,
                          const int *reader, int node)
{
    const strata_convolution *p = planner->nodes[node].layer->params;
    strata_convolution *to = &c->made.params.inverted_residual.depthwise;
    *to = *p;
    to->filters = to->groups = 0; /* its windows alone */
    add_weights(c, planner, node, STRATA_INVERTED_DEPTHWISE, 4);
    add_activation(c, planner, reader, STRATA_INVERTED_CONVOLVED);
}

/* And what follows: an activation, or a sum and then an activation. */
static void add_project(struct chain *c, const struct planner *planner, const int *reader)
{
    const int node = next_of(planner, c, reader);
    if (node < 0 || !is_point(planner, node))
        return;
    c->made.params.inverted_residual.projected =
        planner->nodes[node].layer->weights[WEIGHT].dims[0];
    c->projects = true;
    add_weights(c, planner, node, STRATA_INVERTED_PROJECT, 2);
    const int sum = next_of(planner, c, reader);
    if (sum >= 0 && is_sum(planner, c, sum, &c->addend)) {
        c->whole = c->n;
        c->nodes[c->n++] = sum;
        add_activation(c, planner, reader, STRATA_INVERTED_PROJECTED);
        c->ended = c->n;
        return;
    }
    add_activation(c, planner, reader, STRATA_INVERTED_PROJECTED);
    c->before = c->made.params.inverted_residual.activation[STRATA_INVERTED_PROJECTED];
}

/* False: nothing begins there, or it is one layer. */
static bool find_chain(struct chain *c, const struct planner *planner, const int *reader,
                       int node)
{
    *c = (struct chain){.x = planner->nodes[node].layer->inputs[0]};
    strata_inverted_residual *p = &c->made.params.inverted_residual;
    for (int i = 0; i < STRATA_INVERTED_STAGES; i++)
        p->alpha[i] = p->beta[i] = STRATA_KIND_DEFAULT;
    const int depthwise =
        add_expand(c, planner, reader, node) ? next_of(planner, c, reader) : node;
    if (depthwise < 0 || !is_depthwise(planner, depthwise))
        return false;
    add_depthwise(c, planner, reader, depthwise);
    c->whole = c->n;
    add_project(c, planner, reader);
    if (!c->ended)
        c->whole = c->n;
    return c->expands || c->projects;
}

/* ---- groups ---------------------------------------------------------------------- */

static struct made_layer make(const struct chain *c, const struct planner *planner,
                              bool sum)
{
    const struct network_layer *first = planner->nodes[c->nodes[0]].layer;
    const int members = sum ? c->ended : c->whole;
    struct made_layer m = c->made;
    m.layer = (struct network_layer){.name = first->name,
                                     .type = planner->network->inverted_residual,
                                     .place = first->place,
                                     .n_inputs = 1 + sum,
                                     .n_outputs = 1};
    m.kind = MADE_INVERTED_RESIDUAL;
    m.inputs[0] = c->x;
    m.inputs[1] = sum ? c->addend : 0;
    m.output = planner->nodes[c->nodes[members - 1]].layer->outputs[0];
    if (!sum)
        m.params.inverted_residual.activation[STRATA_INVERTED_PROJECTED] = c->before;
    return m;
}

static int add_groups(struct planner *planner, const struct chain *c, strata_error *err)
{
    const int first = c->nodes[0], members = c->ended ? c->ended : c->whole;
    const struct made_layer whole = make(c, planner, false);
    members_link(planner, c->nodes, members);
    int status = planner_add_group(planner, first, &whole, c->whole, together, err);
    if (status == STRATA_OK && c->ended) {
        const struct made_layer all = make(c, planner, true);
        status = planner_add_longer(planner, first, &all, members, together, err);
    }
    return status == STRATA_OK ? members_note(planner, c->nodes, members, together, err)
                               : status;
}

int planner_make_inverted(struct planner *planner, strata_error *err)
{
    const strata_network *net = planner->network;
    int status = STRATA_OK;
    if (!planner_has_impl(planner, net->inverted_residual))
        return STRATA_OK;
    int *reader = planner_find_readers(planner, "the inverted residuals", err);
    if (!reader)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++) {
        struct chain c;
        if (is_convolution(planner, (int)i) && find_chain(&c, planner, reader, (int)i))
            status = add_groups(planner, &c, err);
    }
    free(reader);
    return status;
}
