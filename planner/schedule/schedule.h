/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the scheduler share.
 */
#ifndef PLANNER_SCHEDULE_SCHEDULE_H
#define PLANNER_SCHEDULE_SCHEDULE_H

#include "planner/record.h"

/* What is scheduled, and what comes of it. */
struct schedule {
    const struct planner *planner;
    const struct plan_problem *problem;
    const struct plan *plan;
    struct execution *x;
    int *first_step; /* of the plan, for each tensor of the problem; or -1 */
    int *latest;     /* value of each network tensor; or -1 */
    int *before;     /* of each value, the one before it of its tensor; or -1 */
    size_t before_capacity;
};

/* values.c */
/* While aliases are still being made. */
int schedule_owner(const struct execution *x, int value);
int schedule_add_value(struct schedule *s, int *out, int tensor, struct plan_label label,
                       strata_error *err);
int schedule_add_step(struct execution *x, struct execution_step step, strata_error *err);
int schedule_relabel(struct execution *x, int from, int to, strata_error *err);
/* The plan's conversion that makes a label of a tensor, or NULL. */
const struct plan_step *schedule_conversion(const struct schedule *s, int index,
                                            int label);
/* Have a tensor in a label, converting from what exists as the plan's tree says. */
int schedule_value(struct schedule *s, int *out, int index, int label, strata_error *err);
int schedule_input(struct schedule *s, int *out, const struct plan_op *op,
                   const struct plan_choice *choice, int port, strata_error *err);

/* place.c */
int schedule_alias(struct schedule *s, const struct planner_node *n,
                   const struct plan_op *op, const struct plan_choice *choice,
                   strata_error *err);
int schedule_join(struct schedule *s, const struct planner_node *n,
                  const struct plan_op *op, const struct plan_choice *choice,
                  strata_error *err);

#endif /* PLANNER_SCHEDULE_SCHEDULE_H */
