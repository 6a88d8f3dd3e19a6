/* SPDX-License-Identifier: Apache-2.0
 *
 * A planner: the workbench on which a network becomes a plan for a device. It needs the
 * network, a description of the device and the costs of what runs there, but no device:
 * one is asked only by a cost source that measures. planner_make does all of it, in this
 * order; afterwards the planner is only read, and answers why the plan is this one.
 *
 *   fuse       layers       -> nodes, and which may compute the layers after them
 *   candidate  nodes        -> ways to run each: impls, formats, layers fused; or none
 *   model      candidates   -> plan problem: choices, labels, conversions, costs
 *   cost       problem      -> a plan: a choice per node, conversions per tensor
 *   objective  plans        -> the one that is kept
 *   record     plan         -> JSON, and a plan of that without searching (restore)
 *   like       plan         -> the plan of another size, by the same decisions
 *   explain    plan         -> reasons, alternatives, a report
 *   execution  plan         -> what is run: steps, values, offsets (execution.h)
 *
 * The parts share struct planner and call each other by the functions below. What is
 * planned with stays here (candidates, fusions that might have been, prices); what is
 * run with is in the execution, which others get from execution_make and own. The
 * planner has a reference to its network and is freed by planner_free.
 */
#ifndef PLANNER_PLANNER_H
#define PLANNER_PLANNER_H

#include "planner/cost/cost.h"
#include "planner/execution.h"
#include "planner/solver/plan.h"

struct planner_merges;
struct planner_mixes;
struct record;
struct record_decision;

/* The device that is planned for, which may be another machine's. */
struct planner_device {
    struct device_properties properties;
    int math;    /* STRATA_MATH_*: what this or the network allows */
    int threads; /* of a host's kernels; 0: as the network says */
    bool quiet; /* plans are but compared: what became of layers is neither noted nor told
                 */
    bool mixed_again; /* a mixture of 8 bits and floats is found once more, in place: it
                       * may be a rough one (mixed/) */
};

/* Layers that another may compute in its own pass. A chain takes them in this order, and
 * each but FUSE_SCALE at most once. */
enum fuse_kind {
    FUSE_NOTHING,
    FUSE_SHUFFLE,   /* by a Shuffle: the two composed */
    FUSE_SCALE,     /* folded into the weights */
    FUSE_SUM,       /* STRATA_EPILOGUE_RESIDUAL */
    FUSE_ACTIVATION /* STRATA_EPILOGUE_ACTIVATION */
};

/* One layer, and those after it that it might compute. */
struct planner_node {
    const struct network_layer *layer;
    const int *in, *out; /* network tensors */
    int *rewritten;      /* in, where it is not the layer's own list; or NULL */
    int n_in, n_out;
    int n_ports; /* inputs as the layer's callbacks see them, absent ones too */
    /* The layers it may compute too, in order: each the only reader of the one before. */
    int *tail;
    size_t n_tail, tail_capacity;
    bool groups;                 /* computes element by element: may be part of a group */
    int previous, next;          /* of its chain: such nodes, or a reduction's; or -1 */
    struct planner_group *group; /* that begins with it; or NULL */
    /* Another, that goes on past the end of that one and reads more after its inputs; or
     * NULL. Both read them in place of the node's own. */
    struct planner_group *longer;
    bool unread;    /* it may be that nobody reads its output: groups read its input */
    int before;     /* node whose output continues into this one, or -1 */
    int chain_port; /* at this input */
    int residual;   /* network tensor that a sum in the tail adds, or -1 */
    strata_shuffle *composed; /* parameters with the tail's Shuffle, or NULL */
};

/* A node and those after it in its chain as one layer; or a node alone, as another. */
struct planner_group {
    struct planner_node node; /* that layer, `made` */
    struct made_layer made;
    int members;
    bool instead;    /* reads its inputs in place of the first node's */
    bool farther;    /* tensors of its pass are told from those of groups inside of it */
    const char *how; /* why it can be so */
};

/* What became of a layer (one entry each) that might be part of another's pass, or that
 * moves nothing. */
struct planner_fusion {
    enum fuse_kind kind;
    int into; /* layer that computes it, or could; -1: none */
    bool possible, done;
    char *reason; /* NULL: nothing to say */
};

enum candidate_kind {
    CANDIDATE_RUN,      /* an impl's row */
    CANDIDATE_GROUP,    /* the same, of the layer that is the node's group */
    CANDIDATE_LONGER,   /* or of the longer one */
    CANDIDATE_ABSORBED, /* a node before computes it */
    CANDIDATE_ALIAS,    /* the output is the input's memory as it is */
    CANDIDATE_JOIN,     /* the inputs are made inside the output's memory */
    CANDIDATE_UNREAD    /* nobody reads the output */
};

/* One way to have a node that was looked at: usable, or refused with a reason. */
struct planner_candidate {
    enum candidate_kind kind;
    int node;
    const struct registry_impl *impl; /* of those that run one; else NULL */
    int row;
    size_t fused;  /* layers of the tail; absorbed: those still to come after this one */
    bool grouped;  /* absorbed by a group */
    bool farther;  /* one whose pass is told from others */
    bool anywhere; /* reads inputs that lie inside others, too */
    bool adds_anywhere; /* a residual that lies inside another, too */
    bool homed;         /* written inside the concatenation that reads it, at its pitch */
    int pad;            /* STRATA_PAD_* of an absorbed tensor */
    int in_formats[PLAN_MAX_PORTS], out_formats[PLAN_MAX_PORTS]; /* table indices */
    int64_t cost;     /* 1/16 ns; usable ones only */
    size_t workspace; /* bytes */
    bool bounded;     /* the cost is a lower bound: it was never measured */
    char *reason;     /* why not; NULL: usable */
};

struct planner_model {
    struct plan_problem problem;
    struct planner_candidate *candidates; /* choice.impl indexes these */
    size_t n_candidates, candidates_capacity;
    size_t *first; /* of each node's candidates, which stand together; n_nodes + 1 */
    /* problem.ops: inputs, then nodes, then outputs. problem.tensors: network tensors
     * that are not inside a fused node; tensor_of maps back, index_of forward (or -1). */
    int *tensor_of, *index_of;
    int64_t **matrices;
    size_t n_matrices;
    bool any_dirty; /* some impl leaves pad lanes undefined */
    /* Per network tensor: the concatenation that may own its memory, or -1 (-2: it reads
     * it twice). Formats of the table in which it lies apart there, so that only an impl
     * that declares it reads or writes it; the same inside what it is a slice of. */
    int *home;
    uint64_t *pitched, *cut;
    uint64_t *anywhere; /* formats in which readers that take both say so */
    int *ports;         /* storage of the operations' tensor lists */
    struct plan_reader *readers;
};

/* A way to run layers that a plan is without because a run of the network is faster so,
 * whatever it costs by its price. */
struct planner_left {
    char *layer, *impl;          /* layer: the first of those that ran so */
    size_t uses;                 /* layers */
    int64_t with_ns, without_ns; /* of a run, timed in turns */
};

/* A plan that was not chosen for time alone, against the one of least time. */
struct planner_trade {
    int64_t cost;  /* of that one, 1/16 ns */
    bool at_least; /* some costs in it are bounds */
    size_t reformats;
    int64_t arena_bytes;
    size_t weighed; /* plans, for OBJECTIVE_MEMORY */
    bool cut;       /* there may be more as fast */
};

struct planner {
    strata_network *network; /* a reference */
    struct planner_device device;
    int threads;                /* of host kernels; 0 on other devices */
    int math;                   /* STRATA_MATH_*, decided */
    bool cold;                  /* cost_is_cold, asked once */
    struct planner_node *nodes; /* one a layer */
    struct planner_fusion *fusions;
    struct planner_fusion *unnoted; /* those, before what the plan did was noted */
    size_t n_nodes, n_fusions;
    int *readers;    /* nodes' inputs that are each network tensor */
    bool *is_output; /* of the network, each network tensor */
    struct planner_model *model;
    struct record *record; /* the plan's, if it was not searched; or NULL */
    struct record *guide;  /* decisions of another size's plan, to be kept; or NULL */
    double *scale;         /* with it: of each node, measured to analytic cost there */
    struct plan_options plan_options; /* with which the plan was made */
    struct plan_ban *bans;            /* of those, where ways were left; or NULL */
    struct planner_left *left;
    size_t n_left, left_capacity;
    struct plan *plan;
    struct cost_report costs;      /* how the plan's were found */
    struct cost_table known;       /* measured or recorded costs that were at hand */
    struct planner_trade trade;    /* of an objective other than time */
    struct planner_merges *merges; /* merge/: what was decided of siblings; or NULL */
    struct planner_mixes *mixes;   /* mixed/: and of what was quantised; or NULL */
};

/* planner.c: the best plan by the network's options. costs: who measures what is not
 * known; NULL: nobody, so that the options must do without. EPLAN says what stands in
 * the way. */
int planner_make(struct planner **out, const strata_network *network,
                 const struct planner_device *device, struct cost_source *costs,
                 strata_error *err);
/* One with a plan that another planner of the network and device has, or might have. */
int planner_make_as(struct planner **out, const strata_network *network,
                    const struct planner_device *device, const struct plan *plan,
                    strata_error *err);
/* The plan of a record, which goes to the planner, or is freed. Nothing is measured or
 * searched; device->math is what it was planned with. */
int planner_make_recorded(struct planner **out, const strata_network *network,
                          const struct planner_device *device, struct record *record,
                          strata_error *err);
/* like.c: for another size of the network that `like` planned, with its impls and formats
 * as far as they can be there, and its costs as the analytic model scales them. Nothing
 * is measured; the log tells which layers differ. */
int planner_make_like(struct planner **out, const strata_network *network,
                      const struct planner_device *device, const struct planner *like,
                      strata_error *err);
/* Takes NULL, and a planner that is half made, too. */
void planner_free(struct planner *planner);
/* Without nodes or model yet: how the four above begin, for who goes on step by step. */
int planner_open(struct planner **out, const strata_network *network,
                 const struct planner_device *device, strata_error *err);

/* left.c: a way that was left, with copies of the texts. */
int planner_add_left(struct planner *planner, const struct planner_left *left,
                     strata_error *err);
void planner_free_left(struct planner *planner);
/* One sentence, the caller's to free. NULL: no memory. */
char *planner_left_text(const struct planner_left *left);

/* The layer's input that the i-th tensor a node reads is. */
static inline int planner_port(const struct planner_node *n, int i)
{
    return n->rewritten ? i : network_port(n->layer, i);
}

/* Of a kind of candidates; NULL: they run none. */
static inline const struct planner_group *planner_group_of(const struct planner_node *n,
                                                           enum candidate_kind kind)
{
    return kind == CANDIDATE_GROUP    ? n->group
           : kind == CANDIDATE_LONGER ? n->longer
                                      : NULL;
}

/* The node that a candidate runs: its own, or the group that begins there. */
static inline const struct planner_node *
planner_run_node(const struct planner *planner, const struct planner_candidate *c)
{
    const struct planner_node *n = &planner->nodes[c->node];
    const struct planner_group *group = planner_group_of(n, c->kind);
    return group ? &group->node : n;
}

/* Of the operation of a node: the port of its group's i-th input. */
static inline int planner_group_port(const struct planner_node *n, int i)
{
    const int sums = n->residual >= 0;
    return n->group->instead ? n->n_in + sums + i : i + (i >= n->n_in && sums);
}

/* That of its groups which reads most: the other's inputs are the first of its own. */
static inline const struct planner_group *planner_widest(const struct planner_node *n)
{
    return n->longer ? n->longer : n->group;
}

/* Inputs of its group that the operation has behind its own. */
static inline int planner_group_more(const struct planner_node *n)
{
    const int more = planner_widest(n)->node.n_in - (n->group->instead ? 0 : n->n_in);
    return more > 0 ? more : 0;
}

/* Whether a candidate runs an impl. */
static inline bool planner_runs(const struct planner_candidate *c)
{
    return c->kind <= CANDIDATE_LONGER;
}

/* facts.c */
/* Tensor descriptor of a network tensor in a format of the table. */
int planner_desc(strata_desc *out, const strata_network *net, int tensor, int format,
                 strata_error *err);
/* Whether [build] formats binds a layer: each float tensor that it reads or writes can
 * have one of them. */
bool planner_wish_holds(const strata_network *net, const struct network_layer *layer);
/* Pad state that an impl gives or takes at a port. */
int planner_port_pad(const struct planner_model *m, const strata_network *net, int tensor,
                     int format, const strata_impl *impl, bool output);
/* Whether an impl of a node, or of the group that begins there, leaves pads undefined. */
bool planner_leaves_dirty(const struct planner *planner, const struct planner_node *n);
/* The node before `node` that may compute it and `after`, the next of its chain, or -1;
 * after = -1: it alone. */
int planner_head_before(const struct planner *planner, int node, int after);
/* Output tensor of a node that computes the first `fused` layers of its tail. */
int planner_output(const struct planner *planner, const struct planner_node *n,
                   size_t fused, int port);
strata_epilogue planner_epilogue(const struct planner *planner,
                                 const struct planner_node *n, size_t fused);
/* Scales among the first `fused` layers of a node's tail: they come first. */
size_t planner_scales(const struct planner *planner, const struct planner_node *n,
                      size_t fused);
/* What a plan chooses for a node. */
const struct planner_candidate *planner_chosen(const struct planner *planner,
                                               const struct plan *plan, size_t node);
/* Whether a candidate adds its node's residual. */
bool planner_adds(const struct planner *planner, const struct planner_candidate *c);
/* Layers after its node's that a candidate computes too. */
size_t planner_fused(const struct planner *planner, const struct planner_candidate *c);
/* fuse/fuse.c */
int planner_make_nodes(struct planner *planner, strata_error *err);
void planner_free_nodes(struct planner *planner);
/* Note what the plan did with each layer that might be fused; again, if the plan is
 * another one. */
int planner_note_fusions(struct planner *planner, strata_error *err);
/* fuse/notes.c: the fusions as they were before any were noted. */
int planner_unnote_fusions(struct planner *planner, strata_error *err);
void planner_free_fusions(struct planner *planner);
/* fuse/group.c: chains of nodes and the groups that begin in them. */
int planner_make_groups(struct planner *planner, strata_error *err);
/* Let the first `members` nodes from `node` on run as a layer, which is copied. */
int planner_add_group(struct planner *planner, int node, const struct made_layer *made,
                      int members, const char *how, strata_error *err);
/* The same where there is a group already, with fewer members. */
int planner_add_longer(struct planner *planner, int node, const struct made_layer *made,
                       int members, const char *how, strata_error *err);
/* Whether a group is of layers that compute by themselves, as a block of convolutions is,
 * not of what stands around one. */
bool planner_is_block(const struct planner_group *group);
/* Whether a layer runs on the planner's device; type: NULL where no module has it. */
bool planner_has_impl(const struct planner *planner, const struct registry_layer *type);
/* The last node that reads each tensor, 0 where none does; the caller's to free. NULL: no
 * memory, and what is said in err. */
int *planner_find_readers(const struct planner *planner, const char *what,
                          strata_error *err);
/* Let its pointers lead into it again: after a copy. */
void made_layer_settle(struct made_layer *m);
/* fuse/quantize.c: layers between a Dequantize and a Quantize. Before all others, which
 * leave their nodes alone. */
int planner_make_quantized(struct planner *planner, strata_error *err);
/* fuse/project.c: products with what stands around them. Before the Pointwise groups. */
int planner_make_projections(struct planner *planner, strata_error *err);
/* fuse/attend.c: products with the Attention behind them. Behind the projections. */
int planner_make_attentions(struct planner *planner, strata_error *err);
/* fuse/residual.c: 1x1, windows and 1x1 behind each other. Before the Perceptrons. */
int planner_make_residuals(struct planner *planner, strata_error *err);
/* fuse/pooled.c: a Convolution and the maxima behind it. Behind the residual blocks. */
int planner_make_pooled(struct planner *planner, strata_error *err);
/* fuse/shortcut.c: two Convolutions and their sum. Behind the residual blocks, with whose
 * last layer they may begin. */
int planner_make_shortcuts(struct planner *planner, strata_error *err);
/* fuse/perceptron.c: chains of small products. Behind those above, whose nodes it leaves
 * alone, and before the Pointwise groups. */
int planner_make_perceptrons(struct planner *planner, strata_error *err);
/* fuse/reduce.c: chains that are one Reduce or Pooling. Before the others, which leave
 * their nodes alone. */
int planner_make_reductions(struct planner *planner, strata_error *err);
/* fuse/weights.c */
/* NULL, or why a Scale cannot be folded into a node's weights. */
const char *planner_refuse_fold(const struct planner *planner,
                                const struct planner_node *n,
                                const struct network_layer *scale);
/* Descriptions of the weights that an impl sees with `fused` layers of a node's tail. */
int planner_weights(const struct planner *planner, const struct planner_node *n,
                    const strata_impl *impl, size_t fused, strata_tensor *weights,
                    strata_error *err);
/* fuse/shuffle.c */
/* Where a layer's output stands in its input as it is, in a format. */
struct planner_slice planner_find_alias(const struct planner *planner,
                                        const struct network_layer *layer, int port,
                                        int format);
/* Whether a Shuffle's output in one format is its input's memory in another. */
bool planner_turns_nothing(const struct planner *planner,
                           const struct network_layer *layer, int in_format,
                           int out_format);
/* Two Shuffles as one, or NULL where the reshapes do not allow it (or for memory). One
 * piece of memory. */
strata_shuffle *planner_compose(const strata_network *net, const struct network_layer *a,
                                const struct network_layer *b, strata_error *err);
/* fuse/slice.c */
/* How a tensor lies in one that it is a slice of. */
struct planner_slice {
    int64_t begin;   /* byte, or -1: it cannot */
    bool pitched;    /* by the larger one's strides, or aligned as STRATA_PITCHED_IN says:
                        not one piece of its own layout, aligned as tensors are */
    bool rows;       /* so, and a range of its rows' elements: for STRATA_STRIDED_IN */
    const char *why; /* it cannot, or not as one piece; NULL: neither */
};
/* From `begin` along `dim`. */
struct planner_slice planner_find_slice(const struct planner *planner, int whole,
                                        int part, int dim, int64_t begin, int format);
/* Of input `port` in a concatenation's output. */
struct planner_slice planner_find_part(const struct planner *planner,
                                       const struct planner_node *join, int port,
                                       int format);
/* candidate/home.c: which tensors may lie inside others. */
void planner_find_homes(const struct planner *planner, struct planner_model *m);
/* candidate/inside.c: whether a usable candidate reads inputs, or a residual, inside
 * others (which is noted in it), and whether there may be another like it that is written
 * home. */
int planner_look_inside(const struct planner *planner, const struct planner_model *m,
                        struct planner_candidate *c, bool *homed, strata_error *err);
/* candidate/claims.c: once all candidates are there: blocks of convolutions as one layer
 * that claim too little. */
int planner_prune_claims(struct planner *planner, struct planner_model *m,
                         strata_error *err);
/* candidate/prune.c: then: what of lying inside others would save nothing. */
int planner_prune_homes(struct planner *planner, struct planner_model *m,
                        strata_error *err);
/* Whether a node is a concatenation that its inputs may be made in. */
bool planner_joins(const struct planner *planner, int node);
/* Whether a tensor may lie apart inside another in a format. */
bool planner_may_lie_apart(const struct planner_model *m, int tensor, int format);
/* candidate/precision.c: formats that a node's free floats may have by the network's
 * precision; all, after a warning, where the layer has no row at it, unless the planner
 * made it of others. */
uint64_t planner_precision(const struct planner *planner, const struct planner_node *n,
                           bool made);
/* Formats that the network's description lets a node's tensor have where it is read or
 * written, of those of `wish` and of `precision`. A layer's own `format =` binds what it
 * writes, and so does the dtype of an exact tensor; readers may get it converted. Inputs
 * and outputs of the network may also be read and written as they are bound, whatever the
 * precision of what lies between. */
uint64_t planner_allowed(const struct planner *planner, const struct planner_node *n,
                         int tensor, bool output, uint64_t wish, uint64_t precision);
/* candidate/candidate.c: EPLAN with every impl's reason if none is usable. */
int planner_find_candidates(struct planner *planner, struct planner_model *m, int node,
                            strata_error *err);
/* candidate/keep.c: with a reason, if it is refused. */
int planner_keep_candidate(struct planner_model *m, struct planner_candidate *c,
                           const char *reason, strata_error *err);
/* candidate/refuse.c: the error of a node without candidates, with every reason. */
int planner_refuse_node(const struct planner *planner, const struct planner_model *m,
                        int node, strata_error *err);
/* ENOMEM, of an impl that was asked about a node: memory that runs out is no refusal, by
 * which the plan would be slower for no reason that anybody sees. why: its words, if any.
 */
int planner_lacks_memory(const struct planner_node *n, const strata_impl *impl,
                         const strata_error *why, strata_error *err);
/* "fp32:nchw, fp16:nhwc8" */
void planner_list_formats(char *text, size_t size, uint64_t mask, int rank);
/* candidate/free.c: ways that cost nothing. After the candidates of earlier nodes. only:
 * the one that was decided for; NULL: all. */
int planner_find_free(struct planner *planner, struct planner_model *m, int node,
                      const struct record_decision *only, strata_error *err);
/* conversions.c: of the model's tensors, once it has its labels. */
int planner_make_conversions(const struct planner *planner, struct planner_model *m,
                             strata_error *err);
/* model.c */
int planner_make_model(struct planner *planner, strata_error *err);
void planner_free_model(struct planner_model *m);
/* objective.c: by the network's objective, another plan than the solver's first. */
extern const char *const planner_objective_names[];
int planner_trade_time(struct planner *planner, strata_error *err);
/* restore.c: the plan of the planner's record, whose candidates and labels the model has
 * by now; EPARSE if it does not hold together. */
int planner_restore(struct planner *planner, strata_error *err);

#endif /* PLANNER_PLANNER_H */
