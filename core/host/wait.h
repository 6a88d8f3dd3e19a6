/* SPDX-License-Identifier: Apache-2.0
 *
 * How the threads of a team wait for each other between parallel regions. libgomp lets
 * them spin, milliseconds long, which is fastest where each has a processor of its own,
 * and takes the processors from those they wait for where it has not. libgomp reads how
 * long when it is loaded; what can be changed afterwards is its own rule that threads
 * sleep at once while the process has more threads in teams than there are processors.
 * So where teams are to sleep, a team without work, which sleeps itself, is kept beside
 * them: the ballast. It counts for the whole process.
 *
 * OMP_WAIT_POLICY and GOMP_SPINCOUNT in the environment are the user's word: nothing is
 * done then.
 */
#ifndef CORE_HOST_WAIT_H
#define CORE_HOST_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* Of a thread that leads a team; zero at first, used by that thread alone. */
struct wait_watch {
    int file;          /* the system's account of the thread's waiting */
    bool open;         /* file is */
    bool yields;       /* looks whether the machine is busy */
    bool holds, gives; /* one of those for whom the ballast is there; who gave way */
    bool asleep; /* teams slept as its last regions began, whosoever the ballast was */
    int threads; /* of its team; 0: none yet */
    uint64_t looked, window, tried, until, pause; /* ns; times of the monotonic clock */
    uint64_t delay, lost; /* ns for which it waited for a processor; in the window */
};

/* The thread's next regions are of `threads` threads that wait as STRATA_WAIT_* says. */
void wait_begin(struct wait_watch *w, int how, int threads);
/* Between regions: a thread that yields looks whether the machine is busy. */
void wait_look(struct wait_watch *w);
/* The thread has none for now; it begins again with wait_begin. */
void wait_rest(struct wait_watch *w);
/* And its team has ended: the next one is new. */
void wait_left(struct wait_watch *w);
/* The thread has no more regions. */
void wait_end(struct wait_watch *w);
/* Whether teams of the process sleep now because the machine is busy. */
bool wait_gives(void);
/* Every watch has ended: wait for the ballast's threads to end too. */
void wait_close(void);

/* The variable of the environment that decides how teams wait, which nothing else then
 * does; NULL: none is set. */
const char *wait_decider(void);
/* Whether teams of such runs sleep at once: a region then costs two threads' waking. */
bool wait_sleeps(int how);

#endif /* CORE_HOST_WAIT_H */
