/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans to try, by what they cost more: each is the best one without some of its ways.
 */
#ifndef ENGINE_TRIALS_ATTEMPTS_H
#define ENGINE_TRIALS_ATTEMPTS_H

#include "planner/cost/near.h"
#include "planner/planner.h"

/* What is left beside what the best plan is without already. */
struct attempt {
    struct near_left left;
    struct planner_left *ways; /* the same to be told; texts are the near's */
    size_t n_ways, capacity;
    struct plan *plan;
    int64_t surplus; /* that its first way takes in place above its price, 1/16 ns */
    size_t wins;     /* that there were when the plan was made */
    double gain;     /* once timed */
    bool joined;     /* of several */
};

/* Two of a list, which may gain more together. */
struct attempt_pair {
    size_t a, b;
    double gain; /* of both */
};

struct attempts {
    struct attempt *list;
    size_t n, capacity;
};

/* Leave what another leaves, too. */
int attempt_join(struct attempt *a, const struct attempt *other, strata_error *err);
/* with_ms: of a run with it, 0: not timed yet. */
int attempt_add_way(struct attempt *a, const struct near_use *use, double with_ms,
                    strata_error *err);
void attempt_free(struct attempt *a);
/* Takes it, in any case. */
int attempts_put(struct attempts *all, struct attempt *a, strata_error *err);
/* What the plan costs but for what the prices do not tell of the way it leaves. */
static inline int64_t attempt_cost(const struct attempt *a)
{
    return a->plan->cost - (a->surplus > 0 ? a->surplus : 0);
}
/* The one that costs least, the caller's; false: there is none. */
bool attempts_take(struct attempts *all, struct attempt *out);
/* All pairs of different things of which both together gain so much at least, the best
 * last; the caller's to free. */
int attempts_pair(struct attempt_pair **out, size_t *n, const struct attempts *all,
                  double least, strata_error *err);
void attempts_free(struct attempts *all);

#endif /* ENGINE_TRIALS_ATTEMPTS_H */
