/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns of contexts: each waits for the run before it of another context of its engine,
 * never for its own nor for one that is gone, and whatever fails leaves the queue as it
 * was; which runs take one where nothing is said. The device here is none: it writes down
 * what it is asked for.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "engine/context/context.h"
#include "planner/planner.h"

TestSuite(turns, .timeout = 300);

enum { CONTEXTS = 4, EVENTS = 16, RUNS = 2000 };

static strata_event events[EVENTS];
static strata_stream streams[CONTEXTS];
static int n_events, fails_at; /* 1: creation, 2: wait, 3: record */
static _Thread_local const strata_event *waited_for;

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

struct fake_engine {
    strata_engine engine;
    struct planner planner;
    struct execution execution;
};

struct fake {
    strata_handle handle;
    strata_context context;
};

/* A run of 100 us by measured costs. */
static void open_engine(struct fake_engine *f)
{
    f->planner.costs.kind = COSTS_MEASURE;
    f->execution.cost = 100000 * PLAN_UNIT_PER_NS;
    f->engine.planner = &f->planner;
    f->engine.execution = &f->execution;
    f->engine.turns = engine_open_turns(NULL);
    cr_assert_not_null(f->engine.turns);
}

static void open_fake(struct fake *f, const struct fake_engine *e, int stream)
{
    f->handle.device = &device;
    f->handle.properties.kind = STRATA_CUDA;
    f->handle.own_stream = &streams[stream];
    f->context.engine = &e->engine;
    f->context.execution = &e->execution;
    f->context.handle = &f->handle;
    f->context.stream = &streams[stream];
    f->context.turn.use = STRATA_TURNS_ON;
    f->context.active = f->context.whole = &f->context;
}

static const strata_event *ran(const struct fake *f)
{
    return f->context.turn.ran;
}

/* The event that the run waits for; NULL: none. */
static const strata_event *run_of(struct fake *f, uint64_t moved, int status)
{
    strata_error err;
    waited_for = NULL;
    const int taken = context_take_turn(&f->context, moved, &err);
    const int begun = taken == STRATA_OK ? status : taken;
    const int left = context_leave_turn(&f->context, begun, &err);
    cr_expect(begun == STRATA_OK || left == begun);
    cr_expect(!f->context.turn.taken);
    cr_expect_eq(left != STRATA_OK, status != STRATA_OK || fails_at != 0);
    return waited_for;
}

static const strata_event *run(struct fake *f)
{
    return run_of(f, 0, STRATA_OK);
}

Test(turns, a_run_waits_for_the_last_of_another_context)
{
    static struct fake_engine e, other;
    static struct fake f[3];
    open_engine(&e);
    open_engine(&other);
    for (int i = 0; i < 3; i++)
        open_fake(&f[i], i == 2 ? &other : &e, i);
    cr_expect_null(run(&f[0]));
    cr_expect_null(run(&f[0]), "for its own");
    cr_expect_eq(run(&f[1]), ran(&f[0]));
    cr_expect_null(run(&f[2]), "for one of another engine");
    cr_expect_eq(run(&f[0]), ran(&f[1]));
    f[1].context.turn.use = STRATA_TURNS_OFF;
    cr_expect_null(run(&f[1]), "without turns");
    f[1].context.turn.use = STRATA_TURNS_ON;
    f[1].context.stream = f[0].context.stream;
    cr_expect_null(run(&f[1]), "for one of its stream");
    f[1].context.stream = &streams[1];
    cr_expect_eq(run(&f[0]), ran(&f[1]));
    cr_expect_eq(run_of(&f[1], 0, STRATA_EINVAL), ran(&f[0]));
    cr_expect_null(run(&f[0]), "for one that failed");
    context_close_turn(&f[0].context);
    cr_expect_null(run(&f[1]), "for one that is gone");
    context_close_turn(&f[1].context);
    context_close_turn(&f[2].context);
    cr_expect_eq(n_events, 3);
    engine_close_turns(e.engine.turns);
    engine_close_turns(other.engine.turns);
}

Test(turns, what_fails_leaves_the_queue_as_it_was)
{
    static struct fake_engine e;
    static struct fake f[2];
    open_engine(&e);
    open_fake(&f[0], &e, 0);
    open_fake(&f[1], &e, 1);
    cr_expect_null(run(&f[0]));
    for (fails_at = 1; fails_at <= 3; fails_at++)
        cr_expect_eq(run(&f[1]), fails_at == 1 ? NULL : ran(&f[0]), "call %d", fails_at);
    fails_at = 0;
    cr_expect_eq(run(&f[1]), ran(&f[0]));
    context_close_turn(&f[0].context);
    context_close_turn(&f[1].context);
    engine_close_turns(e.engine.turns);
}

/* ---- where nothing is said ----------------------------------------------------------
 */

Test(turns, runs_take_one_where_it_was_found_to_pay)
{
    enum { QUARTER = 25 * 50 * 1000 }; /* bytes: 25 us of 100 at 50 a ns */
    static struct fake_engine e;
    static struct fake f[2];
    static const struct {
        const char *what, *why;
        int kind, device;
        bool foreign;
        uint64_t moved;
        bool turns;
    } cases[] = {
        {"measured", "quarter", COSTS_MEASURE, STRATA_CUDA, false, QUARTER, true},
        {"recorded", "quarter", COSTS_FILE, STRATA_CUDA, false, QUARTER, true},
        {"fewer bytes", "", COSTS_MEASURE, STRATA_CUDA, false, QUARTER - 1, false},
        {"from the device", "", COSTS_MEASURE, STRATA_CUDA, false, 0, false},
        {"a model's", "model", COSTS_ANALYTIC, STRATA_CUDA, false, QUARTER, false},
        {"a stream", "stream", COSTS_MEASURE, STRATA_CUDA, true, QUARTER, false},
        {"the host", "host", COSTS_MEASURE, STRATA_HOST, false, QUARTER, false},
    };
    open_engine(&e);
    for (int i = 0; i < 2; i++)
        open_fake(&f[i], &e, i);
    for (size_t k = 0; k < ARRAY_LENGTH(cases); k++) {
        f[0].context.turn.use = STRATA_TURNS_ON;
        run(&f[0]);
        e.planner.costs.kind = cases[k].kind;
        f[1].context.turn.use = STRATA_TURNS_AUTO;
        f[1].handle.properties.kind = cases[k].device;
        f[1].handle.own_stream = cases[k].foreign ? &streams[3] : &streams[1];
        cr_expect_eq(run_of(&f[1], cases[k].moved, STRATA_OK) == ran(&f[0]),
                     cases[k].turns, "%s", cases[k].what);
        cr_expect(strstr(strata_context_turns(&f[1].context),
                         cases[k].turns ? "" : cases[k].why),
                  "%s: %s", cases[k].what, strata_context_turns(&f[1].context));
    }
    f[1].context.turn.use = STRATA_TURNS_ON;
    cr_expect_null(run(&f[1]), "the host takes none");
    for (int i = 0; i < 2; i++)
        context_close_turn(&f[i].context);
    engine_close_turns(e.engine.turns);
}

/* ---- several threads --------------------------------------------------------------- */

static int inside, most_inside; /* the engine's lock is around them */

static void *take_turns(void *arg)
{
    struct fake *f = arg;
    strata_error err;
    for (int k = 0; k < RUNS; k++) {
        int status = context_take_turn(&f->context, 0, &err);
        most_inside = ++inside > most_inside ? inside : most_inside;
        inside--;
        status = context_leave_turn(&f->context, status, &err);
        if (status != STRATA_OK)
            break;
        if (k % 64 == 0) { /* it comes and goes while others wait for its event */
            strata_event *e = f->context.turn.ran;
            context_close_turn(&f->context);
            f->context.turn.ran = e;
        }
    }
    return NULL;
}

Test(turns, one_context_at_a_time_puts_its_run_in_the_queue)
{
    static struct fake_engine e;
    static struct fake f[CONTEXTS];
    pthread_t threads[CONTEXTS];
    open_engine(&e);
    for (int i = 0; i < CONTEXTS; i++) {
        open_fake(&f[i], &e, i);
        f[i].context.turn.ran = &events[i];
        cr_assert_eq(pthread_create(&threads[i], NULL, take_turns, &f[i]), 0);
    }
    for (int i = 0; i < CONTEXTS; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(most_inside, 1);
    for (int i = 0; i < CONTEXTS; i++)
        context_close_turn(&f[i].context);
    engine_close_turns(e.engine.turns);
}
