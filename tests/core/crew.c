/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of several threads on the host: who computes them, in which order, and how the
 * threads wait.
 */
#include "tests/core/runs.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "core/host/wait.h"

#ifdef _OPENMP

enum { STREAMS = 4 };

/* ---- turns ------------------------------------------------------------------------- */

struct driver {
    struct task task;
    int threads, here;
};

static void *drive(void *arg)
{
    const struct driver *d = arg;
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    if (d->here)
        s->device->ops->stream_run_here(s);
    for (int i = 0; i < RUNS; i++) {
        run(s, &d->task, d->threads, STRATA_WAIT_YIELD);
        if (i % 3 == 0)
            cr_expect_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
        if (i % 5 == 0)
            submit(s, &(struct task){.done = d->task.done}); /* between runs */
    }
    strata_destroy(h);
    return NULL;
}

static int drive_all(int threads, int here)
{
    atomic_int inside = 0, most = 0, done = 0;
    pthread_t drivers[STREAMS];
    struct driver d = {{&inside, &most, &done, NULL, threads}, threads, here};
    for (int i = 0; i < STREAMS; i++)
        cr_assert_eq(pthread_create(&drivers[i], NULL, drive, &d), 0);
    for (int i = 0; i < STREAMS; i++)
        pthread_join(drivers[i], NULL);
    cr_expect_eq(done, STREAMS * (RUNS + RUNS / 5));
    return most;
}

Test(crew, runs_that_fill_the_machine_go_one_after_the_other)
{
    cr_expect_eq(drive_all(whole(), 0), 1);
}

Test(crew, so_do_those_of_streams_without_a_thread)
{
    cr_expect_eq(drive_all(whole(), 1), 1);
}

Test(crew, runs_of_more_threads_than_processors_have_their_turn_too)
{
    cr_expect_eq(drive_all(2 * whole(), 0), 1);
}

/* A team for each stream would be STREAMS * (whole() - 1) threads more. */
Test(crew, streams_share_their_teams)
{
    strata_handle *h[STREAMS];
    const struct task t = {.threads = whole()};
    const int before = threads_now();
    for (int i = 0; i < STREAMS; i++)
        h[i] = open_host();
    for (int r = 0; r < RUNS; r++)
        for (int i = 0; i < STREAMS; i++)
            run(strata_get_stream(h[i]), &t, whole(), STRATA_WAIT_SPIN);
    for (int i = 0; i < STREAMS; i++)
        strata_stream_synchronize(strata_get_stream(h[i]), NULL);
    cr_expect_leq(threads_soon(0, before + STREAMS + whole()),
                  before + STREAMS + whole());
    for (int i = 0; i < STREAMS; i++)
        strata_destroy(h[i]);
}

Test(crew, a_run_of_one_thread_waits_for_nobody)
{
    strata_handle *busy = open_host(), *free = open_host();
    atomic_int done = 0;
    sem_t gate;
    sem_init(&gate, 0, 0);
    run(strata_get_stream(busy), &(struct task){.gate = &gate}, whole(),
        STRATA_WAIT_YIELD);
    run(strata_get_stream(free), &(struct task){.done = &done}, 1, STRATA_WAIT_YIELD);
    cr_expect_eq(strata_stream_synchronize(strata_get_stream(free), NULL), STRATA_OK);
    cr_expect_eq(done, 1);
    sem_post(&gate);
    strata_destroy(busy);
    strata_destroy(free);
    sem_destroy(&gate);
}

Test(crew, what_is_queued_when_a_stream_goes_still_runs)
{
    strata_handle *h = open_host();
    atomic_int done = 0;
    const struct task t = {.done = &done, .threads = 2};
    for (int i = 0; i < RUNS; i++) {
        run(strata_get_stream(h), &t, 2, STRATA_WAIT_YIELD);
        submit(strata_get_stream(h), &(struct task){.done = &done});
    }
    strata_destroy(h);
    cr_expect_eq(done, 2 * RUNS);
}

/* Who waits for a run's work need not wait for its end. */
Test(crew, a_stream_can_be_waited_for_inside_of_a_run)
{
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    atomic_int done = 0;
    begin(s, 2, STRATA_WAIT_YIELD);
    for (int i = 1; i <= RUNS; i++) {
        submit(s, &(struct task){.done = &done, .threads = 2});
        cr_expect_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
        cr_expect_eq(done, i);
    }
    s->device->ops->run_end(s);
    strata_destroy(h);
}

Test(crew, where_work_runs_as_it_is_handed_in_a_run_has_ended_at_its_end)
{
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    atomic_int done = 0;
    s->device->ops->stream_run_here(s);
    for (int i = 1; i <= RUNS; i++) {
        run(s, &(struct task){.done = &done, .threads = whole()}, whole(),
            STRATA_WAIT_YIELD);
        cr_expect_eq(done, i);
    }
    strata_destroy(h);
}

/* ---- waiting ----------------------------------------------------------------------- */

static void environment_is_silent(void)
{
    unsetenv("OMP_WAIT_POLICY");
    unsetenv("GOMP_SPINCOUNT");
}

/* Runs of all processors: a smaller one that comes before the leader of the last has said
 * that it is idle gets another leader. */
static int run_and_count(strata_stream *s, int wait)
{
    run(s, &(struct task){.threads = whole()}, whole(), wait);
    cr_assert_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
    return threads_now();
}

/* Counted inside of a run: a leader that has none for a second gives its ballast up. */
Test(crew, teams_that_sleep_have_a_ballast)
{
    environment_is_silent();
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    sem_t gate;
    sem_init(&gate, 0, 0);
    const int spinning = run_and_count(s, STRATA_WAIT_SPIN);
    const int asleep = spinning + processors() + 1; /* more than there are processors */
    run(s, &(struct task){.gate = &gate, .threads = whole()}, whole(), STRATA_WAIT_SLEEP);
    cr_expect_eq(threads_soon(asleep, asleep), asleep);
    cr_expect_not(wait_gives(), "who is told to sleep gives nobody way");
    sem_post(&gate);
    cr_expect_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
    run_and_count(s, STRATA_WAIT_SPIN);
    cr_expect_eq(threads_soon(spinning, spinning), spinning);
    strata_destroy(h);
    sem_destroy(&gate);
}

Test(crew, the_last_stream_takes_all_threads_along)
{
    environment_is_silent();
    const int before = threads_now();
    strata_handle *h = open_host();
    run_and_count(strata_get_stream(h), STRATA_WAIT_SLEEP);
    strata_destroy(h);
    cr_expect_eq(threads_soon(before, before), before);
}

Test(crew, the_environment_wins)
{
    setenv("OMP_WAIT_POLICY", "passive", 1);
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    const int spinning = run_and_count(s, STRATA_WAIT_SPIN);
    for (int i = 0; i < RUNS; i++)
        cr_assert_eq(run_and_count(s, STRATA_WAIT_SLEEP), spinning);
    strata_destroy(h);
}

/* ---- where a team begins ----------------------------------------------------------- */

static bool same_processors(const cpu_set_t *all)
{
    cpu_set_t own;
    return sched_getaffinity(0, sizeof own, &own) == 0 && CPU_EQUAL(&own, all);
}

static int strangers(int threads, const cpu_set_t *all)
{
    int found = 0;
#pragma omp parallel num_threads(threads) reduction(+ : found)
    found += !same_processors(all);
    return found;
}

/* Each thread is moved as its team begins, and may go everywhere again. */
Test(crew, threads_of_a_team_keep_their_processors)
{
    static const int hows[] = {STRATA_WAIT_SPIN, STRATA_WAIT_YIELD, STRATA_WAIT_SLEEP};
    cpu_set_t all, one;
    environment_is_silent();
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(hows); i++)
        for (int threads = 2; threads <= 2 * processors() + 1; threads++) {
            struct wait_watch w = {0};
            wait_begin(&w, hows[i], threads);
            cr_expect_eq(strangers(threads, &all), 0, "%d threads", threads);
            cr_expect_eq(w.threads, threads);
            wait_end(&w);
        }
    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    team_end();
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    struct wait_watch w = {0};
    wait_begin(&w, STRATA_WAIT_YIELD, 2);
    cr_expect_eq(strangers(2, &one), 0, "a thread has left its processor");
    wait_end(&w);
    wait_close();
}

/* What a team takes to begin is no sign of a busy machine. */
Test(crew, losses_are_counted_anew_for_a_new_team)
{
    environment_is_silent();
    if (access("/proc/thread-self/schedstat", R_OK) != 0)
        cr_skip_test("the system does not tell how long threads wait");
    struct wait_watch w = {0};
    wait_begin(&w, STRATA_WAIT_YIELD, 2);
    w.lost = 1;
    wait_begin(&w, STRATA_WAIT_YIELD, 3);
    cr_expect_eq(w.lost, 0, "another team");
    w.lost = 1;
    wait_left(&w);
    wait_begin(&w, STRATA_WAIT_YIELD, 3);
    cr_expect_eq(w.lost, 0, "one made again");
    wait_end(&w);
    wait_close();
}

/* ---- beside others ----------------------------------------------------------------- */

static void be_busy(void)
{
    for (volatile unsigned long i = 0;; i++)
        ;
}

static void compute_for_a_while(strata_stream *s)
{
    for (int i = 0; i < RUNS; i++)
        run(s, &(struct task){.threads = whole()}, whole(), STRATA_WAIT_YIELD);
    cr_assert_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
}

Test(crew, who_yields_sleeps_while_others_want_the_processors, .timeout = 600)
{
    enum { BUSY = 64 };
    pid_t busy[BUSY];
    const int n = 4 * processors() < BUSY ? 4 * processors() : BUSY;
    environment_is_silent();
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    const int spinning = run_and_count(s, STRATA_WAIT_SPIN);
    if (access("/proc/thread-self/schedstat", R_OK) != 0)
        cr_skip_test("the system does not tell how long threads wait");
    for (int i = 0; i < n; i++)
        if ((busy[i] = fork()) == 0)
            be_busy();
    int most = spinning;
    bool gave = false;
    for (int i = 0; i < 20000 && (most == spinning || !gave); i++) {
        compute_for_a_while(s);
        most = threads_now() > most ? threads_now() : most;
        gave = gave || wait_gives();
    }
    cr_expect(gave);
    for (int i = 0; i < n; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    cr_expect_gt(most, spinning, "no ballast beside %d busy processes", n);
    run_and_count(s, STRATA_WAIT_SPIN);
    cr_expect_eq(threads_soon(spinning, spinning), spinning);
    strata_destroy(h);
}

#endif
