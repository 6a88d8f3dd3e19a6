/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether there are processors enough, as the system tells it.
 */
#ifndef PLANNER_COST_BUSY_H
#define PLANNER_COST_BUSY_H

#include <stdbool.h>

/* Of all threads of the process together, in seconds; those that ended do not count. */
struct busy_times {
    double ran, waited; /* on a processor, ready but without one */
};
/* Zeros where the system does not tell. */
struct busy_times busy_times(void);
/* The part of the time between the two in which threads waited, 0 to 1. */
double busy_share(struct busy_times from, struct busy_times to);
/* Whether threads waited for processors from then on for so much of the time, now that
 * `seconds` have gone by, that these were not quiet: an idle machine with as many
 * processors as threads has 0.10 to 0.15 of them, as the one that measures waits beside
 * those that compute; one more program on 2 processors makes it 0.7. */
bool busy_since(struct busy_times from, double seconds);
/* Whether they do now: so many spin for some hundredths of a second. */
bool busy_now(int threads);
/* Processors that the process may use. */
int busy_processors(void);
/* Threads of the whole machine that run or are ready to, on average of the last minute;
 * negative: not told. */
double busy_load(void);

#endif /* PLANNER_COST_BUSY_H */
