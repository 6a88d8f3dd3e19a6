/* SPDX-License-Identifier: Apache-2.0
 *
 * A timer: how long single runs take, on a handle's stream, with the device's cache as a
 * run will find it.
 */
#ifndef PLANNER_COST_TIMER_H
#define PLANNER_COST_TIMER_H

#include "planner/cost/trial.h"

#define TIMER_REPEATS 8 /* at most, of a trial at a time */

struct timer {
    const struct planner *planner;
    strata_handle *handle;
    strata_event *events[3 * TIMER_REPEATS];
    char *scratch; /* three times the device's cache; NULL if it has none */
    size_t scratch_bytes;
    bool cold;        /* the network is larger than the cache */
    void *lead;       /* a graph of the device's lead, twice; NULL without one */
    double deadline;  /* of progress_now(), past which no time is taken again; 0: none */
    int tries, quiet; /* of times on the host */
    /* Of the lead on the stream and of that graph between events; 0 without one. */
    double lead_ms[2];
};

/* Close in every case. */
int timer_open(struct timer *m, const struct planner *planner, strata_handle *handle,
               strata_error *err);
void timer_close(struct timer *m);

/* A run of a trial (NULL: none) between leads as a graph, NULL where there is none of
 * them. The second one tells whether a run lets the layer behind it begin early. */
void *timer_capture(struct timer *m, struct trial *t);
/* ns of one run; a trial of 0 repeats is run once, to warm up. */
int timer_trial(struct timer *m, struct trial *t, double *ns, strata_error *err);
/* ns that a run adds to leads, of a trial with a graph. */
int timer_pairs(struct timer *m, struct trial *t, double *ns, strata_error *err);
/* For qsort, of double. */
int timer_ascending(const void *a, const void *b);

#endif /* PLANNER_COST_TIMER_H */
