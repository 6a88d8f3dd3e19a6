/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine: the network's nodes with their chosen impls and formats, the values (a
 * tensor in one format) between them, the steps in order, the weights. Immutable.
 *
 *   fuse       layers          -> nodes, and which may compute the layers after them
 *   candidate  nodes           -> ways to run each: impls, formats, layers fused; or none
 *   model      candidates      -> plan problem: choices, labels, conversions, costs
 *   plan       problem         -> a choice per node, conversions per tensor
 *   objective  plans           -> the one that is kept
 *   schedule   plan            -> values and steps; nodes that do not run are dropped
 *   memory     steps           -> their order, memory shared in place, offsets
 *   engine     weights, setup
 *   batch      smaller batches: engines inside it, which share its weights
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "core/handle.h"
#include "network/network.h"
#include "planner/cost/cost.h"

/* Layers that another may compute in its own pass. A chain takes them in this order, and
 * each but FUSE_SCALE at most once. */
enum fuse_kind {
    FUSE_NOTHING,
    FUSE_SHUFFLE,   /* by a Shuffle: the two composed */
    FUSE_SCALE,     /* folded into the weights */
    FUSE_SUM,       /* STRATA_EPILOGUE_RESIDUAL */
    FUSE_ACTIVATION /* STRATA_EPILOGUE_ACTIVATION */
};

/* One layer while it is planned; afterwards one that runs, and the layers it computes. */
struct engine_node {
    char *name; /* "conv1 + relu1" */
    const struct network_layer *layer;
    int *in, *out; /* network tensors; planned: out is the last fused layer's */
    int *rewritten; /* in, where it is not the layer's own list; or NULL */
    int n_in, n_out;
    /* The layers it may compute too, in order: each the only reader of the one before. */
    int *tail;
    size_t n_tail, tail_capacity;
    int before;          /* node whose output continues into this one, or -1 */
    int chain_port;      /* at this input */
    int residual;        /* network tensor that a sum in the tail adds, or -1 */
    strata_shuffle *composed; /* parameters with the tail's Shuffle, or NULL */
    /* Filled from the plan: */
    size_t n_fused; /* of the tail */
    strata_epilogue epilogue;
    const struct registry_impl *impl;
    int row;
    int *in_values, *out_values;
    int residual_value;     /* or -1 */
    strata_tensor *weights; /* layer->type->n_weights, data on the device */
    void *state;
    bool set_up;
    struct engine_block *packs; /* memory given by strata.pack/1 */
    size_t n_packs, packs_capacity;
    uint64_t packed_bytes; /* of them that are not lent */
    bool packs_alone; /* they differ from those of the engine's lender */
    size_t workspace; /* bytes */
    int64_t workspace_offset;
};

/* What became of a layer (one entry each) that might be part of another's pass, or that
 * moves nothing. */
struct engine_fusion {
    enum fuse_kind kind;
    int into;  /* layer that computes it, or could; -1: none */
    bool possible, done;
    char *reason; /* NULL: nothing to say */
};

struct engine_block {
    void *ptr;
    size_t bytes;
    bool lent;    /* by the engine's lender */
    void *before; /* lent: what was in it, until that is compared */
};

enum candidate_kind {
    CANDIDATE_RUN,      /* an impl's row */
    CANDIDATE_ABSORBED, /* a node before computes it */
    CANDIDATE_ALIAS,    /* the output is the input's memory as it is */
    CANDIDATE_JOIN      /* the inputs are made inside the output's memory */
};

/* One way to have a node that was looked at: usable, or refused with a reason. */
struct engine_candidate {
    enum candidate_kind kind;
    int node;
    const struct registry_impl *impl; /* CANDIDATE_RUN; else NULL */
    int row;
    size_t fused; /* layers of the tail; absorbed: those still to come after this one */
    int pad;      /* STRATA_PAD_* of an absorbed tensor */
    int in_formats[PLAN_MAX_PORTS], out_formats[PLAN_MAX_PORTS]; /* table indices */
    int64_t cost;     /* 1/16 ns; usable ones only */
    size_t workspace; /* bytes */
    bool bounded;     /* the cost is a lower bound: it was never measured */
    char *reason;     /* why not; NULL: usable */
};

struct engine_model {
    struct plan_problem problem;
    struct engine_candidate *candidates; /* choice.impl indexes these */
    size_t n_candidates, candidates_capacity;
    /* problem.ops: inputs, then nodes, then outputs. problem.tensors: network tensors
     * that are not inside a fused node; tensor_of maps back, index_of forward (or -1). */
    int *tensor_of, *index_of;
    int64_t **matrices;
    size_t n_matrices;
    bool any_dirty; /* some impl leaves pad lanes undefined */
    int *home; /* per network tensor: the concatenation that may own its memory, or -1 */
    int *ports; /* storage of the operations' tensor lists */
    struct plan_reader *readers;
};

/* A tensor in one format, somewhere in memory. */
struct engine_value {
    int tensor; /* of the network */
    int format; /* table index */
    int pad, stage;
    int binding;   /* input or output that owns the memory, or -1 */
    int alias;     /* value whose memory this is in, or -1 */
    int64_t begin; /* bytes into that memory */
    bool in_place; /* alias made by the memory planner */
    strata_desc desc;
    int64_t bytes, offset; /* in the arena, if neither bound nor aliased */
    int first, last;       /* steps */
};

enum step_kind {
    STEP_RUN,
    STEP_REFORMAT,
    STEP_RELABEL /* nothing to do: `to` is in the memory of `from`, or the reverse */
};

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
    int64_t row_bytes; /* of one row of the batch; 0: it has no such rows */
};

/* A plan that was not chosen for time alone, against the one of least time. */
struct engine_trade {
    int64_t cost; /* of that one, 1/16 ns */
    bool at_least; /* some costs in it are bounds */
    size_t reformats;
    int64_t arena_bytes;
    size_t weighed; /* plans, for OBJECTIVE_MEMORY */
    bool cut;       /* there may be more as fast */
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
    int math;    /* STRATA_MATH_* */
    int last_input_step; /* after it the inputs may be overwritten */
    struct engine_fusion *fusions;
    size_t n_fusions;
    int64_t arena_bytes, arena_bound; /* the bound is the order's: bytes alive at once */
    uint64_t weight_bytes;
    struct engine_model *model;
    struct plan_options plan_options; /* with which the plan was made */
    struct plan *plan;
    struct cost_report costs; /* how the plan's were found */
    struct engine_trade trade; /* of an objective other than time */
    int64_t batch;    /* rows of a run, at most */
    char *only_batch; /* why at least as many too; NULL: any smaller number is right */
    /* For fewer rows, ascending; they have the weights that agree from this one, which
     * is their lender. */
    strata_engine **smaller;
    size_t n_smaller;
    const strata_engine *lender;
    struct cost_table known;   /* measured or recorded costs that were at hand */
    struct engine_stored *stored; /* the file it was loaded from; NULL: built here */
};

/* engine.c: from a plan that another engine of the network on the handle has, or might
 * have had; NULL: make one. */
int engine_build_plan(strata_engine **out, strata_handle *handle,
                      const strata_network *network, const struct plan *plan,
                      strata_error *err);
/* batch.c: the last step of building. */
int engine_add_batches(strata_engine *e, strata_error *err);
void engine_free_batches(strata_engine *e);
/* setup.c */
/* Offer strata.pack/1 to modules. */
void engine_offer_packs(void);
/* Weights and state of the plan's nodes; what there is of them goes with release. */
int engine_setup_nodes(strata_engine *e, strata_error *err);
void engine_release_node(strata_engine *e, struct engine_node *n);
/* share.c */
/* A dense weight of the lender's that is the node's too, or NULL. */
void *engine_lent_weight(const strata_engine *e, const struct engine_node *n, size_t w);
/* Memory of the lender's for the node's next packed weight; out->ptr NULL: none fits. */
int engine_borrow_pack(strata_engine *e, const struct engine_node *n, size_t bytes,
                       struct engine_block *out, strata_error *err);
/* After setup: if what was packed into lent memory differs, that is put back, and
 * packs_alone set: set up again. */
int engine_check_loans(strata_engine *e, struct engine_node *n, strata_error *err);
/* From a file's plan, which is freed in any case; its network. */
struct engine_stored;
/* For another batch than the lender's; stored, which is freed in any case, may be NULL. */
int engine_build_lent(strata_engine **out, strata_handle *handle,
                      const strata_network *network, struct engine_stored *stored,
                      const strata_engine *lender, strata_error *err);
int engine_build_stored(strata_engine **out, strata_handle *handle,
                        const strata_network *network, struct engine_stored *stored,
                        strata_error *err);
/* fuse.c */
int engine_make_nodes(strata_engine *e, strata_error *err);
void engine_free_node(struct engine_node *n);
void engine_free_nodes(strata_engine *e);
/* Note what the plan did with each possible fusion, and name the nodes that run. */
int engine_note_fusions(strata_engine *e, strata_error *err);
/* Output tensor of a node that computes the first `fused` layers of its tail. */
int engine_output(const strata_engine *e, const struct engine_node *n, size_t fused,
                  int port);
strata_epilogue engine_epilogue(const strata_engine *e, const struct engine_node *n,
                                size_t fused);
/* weights.c */
/* NULL, or why a Scale cannot be folded into a node's weights. */
const char *engine_refuse_fold(const strata_engine *e, const struct engine_node *n,
                               const struct network_layer *scale);
/* Descriptions of the weights that a node has with `fused` layers of its tail. */
int engine_weights(const strata_engine *e, const struct engine_node *n, size_t fused,
                   strata_tensor *weights, strata_error *err);
/* Values of a weight where the network has them, if the device reads that memory and
 * nothing is folded into them; else NULL. */
void *engine_weight_in_place(const strata_engine *e, const struct engine_node *n,
                             size_t weight);
/* The same whatever the device reads. */
const void *engine_weight_source(const strata_engine *e, const struct engine_node *n,
                                 size_t weight);
/* Values of a weight, in host memory, with the node's fused scales folded in. */
int engine_load_weight(const strata_engine *e, const struct engine_node *n, size_t weight,
                       void *values, strata_error *err);
/* shuffle.c */
/* Byte of its input at which a layer's output stands as it is, in a format, or -1. */
int64_t engine_alias_begin(const strata_engine *e, const struct network_layer *layer,
                           int format);
/* Two Shuffles as one, or NULL where the reshapes do not allow it (or for memory). */
strata_shuffle *engine_compose(const strata_network *net, const struct network_layer *a,
                               const struct network_layer *b, strata_error *err);
/* candidate.c: EPLAN with every impl's reason if none is usable. */
int engine_find_candidates(strata_engine *e, struct engine_model *m, int node,
                           strata_error *err);
/* refuse.c: the error of a node without candidates, with every reason. */
int engine_refuse_node(const strata_engine *e, const struct engine_model *m, int node,
                       strata_error *err);
/* "fp32:nchw, fp16:nhwc8" */
void engine_list_formats(char *text, size_t size, uint64_t mask, int rank);
int engine_keep_candidate(struct engine_model *m, struct engine_candidate *c,
                          const char *reason, strata_error *err);
/* free.c: ways that cost nothing. After the candidates of earlier nodes. */
int engine_find_free(strata_engine *e, struct engine_model *m, int node,
                     strata_error *err);
/* Byte at which a tensor begins in one that it is a slice of, from `begin` along `dim`,
 * where it is one piece of the same layout there, and aligned; else -1, and *why says
 * what it is not. why may be NULL. */
int64_t engine_slice_begin(const strata_engine *e, int whole, int part, int dim,
                           int64_t begin, int format, const char **why);
/* The same of input `port` in a concatenation's output. */
int64_t engine_part_begin(const strata_engine *e, const struct engine_node *join,
                          int port, int format, const char **why);
/* model.c */
static inline bool is_float(int dtype)
{
    return dtype == STRATA_FP32 || dtype == STRATA_FP16;
}
int engine_make_model(strata_engine *e, strata_error *err);
void engine_free_model(struct engine_model *m);
/* Pad state that an impl gives or takes at a port. */
int engine_port_pad(const struct engine_model *m, const strata_network *net, int tensor,
                    int format, const strata_impl *impl, bool output);
/* objective.c: by the network's objective, another plan than the solver's first. */
extern const char *const engine_objective_names[];
int engine_trade_time(strata_engine *e, strata_error *err);
/* schedule.c */
int engine_make_schedule(strata_engine *e, strata_error *err);
int engine_owner(const strata_engine *e, int value);
/* The k-th value that a step reads or writes, or -1 past the last. */
int engine_step_reads(const strata_engine *e, const struct engine_step *s, int k);
int engine_step_writes(const strata_engine *e, const struct engine_step *s, int k);
/* memory.c */
int engine_plan_memory(strata_engine *e, strata_error *err);
/* memory_order.c: orders of the steps to try; *order lists step indices. */
enum { ORDER_NETWORK, ORDER_DEPTH, ORDER_HEAVY, ORDER_LIVE, ORDER_COUNT };
int engine_order_steps(const strata_engine *e, int which, int *order, strata_error *err);

/* Complete node description for a layer's callbacks, with in, out and weight tensors in
 * the arrays given (n_in, n_out and n_weights long). */
struct engine_view {
    strata_node node;
    strata_tensor *in, *out;
    const strata_tensor *weight;
    size_t fused; /* layers of the node's tail */
    strata_epilogue epilogue;
    strata_tensor residual;      /* read if the epilogue adds one */
    struct allocator *allocator; /* for strata.pack/1; NULL outside setup */
    uint64_t *packed;            /* bytes given out */
    strata_engine *borrower;     /* may have them from its lender; or NULL */
};
void engine_fill_view(struct engine_view *v, const strata_engine *e,
                      const struct engine_node *n, int row, strata_error *err);
/* The chosen formats of a node's tensors, without data. engine.c */
void engine_node_tensors(const strata_engine *e, const struct engine_node *n,
                         strata_tensor *in, strata_tensor *out);
/* The same of the tensor that its epilogue adds, if it does. */
void engine_residual(const strata_engine *e, const struct engine_node *n,
                     strata_tensor *out);
/* Tensor descriptor of a network tensor in a format of the table. */
int engine_desc(strata_desc *out, const strata_network *net, int tensor, int format,
                strata_error *err);

#endif /* ENGINE_ENGINE_H */
