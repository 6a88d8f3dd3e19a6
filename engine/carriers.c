/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs are a list, and each thread takes the one that the fewest others are at.
 */
#include "engine/carriers.h"

#include <pthread.h>

#include "core/team.h"

static struct {
    pthread_mutex_t users_lock; /* held while threads begin and end */
    int users;
    pthread_mutex_t lock;
    pthread_cond_t wanted, done;
    struct carriers_job *jobs;
    pthread_t threads[CARRIERS_MOST];
    unsigned n;
    bool ending;
} all = {.users_lock = PTHREAD_MUTEX_INITIALIZER,
         .lock = PTHREAD_MUTEX_INITIALIZER,
         .wanted = PTHREAD_COND_INITIALIZER,
         .done = PTHREAD_COND_INITIALIZER};

static struct carriers_job *choose(void)
{
    struct carriers_job *best = NULL;
    for (struct carriers_job *j = all.jobs; j; j = j->next)
        if (!j->drained && j->joined < CARRIERS_MOST &&
            (!best || j->joined < best->joined))
            best = j;
    return best;
}

static void help(struct carriers_job *job)
{
    const int who = ++job->joined;
    job->working++;
    pthread_mutex_unlock(&all.lock);
    while (job->piece(job, who))
        ;
    pthread_mutex_lock(&all.lock);
    job->drained = true;
    if (--job->working == 0)
        pthread_cond_broadcast(&all.done);
}

static void *carry(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&all.lock);
    while (!all.ending) {
        struct carriers_job *job = choose();
        if (job)
            help(job);
        else
            pthread_cond_wait(&all.wanted, &all.lock);
    }
    pthread_mutex_unlock(&all.lock);
    return NULL;
}

void carriers_open(void)
{
    const unsigned spare = (unsigned)team_processors() - 1;
    const unsigned most = spare < CARRIERS_MOST ? spare : CARRIERS_MOST;
    pthread_mutex_lock(&all.users_lock);
    if (all.users++ == 0)
        while (all.n < most &&
               pthread_create(&all.threads[all.n], NULL, carry, NULL) == 0)
            all.n++;
    pthread_mutex_unlock(&all.users_lock);
}

void carriers_close(void)
{
    pthread_mutex_lock(&all.users_lock);
    if (--all.users == 0) {
        pthread_mutex_lock(&all.lock);
        all.ending = true;
        pthread_cond_broadcast(&all.wanted);
        pthread_mutex_unlock(&all.lock);
        while (all.n > 0)
            pthread_join(all.threads[--all.n], NULL);
        all.ending = false;
    }
    pthread_mutex_unlock(&all.users_lock);
}

static void leave(struct carriers_job *job)
{
    struct carriers_job **at = &all.jobs;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    while (job->working > 0)
        pthread_cond_wait(&all.done, &all.lock);
}

void carriers_run(struct carriers_job *job, size_t pieces)
{
    job->joined = job->working = 0;
    job->drained = false;
    pthread_mutex_lock(&all.lock);
    job->next = all.jobs;
    all.jobs = job;
    pthread_mutex_unlock(&all.lock);
    for (size_t i = 0; i < pieces / 2 && i < CARRIERS_MOST; i++)
        pthread_cond_signal(&all.wanted);
    while (job->piece(job, 0))
        ;
    pthread_mutex_lock(&all.lock);
    leave(job);
    pthread_mutex_unlock(&all.lock);
}
