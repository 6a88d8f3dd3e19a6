/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a plan is as it is: for each conversion what the two ends can do, what forbidding
 * it would cost, and which format of which operation would remove it. The answers come
 * from solving changed problems, so they are as exact as the solver.
 */
#ifndef PLANNER_EXPLAIN_EXPLAIN_H
#define PLANNER_EXPLAIN_EXPLAIN_H

#include <jansson.h>

#include "core/text.h"
#include "planner/planner.h"

#define EXPLAIN_PLAN_VERSION 1 /* of the report, where it is kept as a plan */

/* An operation that another plan runs otherwise. */
struct explain_change {
    int op;
    size_t before, after; /* choices */
};

/* A format that an operation lacks: with it the plan gains. */
struct explain_remedy {
    int op;         /* the first that would change; -1: nothing helps */
    int n_ops;      /* how many would; more than one are readers of the same tensor */
    bool output;    /* it would write the label, else read it */
    bool all_ports; /* every port in that label, else the one */
    int label;
    int64_t cost; /* it may take: what the fastest choices of those operations do */
    int64_t gain;
    int64_t reformats; /* fewer by so many; negative: more */
};

struct explain_reformat {
    struct plan_step step;
    enum plan_reason reason;
    uint64_t written;  /* labels that the producer has choices for */
    uint64_t read;     /* labels that every reader of this conversion has choices for */
    bool asked;        /* what follows is answered: the dearest 64 are */
    bool avoidable;    /* a plan without any paid conversion of the tensor exists */
    int64_t penalty;   /* what that plan costs more */
    int64_t reformats; /* how many more it has */
    struct explain_change *changes;
    size_t n_changes;
    struct explain_remedy remedy;
};

struct explain {
    struct explain_reformat *reformats; /* one for each step of the plan that costs */
    size_t n_reformats;
    int *first; /* of each problem tensor's reformats, which stand together; or -1 */
    bool exact; /* every question was answered by a proved plan */
};

/* explain.c: answers all questions, a handful of solves for each reformat. */
int explain_plan(struct explain **out, const struct plan_problem *p,
                 const struct plan_options *options, const struct plan *plan,
                 strata_error *err);
void explain_free(struct explain *x);
/* The answers about a step that makes label `to` of a problem tensor, or NULL. */
const struct explain_reformat *explain_find(const struct explain *x, int tensor, int to);

/* conflict.c: why the planner's problem has no plan, as a message; EPLAN. */
int explain_conflict(const struct planner *planner, const struct plan_options *options,
                     strata_error *err);

/* text.c: in the user's names. Text is the caller's to free; NULL: no memory. */
const char *explain_reason_name(enum plan_reason reason);
double explain_microseconds(int64_t cost);
/* The same as text, with one decimal and a point in any locale. */
const char *explain_in_us(char out[TEXT_REAL], int64_t cost);
/* Impl of a candidate, or how it does without: "(fused)", "(alias)", "(joined)" */
const char *explain_candidate(const struct planner_candidate *c);
/* The same of a choice; "(bound)": it has none. */
const char *explain_impl(const struct planner *planner, const struct plan_choice *c);
/* Layers of its tail that a choice computes. */
size_t explain_fused(const struct planner *planner, const struct plan_choice *c);
/* "fp32:nchw", "fp16:nc/2hw2 (pads any)", "fp32:nhwc (joined)" */
void explain_label(char *text, size_t size, const struct planner *planner, int tensor,
                   int label);
/* "fp32:nchw, fp32:nhwc" */
char *explain_labels(const struct planner *planner, int tensor, uint64_t labels);
/* "conv2, output prob": readers of a problem tensor that want a label; -1: all. */
char *explain_readers(const struct planner *planner, int tensor, int label);
/* One sentence each: why it stands, what forbidding it costs, what would remove it. */
char *explain_why(const struct planner *planner, const struct explain_reformat *r);
char *explain_forbidding(const struct planner *planner, const struct explain_reformat *r);
char *explain_remedy_text(const struct planner *planner,
                          const struct explain_reformat *r);

/* json.c: re-labels of a tensor, and layers that run nothing. */
size_t explain_relabels(const struct execution *x);
size_t explain_erased(const struct planner *planner);
/* The whole report, which is also a saved plan. Keys: plan (version),
 * network, device, totals, nodes, tensors, reformats, fusions, merges, left, in_place,
 * costs.
 * x: the plan's; weight_bytes: of device memory where it runs, 0 if it does not. NULL: no
 * memory. */
json_t *explain_json(const struct planner *planner, const struct execution *x,
                     const struct explain *answers, uint64_t weight_bytes);

/* check.c: whether JSON from outside is a report, with all that a comparison reads;
 * `name` begins the message. EPARSE. */
int explain_check(const json_t *report, const char *name, strata_error *err);

/* diff.c: what moved between two reports, and the cost entries that moved it. */
struct explain_move {
    char *what; /* "conv1", "reformat of pool1" */
    char *before, *after;
    char *because; /* cost entries that differ, or what else explains it */
    int64_t size;  /* of an entry's change */
};
struct explain_moves {
    struct explain_move *list;
    size_t n, capacity;
};
struct explain_diff {
    struct explain_moves decisions; /* nodes, bound formats, reformats */
    struct explain_moves entries;   /* costs that differ, the largest change first */
    int64_t before, after;          /* costs of the plans */
};
int explain_compare(struct explain_diff **out, const json_t *a, const json_t *b,
                    strata_error *err);
void explain_diff_free(struct explain_diff *d);

#endif /* PLANNER_EXPLAIN_EXPLAIN_H */
