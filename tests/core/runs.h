/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of several threads put on streams of the host, and the threads that there are.
 */
#ifndef TESTS_CORE_RUNS_H
#define TESTS_CORE_RUNS_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/handle.h"
#include "core/team.h"

enum { RUNS = 200 };

/* What work does: counts itself, waits for a gate, computes with a team. */
struct task {
    atomic_int *inside, *most, *done;
    sem_t *gate;
    int threads;
};

static inline int work(void *payload, void *native, strata_error *err)
{
    const struct task *t = payload;
    (void)native, (void)err;
    while (t->gate && sem_wait(t->gate) != 0)
        ;
    if (t->inside) {
        const int now = atomic_fetch_add(t->inside, 1) + 1;
        int most = atomic_load(t->most);
        while (now > most && !atomic_compare_exchange_weak(t->most, &most, now))
            ;
    }
    if (t->threads) {
        atomic_int sum = 0;
#pragma omp parallel num_threads(t->threads)
        atomic_fetch_add(&sum, 1);
    }
    if (t->inside)
        atomic_fetch_sub(t->inside, 1);
    if (t->done)
        atomic_fetch_add(t->done, 1);
    return STRATA_OK;
}

static inline void submit(strata_stream *s, const struct task *t)
{
    cr_assert_eq(s->device->ops->submit(s, work, t, sizeof *t, NULL), STRATA_OK);
}

static inline void begin(strata_stream *s, int threads, int wait)
{
    strata_error err = {0};
    cr_assert_eq(s->device->ops->run_begin(s, threads, wait, &err), STRATA_OK, "%s",
                 err.message);
}

static inline void run(strata_stream *s, const struct task *t, int threads, int wait)
{
    begin(s, threads, wait);
    submit(s, t);
    s->device->ops->run_end(s);
}

static inline strata_handle *open_host(void)
{
    strata_handle *h = NULL;
    cr_assert_eq(strata_create(&h, "host", NULL), STRATA_OK);
    return h;
}

static inline int processors(void)
{
    return team_processors();
}

/* A run of all processors, or of two on a machine of one. */
static inline int whole(void)
{
    return processors() > 1 ? processors() : 2;
}

static inline int threads_now(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2;
}

/* Threads start and end when they have a processor, and a count that is passed on the way
 * to another is none: it must stay. */
static inline int threads_soon(int least, int most)
{
    int n = threads_now();
    for (int i = 0, stays = 0; i < 60000 && stays < 10; i++) {
        usleep(1000);
        n = threads_now();
        stays = n < least || n > most ? 0 : stays + 1;
    }
    return n;
}

#endif /* TESTS_CORE_RUNS_H */
