/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of several threads that are led by who waits for them, and by whom they are not.
 */
#include "tests/core/runs.h"

#ifdef _OPENMP

static int tell_thread(void *payload, void *native, strata_error *err)
{
    (void)native, (void)err;
    **(pthread_t **)payload = pthread_self();
    return STRATA_OK;
}

/* More runs than it ever takes in these tests to get the seat. */
enum { PROOF = 5000 };

/* A run that its caller waits for; whether that computed it. Spinning, for who yields
 * does not lead on a busy machine. */
static bool leads(strata_stream *s, const struct task *t, int threads)
{
    const struct device_ops *ops = s->device->ops;
    pthread_t ran, *where = &ran;
    const bool visits = ops->stream_visit(s, threads, STRATA_WAIT_SPIN);
    begin(s, threads, STRATA_WAIT_SPIN);
    submit(s, t);
    cr_assert_eq(ops->submit(s, tell_thread, &where, sizeof where, NULL), STRATA_OK);
    ops->run_end(s);
    if (visits)
        ops->stream_visit(s, 0, 0);
    cr_assert_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
    cr_assert_eq(visits, pthread_equal(ran, pthread_self()) != 0);
    return visits;
}

static bool leads_at_last(strata_stream *s)
{
    for (int i = 0; i < PROOF; i++)
        if (leads(s, &(struct task){.threads = whole()}, whole()))
            return true;
    return false;
}

static void need_processors(void)
{
    if (processors() < 2)
        cr_skip_test("runs of several threads are all more than there are processors");
}

Test(lead, who_waits_for_many_runs_leads_them)
{
    need_processors();
    const int before = threads_now();
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    cr_expect_not(leads(s, &(struct task){.threads = whole()}, whole()),
                  "one run says nothing of the next");
    cr_assert(leads_at_last(s));
    for (int i = 0; i < RUNS; i++)
        cr_assert(leads(s, &(struct task){.threads = whole()}, whole()));
    /* The team, its leader among the crews, which has none, and the stream's thread. */
    const int most = before + whole() - 1 + 2;
    cr_expect_leq(threads_soon(0, most), most);
    strata_destroy(h);
    cr_expect_eq(threads_soon(before, before), before, "the team went with the stream");
}

Test(lead, teams_that_are_to_sleep_are_led_by_crews)
{
    need_processors();
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    cr_assert(leads_at_last(s));
    cr_expect_not(s->device->ops->stream_visit(s, whole(), STRATA_WAIT_SLEEP));
    strata_destroy(h);
}

Test(lead, nobody_leads_beside_a_run_that_needs_the_threads)
{
    need_processors();
    strata_handle *h = open_host(), *busy = open_host();
    strata_stream *s = strata_get_stream(h);
    atomic_int done = 0;
    sem_t gate;
    sem_init(&gate, 0, 0);
    cr_assert(leads_at_last(s));
    run(strata_get_stream(busy), &(struct task){.gate = &gate, .done = &done}, whole(),
        STRATA_WAIT_SPIN);
    cr_expect_not(s->device->ops->stream_visit(s, whole(), STRATA_WAIT_SPIN));
    cr_expect(s->device->ops->stream_visit(s, 1, STRATA_WAIT_SPIN), "of one thread");
    s->device->ops->stream_visit(s, 0, 0);
    sem_post(&gate);
    cr_expect_eq(strata_stream_synchronize(strata_get_stream(busy), NULL), STRATA_OK);
    cr_expect_eq(done, 1);
    strata_destroy(busy);
    strata_destroy(h);
    sem_destroy(&gate);
}

struct caller {
    int runs, led; /* to make; that it led */
    bool stays;    /* until told */
    sem_t made, end;
};

static void *call_runs(void *arg)
{
    struct caller *c = arg;
    strata_handle *h = open_host();
    const struct task t = {.threads = whole()};
    for (int i = 0; i < c->runs; i++)
        c->led += leads(strata_get_stream(h), &t, whole());
    sem_post(&c->made);
    while (c->stays && sem_wait(&c->end) != 0)
        ;
    strata_destroy(h);
    return NULL;
}

static void start_caller(struct caller *c, pthread_t *thread)
{
    sem_init(&c->made, 0, 0);
    sem_init(&c->end, 0, 0);
    cr_assert_eq(pthread_create(thread, NULL, call_runs, c), 0);
}

static void end_caller(struct caller *c, pthread_t thread)
{
    sem_post(&c->end);
    pthread_join(thread, NULL);
    sem_destroy(&c->made);
    sem_destroy(&c->end);
}

/* Eight callers with a team each would have 8 * (whole() - 1) threads more. */
Test(lead, callers_beside_each_other_have_the_teams_of_crews)
{
    enum { CALLERS = 8 };
    need_processors();
    struct caller c[CALLERS];
    pthread_t threads[CALLERS];
    const int before = threads_now();
    for (int i = 0; i < CALLERS; i++) {
        c[i] = (struct caller){.runs = RUNS, .stays = true};
        start_caller(&c[i], &threads[i]);
    }
    for (int i = 0; i < CALLERS; i++)
        while (sem_wait(&c[i].made) != 0)
            ;
    /* A caller, its stream's thread; crews' leaders; their team and that of the seat. */
    const int most = before + 2 * CALLERS + processors() / 2 + 2 * whole();
    cr_expect_leq(threads_soon(0, most), most);
    for (int i = 0; i < CALLERS; i++)
        end_caller(&c[i], threads[i]);
}

Test(lead, who_stays_away_leaves_the_threads_to_others_and_returns_to_a_crew)
{
    need_processors();
    struct caller other = {.runs = RUNS};
    pthread_t thread;
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    cr_assert(leads_at_last(s));
    start_caller(&other, &thread);
    end_caller(&other, thread);
    cr_expect_eq(other.led, 0, "one thread has a team at a time");
    cr_expect_not(leads(s, &(struct task){.threads = whole()}, whole()));
    cr_expect(leads_at_last(s), "alone again");
    strata_destroy(h);
}

Test(lead, a_thread_that_ends_leaves_its_seat)
{
    need_processors();
    strata_handle *h = open_host(); /* streams are there all the time */
    struct caller other = {.runs = PROOF};
    pthread_t thread;
    start_caller(&other, &thread);
    end_caller(&other, thread);
    cr_expect_gt(other.led, 0);
    cr_expect(leads_at_last(strata_get_stream(h)));
    strata_destroy(h);
}

static int fail_work(void *payload, void *native, strata_error *err)
{
    (void)payload, (void)native;
    return error_set(err, STRATA_EDEVICE, "it failed");
}

Test(lead, a_run_that_its_caller_leads_fails_as_others_do)
{
    need_processors();
    strata_error err;
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    cr_assert(leads_at_last(s));
    cr_assert(s->device->ops->stream_visit(s, whole(), STRATA_WAIT_SPIN));
    begin(s, whole(), STRATA_WAIT_SPIN);
    cr_assert_eq(s->device->ops->submit(s, fail_work, NULL, 0, NULL), STRATA_OK);
    s->device->ops->run_end(s);
    s->device->ops->stream_visit(s, 0, 0);
    cr_expect_eq(strata_stream_synchronize(s, &err), STRATA_EDEVICE);
    cr_expect_str_eq(err.message, "it failed");
    cr_expect(leads(s, &(struct task){.threads = whole()}, whole()));
    strata_destroy(h);
}

#endif
