/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a planner's problem, each with the key it belongs to, while plans are
 * made of them: known costs, and bounds in the place of those that are not.
 */
#ifndef PLANNER_COST_SLOTS_H
#define PLANNER_COST_SLOTS_H

#include "planner/cost/cost.h"

/* One number of the plan problem and the key it belongs to. */
struct slot {
    struct cost_query query;
    int64_t *where;
    int64_t bound, guess;  /* 1/16 ns: lower bound, analytic cost */
    size_t op, choice;     /* of a run */
    const int64_t *matrix; /* of a conversion, NULL: a run */
    int from, to;          /* labels */
    bool known;
};

struct costing {
    struct planner *planner;
    struct cost_table *table;
    struct cost_source *source;
    const struct cost_options *options;
    struct slot *slots;
    size_t n, capacity;
    bool guess;                  /* take the analytic cost of what is not known */
    struct cost_table confirmed; /* keys measured twice */
    double
        retry_until; /* of progress_now(): what was measured under load; 0: not begun */
};

/* A slot for each number: runs first, in the order of operations and their choices. The
 * caller's to close in every case. */
int costing_open(struct costing *c, strata_error *err);
void costing_close(struct costing *c);
/* The planner's best plan by its plan_options, all costs of it known: the source measures
 * those that are not. It takes the place of the planner's plan. */
int costing_solve(struct costing *c, strata_error *err);
/* What the table knows of the slots to the planner's known costs, for the record. */
int costing_keep(struct costing *c, strata_error *err);

#endif /* PLANNER_COST_SLOTS_H */
