/* SPDX-License-Identifier: Apache-2.0
 *
 * Pairs: a Quantize and the Dequantizes that alone read it, by its own scale. What goes
 * through one is rounded; without it the layers that read it get the floats from before.
 *
 *   a -> a.quantize -> a.dequantize -> b     ->     a -> b
 *
 * No pair is where more than rounding would be lost: where the integers go elsewhere,
 * too, where a network output or a format that the user gave is between, or where the
 * range of the integers ends at 0 and stands for a relu that is not there.
 *
 * Pairs are left out by regions. A region begins where one float tensor alone leads on
 * and a pair is read next, and ends where the next one begins: a block with its shortcut,
 * or one layer of a chain.
 *
 * find.c says which pairs and regions there are, drop.c makes the network without some;
 * whether that is worth it is the planner's to say (planner/mixed/mixed.h).
 */
#ifndef NETWORK_PAIRS_PAIRS_H
#define NETWORK_PAIRS_PAIRS_H

#include "network/network.h"

struct network_pair {
    int quantize; /* layer */
    int region;   /* of the first layer that reads its floats */
};

/* Layers of no pair, of which the first and the last one are its name. */
struct network_region {
    int first, last;
};

struct network_pairs {
    struct network_pair *list; /* by layer */
    struct network_region *regions;
    size_t n, n_regions, capacity, regions_capacity;
    int *region_of; /* each layer of the network; -1: before the first. NULL: not known */
};

/* find.c: none where nothing is fused. */
int network_find_pairs(struct network_pairs *out, const strata_network *net,
                       strata_error *err);
void network_free_pairs(struct network_pairs *p);
/* "layer4.0.conv1..layer4.0.relu", or one name; the caller's to free. */
char *network_region_name(const strata_network *net, const struct network_region *r,
                          strata_error *err);

/* drop.c: the network without the pairs of some regions; all else is the base's, which it
 * keeps. Tensors have the base's indices; nobody makes those inside of pairs. */
int network_drop_pairs(strata_network **out, const strata_network *base,
                       const struct network_pairs *pairs, const bool *dropped,
                       strata_error *err);

#endif /* NETWORK_PAIRS_PAIRS_H */
