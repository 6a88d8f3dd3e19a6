/* SPDX-License-Identifier: Apache-2.0
 *
 * An execution: what running a network needs of its plan, and all that running sees of
 * it. Nodes with their chosen impls; values (a tensor in one format, somewhere in
 * memory) between them; steps in order; bindings; offsets in one arena. It has no memory
 * of a device, no weights and no state: those are the engine's, a part for each node.
 * Why the plan is this one stays with the planner, whose fields are not here.
 *
 *   schedule      planner, plan -> nodes that run, values, steps
 *   constants     values that no run changes
 *   rounded       inputs of which FP16 is all that is read
 *   inside        values inside others -> their strides
 *   memory        steps         -> their order, memory shared in place, offsets
 *   memory_order  orders of the steps to try
 *   state         what a run leaves for the next, in place or copied
 *   execution     what others ask of one
 *
 * Made whole by execution_make and never written again, but for costs in place, which are
 * added before anybody else sees it; freed by who made it, before the network, whose
 * layers it names. The planner may go first.
 */
#ifndef PLANNER_EXECUTION_H
#define PLANNER_EXECUTION_H

#include <strata/layers.h>

#include "network/network.h"
#include "planner/solver/problem.h"

struct planner;

enum made_kind {
    MADE_POINTWISE,
    MADE_REDUCE,
    MADE_POOLING,
    MADE_QUANTIZED,
    MADE_PROJECTION,
    MADE_PERCEPTRON,
    MADE_INVERTED_RESIDUAL,
    MADE_BOTTLENECK,
    MADE_SHORTCUT_CONVOLUTION,
    MADE_POOLED_CONVOLUTION,
    MADE_SELF_ATTENTION,
    MADE_FUNCTION
};

/* Of those, at most: a Bottleneck's with a shortcut. */
enum { MADE_WEIGHTS = STRATA_BOTTLENECK_WEIGHTS + 2 };
_Static_assert((int)MADE_WEIGHTS >= (int)STRATA_QUANTIZED_CONVOLUTION_WEIGHTS,
               "a made layer has room for its weights");

/* A layer made of some of the network; its tensors are the network's. */
struct made_layer {
    struct network_layer layer; /* points into this struct */
    enum made_kind kind;
    union {
        strata_pointwise pointwise;
        strata_reduce reduce;
        strata_pooling pooling;
        strata_quantized_convolution quantized_convolution;
        strata_quantized_deconvolution quantized_deconvolution;
        strata_quantized_product quantized_product;
        strata_quantized_sum quantized_sum;
        strata_quantized_pooling quantized_pooling;
        strata_quantized_attention quantized_attention;
        strata_padding padding;
        strata_projection projection;
        strata_perceptron perceptron;
        strata_inverted_residual inverted_residual;
        strata_bottleneck bottleneck;
        strata_shortcut_convolution shortcut_convolution;
        strata_pooled_convolution pooled_convolution;
        strata_self_attention self_attention;
    } params;
    const void *own_params; /* of the network's layer, in their place; or NULL */
    struct network_weight weights[MADE_WEIGHTS]; /* names: network's */
    struct network_affine affine[MADE_WEIGHTS];  /* of those that are such */
    int inputs[PLAN_MAX_PORTS], output;
    int ports[PLAN_MAX_PORTS]; /* where not in order: the layer's inputs that they are */
    bool ported;
    char program[2048];            /* of a Pointwise, a QuantizedPointwise */
    int64_t axes[STRATA_MAX_RANK]; /* of a Reduce */
};

/* A layer that runs, and those after it that it computes in its own pass. */
struct execution_node {
    char *name; /* "conv1 + relu1" */
    const struct network_layer *layer;
    const struct registry_impl *impl;
    int row;
    size_t candidate; /* of the planner's: its node, impl, formats and layers fused */
    int n_in, n_out;
    int *in_values, *out_values;
    const int *ports;   /* the layer's input that each of in_values is; NULL: in order */
    int n_ports;        /* inputs of the layer, absent ones included */
    int residual_value; /* that its epilogue adds, or -1 */
    struct made_layer *made; /* what `layer` is in where it was made for this; or NULL */
    const struct network_layer **fused; /* in order */
    size_t n_fused, n_scales;           /* the first n_scales go into its weights */
    strata_epilogue epilogue;
    const void *params;       /* of impls: the layer's, or composed */
    strata_shuffle *composed; /* with a fused Shuffle, or NULL */
    strata_tensor *weights;   /* layer->type->n_weights, described: data is NULL */
    size_t workspace;         /* bytes */
    int64_t workspace_offset; /* in the arena */
};

/* A tensor in one format, somewhere in memory. */
struct execution_value {
    int tensor; /* of the network */
    int format; /* table index */
    int pad, stage;
    int binding;   /* input or output that owns the memory, or -1 */
    int alias;     /* value whose memory this is in, or -1 */
    int constant;  /* node that makes it once, in memory of the engine's; or -1 */
    int64_t begin; /* bytes into that memory */
    int owner;     /* at the end of the aliases, itself without; once placed */
    int64_t at;    /* bytes into its memory */
    bool in_place; /* alias made by the memory planner */
    bool pitched;  /* its strides are those of the value it is in: not dense */
    strata_desc desc;
    int64_t bytes, offset; /* in the arena, if neither bound nor aliased */
    int first, last;       /* steps */
};

enum step_kind {
    STEP_RUN,
    STEP_REFORMAT,
    STEP_RELABEL /* nothing to do: `to` is in the memory of `from`, or the reverse */
};

struct execution_step {
    enum step_kind kind;
    int node;         /* STEP_RUN */
    int from, to;     /* values, for the other kinds */
    bool once;        /* STEP_RUN of a constant: with the engine, and in no run */
    int64_t cost;     /* the price that the plan was chosen by: 1/16 ns */
    int64_t in_place; /* of it among the others, where execution.in_place is known */
    enum plan_reason reason;
    int64_t live; /* bytes of the arena in use, workspace included; once placed */
};

struct execution_binding {
    const char *name;
    bool is_input;
    int value; /* its memory is the caller's or the context's */
    bool rounded; /* an input of FP32 that all who read it round to FP16 first */
};

/* A tensor that contexts keep: `next` is its value after a run. */
struct execution_state {
    const struct network_state *state;
    int now, next; /* bindings, behind those of applications */
    bool shared;   /* next is written where now lies, whose readers are done by then; else
                      the last steps copy it there */
};

struct execution {
    int others; /* who have it beside the first: the last one frees it */
    struct execution_node *nodes;
    struct execution_value *values;
    struct execution_step *steps;
    struct execution_binding *bindings; /* inputs, outputs, then those of states */
    struct execution_state *states;
    /* n_bindings: of applications, which see no others */
    size_t n_nodes, n_values, n_steps, n_bindings, n_inputs, n_states;
    size_t values_capacity, steps_capacity;
    int device, sm; /* what it is for: STRATA_HOST ..., compute capability times 10 */
    int math;       /* STRATA_MATH_* */
    int threads;    /* of host kernels; 0 on other devices */
    int last_input_step; /* after it the inputs may be overwritten; -1: none reads them */
    int64_t cost;        /* of a run, as planned: 1/16 ns */
    int64_t in_place;    /* the same, timed: the sum of the steps'; 0: it was not */
    int64_t arena_bytes, arena_bound; /* the bound is the order's: bytes alive at once */
};

/* schedule/schedule.c: of the planner's plan, or of another of the same problem. */
int execution_make(struct execution **out, const struct planner *planner,
                   const struct plan *plan, strata_error *err);

/* execution.c */
/* Empty, with room for the planner's nodes and the bindings of its network. */
struct execution *execution_open(const struct planner *planner, strata_error *err);
void execution_free(struct execution *x);
/* For one more who frees it, on the same thread. */
static inline struct execution *execution_retain(struct execution *x)
{
    x->others++;
    return x;
}
/* Find each value's owner and its place there, of the aliases. */
void execution_settle(struct execution *x);
/* The k-th value that a step reads or writes, or -1 past the last. */
int execution_reads(const struct execution *x, const struct execution_step *s, int k);
int execution_writes(const struct execution *x, const struct execution_step *s, int k);
/* Whether a step stands for a layer that runs nothing: its inputs lie in its output, or
 * it in its input. */
bool execution_erases(const struct execution *x, const struct execution_step *s);
/* The layer's input that a node's i-th one is. */
static inline int execution_port(const struct execution_node *n, int i)
{
    return n->ports ? n->ports[i] : i;
}
/* The chosen formats of a node's tensors, without data; `in` has n_ports entries. */
void execution_tensors(const struct execution *x, const struct execution_node *n,
                       strata_tensor *in, strata_tensor *out);
/* The same of the tensor that its epilogue adds, if it does. */
void execution_residual(const struct execution *x, const struct execution_node *n,
                        strata_tensor *out);

/* What a run takes, and a step of it: timed in place, or by the price. */
static inline int64_t execution_predicts(const struct execution *x)
{
    return x->in_place ? x->in_place : x->cost;
}
static inline int64_t execution_step_predicts(const struct execution *x,
                                              const struct execution_step *s)
{
    return x->in_place ? s->in_place : s->cost;
}

/* Bindings of applications and of states. */
static inline size_t execution_bound(const struct execution *x)
{
    return x->n_bindings + 2 * x->n_states;
}

/* state.c: once placed: which states are shared, and steps that copy the others. */
int execution_keep_states(struct execution *x, strata_error *err);

/* schedule/inside.c: strides of values inside others, whose aliases are known, and the
 * workspaces of nodes that touch them; a limit in bytes, 0: none. */
int execution_lay_inside(struct execution *x, uint64_t workspace, strata_error *err);
/* schedule/constants.c: values that are made once, while aliases are not made by the
 * memory planner yet. */
void execution_find_constants(struct execution *x);
/* schedule/rounded.c: `rounded` of the inputs, once all steps and places are there. */
void execution_find_rounded(struct execution *x);
/* memory.c */
int execution_place(struct execution *x, strata_error *err);
/* memory_order.c: orders of the steps to try; *order lists step indices. */
enum { ORDER_NETWORK, ORDER_DEPTH, ORDER_HEAVY, ORDER_LIVE, ORDER_COUNT };
int execution_order(const struct execution *x, int which, int *order, strata_error *err);

#endif /* PLANNER_EXECUTION_H */
