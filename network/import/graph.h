/* SPDX-License-Identifier: Apache-2.0
 *
 * A model while it is imported: values, and nodes that make values of values. It begins
 * as the file's own graph; passes (import.c) then change it. All of it is memory of one
 * arena and freed with it. Values are indices, as they move; nodes stay where they are.
 *
 * A function that gets no memory says so in the arena alone (arena.full), and gives NULL
 * or VALUE_NONE, which every function here takes and passes over. So a pass looks once,
 * at its end.
 */
#ifndef NETWORK_IMPORT_GRAPH_H
#define NETWORK_IMPORT_GRAPH_H

#include "network/import/arena.h"
#include "core/status.h"
#include "io/onnx/model.h"

enum { VALUE_NONE = -1 };  /* an absent input or output */
enum { GRAPH_OPSET = 28 }; /* the newest opset of ai.onnx that is known */

struct value {
    const char *name;    /* the model's; "" where a pass made it */
    const char *spelled; /* of an input: its name in the network */
    int dtype;           /* STRATA_*; -1: not known */
    enum onnx_type carried; /* the type in the model, where dtype only holds its values
                             * (carry.h); ONNX_UNDEFINED: it is dtype's */
    int rank;            /* -1: not known; 0: a scalar, one dim of 1 to a layer */
    int64_t dims[STRATA_MAX_RANK];
    bool constant;
    int8_t symbols[STRATA_MAX_RANK]; /* from 1, of an input: of the import, its dims; 0:
                                      * a number */
    int next;   /* from 1, of an input: the value that it has in the next run */
    int64_t room; /* of a state that counts: the most that it may be; 0: it is none */
    bool exact; /* a float whose layer says its dtype, whatever precision is asked for */
    const void *data; /* of a constant: elements of dtype, row-major; NULL if empty */
    bool refused;     /* its producer was refused, so what reads it says nothing */
    const struct sequence *sequence; /* a list of values (control/); NULL: a tensor */
    struct node *node; /* that makes it; NULL: an input of the network, or a constant */
    int readers;       /* nodes' ports and outputs of the network, as graph_sort counted
                        * them; ports added since are counted, but none is taken off */
    int given; /* of a constant: what the Constant layer of it gives; VALUE_NONE */
    int whole, factors; /* of a constant: those whose product it is; VALUE_NONE */
    int same;  /* the value that it is, as its node does nothing; VALUE_NONE */
    struct counted *counted; /* rows whose number values tell (counted/); NULL: none */
    struct rounds_lane *lane; /* what it is of each round (rounds/); NULL: no round's */
};

struct graph_size {
    const char *name;
    int64_t value;
};

struct scope; /* what surrounds a node in the file: inline.h */
struct memo;  /* symbols/memo.h */

struct node {
    const char *name, *op;
    const char *domain; /* "" is ai.onnx */
    int64_t version;    /* of the domain's operators; of one made here: GRAPH_OPSET */
    int *in, *out;      /* values */
    int n_in, n_out;
    const struct scope *scope; /* NULL: a node made here */
    /* What the graphs in its attributes read from around them: by these names, the last
     * n_captured of its inputs. */
    const char **captured;
    int n_captured;
    bool folded; /* fold.c has been here */
    bool whole;  /* it works on all rows, whether they count or not (counted/) */
    struct onnx_attribute *attributes;
    size_t n_attributes;
    const char *from; /* names of further nodes that it stands for; NULL: none */
    bool derived;     /* its name is another node's, with its operator behind that */
    int mark, port;   /* of graph_sort */
};

struct graph {
    struct arena arena;
    const char *name;
    struct value *values;
    struct node **nodes; /* producers first, after graph_sort */
    int *inputs, *outputs;
    size_t n_values, n_nodes, n_inputs, n_outputs;
    size_t values_capacity, nodes_capacity;
    struct graph_size *sizes; /* names that lists of integers of sections may hold */
    size_t n_sizes;
    struct memo *memo; /* of what was folded at other sizes, or NULL */
};

struct value *graph_value(const struct graph *g, int value); /* NULL for VALUE_NONE */
int graph_add_value(struct graph *g, const char *name);
/* data stays the caller's, or the arena's. */
int graph_add_constant(struct graph *g, const char *name, int dtype, int rank,
                       const int64_t *dims, const void *data);
/* A constant of integers; n 1 and rank 0: a scalar. */
int graph_add_integers(struct graph *g, int rank, const int64_t *v, int64_t n);
/* A node at the end of the list, with ports of its own. in and out are copied. */
struct node *graph_add_node(struct graph *g, const char *op, const int *in, int n_in,
                            const int *out, int n_out);
/* Leave out what no output needs, count readers, and put producers before readers: in the
 * order of a walk from the outputs, each node's first input first, so that the order of
 * the nodes in the file is of no consequence. EPARSE names a node of a circle. */
int graph_sort(struct graph *g, strata_error *err);

int64_t value_count(const struct value *v); /* elements; 1 of a scalar */
/* Whether a layer sees the dtype, where it sees FP32 for other floats. Of a constant it
 * does not. */
bool value_is_exact(const struct value *v);
/* Element i of a constant of integers or BOOL8, of floats; 0 of another. */
int64_t value_integer(const struct value *v, int64_t i);
double value_real(const struct value *v, int64_t i);

/* Whether values of a dtype are doubles to a reference, else int64_t. */
bool graph_is_real(int dtype);

/* What the node makes is refused, so that its readers say nothing. */
void node_refuse(struct graph *g, const struct node *n);
bool node_is_refused(const struct graph *g, const struct node *n);

const struct onnx_attribute *node_attribute(const struct node *n, const char *name);
int64_t node_integer(const struct node *n, const char *name, int64_t otherwise);
double node_real(const struct node *n, const char *name, double otherwise);
const char *node_text(const struct node *n, const char *name, const char *otherwise);
/* Numbers of a list, at most `room`; how many there are, -1: the attribute is absent. */
int64_t node_integers(const struct node *n, const char *name, int64_t *out, int room);
/* Add or replace an attribute. Lists and texts are kept as pointers. */
void node_set(struct graph *g, struct node *n, struct onnx_attribute a);
void node_set_integer(struct graph *g, struct node *n, const char *name, int64_t v);
void node_set_real(struct graph *g, struct node *n, const char *name, double v);
void node_set_text(struct graph *g, struct node *n, const char *name, const char *v);
/* The list is copied. */
void node_set_integers(struct graph *g, struct node *n, const char *name,
                       const int64_t *v, size_t count);
void node_remove(struct node *n, const char *name);
/* Make the node's input `i` that value; further ones before it are absent. */
void node_set_input(struct graph *g, struct node *n, int i, int value);

#endif /* NETWORK_IMPORT_GRAPH_H */
