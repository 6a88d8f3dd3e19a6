/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that say which others run: branches, loops, and lists of tensors. A network
 * has none of them, so each is replaced, while the graph is folded, by the nodes that it
 * runs; what decides has to be constant by then.
 */
#ifndef NETWORK_IMPORT_CONTROL_H
#define NETWORK_IMPORT_CONTROL_H

#include "network/import/inline.h"
#include "network/import/upgrade.h"

#define CONTROL_NODES 1024 /* that all loops of a model are unrolled to */

/* Tensors in a list: what a value of a sequence type is. */
struct sequence {
    int n;
    int *values;
};

struct control {
    const char *op;
    const char *note; /* what has to be constant, for docs/onnx.md */
    /* Add nodes that make the node's outputs, or refuse it. */
    int (*expand)(struct import *im, struct node *n, strata_error *err);
    const char *domain; /* NULL: ai.onnx */
};

/* The row of an operator; of one that reads lists, NULL if it is none of these. */
const struct control *control_find(const struct import *im, const struct node *n);

int control_if(struct import *im, struct node *n, strata_error *err);
int control_loop(struct import *im, struct node *n, strata_error *err);
int control_scan(struct import *im, struct node *n, strata_error *err);
int control_sequence_map(struct import *im, struct node *n, strata_error *err);
int control_flex_attention(struct import *im, struct node *n, strata_error *err);

/* ---- for these functions -------------------------------------------------------------
 */

/* A graph in an attribute of a node, to be put in place once or more. */
struct body {
    struct import *im;
    struct node *node;
    const struct onnx_graph *graph;
    int *constants; /* values of its initializers */
};

/* Refused, and false, where there is no such attribute or the ports do not fit; -1: any
 * number of outputs. */
bool body_open(struct body *b, struct import *im, struct node *n, const char *name,
               int n_in, int n_out);
/* Nodes of the graph that make `out` of `in`, which are folded; names begin with the
 * node's and `more`. */
int body_run(struct body *b, const char *more, const int *in, const int *out,
             strata_error *err);
/* Count nodes since `first` as unrolled; false, and refused, when there are too many. */
bool body_count(struct body *b, size_t first);

/* Inputs of the node itself. */
int control_inputs(const struct node *n);
/* A constant input, as an integer; false, and refused, if it is computed. */
bool control_integer(struct import *im, struct node *n, int value, const char *what,
                     int64_t *out);
/* Give output i of the node that value, or that constant, or that list. */
void control_give(struct import *im, struct node *n, int i, int value);
void control_give_integer(struct import *im, struct node *n, int i, int dtype, int64_t v);
void control_give_list(struct import *im, struct node *n, int i, const int *values,
                       int n_values);
/* Give output i the values joined along a new axis of it; negative: from behind. An empty
 * list has the dims of `like`, or is refused. */
void control_stack(struct import *im, struct node *n, int i, const int *values,
                   int n_values, int64_t axis, const struct onnx_value *like);
/* The element of a value along an axis, which goes away. */
int control_pick(struct import *im, struct node *n, int value, int64_t i, int64_t axis);

extern const struct control control_graphs[], control_sequences[];
extern const size_t control_n_graphs, control_n_sequences;

#endif /* NETWORK_IMPORT_CONTROL_H */
