/* SPDX-License-Identifier: Apache-2.0
 *
 * Two engines of one planner, whose whole runs are timed in turns.
 */
#ifndef ENGINE_TRIALS_CONTEST_H
#define ENGINE_TRIALS_CONTEST_H

#include "engine/context/context.h"

/* An engine that can be timed, on random inputs. */
struct contender {
    strata_engine *engine;
    strata_context *context;
    double lead; /* of time: by which the context is ahead of others of the engine */
};

/* What came of it. */
struct contest {
    double ms[2]; /* of a run: of the one that holds, and of the other */
    double gain;  /* of time, by the other, beside any context of the first */
    bool won;     /* by the other */
};

/* Takes the engine, whatever happens. */
int contender_open(struct contender *c, strata_engine *engine, strata_error *err);
void contender_close(struct contender *c);
/* Find out its lead; 0 where there can be no other context. Fails if the device does. */
int contender_find_lead(struct contender *c, strata_error *err);
/* Whether the other is the faster one, beyond noise. The other's context may become a new
 * one. */
int contest_hold(struct contest *out, const struct contender *holds,
                 struct contender *other, strata_error *err);

#endif /* ENGINE_TRIALS_CONTEST_H */
