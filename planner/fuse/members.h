/* SPDX-License-Identifier: Apache-2.0
 *
 * What chains of layers that may become one layer have in common: which nodes may be
 * members, and what is noted at them.
 */
#ifndef PLANNER_FUSE_MEMBERS_H
#define PLANNER_FUSE_MEMBERS_H

#include "planner/planner.h"

#include <string.h>

static inline bool is_type(const struct network_layer *layer, const char *name)
{
    return strcmp(layer->type->full_name, name) == 0;
}

static inline const struct network_tensor *tensor_of(const struct planner *planner,
                                                     int tensor)
{
    return &planner->network->tensors[tensor];
}

/* A node that no other group has, and of which the user says nothing. */
bool members_may_have(const struct planner *planner, int node);
/* The same of the last node of a chain, with which another group may begin. */
bool members_may_end(const struct planner *planner, int node);
/* The same of the first node of a chain, with which another chain may end. */
bool members_may_begin(const struct planner *planner, int node);
/* Whether a node is a Convolution of one input, by a constant weight of FP32 that is only
 * floats. */
bool members_convolves(const struct planner *planner, int node);
/* Whether it is one that no other group has. */
bool members_may_convolve(const struct planner *planner, int node);
/* Whether it is a sum of two tensors. */
bool members_are_summed(const struct planner *planner, int node);
/* Whether two tensors have as many dims, of the same sizes. */
bool members_are_alike(const struct planner *planner, int a, int b);
/* Whether nobody but one node needs what another makes. */
bool members_are_joined(const struct planner *planner, int node);
/* The node that alone reads what another makes, if it may belong to its chain; or -1.
 * reader: of planner_find_readers. */
int members_next(const struct planner *planner, int node, const int *reader);
/* The reader of what a node makes, if nobody else needs that; or -1. reader: the last of
 * each tensor's. */
int members_only_reader(const struct planner *planner, const int *reader, int node);
/* Each member points to its neighbours: before the group is added. */
void members_link(struct planner *planner, const int *nodes, int n);
/* Note that the first one's layer can take in the others: once the group is added. */
int members_note(struct planner *planner, const int *nodes, int n, const char *together,
                 strata_error *err);

#endif /* PLANNER_FUSE_MEMBERS_H */
