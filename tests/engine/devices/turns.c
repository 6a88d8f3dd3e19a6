/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns of contexts: each waits for the run before it of another context on its device,
 * never for its own nor for one that is gone, and whatever fails leaves the queue as it
 * was. The device here is none: it writes down what it is asked for.
 */
#include <criterion/criterion.h>
#include <pthread.h>

#include "engine/context/parts.h"

TestSuite(turns, .timeout = 300);

enum { ROOMS = 3, THREADS = 4, RUNS = 2000 };

static strata_event events[2 * ROOMS];
static int n_events, waits, fails_at; /* 1: creation, 2: wait, 3: record */
static const strata_event *waited_for;

static int create(struct device *d, strata_event **out, strata_error *err)
{
    (void)d;
    if (fails_at == 1)
        return error_set(err, STRATA_ENOMEM, "no event");
    *out = &events[n_events++];
    return STRATA_OK;
}

static int wait_for(strata_stream *s, strata_event *e, strata_error *err)
{
    (void)s;
    waits++;
    waited_for = e;
    return fails_at == 2 ? error_set(err, STRATA_EDEVICELOST, "no wait") : STRATA_OK;
}

static int record(strata_event *e, strata_stream *s, strata_error *err)
{
    (void)e;
    (void)s;
    return fails_at == 3 ? error_set(err, STRATA_EDEVICELOST, "no record") : STRATA_OK;
}

static void destroy(strata_event *e)
{
    (void)e;
}

static const struct device_ops ops = {.event_create = create,
                                      .event_destroy = destroy,
                                      .event_record = record,
                                      .stream_wait = wait_for};
static struct device device = {.ops = &ops};

struct fake {
    strata_handle handle;
    strata_context context;
    struct parts_room room;
};

static void open_fake(struct fake *f, int number)
{
    f->handle.device = &device;
    f->handle.properties.kind = STRATA_CUDA;
    f->handle.properties.index = number;
    f->context.handle = &f->handle;
    f->context.takes_turns = true;
    f->room.context = &f->context;
}

/* The event that the run waits for; NULL: none. */
static const strata_event *run(struct fake *f, int status)
{
    strata_error err;
    waited_for = NULL;
    const int taken = parts_take_turn(&f->room, &err);
    const int begun = taken == STRATA_OK ? status : taken;
    const int left = parts_leave_turn(&f->room, begun, &err);
    cr_expect(begun == STRATA_OK || left == begun);
    cr_expect(!f->room.in_turn);
    cr_expect_eq(left != STRATA_OK, status != STRATA_OK || fails_at != 0);
    return waited_for;
}

Test(turns, a_run_waits_for_the_last_of_another_context)
{
    static struct fake f[ROOMS];
    for (int i = 0; i < ROOMS; i++)
        open_fake(&f[i], i == 2 ? 5 : 4);
    cr_expect_null(run(&f[0], STRATA_OK));
    cr_expect_null(run(&f[0], STRATA_OK), "for its own");
    cr_expect_eq(run(&f[1], STRATA_OK), f[0].room.ran);
    cr_expect_null(run(&f[2], STRATA_OK), "for one of another device");
    cr_expect_eq(run(&f[0], STRATA_OK), f[1].room.ran);
    f[1].context.takes_turns = false;
    cr_expect_null(run(&f[1], STRATA_OK), "without turns");
    f[1].context.takes_turns = true;
    cr_expect_eq(run(&f[1], STRATA_EINVAL), f[0].room.ran);
    cr_expect_null(run(&f[0], STRATA_OK), "for one that failed");
    parts_close_turns(&f[0].room);
    cr_expect_null(run(&f[1], STRATA_OK), "for one that is gone");
    parts_close_turns(&f[1].room);
    parts_close_turns(&f[2].room);
    cr_expect_eq(n_events, 3);
}

Test(turns, what_fails_leaves_the_queue_as_it_was)
{
    static struct fake f[2];
    open_fake(&f[0], 6);
    open_fake(&f[1], 6);
    cr_expect_null(run(&f[0], STRATA_OK));
    for (fails_at = 1; fails_at <= 3; fails_at++)
        cr_expect_eq(run(&f[1], STRATA_OK), fails_at == 1 ? NULL : f[0].room.ran,
                     "call %d", fails_at);
    fails_at = 0;
    cr_expect_eq(run(&f[1], STRATA_OK), f[0].room.ran);
    parts_close_turns(&f[0].room);
    parts_close_turns(&f[1].room);
}

/* ---- several threads --------------------------------------------------------------- */

static int inside, most_inside;

static void *take_turns(void *arg)
{
    struct fake *f = arg;
    strata_error err;
    for (int k = 0; k < RUNS; k++) {
        int status = parts_take_turn(&f->room, &err);
        most_inside = ++inside > most_inside ? inside : most_inside;
        inside--;
        status = parts_leave_turn(&f->room, status, &err);
        if (status != STRATA_OK)
            break;
    }
    return NULL;
}

Test(turns, one_context_at_a_time_puts_its_run_in_the_queue)
{
    static struct fake f[THREADS];
    static strata_event ran[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        open_fake(&f[i], 7);
        f[i].room.ran = &ran[i];
        cr_assert_eq(pthread_create(&threads[i], NULL, take_turns, &f[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(most_inside, 1);
    for (int i = 0; i < THREADS; i++)
        parts_close_turns(&f[i].room);
}
