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
    int n_plain; /* inputs behind those, which stay as they are */
    /* The layer, a Scale, perhaps a Quantize and a Dequantize before a sum, an
     * Activation, a Quantize. */
    int nodes[7];
    int n;
    const struct network_layer *scale, *activation, *to; /* or NULL */
    const struct network_layer *addend; /* the Dequantize of what is added, or NULL */
    const struct network_layer
        *between; /* with it: the Quantize before the sum, or NULL */
};

/* Weights of Quantize and Dequantize. */
enum { QUANTIZE_SCALE, QUANTIZE_ZERO };

/* Of a Quantize or Dequantize a weight's one number; 0 where it has none. */
float chain_value(const struct network_layer *q, size_t w);

/* NULL, or why a Quantize or Dequantize is not one scale of a tensor of 8 bits. */
const char *chain_refuse_scale(const struct network_layer *q, int dtype);

/* NULL, or why no layer of this type becomes one of integers. */
const char *chain_refuse(const struct network_layer *layer);

/* How many of a layer's inputs are dequantised, the others staying as they are: masks and
 * lengths of an Attention. */
int chain_inputs(const struct network_layer *layer);

/* Whether a layer computes where it becomes one of integers: a Scale and an Activation
 * may follow. */
bool chain_computes(const struct network_layer *layer);

/* Whether it may add a second tensor, of integers, in its pass. */
bool chain_adds(const struct network_layer *layer);

/* Whether a Dequantize or Quantize has the other's scale and zero. */
bool chain_same_scale(const struct network_layer *a, const struct network_layer *b);

/* NULL and what a chain of a layer that is not refused becomes, `m` being empty but for
 * what all have; or why not. */
const char *chain_make(struct made_layer *m, const struct planner *planner,
                       const struct network_layer *layer, const struct chain *c);

/* The same of a layer of floats whose results a Quantize rounds in its pass. */
const char *chain_round(struct made_layer *m, const struct planner *planner,
                        const struct network_layer *layer,
                        const struct network_layer *to);

/* Let a node begin a group that makes bytes of bytes one by one; *added: it does. */
int function_add(struct planner *planner, const int *reader, int node, bool *added,
                 strata_error *err);

#endif /* PLANNER_FUSE_CHAIN_H */
