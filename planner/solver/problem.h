/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner solves, free of layers and devices: operations with choices, tensors
 * between them, and conversions between labels (a format and its pad state). A plan of
 * it, and the certificate that none is better. The solver (plan.h) and the checker of
 * certificates share these structs and nothing else.
 *
 * The cost of a plan is the sum of its choices' costs and, for each tensor, of a
 * minimum-cost conversion tree from the produced label to the set of labels its readers
 * want. A tensor read by several is thus converted once and shared. Costs are integers
 * in 1/16 ns, so that a plan is the same bit for bit wherever it is computed.
 */
#ifndef PLANNER_SOLVER_PROBLEM_H
#define PLANNER_SOLVER_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_UNIT_PER_NS 16
#define PLAN_INFINITE (INT64_MAX / 4) /* impossible; sums of a few do not overflow */
#define PLAN_MAX_LABELS 64
#define PLAN_MAX_PORTS 8 /* distinct ports of a choice; the last repeats for more */

/* Stages of a tensor's content. 1, 2, ... up to PLAN_FARTHER: its producer has computed
 * so many of the operations after it already, and only they can read that. */
enum {
    PLAN_PLAIN = 0,
    PLAN_FARTHER = 998, /* only inside of the pass of a group that is told from others */
    PLAN_INSIDE = 999,  /* only inside of a group's pass */
    PLAN_HOME = 1000,   /* inside the memory of the concatenation that reads it */
    PLAN_NONE,          /* not needed; any other label becomes this at no cost */
    PLAN_CUT,           /* inside the memory of the tensor that it is a slice of */
    PLAN_ANYWHERE, /* plain or inside: what a reader that takes both wants; nothing else
                      comes of it */
    PLAN_HOMING = 2000, /* and 1, 2, ... more: as those below, to end as PLAN_HOME */
    PLAN_STAGES = 3000
};

struct plan_label {
    int format;    /* index of formats/format.h's table */
    int pad;       /* STRATA_PAD_* */
    int precision; /* significant bits of the dtype, for the precision guard */
    int range;     /* and bits of its exponent */
    int stage;     /* PLAN_PLAIN ... */
};

struct plan_choice {
    int impl, row; /* the caller's; ties are broken by order in the list */
    uint8_t in[PLAN_MAX_PORTS], out[PLAN_MAX_PORTS]; /* labels */
    int64_t cost;
};

/* Label that an operation's choice reads or writes at a port. */
static inline int plan_in_label(const struct plan_choice *c, int port)
{
    return c->in[port < PLAN_MAX_PORTS ? port : PLAN_MAX_PORTS - 1];
}

static inline int plan_out_label(const struct plan_choice *c, int port)
{
    return c->out[port < PLAN_MAX_PORTS ? port : PLAN_MAX_PORTS - 1];
}

struct plan_op {
    const char *name; /* the user's, for messages */
    int n_in, n_out;
    const int *in, *out; /* tensor indices */
    struct plan_choice *choices;
    size_t n_choices;
};

struct plan_reader {
    int op, port;
};

struct plan_tensor {
    const char *name;
    int producer, port; /* every tensor has one: network inputs are operations too */
    struct plan_reader *readers; /* those of an operation stand together */
    size_t n_readers;
    /* n_labels x n_labels, [from][to]; 0 on the diagonal and for re-labels, PLAN_INFINITE
     * where no conversion exists. Shared between tensors of one shape. */
    const int64_t *conversion;
};

/* Operations are in an order in which producers come before readers. */
struct plan_problem {
    struct plan_label labels[PLAN_MAX_LABELS];
    int n_labels;
    struct plan_op *ops;
    size_t n_ops;
    struct plan_tensor *tensors;
    size_t n_tensors;
};

/* One conversion; a tensor's steps stand together, in an order in which sources exist. */
struct plan_step {
    int tensor;
    int from, to;
    int64_t cost;
};

enum plan_reason {
    PLAN_HARD,     /* the producer writes nothing that the reader reads */
    PLAN_FIXED_IO, /* one end is a network input or output */
    PLAN_PADDING,  /* only the pad lanes are cleared */
    PLAN_ECONOMIC  /* avoidable, but the plan without it costs more */
};

struct plan {
    size_t *choices; /* of each operation */
    struct plan_step *steps;
    size_t n_steps;
    int64_t cost, conversion_cost;
    size_t n_reformats; /* steps of non-zero cost */
    /* What was minimised, and what no plan can be under: the cost, or a count of
     * reformats times a factor above any cost, plus the cost. */
    int64_t objective, bound;
    bool proved;    /* objective == bound */
    uint64_t nodes; /* of branch and bound */
};

enum plan_objective {
    PLAN_LEAST_TIME,
    PLAN_FEWEST_REFORMATS /* then least time */
};

/* What the user or a question forbids. -1 stands for any tensor or label. */
enum plan_ban_kind {
    PLAN_BAN_CONVERSION, /* at a tensor; re-labels (cost 0) stay unless both ends are
                            named */
    PLAN_BAN_LABEL,      /* `to` at a tensor, whoever makes or reads it */
    PLAN_BAN_CHOICE      /* choice `to` of operation `op` */
};

struct plan_ban {
    enum plan_ban_kind kind;
    int tensor, op;
    int from, to;
};

struct plan_options {
    enum plan_objective objective;
    const struct plan_ban *bans;
    size_t n_bans;
    uint64_t max_nodes; /* 0: no limit; the same limit gives the same plan */
    double max_seconds; /* 0: no limit; depends on the machine's speed of the day */
};

/* A plan and why none is better: a record of exact steps over the pairwise problem,
 * which branches where it must and ends each branch in a bound
 * (planner/certificate/check.c). */
struct plan_certificate {
    int64_t objective; /* of the plan */
    size_t *choices;
    size_t n_choices;
    struct plan_step *steps;
    size_t n_steps;
    int64_t *proof;
    size_t n_proof;
};

/* Words of a proof; nodes are operations, and n_ops + t for the sets of tensor t. */
enum plan_proof {
    PLAN_PROOF_ELIMINATE, /* node: of one label, or at most two neighbours */
    PLAN_PROOF_NORMALISE, /* u v: least entries of rows, then of columns, to the nodes */
    PLAN_PROOF_DOMINATE,  /* node, label, by label */
    PLAN_PROOF_PRUNE,     /* node, label: the bound with it is no better than the plan */
    PLAN_PROOF_SHIFT,     /* u v n m, n + m numbers moved from the edge to the nodes */
    PLAN_PROOF_BRANCH, /* node, label: this label first, the others once that is done */
    PLAN_PROOF_LEAF,   /* the bound of this branch */
    PLAN_PROOF_KINDS
};

#endif /* PLANNER_SOLVER_PROBLEM_H */
