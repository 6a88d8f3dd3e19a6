/* SPDX-License-Identifier: Apache-2.0
 *
 * The batcher: what runs together and when, and that nobody notices.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <strata/batcher.h>

#include "tests/engine/batch_net.h"

/* A layer that waits must not be run to learn what it costs. */
#define UNMEASURED "[build]\ncosts = analytic\n"

TestSuite(batcher, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

#define MS UINT64_C(1000000) /* ns */
#define HOUR (3600000 * MS)

/* A request of `rows` rows of `width` floats, all of one value. */
struct call {
    float x[32], y[32];
    const void *in[1];
    void *out[1];
    strata_request_options options;
    strata_request *request;
    int calls, status; /* of the callback */
    char message[256];
};

static void done(void *user, const strata_error *err)
{
    struct call *c = user;
    c->calls++;
    c->status = err->status;
    snprintf(c->message, sizeof c->message, "%.255s", err->message);
}

static void prepare_call(struct call *c, int64_t rows, int64_t width, float value)
{
    memset(c, 0, sizeof *c);
    for (int64_t i = 0; i < rows * width; i++)
        c->x[i] = value;
    c->in[0] = c->x;
    c->out[0] = c->y;
    c->options = (strata_request_options){.struct_size = sizeof c->options,
                                          .rows = rows,
                                          .inputs = c->in,
                                          .outputs = c->out,
                                          .done = done,
                                          .user = c};
}

static void open_trial(struct net *n, strata_batcher **b, const char *attributes,
                       strata_batcher_options options)
{
    strata_error err;
    char layers[256];
    snprintf(layers, sizeof layers, "[layer last]\ntype = Trial\n%s", attributes);
    options.struct_size = sizeof options;
    OK(open_net(n, UNMEASURED, "8 x 3", "last", layers, &err));
    OK(strata_batcher_create(b, n->engine, &options, &err));
}

static void open_gated(struct net *n, strata_batcher **b, strata_batcher_options options)
{
    open_trial(n, b, behind_gate(), options);
    shut_gate();
}

static void until_none_waits(strata_batcher *b)
{
    strata_batcher_stats stats;
    do
        strata_batcher_get_stats(b, &stats);
    while (stats.waiting);
}

static void submit_all(strata_batcher *b, struct call *calls, int n)
{
    strata_error err;
    for (int i = 0; i < n; i++)
        OK(strata_batcher_submit(b, &calls[i].request, &calls[i].options, &err));
}

static void expect_right(struct call *c)
{
    strata_error err;
    OK(strata_request_wait(c->request, &err));
    cr_expect(c->calls == 1 && c->status == STRATA_OK, "the callback comes once");
    for (int64_t i = 0; i < c->options.rows * 3; i++)
        cr_expect_eq(c->y[i], c->x[i] + 1);
}

/* ---- when ----------------------------------------------------------------------------
 */

Test(batcher, a_request_runs_at_once_when_nothing_else_does)
{
    struct net n;
    strata_batcher *b;
    strata_batcher_stats stats;
    struct call call;
    open_trial(&n, &b, "", (strata_batcher_options){.max_delay_ns = HOUR, .contexts = 3});
    for (int i = 0; i < 20; i++) {
        prepare_call(&call, 1, 3, (float)i);
        submit_all(b, &call, 1);
        expect_right(&call);
    }
    strata_batcher_get_stats(b, &stats);
    strata_batcher_destroy(b);
    cr_expect(stats.requests == 20 && stats.rows == 20, "counted before they are told");
    cr_expect(stats.idle == stats.runs && stats.runs == 20);
    close_net(&n);
}

Test(batcher, requests_behind_a_run_go_together)
{
    struct net n;
    strata_batcher *b;
    strata_batcher_stats stats;
    uint64_t histogram[8];
    struct call calls[9];
    open_gated(&n, &b, (strata_batcher_options){.contexts = 1});
    for (int i = 0; i < 9; i++)
        prepare_call(&calls[i], 1, 3, (float)i);
    submit_all(b, calls, 1);
    until_none_waits(b); /* it has begun */
    submit_all(b, calls + 1, 8);
    let_run(2);
    for (int i = 0; i < 9; i++)
        expect_right(&calls[i]);
    cr_expect_eq(strata_batcher_histogram(b, histogram, 8), 8);
    cr_expect(histogram[0] == 1 && histogram[7] == 1);
    strata_batcher_get_stats(b, &stats);
    cr_expect(stats.runs == 2 && stats.full == 1 && stats.idle == 1);
    cr_expect_eq(stats.padding, 7);
    strata_batcher_destroy(b);
    close_net(&n);
}

/* Runs of one request and then of five that came meanwhile, where a batch of 8 costs as
 * many times a batch of 4. */
static void run_five(uint64_t histogram[8], int64_t times)
{
    struct net n;
    strata_error err;
    strata_batcher *b;
    struct call calls[6];
    char layers[128];
    const strata_batcher_options o = {.struct_size = sizeof o, .contexts = 1};
    snprintf(layers, sizeof layers, "[layer last]\ntype = Trial\n%s", behind_gate());
    OK(open_net(&n, UNMEASURED "[profile]\nN = 4, 8\n", "N x 3", "last", layers,
                &err));
    n.engine->smaller[0]->execution->cost = 1000;
    n.engine->execution->cost = 1000 * times;
    OK(strata_batcher_create(&b, n.engine, &o, &err));
    shut_gate();
    for (int i = 0; i < 6; i++)
        prepare_call(&calls[i], 1, 3, (float)i);
    submit_all(b, calls, 1);
    until_none_waits(b);
    submit_all(b, calls + 1, 5);
    let_run(3);
    for (int i = 0; i < 6; i++)
        expect_right(&calls[i]);
    strata_batcher_histogram(b, histogram, 8);
    strata_batcher_destroy(b);
    close_net(&n);
}

Test(batcher, a_batch_that_is_full_goes_first_where_that_saves_time)
{
    uint64_t histogram[8];
    run_five(histogram, 2);
    cr_expect(histogram[0] == 2 && histogram[3] == 1, "4 and 1");
    run_five(histogram, 1);
    cr_expect(histogram[0] == 1 && histogram[4] == 1, "5");
}

Test(batcher, behind_a_run_a_request_waits_for_the_delay_at_most)
{
    struct net n;
    strata_batcher *b;
    strata_batcher_stats stats;
    struct call calls[3];
    open_gated(&n, &b, (strata_batcher_options){.contexts = 2, .max_delay_ns = 500 * MS});
    for (int i = 0; i < 3; i++)
        prepare_call(&calls[i], 2, 3, (float)i);
    submit_all(b, calls, 1);
    until_none_waits(b);
    submit_all(b, calls + 1, 2);
    until_none_waits(b); /* though the first still runs */
    let_run(3);
    for (int i = 0; i < 3; i++)
        expect_right(&calls[i]);
    strata_batcher_get_stats(b, &stats);
    cr_expect(stats.late >= 1 && stats.runs == 1 + stats.late, "%d late of %d",
              (int)stats.late, (int)stats.runs);
    strata_batcher_destroy(b);
    close_net(&n);
}

/* ---- whom ----------------------------------------------------------------------------
 */

struct client {
    strata_batcher *batcher;
    const float *x, *y; /* 8 rows, and their answers */
    unsigned seed;
    int wrong;
};

enum { ROW = 3 * 6 * 6, UNITS = 7, CLIENTS = 6, REQUESTS = 60 };

static void *ask(void *arg)
{
    struct client *c = arg;
    for (int i = 0; i < REQUESTS; i++) {
        int rows = 1 + rand_r(&c->seed) % 3, first = rand_r(&c->seed) % (9 - rows);
        float y[3 * UNITS];
        const void *in[] = {c->x + first * ROW};
        void *out[] = {y};
        strata_error err;
        const strata_request_options o = {
            .struct_size = sizeof o, .rows = rows, .inputs = in, .outputs = out};
        c->wrong +=
            strata_batcher_run(c->batcher, &o, &err) != STRATA_OK ||
            memcmp(y, c->y + first * UNITS, (size_t)rows * UNITS * sizeof *y) != 0;
    }
    return NULL;
}

/* Answers are bit-identical, whatever their rows run beside. */
Test(batcher, any_number_of_threads_get_their_own_rows_back)
{
    float x[8 * ROW], y[8 * UNITS];
    struct net n;
    strata_error err;
    strata_context *c;
    pthread_t threads[CLIENTS];
    struct client clients[CLIENTS];
    const unsigned seed = (unsigned)time(NULL);
    srand(seed);
    for (int i = 0; i < 8 * ROW; i++)
        x[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    OK(open_net(&n, "", "8 x 3 x 6 x 6", "prob", row_net, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    OK(strata_copy_in(c, 0, x, &err));
    OK(strata_context_run(c, &err));
    OK(strata_copy_out(c, 1, y, &err));
    strata_context_destroy(c);
    for (int contexts = 1; contexts <= 3; contexts++) {
        strata_batcher_options o = {.struct_size = sizeof o, .contexts = contexts};
        strata_batcher *b;
        strata_batcher_stats stats;
        uint64_t histogram[8] = {0}, rows = 0;
        OK(strata_batcher_create(&b, n.engine, &o, &err));
        for (int i = 0; i < CLIENTS; i++) {
            clients[i] = (struct client){b, x, y, seed + (unsigned)i, 0};
            cr_assert_eq(pthread_create(&threads[i], NULL, ask, &clients[i]), 0);
        }
        for (int i = 0; i < CLIENTS; i++) {
            pthread_join(threads[i], NULL);
            cr_expect_eq(clients[i].wrong, 0, "seed %u, %d contexts", seed, contexts);
        }
        strata_batcher_get_stats(b, &stats);
        strata_batcher_histogram(b, histogram, 8);
        for (uint64_t k = 0; k < 8; k++)
            rows += histogram[k] * (k + 1);
        cr_expect_eq(stats.requests, CLIENTS * REQUESTS);
        cr_expect_eq(rows, stats.rows, "the histogram is of the rows that ran");
        cr_expect_eq(stats.full + stats.late + stats.idle, stats.runs);
        strata_batcher_destroy(b);
    }
    close_net(&n);
}

/* The rows that come back are those of the run, though others compute it. */
Test(batcher, a_run_of_several_threads_has_ended_when_its_rows_go_back)
{
    enum { ROWS = 4, WIDTH = 1 << 16, TIMES = 40 };
    static float x[ROWS * WIDTH], y[ROWS * WIDTH];
    const void *in[] = {x};
    void *out[] = {y};
    const strata_request_options o = {
        .struct_size = sizeof o, .rows = ROWS, .inputs = in, .outputs = out};
    struct net n;
    strata_batcher *b;
    strata_error err;
    int wrong = 0;
    OK(open_net(&n, UNMEASURED "[runtime]\nthreads = 2\n", "4 x 65536", "y",
                "[layer y]\ntype = Activation\nkind = relu\n", &err));
    OK(strata_batcher_create(&b, n.engine, NULL, &err));
    for (int r = 1; r <= TIMES; r++) {
        for (int i = 0; i < ROWS * WIDTH; i++)
            x[i] = (float)r;
        OK(strata_batcher_run(b, &o, &err));
        wrong += memcmp(x, y, sizeof y) != 0;
    }
    cr_expect_eq(wrong, 0, "%d of %d", wrong, TIMES);
    strata_batcher_destroy(b);
    close_net(&n);
}

Test(batcher, a_request_that_fails_fails_alone)
{
    struct net n;
    strata_batcher *b;
    strata_batcher_stats stats;
    strata_error err;
    struct call calls[6];
    open_trial(&n, &b, "wait_us = 50000\npoison = 13\n",
               (strata_batcher_options){.contexts = 1});
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 6; i++)
            prepare_call(&calls[i], 1, 3, i == 3 ? 13 : (float)i);
        submit_all(b, calls, 6);
        for (int i = 0; i < 6; i++)
            if (i != 3)
                expect_right(&calls[i]);
        cr_expect_eq(strata_request_wait(calls[3].request, &err), STRATA_EINVAL);
        cr_expect_not_null(strstr(err.message, "row 0 is poison"), "%s", err.message);
        cr_expect(calls[3].calls == 1 && calls[3].status == STRATA_EINVAL);
        cr_expect_str_eq(calls[3].message, err.message);
    }
    /* Nor does what it left behind, beyond the rows of a later one, fail that. */
    prepare_call(&calls[0], 1, 3, 1);
    submit_all(b, calls, 1);
    expect_right(&calls[0]);
    strata_batcher_get_stats(b, &stats);
    cr_expect(stats.failed == 2 && stats.requests == 13);
    strata_batcher_destroy(b);
    close_net(&n);
}

Test(batcher, requests_that_wait_when_it_ends_are_run)
{
    struct net n;
    strata_batcher *b;
    struct call calls[20];
    open_trial(&n, &b, "wait_us = 20000\n",
               (strata_batcher_options){.contexts = 2, .max_delay_ns = HOUR});
    for (int i = 0; i < 20; i++)
        prepare_call(&calls[i], 1, 3, (float)i);
    submit_all(b, calls, 20);
    strata_batcher_destroy(b);
    for (int i = 0; i < 20; i++)
        expect_right(&calls[i]); /* even now */
    close_net(&n);
}

static void count_down(void *user, const strata_error *err)
{
    atomic_fetch_sub((atomic_int *)user, err->status == STRATA_OK);
}

Test(batcher, a_callback_is_enough)
{
    struct net n;
    strata_batcher *b;
    strata_error err;
    struct call calls[20];
    atomic_int left = 20;
    open_trial(&n, &b, "", (strata_batcher_options){0});
    for (int i = 0; i < 20; i++) {
        prepare_call(&calls[i], 1 + i % 3, 3, (float)i);
        calls[i].options.done = count_down;
        calls[i].options.user = &left;
        OK(strata_batcher_submit(b, NULL, &calls[i].options, &err));
    }
    strata_batcher_destroy(b);
    cr_expect_eq(left, 0);
    for (int i = 0; i < 20; i++)
        cr_expect_eq(calls[i].y[0], (float)i + 1);
    close_net(&n);
}

/* ---- refusals ------------------------------------------------------------------------
 */

Test(batcher, a_queue_that_is_full_says_so)
{
    struct net n;
    strata_batcher *b;
    strata_error err;
    struct call calls[4];
    strata_request *r = (strata_request *)calls;
    open_gated(&n, &b, (strata_batcher_options){.max_waiting = 2});
    for (int i = 0; i < 4; i++)
        prepare_call(&calls[i], 1, 3, (float)i);
    submit_all(b, calls, 1);
    until_none_waits(b);
    submit_all(b, calls + 1, 2);
    cr_expect_eq(strata_batcher_submit(b, &r, &calls[3].options, &err), STRATA_EBUSY);
    cr_expect_null(r);
    let_run(3);
    for (int i = 0; i < 3; i++)
        expect_right(&calls[i]);
    cr_expect_eq(calls[3].calls, 0);
    strata_batcher_destroy(b);
    close_net(&n);
}

/* Whose application was compiled before there were turns. */
Test(batcher, options_of_before_are_taken)
{
    struct net n;
    strata_batcher *b;
    strata_error err;
    strata_batcher_options o = {.struct_size = offsetof(strata_batcher_options, turns),
                                .turns = 77};
    OK(open_net(&n, UNMEASURED, "8 x 3", "last", "[layer last]\ntype = Trial\n", &err));
    OK(strata_batcher_create(&b, n.engine, &o, &err));
    strata_batcher_destroy(b);
    o.struct_size = sizeof o.struct_size;
    cr_expect_eq(strata_batcher_create(&b, n.engine, &o, &err), STRATA_EINVAL);
    cr_expect(strstr(err.message, "strata_batcher_options.struct_size"), "%s",
              err.message);
    close_net(&n);
}

Test(batcher, what_it_cannot_do_is_refused_with_the_reason)
{
    struct net n;
    strata_batcher *b = NULL;
    strata_error err;
    struct call c;
    strata_request *r;
    strata_batcher_options o = {.struct_size = sizeof o, .max_batch = 9};
    OK(open_net(&n, "", "8 x 3", "last", "[layer last]\ntype = Identity\n", &err));
    cr_expect_eq(strata_batcher_create(&b, n.engine, &o, &err), STRATA_EINVAL);
    o = (strata_batcher_options){.struct_size = sizeof o, .contexts = 65};
    cr_expect_eq(strata_batcher_create(&b, n.engine, &o, &err), STRATA_EINVAL);
    o = (strata_batcher_options){.struct_size = sizeof o, .max_delay_ns = UINT64_MAX};
    cr_expect_eq(strata_batcher_create(&b, n.engine, &o, &err), STRATA_EINVAL);
    o = (strata_batcher_options){.struct_size = 8};
    cr_expect_eq(strata_batcher_create(&b, n.engine, &o, &err), STRATA_EINVAL);
    cr_expect_eq(strata_batcher_create(&b, NULL, NULL, &err), STRATA_EINVAL);
    cr_expect_null(b);
    OK(strata_batcher_create(&b, n.engine, NULL, &err));
    static const int64_t rows[] = {0, -1, 9};
    for (int i = 0; i < 3; i++) {
        prepare_call(&c, 1, 3, 0);
        c.options.rows = rows[i];
        cr_expect_eq(strata_batcher_submit(b, &r, &c.options, &err), STRATA_EINVAL);
    }
    prepare_call(&c, 1, 3, 0);
    c.in[0] = NULL;
    cr_expect_eq(strata_batcher_submit(b, &r, &c.options, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "'x'"), "%s", err.message);
    strata_batcher_destroy(b);
    close_net(&n);
    OK(open_net(&n, "", "8 x 3", "last", "[layer last]\ntype = Softmax\naxis = 0\n",
                &err));
    cr_expect_eq(strata_batcher_create(&b, n.engine, NULL, &err), STRATA_EUNSUPPORTED);
    cr_expect_not_null(strstr(err.message, "works along the batch"), "%s", err.message);
    close_net(&n);
}
