/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine: the network's nodes with their chosen impls and formats, the values (a
 * tensor in one format) between them, the steps in order, the weights. Immutable.
 *
 *   fuse       layers          -> nodes (a layer and what it computes in its epilogue)
 *   model      nodes           -> plan problem: choices, labels, conversions, costs
 *   plan       problem         -> a choice per node, conversions per tensor
 *   schedule   plan            -> values and steps, in-place and relabelled memory shared
 *   arena      values          -> offsets
 *   engine     weights, setup
 */
#ifndef CORE_ENGINE_H
#define CORE_ENGINE_H

#include "core/handle.h"
#include "core/network.h"
#include "core/plan.h"

/* A layer and the layers computed in its epilogue. */
struct engine_node {
    char *name; /* "conv1 + relu1" */
    const struct network_layer *layer;
    const struct network_layer *activation; /* fused, or NULL */
    strata_epilogue epilogue;
    int *in, *out; /* network tensors; out is the last fused layer's */
    int n_in, n_out;
    /* Filled from the plan: */
    const struct registry_impl *impl;
    int row;
    int *in_values, *out_values;
    strata_tensor *weights; /* layer->type->n_weights, data on the device */
    void *state;
    bool set_up;
    struct engine_block *packs; /* memory given by strata.pack/1 */
    size_t n_packs, packs_capacity;
    size_t workspace; /* bytes */
    int64_t workspace_offset;
};

struct engine_block {
    void *ptr;
    size_t bytes;
};

/* One way to run a node that was looked at: usable, or refused with a reason. */
struct engine_candidate {
    int node;
    const struct registry_impl *impl;
    int row;
    int in_formats[PLAN_MAX_PORTS], out_formats[PLAN_MAX_PORTS]; /* table indices */
    int64_t cost;     /* 1/16 ns; usable ones only */
    size_t workspace; /* bytes */
    char *reason;     /* why not; NULL: usable */
};

struct engine_model {
    struct plan_problem problem;
    struct engine_candidate *candidates; /* choice.impl indexes these */
    size_t n_candidates, candidates_capacity;
    bool dirty; /* some candidate leaves pad lanes as they come */
    /* problem.ops: inputs, then nodes, then outputs. problem.tensors: network tensors
     * that are not inside a fused node; tensor_of maps back, index_of forward (or -1). */
    int *tensor_of, *index_of;
    int64_t **matrices;
    size_t n_matrices;
    int *ports; /* storage of the operations' tensor lists */
    struct plan_reader *readers;
};

/* A tensor in one format, somewhere in memory. */
struct engine_value {
    int tensor; /* of the network */
    int format; /* table index */
    int pad;
    int binding; /* input or output that owns the memory, or -1 */
    int alias;   /* value whose memory this is, or -1 */
    strata_desc desc;
    int64_t bytes, offset; /* in the arena, if neither bound nor aliased */
    int first, last;       /* steps */
};

enum step_kind { STEP_RUN, STEP_REFORMAT, STEP_RELABEL };

struct engine_step {
    enum step_kind kind;
    int node;     /* STEP_RUN */
    int from, to; /* values, for the other kinds */
    int64_t cost;
    enum plan_reason reason;
};

struct engine_binding {
    const char *name;
    bool is_input;
    int value; /* its memory is the caller's or the context's */
};

struct strata_engine {
    strata_network *network; /* a reference */
    strata_handle *handle;
    struct engine_node *nodes;
    struct engine_value *values;
    struct engine_step *steps;
    struct engine_binding *bindings; /* inputs, then outputs */
    size_t n_nodes, n_values, n_steps, n_bindings, n_inputs;
    size_t values_capacity, steps_capacity;
    int threads; /* of host kernels; 0 on other devices */
    int last_input_step; /* after it the inputs may be overwritten */
    int64_t arena_bytes, arena_bound;
    uint64_t weight_bytes;
    struct engine_model *model;
    struct plan_options plan_options; /* with which the plan was made */
    struct plan *plan;
};

/* fuse.c */
int engine_make_nodes(strata_engine *e, strata_error *err);
void engine_free_nodes(strata_engine *e);
/* candidate.c: EPLAN with every impl's reason if none is usable. */
int engine_find_candidates(strata_engine *e, struct engine_model *m, int node,
                           strata_error *err);
/* model.c */
static inline bool is_float(int dtype)
{
    return dtype == STRATA_FP32 || dtype == STRATA_FP16;
}
int engine_make_model(strata_engine *e, strata_error *err);
void engine_free_model(struct engine_model *m);
/* schedule.c */
int engine_make_schedule(strata_engine *e, strata_error *err);

/* Complete node description for a layer's callbacks, with in, out and weight tensors in
 * the arrays given (n_in, n_out and n_weights long). */
struct engine_view {
    strata_node node;
    strata_tensor *in, *out;
    const strata_tensor *weight;
    strata_epilogue epilogue;
    struct allocator *allocator; /* for strata.pack/1; NULL outside setup */
    uint64_t *packed;            /* bytes given out */
};
void engine_fill_view(struct engine_view *v, const strata_engine *e,
                      const struct engine_node *n, int row, strata_error *err);
/* The chosen formats of a node's tensors, without data. engine.c */
void engine_node_tensors(const strata_engine *e, const struct engine_node *n,
                         strata_tensor *in, strata_tensor *out);
/* Tensor descriptor of a network tensor in a format of the table. */
int engine_desc(strata_desc *out, const strata_network *net, int tensor, int format,
                strata_error *err);

#endif /* CORE_ENGINE_H */
