/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner's model and solver, free of layers and devices: operations with choices,
 * tensors between them, and conversions between labels (a format and its pad state).
 *
 * The cost of a plan is the sum of its choices' costs and, for each tensor, of a
 * minimum-cost conversion tree from the produced label to the set of labels its readers
 * want. A tensor read by several is thus converted once and shared. Costs are integers
 * in 1/16 ns, so that a plan is the same bit for bit wherever it is computed.
 */
#ifndef CORE_PLAN_H
#define CORE_PLAN_H

#include <stdbool.h>

#include "core/status.h"

#define PLAN_UNIT_PER_NS 16
#define PLAN_INFINITE (INT64_MAX / 4) /* impossible; sums of a few do not overflow */
#define PLAN_MAX_LABELS 64
#define PLAN_MAX_PORTS 8 /* distinct ports of a choice; the last repeats for more */

/* Stages of a tensor's content. 1, 2, ... up to PLAN_HOME: its producer has computed so
 * many of the operations after it already, and only they can read that. */
enum {
    PLAN_PLAIN = 0,
    PLAN_HOME = 1000, /* plain, inside the memory of the concatenation that reads it */
    PLAN_NONE         /* not needed; any other label becomes this at no cost */
};

struct plan_label {
    int format;    /* index of formats/format.h's table */
    int pad;       /* STRATA_PAD_* */
    int stage;     /* PLAN_PLAIN ... */
    int precision; /* significant bits of the dtype, for the precision guard */
};

struct plan_choice {
    int impl, row; /* the caller's; ties are broken by order in the list */
    uint8_t in[PLAN_MAX_PORTS], out[PLAN_MAX_PORTS]; /* labels */
    int64_t cost;
};

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
    struct plan_reader *readers;
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

/* One conversion; a tensor's steps are in an order in which sources exist. */
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
    bool exact; /* proved optimal */
};

/* Choose. EPLAN names the operations whose formats cannot be made to meet. */
int plan_solve(struct plan **out, const struct plan_problem *p, strata_error *err);
void plan_free(struct plan *plan);

/* Cost of an assignment, PLAN_INFINITE if a conversion is missing. */
int64_t plan_cost(const struct plan_problem *p, const size_t *choices);
/* An operation's choice in an assignment, and the labels a tensor's readers then want. */
const struct plan_choice *plan_chosen(const struct plan_problem *p, const size_t *choices,
                                      int op);
uint64_t plan_wanted(const struct plan_problem *p, const size_t *choices,
                     const struct plan_tensor *t);
/* Label that an operation's choice reads or writes at a port. */
int plan_in_label(const struct plan_choice *c, int port);
int plan_out_label(const struct plan_choice *c, int port);
/* Why a step of a plan stands. */
enum plan_reason plan_step_reason(const struct plan_problem *p, const struct plan *plan,
                                  const struct plan_step *step);

/* Minimum-cost conversion tree from `root` to every label of the bit set `wanted`, by
 * dynamic programming over its subsets (Dreyfus and Wagner, 1971, for directed graphs).
 * Content never passes through a label of less precision than both its ends. steps may
 * be NULL, else it holds n_labels entries. */
int64_t plan_tree(const struct plan_problem *p, int tensor, int root, uint64_t wanted,
                  struct plan_step *steps, size_t *n_steps);

#endif /* CORE_PLAN_H */
