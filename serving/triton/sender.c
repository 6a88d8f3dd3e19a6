/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of a batch, sent by several threads: the server takes some 30 us to send one,
 * and the last of eight would wait for the seven before it. The threads are the
 * backend's, sleep meanwhile, and help whoever sends; without them the caller sends
 * alone.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "serving/triton/answer.h"

enum {
    MOST = 8,
    FEWEST = 3 /* answers: below it waking a thread takes as long as sending */
};

struct job {
    struct job *next;
    struct answer *answers;
    uint32_t n;
    atomic_uint taken;
    int working; /* of the threads; guarded by the lock */
};

struct senders {
    pthread_mutex_t lock;
    pthread_cond_t wanted, done;
    struct job *jobs;
    bool ending;
    int n;
    pthread_t threads[MOST];
};

static bool send_one(struct job *job)
{
    const uint32_t k = atomic_fetch_add(&job->taken, 1);
    if (k < job->n)
        answer_send(&job->answers[k]);
    return k < job->n;
}

static void leave(struct senders *s, struct job *job)
{
    struct job **at = &s->jobs;
    while (*at && *at != job)
        at = &(*at)->next;
    if (*at)
        *at = job->next;
}

static void *help(void *arg)
{
    struct senders *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->ending) {
        struct job *job = s->jobs;
        if (!job) {
            pthread_cond_wait(&s->wanted, &s->lock);
            continue;
        }
        job->working++;
        pthread_mutex_unlock(&s->lock);
        while (send_one(job))
            ;
        pthread_mutex_lock(&s->lock);
        leave(s, job); /* nothing of it is left to take */
        if (--job->working == 0)
            pthread_cond_broadcast(&s->done);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

struct senders *senders_open(int most)
{
    const long spare = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    struct senders *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wanted, NULL);
    pthread_cond_init(&s->done, NULL);
    while (s->n < most && s->n < MOST && s->n < spare &&
           pthread_create(&s->threads[s->n], NULL, help, s) == 0)
        s->n++;
    return s;
}

void senders_close(struct senders *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_broadcast(&s->wanted);
    pthread_mutex_unlock(&s->lock);
    while (s->n > 0)
        pthread_join(s->threads[--s->n], NULL);
    pthread_cond_destroy(&s->wanted);
    pthread_cond_destroy(&s->done);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void senders_send(struct senders *s, struct answer *answers, uint32_t n)
{
    struct job job = {.answers = answers, .n = n};
    const bool shared = s && s->n > 0 && n >= FEWEST;
    if (shared) {
        pthread_mutex_lock(&s->lock);
        job.next = s->jobs;
        s->jobs = &job;
        for (uint32_t k = 1; k < n && k <= (uint32_t)s->n; k++)
            pthread_cond_signal(&s->wanted);
        pthread_mutex_unlock(&s->lock);
    }
    while (send_one(&job))
        ;
    if (!shared)
        return;
    pthread_mutex_lock(&s->lock);
    leave(s, &job);
    while (job.working > 0)
        pthread_cond_wait(&s->done, &s->lock);
    pthread_mutex_unlock(&s->lock);
}
