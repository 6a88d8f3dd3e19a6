/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans near a planner's best: of the same problem, without some ways to run its layers.
 * A way is what operations of one cost key choose. A plan without ways is the cheapest
 * that is left, proved like any other, for they are banned as a user would ban them;
 * prices stay what they are. Who times plans in whole runs asks for such.
 */
#ifndef PLANNER_COST_NEAR_H
#define PLANNER_COST_NEAR_H

#include "planner/cost/cost.h"

struct near;

/* What a plan runs with one key. Texts are the planner's and the near's. */
struct near_use {
    const char *key, *layer, *impl; /* layer: of the first that has it */
    size_t uses;                    /* layers */
    int64_t cost;                   /* of all of them, 1/16 ns */
};

/* Ways that are left: bans of choices. Zeroed: none. */
struct near_left {
    struct plan_ban *bans;
    size_t n, capacity;
};

/* The planner has a plan by costs that are known; the source measures those of others. On
 * close the planner knows them, too, and they are kept where its options say so. */
int near_open(struct near **out, struct planner *planner, struct cost_source *source,
              strata_error *err);
int near_close(struct near *near, strata_error *err);
/* What a plan runs, what takes most of its time first; free(*out). */
int near_uses(struct near_use **out, size_t *n, const struct near *near,
              const struct plan *plan, strata_error *err);
/* What a plan runs at the first operation of which some way is left, and at how many of
 * those; uses 0: it runs nothing there. */
void near_instead(struct near_use *out, const struct near *near, const struct plan *plan,
                  const struct near_left *left);
/* What the steps of a plan's execution that run the key take in place above their share
 * by the prices, 1/16 ns; 0 where that was not timed. */
int64_t near_surplus(const struct near *near, const struct execution *x, const char *key);
/* Leave the key where `plan` runs it. */
int near_leave(struct near_left *left, const struct near *near, const struct plan *plan,
               const char *key, strata_error *err);
/* Leave, too, what `plan` runs at the operations of which some way is left. */
int near_leave_more(struct near_left *left, const struct near *near,
                    const struct plan *plan, strata_error *err);
/* All that another has. */
int near_add(struct near_left *left, const struct near_left *other, strata_error *err);
void near_free_left(struct near_left *left);
/* The cheapest plan without those ways; EPLAN: none is left. */
int near_plan(struct plan **out, struct near *near, const struct near_left *left,
              strata_error *err);
/* The planner's plan is another one from now on, whose ways are left for good: its
 * plan_options have them. Takes the plan, in any case. */
int near_settle(struct near *near, struct plan *plan, const struct near_left *left,
                strata_error *err);

#endif /* PLANNER_COST_NEAR_H */
