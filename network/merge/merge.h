/* SPDX-License-Identifier: Apache-2.0
 *
 * Siblings: products with constant weights that read one tensor and differ only in how
 * many results they have. Each begins a chain of layers that work channel by channel, as
 * long as the chains are alike. One chain can do for all of them: weights joined along
 * the results, and a Slice behind the last layer gives every sibling's tensor back.
 *
 *   a = Convolution(x), relu(a)        "{a,b}" = Convolution(x)
 *   b = Convolution(x), relu(b)   ->   "{a,b}.relu" = relu
 *                                      a.relu, b.relu = Slice along dim 1
 *
 * What reads the siblings' tensors may go with them, before the Slice or in its place:
 *
 *   a RotaryEmbedding of each of some, all of one kind   one, of the first heads alone
 *   an Activation of a, and its product with b           Gated
 *
 * Or a Concatenation that begins or ends with some of them, and reads others of whatever
 * is made of the rest, takes the whole chain in their place, and a range of what comes of
 * that is its result:
 *
 *   j = Concatenation(a.relu, f(b.relu))
 *     ->  "{b,a}" and its chain; b.relu, a.relu = Slice
 *         "j whole" = Concatenation("{b,a}.relu", f(b.relu))
 *         j = "j whole" but for the channels of b
 *
 * where tensors lie inside others (docs/explain.md) all of that runs nothing.
 *
 * siblings.c says which layers are siblings, behind.c what goes with them, merge.c makes
 * the network where some are one; whether that is worth it is the planner's to say
 * (planner/merge/merge.c).
 */
#ifndef NETWORK_MERGE_MERGE_H
#define NETWORK_MERGE_MERGE_H

#include "network/network.h"

#define NETWORK_MAX_SIBLINGS 64 /* of a group */
#define NETWORK_MAX_CHAIN 8     /* layers of a sibling */

/* What goes with the chains, behind them. */
enum network_behind {
    BEHIND_NOTHING,
    BEHIND_TURNED, /* a RotaryEmbedding of each of the first chains */
    BEHIND_GATED,  /* an Activation of the first of two, and its product with the other */
    BEHIND_JOINED, /* a Concatenation of channels: the last chains are its first inputs,
                      or the first chains its last */
    BEHIND_KINDS
};

/* Chains of layers that are alike. */
struct network_siblings {
    int *layers; /* of chain c the k-th one: layers[c * length + k]; then those behind */
    int n, length; /* chains, 2 at least; layers of each, 1 at least */
    enum network_behind behind;
    int n_behind; /* at most n */
};

static inline int network_sibling(const struct network_siblings *g, int chain, int k)
{
    return g->layers[chain * g->length + k];
}

/* All that one chain stands for; and the i-th layer behind the chains. */
static inline int network_siblings_count(const struct network_siblings *g)
{
    return g->n * g->length + g->n_behind;
}

static inline int network_behind_layer(const struct network_siblings *g, int i)
{
    return g->layers[g->n * g->length + i];
}

/* The Concatenation behind them, or -1. */
static inline int network_join_of(const struct network_siblings *g)
{
    return g->behind == BEHIND_JOINED ? network_behind_layer(g, 0) : -1;
}

/* The tensor that a chain ends in, with what is behind it. */
static inline int network_siblings_result(const strata_network *net,
                                          const struct network_siblings *g, int chain)
{
    const bool turned = g->behind == BEHIND_TURNED && chain < g->n_behind;
    const int last = g->behind == BEHIND_GATED ? network_behind_layer(g, 1)
                     : turned                  ? network_behind_layer(g, chain)
                                               : network_sibling(g, chain, g->length - 1);
    return net->layers[last].outputs[0];
}

/* Layers that stand where the first of them did: the one chain, what is behind it, a
 * Slice. */
static inline int network_siblings_made(const struct network_siblings *g)
{
    return g->length + (g->behind == BEHIND_TURNED ? 2 : 1);
}

/* Layers that stand where a Concatenation did: a larger one, and its range. */
static inline int network_siblings_joined(const struct network_siblings *g)
{
    return g->behind == BEHIND_JOINED ? 2 : 0;
}

/* Nothing is behind them in place of a Concatenation. */
static inline void network_leave_join(struct network_siblings *g)
{
    if (g->behind == BEHIND_JOINED) {
        g->behind = BEHIND_NOTHING;
        g->n_behind = 0;
    }
}

struct network_groups {
    struct network_siblings *list; /* by the first layer; no layer is in two */
    size_t n, capacity;
};

/* siblings.c: none where [build] has it that nothing is fused or merged. */
int network_find_siblings(struct network_groups *out, const strata_network *net,
                          strata_error *err);
/* Append the group of such first layers and chains of that length, with what is behind
 * them, a Concatenation that is layer `into` (-1: any); EINVAL says why they cannot be
 * one. */
int network_add_siblings(struct network_groups *groups, const strata_network *net,
                         const int *first, int n, int length, enum network_behind behind,
                         int into, strata_error *err);
void network_free_groups(struct network_groups *groups);
/* What adds up where a chain's k-th layer is joined with those of others. */
struct network_joint {
    const strata_attr *count; /* the attribute with the number of results; NULL: none */
    int axis;                 /* of its output, along which results lie */
    int weight_axis[3];       /* the same of its weights */
};
struct network_joint network_joint_of(const strata_network *net,
                                      const struct network_layer *layer);

/* attributes.c: an attribute of a layer's type; NULL: there is none of the name. */
const strata_attr *network_find_attr(const struct network_layer *layer, const char *name);
/* Whether two layers of a type differ in no attribute but one, which may be NULL. */
bool network_same_attributes(const struct network_layer *a, const struct network_layer *b,
                             const strata_attr *but);

/* Who reads each tensor: how many, outputs too, and the last one. */
struct network_reading {
    const strata_network *net;
    int *readers, *reader;
};

/* behind.c: put what goes with a group, joined along an axis, into it, in whose list
 * there is room for `n` more; the chains are put in order for it. */
void network_find_behind(struct network_siblings *g, const struct network_reading *r,
                         int axis);
/* The same of a Concatenation, which none of other groups has, layer `into` or (-1) any.
 * Which one is found depends on the order of the chains, which it changes. */
void network_find_join(struct network_siblings *g, const struct network_reading *r,
                       int axis, const struct network_siblings *others, size_t n,
                       int into);
/* Of one that has it: how many chains it reads, which are its first inputs or its last.
 */
struct network_joined {
    int n;
    bool first;
};
struct network_joined network_joined_of(const strata_network *net,
                                        const struct network_siblings *g);

/* name.c: one name of the k-th layers' names: "a/{1x1,3x3,5x5}.relu". Of more than four a
 * count stands for those before the last: "{a,b,c,..7..,k}". The caller's to free. */
char *network_siblings_name(const strata_network *net, const struct network_siblings *g,
                            int k, strata_error *err);

/* merge.c: the network with each group as one chain and a Slice; all else is the base's,
 * which it keeps. Tensors have the base's indices, new ones follow. */
int network_merge(strata_network **out, const strata_network *base,
                  const struct network_groups *groups, strata_error *err);

#endif /* NETWORK_MERGE_MERGE_H */
