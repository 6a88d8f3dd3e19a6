/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of trials in the network.
 *
 *   trials    an engine -> the best one that was found in the time given
 *   search    what is tried next, and what comes of it
 *   attempts  plans that wait for a trial
 *   contest   two engines, timed in turns
 */
#ifndef ENGINE_TRIALS_TRIALS_H
#define ENGINE_TRIALS_TRIALS_H

#include "engine/trials/attempts.h"
#include "engine/trials/contest.h"
#include "planner/cost/progress.h"

struct trials {
    struct planner *planner; /* of all plans; its own is the first one */
    struct cost_device costs;
    struct near *near;
    struct contender best;
    struct plan *plan;       /* the best's */
    struct near_left left;   /* what that is without */
    struct engine_pool pool; /* of what was tried */
    /* Plans to try; those that lost by little, or won too little by themselves. */
    struct attempts waiting, lost;
    struct attempt_pair *pairs; /* of the latter; what is left of them */
    size_t n_pairs;
    bool paired, joined; /* pairs were made; all that won too little were tried as one */
    struct plan **tried;
    size_t n_tried, tried_capacity;
    const char **keys; /* ways of best plans of which attempts were made */
    size_t n_keys, keys_capacity;
    struct progress progress;
    double started, deadline; /* of progress_now() */
    double before_ms, ms;     /* of a run: of the first plan, and of the best */
    size_t made, won;
};

/* search.c: until the deadline, or until nothing near is left. */
int trials_run(struct trials *t, strata_error *err);

#endif /* ENGINE_TRIALS_TRIALS_H */
