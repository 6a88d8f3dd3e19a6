/* SPDX-License-Identifier: Apache-2.0
 *
 * What reads the tensors of siblings and can be one layer where they are: rotations of
 * some, or a gate of two; or a concatenation of some, which can take them all. Siblings
 * are put in order for it: those that are rotated first, or the one that is the gate; or
 * at the end at which the concatenation reads them, as it does.
 */
#include "network/merge/merge.h"

#include <string.h>

#include <strata/layers.h>

/* ---- readers ------------------------------------------------------------------------
 */

static bool is_type(const struct network_layer *layer, const char *name)
{
    return strcmp(layer->type->full_name, name) == 0;
}

/* The only reader of a tensor, a layer of the type of which the user says nothing, with
 * so many inputs; or -1. */
static int only_reader(const struct network_reading *r, int tensor, const char *type,
                       int inputs)
{
    const struct network_tensor *t = &r->net->tensors[tensor];
    if (r->readers[tensor] != 1 || t->formats)
        return -1;
    const int reader = r->reader[tensor]; /* 0 if an output is the one reader */
    const struct network_layer *l = &r->net->layers[reader];
    bool reads = false;
    for (int i = 0; i < l->n_inputs; i++)
        reads |= l->inputs[i] == tensor;
    return reads && is_type(l, type) && l->n_inputs >= inputs && l->n_outputs == 1 &&
                   !l->impl && !l->formats && l->n_names == 0 &&
                   !r->net->tensors[l->outputs[0]].formats
               ? reader
               : -1;
}

static int chain_end(const struct network_reading *r, const struct network_siblings *g,
                     int chain)
{
    return r->net->layers[network_sibling(g, chain, g->length - 1)].outputs[0];
}

/* Chain `from` to place `to`, before those that stand there. */
static void move_chain(struct network_siblings *g, int from, int to)
{
    int chain[NETWORK_MAX_CHAIN];
    const size_t size = (size_t)g->length * sizeof *chain;
    memcpy(chain, g->layers + from * g->length, size);
    memmove(g->layers + (to + 1) * g->length, g->layers + to * g->length,
            size * (size_t)(from - to));
    memcpy(g->layers + to * g->length, chain, size);
}

/* ---- a gate -------------------------------------------------------------------------
 */

static bool is_product(const struct network_layer *l)
{
    return ((const strata_elementwise *)l->params)->op == STRATA_PRODUCT &&
           l->n_inputs == 2;
}

/* Whether one chain's tensor goes through an Activation into the product with that of the
 * other: then those two layers. */
static bool is_gate(const struct network_reading *r, const struct network_siblings *g,
                    int gate, int behind[2])
{
    const struct network_layer *layers = r->net->layers;
    const int a = chain_end(r, g, gate), b = chain_end(r, g, 1 - gate);
    behind[0] = only_reader(r, a, "core::Activation@1", 1);
    behind[1] = only_reader(r, b, "core::ElementWise@1", 2);
    return behind[0] >= 0 && behind[1] >= 0 && is_product(&layers[behind[1]]) &&
           only_reader(r, layers[behind[0]].outputs[0], "core::ElementWise@1", 2) ==
               behind[1] &&
           r->net->tensors[a].rank == r->net->tensors[b].rank &&
           memcmp(r->net->tensors[a].dims, r->net->tensors[b].dims,
                  sizeof r->net->tensors[a].dims) == 0;
}

static bool find_gate(struct network_siblings *g, const struct network_reading *r)
{
    int behind[2];
    for (int gate = 0; r->net->gated && g->n == 2 && gate < 2; gate++)
        if (is_gate(r, g, gate, behind)) {
            move_chain(g, gate, 0);
            memcpy(g->layers + 2 * g->length, behind, sizeof behind);
            g->behind = BEHIND_GATED;
            g->n_behind = 2;
            return true;
        }
    return false;
}

/* ---- rotations ----------------------------------------------------------------------
 */

/* Elements of a head that is rotated; 0: they lie otherwise. */
static int64_t head_of(const strata_network *net, const struct network_layer *l)
{
    const strata_rotary_embedding *p = l->params;
    const struct network_tensor *x = &net->tensors[l->inputs[0]];
    return p->heads > 0 && x->rank == 3 && p->turned == 0 ? x->dims[2] / p->heads : 0;
}

/* Whether a rotation is of whole heads side by side, by what is there before all chains.
 */
static bool can_turn(const struct network_reading *r, const struct network_siblings *g,
                     int layer)
{
    const strata_network *net = r->net;
    const struct network_layer *l = &net->layers[layer];
    bool can = head_of(net, l) > 0;
    for (int c = 0; c < g->n; c++)
        for (int i = 1; i < l->n_inputs; i++)
            can &= net->tensors[l->inputs[i]].producer < network_sibling(g, c, 0);
    for (size_t w = 0; w < l->type->n_weights; w++)
        can &= !network_has_weight(l, w);
    return can;
}

static bool turn_alike(const strata_network *net, const struct network_layer *a,
                       const struct network_layer *b)
{
    bool alike = a->n_inputs == b->n_inputs && a->n_ports == b->n_ports &&
                 head_of(net, a) == head_of(net, b) &&
                 network_same_attributes(a, b, network_find_attr(a, "heads"));
    for (int i = 1; alike && i < a->n_inputs; i++)
        alike = a->inputs[i] == b->inputs[i] && network_port(a, i) == network_port(b, i);
    return alike;
}

static bool find_turns(struct network_siblings *g, const struct network_reading *r,
                       int axis)
{
    const strata_network *net = r->net;
    const struct network_tensor *end = &net->tensors[chain_end(r, g, 0)];
    int turn[NETWORK_MAX_SIBLINGS], first = -1, n = 0;
    bool fits = end->rank == 3 && axis == 2;
    for (int c = 0; c < g->n; c++) {
        turn[c] = only_reader(r, chain_end(r, g, c), "core::RotaryEmbedding@1", 1);
        if (turn[c] >= 0 && first < 0)
            first = turn[c];
        fits &=
            turn[c] < 0 || (can_turn(r, g, turn[c]) &&
                            turn_alike(net, &net->layers[turn[c]], &net->layers[first]));
        n += turn[c] >= 0;
    }
    for (int c = 0; c < g->n && fits && n > 1; c++)
        fits = net->tensors[chain_end(r, g, c)].dims[2] %
                   head_of(net, &net->layers[first]) ==
               0;
    if (!fits || n < 2)
        return false;
    for (int c = 0, to = 0; c < g->n; c++)
        if (turn[c] >= 0) {
            move_chain(g, c, to);
            g->layers[g->n * g->length + to++] = turn[c];
        }
    g->behind = BEHIND_TURNED;
    g->n_behind = n;
    return true;
}

void network_find_behind(struct network_siblings *g, const struct network_reading *r,
                         int axis)
{
    if (!find_gate(g, r))
        find_turns(g, r, axis);
}

/* ---- a concatenation ----------------------------------------------------------------
 */

/* The chain that ends in a tensor, or -1. */
static int chain_of(const strata_network *net, const struct network_siblings *g,
                    int tensor)
{
    int c = g->n - 1;
    while (c >= 0 &&
           net->layers[network_sibling(g, c, g->length - 1)].outputs[0] != tensor)
        c--;
    return c;
}

/* Inputs of a layer that chains end in, from one end of its list on. */
static int count_ends(const strata_network *net, const struct network_siblings *g,
                      const struct network_layer *l, bool first)
{
    int n = 0;
    while (n < l->n_inputs &&
           chain_of(net, g, l->inputs[first ? n : l->n_inputs - 1 - n]) >= 0)
        n++;
    return n;
}

static struct network_joined joined_by(const strata_network *net,
                                       const struct network_siblings *g,
                                       const struct network_layer *l)
{
    struct network_joined j = {count_ends(net, g, l, true), true};
    if (j.n == 0)
        j = (struct network_joined){count_ends(net, g, l, false), false};
    return j;
}

struct network_joined network_joined_of(const strata_network *net,
                                        const struct network_siblings *g)
{
    return joined_by(net, g, &net->layers[network_behind_layer(g, 0)]);
}

/* A Concatenation of channels of which the user says nothing. */
static bool joins_channels(const strata_network *net, const struct network_layer *l)
{
    if (!is_type(l, "core::Concatenation@1"))
        return false;
    const strata_concatenation *p = l->params;
    const struct network_tensor *y = &net->tensors[l->outputs[0]];
    return !l->impl && !l->formats && l->n_names == 0 && !y->formats && !y->exact &&
           (p->axis < 0 ? p->axis + y->rank : p->axis) == 1;
}

/* Whether it reads some chains, each once, side by side at one end, and something else
 * besides. */
static bool can_join(const strata_network *net, const struct network_siblings *g,
                     const struct network_layer *l)
{
    const struct network_joined j = joined_by(net, g, l);
    bool seen[NETWORK_MAX_SIBLINGS] = {false};
    int n = 0;
    for (int i = 0; i < l->n_inputs; i++) {
        const int c = chain_of(net, g, l->inputs[i]);
        if (c >= 0 && seen[c])
            return false;
        if (c >= 0)
            seen[c] = true;
        n += c >= 0;
    }
    return n > 0 && n == j.n && n < l->n_inputs;
}

/* The chains that it reads at the end of the list at which it has them, in its order. */
static void order_joined(struct network_siblings *g, const strata_network *net,
                         const struct network_layer *l)
{
    const struct network_joined j = joined_by(net, g, l);
    for (int k = j.n - 1; k >= 0; k--) /* all to the front */
        move_chain(g, chain_of(net, g, l->inputs[j.first ? k : l->n_inputs - j.n + k]),
                   0);
    for (int k = j.n; k < g->n && j.first; k++) /* and the others before them */
        move_chain(g, k, k - j.n);
}

static bool is_joined_by(const struct network_siblings *others, size_t n, int layer)
{
    bool joined = false;
    for (size_t i = 0; i < n; i++)
        joined |= network_join_of(&others[i]) == layer;
    return joined;
}

void network_find_join(struct network_siblings *g, const struct network_reading *r,
                       int axis, const struct network_siblings *others, size_t n,
                       int into)
{
    for (int c = 0; g->behind == BEHIND_NOTHING && axis == 1 && c < g->n; c++) {
        const int tensor = chain_end(r, g, c);
        const int layer = r->reader[tensor]; /* 0 if an output is the one reader */
        const struct network_layer *l = &r->net->layers[layer];
        if (r->readers[tensor] == 0 || (into >= 0 && layer != into) ||
            !joins_channels(r->net, l) || is_joined_by(others, n, layer) ||
            !can_join(r->net, g, l))
            continue;
        order_joined(g, r->net, l);
        g->layers[g->n * g->length] = layer;
        g->behind = BEHIND_JOINED;
        g->n_behind = 1;
    }
}
