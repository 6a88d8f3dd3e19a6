/* SPDX-License-Identifier: Apache-2.0
 *
 * How teams wait: the signs of a busy machine, and the ballast.
 */
#include "core/host/wait.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "core/status.h"
#include "core/team.h"

#define MS UINT64_C(1000000) /* ns */
/* A tenth of a tenth of a second without a processor: idle machines stay far below. Who
 * then sleeps tries again after a while, which doubles as long as the machine is busy. */
#define LOOK_NS MS
#define WINDOW_NS (100 * MS)
#define LOST_NS (10 * MS)
#define PAUSE_LEAST_NS (100 * MS)
#define PAUSE_MOST_NS (3200 * MS)
#define CALM_NS (1000 * MS) /* without losses: the next pause is the least again */

#define BALLAST_MOST 4096 /* threads */
#define SPINS_LEAST 1000  /* looks, some 10 us: fewer are as if it slept at once */

static struct {
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    atomic_int holders, giving; /* of those, who gave way */
    bool made;                  /* thread is to be joined */
    bool gone;                  /* it has seen that there is no holder */
    pthread_t thread;
} ballast = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- ballast ----------------------------------------------------------------------- */

static void *pass(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* libgomp ends the process if it gets no thread; so see first that there are some. */
static bool threads_available(int n)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = calloc((size_t)n, sizeof *threads);
    int made = 0;
    pthread_mutex_lock(&gate);
    while (threads && made < n && pthread_create(&threads[made], NULL, pass, &gate) == 0)
        made++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&gate);
    free(threads);
    return made == n;
}

static void make_team(int n)
{
#pragma omp parallel num_threads(n)
    sched_yield(); /* a region of nothing would be left out */
}

/* A team lasts as long as the thread that made it. Without threads to spare there is
 * none, and others spin on: no reason to fail. */
static void *be_ballast(void *threads)
{
    const int n = (int)(intptr_t)threads;
    if (threads_available(n))
        make_team(n);
    pthread_mutex_lock(&ballast.lock);
    while (ballast.holders > 0)
        pthread_cond_wait(&ballast.changed, &ballast.lock);
    ballast.gone = true;
    pthread_mutex_unlock(&ballast.lock);
    return NULL;
}

/* Of more than there are processors, whatever teams the holders have. The lock is held; a
 * thread that is gone no longer takes it. */
static void make_ballast(void)
{
    const int more = team_processors() + 1;
    const intptr_t n = more < BALLAST_MOST ? more : BALLAST_MOST;
    if (ballast.made && !ballast.gone)
        return;
    if (ballast.made)
        pthread_join(ballast.thread, NULL);
    ballast.gone = false;
    ballast.made = pthread_create(&ballast.thread, NULL, be_ballast, (void *)n) == 0;
}

static void hold(struct wait_watch *w)
{
    if (w->holds)
        return;
    w->holds = true;
    pthread_mutex_lock(&ballast.lock);
    if (ballast.holders++ == 0)
        make_ballast();
    pthread_mutex_unlock(&ballast.lock);
}

static void release(struct wait_watch *w)
{
    if (!w->holds)
        return;
    w->holds = false;
    ballast.giving -= w->gives;
    w->gives = false;
    pthread_mutex_lock(&ballast.lock);
    if (--ballast.holders == 0)
        pthread_cond_broadcast(&ballast.changed);
    pthread_mutex_unlock(&ballast.lock);
}

void wait_close(void)
{
    if (ballast.made) /* nobody else is left who would make one */
        pthread_join(ballast.thread, NULL);
    ballast.made = false;
}

/* ---- a team's places -------------------------------------------------------------- */

#ifdef _OPENMP
/* To the processor that is n behind `from` among those that the thread may use; there it
 * is then free to go. A failure leaves it where it is. */
static void move_from(size_t from, int n)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || n % CPU_COUNT(&all) == 0)
        return;
    for (n %= CPU_COUNT(&all); n > 0; n -= CPU_ISSET(from, &all) != 0)
        from = (from + 1) % CPU_SETSIZE;
    CPU_ZERO(&one);
    CPU_SET(from, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0)
        sched_setaffinity(0, sizeof all, &all);
}

/* New threads begin on the processor of who made them, and those that slept are woken
 * there. Spinning, they would wait for each other's time to be up, milliseconds long, as
 * on a busy machine. So the leader sleeps until all have left. */
static void place_team(int threads)
{
    const int leader = sched_getcpu();
    sem_t came;
    if (leader < 0 || team_processors() < 2 || sem_init(&came, 0, 0) != 0)
        return;
#pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() > 0) {
        move_from((size_t)leader, omp_get_thread_num());
        sem_post(&came);
    } else
        for (int left = omp_get_num_threads() - 1; left > 0;)
            left -= sem_wait(&came) == 0;
    sem_destroy(&came);
}
#else
#define place_team(threads) ((void)(threads))
#endif

/* ---- signs of a busy machine ----------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

/* Time for which the thread could have run and had no processor; 0 where the system does
 * not tell. */
static uint64_t read_delay(const struct wait_watch *w)
{
    char text[96];
    unsigned long long ran, waited;
    const ssize_t n = pread(w->file, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

static void count_anew(struct wait_watch *w, uint64_t now)
{
    w->window = w->looked = now;
    w->delay = read_delay(w);
    w->lost = 0;
}

static void open_watch(struct wait_watch *w)
{
    w->open = true;
    w->file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    count_anew(w, now_ns());
}

/* Spin, and count from here on. */
static void try_again(struct wait_watch *w, uint64_t now)
{
    release(w);
    w->tried = now;
    count_anew(w, now);
}

static void give_way(struct wait_watch *w, uint64_t now)
{
    const uint64_t pause = now - w->tried > CALM_NS ? 0 : 2 * w->pause;
    w->pause = pause < PAUSE_LEAST_NS  ? PAUSE_LEAST_NS
               : pause > PAUSE_MOST_NS ? PAUSE_MOST_NS
                                       : pause;
    hold(w);
    ballast.giving++;
    w->gives = true;
    w->until = now_ns() + w->pause;
}

bool wait_gives(void)
{
    return ballast.giving > 0;
}

void wait_look(struct wait_watch *w)
{
    if (!w->yields || w->holds)
        return;
    const uint64_t now = now_ns();
    if (now - w->looked < LOOK_NS)
        return;
    const uint64_t delay = read_delay(w);
    w->lost += delay - w->delay;
    w->delay = delay;
    w->looked = now;
    if (w->lost > LOST_NS)
        give_way(w, now);
    else if (now - w->window > WINDOW_NS) {
        w->window = now;
        w->lost = 0;
    }
}

/* In libgomp's order: a count wins over a policy. */
const char *wait_decider(void)
{
    static const char *const names[] = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (getenv(names[i]))
            return names[i];
    return NULL;
}

bool wait_sleeps(int how)
{
    const char *count = getenv("GOMP_SPINCOUNT"), *policy = getenv("OMP_WAIT_POLICY");
    return count    ? strtod(count, NULL) < SPINS_LEAST
           : policy ? strcasecmp(policy, "passive") == 0
                    : how == STRATA_WAIT_SLEEP;
}

static void begin_watch(struct wait_watch *w)
{
    const uint64_t now = now_ns();
    if (!w->open)
        open_watch(w);
    if (w->holds && now >= w->until)
        try_again(w, now);
}

void wait_begin(struct wait_watch *w, int how, int threads)
{
    const bool free = !wait_decider();
    w->yields = free && how == STRATA_WAIT_YIELD;
    if (free && how == STRATA_WAIT_SLEEP)
        hold(w);
    else if (!w->yields)
        release(w);
    if (w->yields)
        begin_watch(w);
    const bool asleep = wait_sleeps(how) || ballast.holders > 0; /* whoever holds it */
    const bool anew = !asleep && (w->asleep || w->threads != threads);
    w->asleep = asleep;
    w->threads = threads;
    if (anew)
        place_team(threads);
    if (w->yields && anew)
        count_anew(w, now_ns());
    else if (w->yields)
        wait_look(w);
}

void wait_rest(struct wait_watch *w)
{
    release(w);
}

void wait_left(struct wait_watch *w)
{
    release(w);
    w->threads = 0;
}

void wait_end(struct wait_watch *w)
{
    release(w);
    if (w->open && w->file >= 0)
        close(w->file);
    *w = (struct wait_watch){0};
}
