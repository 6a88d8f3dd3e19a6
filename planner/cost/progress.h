/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress of long work on stderr: a line that changes in place where a terminal watches,
 * a log line every 5 s elsewhere. A program asks for it; the library alone stays silent.
 */
#ifndef PLANNER_COST_PROGRESS_H
#define PLANNER_COST_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    double started, shown; /* s, monotonic */
    bool visible;          /* a line stands on the terminal */
};

/* What is being done: trial `index` of `count` (from 0) is of `layer` and `impl`; without
 * an impl, `layer` says what else it is. */
struct progress_state {
    const char *layer, *impl;
    double best_us; /* of the layer so far, 0: none */
    size_t index, count;
};

void progress_enable(bool on);
void progress_begin(struct progress *p);
/* Cheap unless a line is due. Not to be called while something is timed. */
void progress_show(struct progress *p, const struct progress_state *s);
void progress_end(struct progress *p);

/* Have long work stop at its next step and keep what it has; safe in a signal handler. */
void progress_interrupt(void);
/* Whom long work of this thread asks, too; NULL: nobody. One yes, whoever heard it,
 * counts for all steps until progress_ask_anew. */
void progress_ask(int (*fn)(void *user), void *user);
void progress_ask_anew(void);
/* Whether such a yes was heard; asks nobody. */
bool progress_was_ended(void);
bool progress_interrupted(void);

/* Seconds of a clock that only goes forward. */
double progress_now(void);

#endif /* PLANNER_COST_PROGRESS_H */
