/* SPDX-License-Identifier: Apache-2.0
 *
 * Who computes with several threads on the host. A team of OpenMP threads belongs to the
 * thread that leads it. Were that each stream's own, contexts beside each other would
 * have more threads than there are processors, and each would wait for the other's. So
 * the leaders are the process's, and runs go to them: at most as many threads as
 * processors are in such runs at a time; what finds too few left waits, in the order of
 * asking. Runs of one thread are their stream's own and wait for nobody.
 *
 * Who waits for a run may lead it, which saves two threads' waking. Nobody else can end
 * the team that a thread then has, and the application's threads come and stay away as
 * they like. So one of them at a time has such a team, the seat: who has led many runs
 * with nobody else's between, until another's threads find no room beside it.
 */
#ifndef CORE_HOST_CREW_H
#define CORE_HOST_CREW_H

#include "core/host/wait.h"
#include "core/status.h"

/* A run that a stream has to offer; the stream's. */
struct crew_job {
    struct crew_job *next;
    int threads, wait; /* STRATA_WAIT_* */
    /* Compute it, on the leader's thread; whether there is another behind it, for which
     * the job is filled in again. If not, the job may be gone on return. */
    bool (*run)(struct crew_job *job, struct wait_watch *watch);
};

/* Whether runs of so many threads are for a crew. */
bool crew_wanted(int threads);
/* A stream that may have such runs is made, and gone; with the last one crews end. */
void crew_open(void);
void crew_close(void);
/* See that there is a leader: from then on jobs can be offered. */
int crew_ready(strata_error *err);
void crew_offer(struct crew_job *job);

/* Whether the calling thread leads a run itself, and computes until crew_leave: it has
 * the seat, and no other run is under way or waits that needs its threads. */
bool crew_lead(int threads, int wait);
/* Between regions of such a run. */
void crew_look(void);
void crew_leave(void);

#endif /* CORE_HOST_CREW_H */
