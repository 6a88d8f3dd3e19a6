/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of the file as nodes of the graph: of its own graph, of a function where a node
 * calls it, of the graph in an attribute where control/ puts it in place. What such a
 * graph reads from around it is an input of the node that holds it, behind its own.
 */
#ifndef NETWORK_IMPORT_INLINE_H
#define NETWORK_IMPORT_INLINE_H

#include "ini/names.h"
#include "network/import/private.h"

#define INLINE_DEPTH 16     /* functions in each other */
#define INLINE_NODES 262144 /* of a graph; functions can multiply */

/* What surrounds nodes of the file: memory of the arena. */
struct scope {
    const char *prefix; /* of names: "caller/" */
    const struct onnx_opset *opsets;
    size_t n_opsets;
    const struct onnx_function *function;    /* whose nodes they are, or NULL */
    const struct onnx_attribute *attributes; /* that it is called with */
    size_t n_attributes;
    int depth; /* of functions */
};

struct inline_port {
    const char *name;
    int value;
};

/* A graph of the file while its nodes are made. */
struct inlining {
    struct import *im;
    const struct scope *scope;
    struct names index;                /* value + 1 by name; 0: absent */
    struct names asked;                /* index in results by name */
    const struct inline_port *results; /* values that nodes are to make */
    size_t n_results;
    bool forward; /* what nodes make was named before */
    strata_error *err;
};

/* Index the model's functions, before any node is made. */
void inline_functions(struct import *im);
/* Begin; what is around the nodes is named before them. inline_end in every case. */
void inline_begin(struct inlining *x, struct import *im, const struct scope *scope,
                  strata_error *err);
/* Give a value a name in the graph; one that is taken is refused. */
void inline_name(struct inlining *x, const char *name, int value);
/* The value of a name; VALUE_NONE: there is none. */
int inline_find(const struct inlining *x, const char *name);
/* A new value, named as the scope says. */
int inline_value(struct import *im, const struct scope *scope, const char *name);
/* Make the value that tensor. */
void inline_constant(struct import *im, int value, const struct onnx_tensor *t);
/* Outputs of the graph are to be these values; the array is the caller's. */
void inline_results(struct inlining *x, const struct inline_port *results, size_t n);
/* Name what the nodes will make, so that they may come in any order. */
void inline_forward(struct inlining *x, const struct onnx_node *nodes, size_t n);
void inline_nodes(struct inlining *x, const struct onnx_node *nodes, size_t n);
/* Results that no node made become copies; frees the names. */
void inline_end(struct inlining *x);

/* A scope like that of `n`, in which names begin with its name and `more`. */
const struct scope *inline_scope(struct import *im, const struct node *n,
                                 const char *more);

#endif /* NETWORK_IMPORT_INLINE_H */
