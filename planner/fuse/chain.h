/* SPDX-License-Identifier: Apache-2.0
 *
 * Between quantize.c, which finds chains that could compute with integers, and
 * integers.c, which knows the layers that do.
 */
#ifndef PLANNER_FUSE_CHAIN_H
#define PLANNER_FUSE_CHAIN_H

#include "planner/planner.h"

/* A chain from a layer that could compute with integers. */
struct chain {
    const struct network_layer *from[PLAN_MAX_PORTS]; /* the Dequantize of each input */
    int n_from;
    int nodes[4]; /* the layer, a Scale, an Activation, a Quantize */
    int n;
    const struct network_layer *scale, *activation, *to; /* or NULL */
};

/* Weights of Quantize and Dequantize. */
enum { QUANTIZE_SCALE, QUANTIZE_ZERO };

/* NULL, or why no layer of this type becomes one of integers. */
const char *chain_refuse(const struct network_layer *layer);

/* Whether a layer computes where it becomes one of integers: a Scale and an Activation
 * may follow. */
bool chain_computes(const struct network_layer *layer);

/* NULL and what a chain of a layer that is not refused becomes, `m` being empty but for
 * what all have; or why not. */
const char *chain_make(struct made_layer *m, const struct planner *planner,
                       const struct network_layer *layer, const struct chain *c);

#endif /* PLANNER_FUSE_CHAIN_H */
