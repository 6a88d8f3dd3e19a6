/* SPDX-License-Identifier: Apache-2.0
 *
 * One batcher over several engines: one queue, each has its share, and one that is lost
 * takes nobody's requests with it. Devices here are the host, opened more than once.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "engine/batcher/batcher.h"
#include "tests/engine/batch_net.h"

TestSuite(batcher_devices, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

#define UNMEASURED "[build]\ncosts = analytic\n"
enum { WIDTH = 3, CLIENTS = 6, CALLS = 60 };

static void open_trial(struct net *n, const char *shape, const char *attributes)
{
    strata_error err;
    char layers[256];
    snprintf(layers, sizeof layers, "[layer last]\ntype = Trial\n%s", attributes);
    OK(open_net(n, UNMEASURED, shape, "last", layers, &err));
}

struct client {
    strata_batcher *batcher;
    unsigned seed;
    int wrong, failed;
    char message[256];
};

/* Requests of 1 to 3 rows, each value once over all clients. */
static void *ask(void *arg)
{
    struct client *c = arg;
    for (int k = 0; k < CALLS; k++) {
        float x[3 * WIDTH], y[3 * WIDTH] = {0};
        const void *in[] = {x};
        void *out[] = {y};
        const int64_t rows = 1 + (k + (int)c->seed) % 3;
        strata_error err;
        for (int i = 0; i < rows * WIDTH; i++)
            x[i] = (float)(c->seed * 1000 + (unsigned)k * 10 + (unsigned)i);
        const strata_request_options o = {sizeof o, rows, in, out, NULL, NULL};
        if (strata_batcher_run(c->batcher, &o, &err) != STRATA_OK) {
            c->failed++;
            snprintf(c->message, sizeof c->message, "%.255s", err.message);
        }
        for (int i = 0; i < rows * WIDTH; i++)
            c->wrong += y[i] != x[i] + 1;
    }
    return NULL;
}

/* What went wrong with all clients' requests. */
static int ask_all(strata_batcher *b, struct client clients[CLIENTS])
{
    pthread_t threads[CLIENTS];
    int wrong = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.batcher = b, .seed = i + 1};
        cr_assert_eq(pthread_create(&threads[i], NULL, ask, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        wrong += clients[i].wrong + clients[i].failed;
    }
    return wrong;
}

static int64_t rows_of_all(strata_batcher *b, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += strata_batcher_rows_of(b, i);
    return sum;
}

Test(batcher_devices, every_engine_has_its_share)
{
    struct net n[3];
    const strata_engine *engines[3];
    struct client clients[CLIENTS];
    strata_batcher *b;
    strata_batcher_stats stats;
    strata_error err;
    for (int contexts = 1; contexts <= 2; contexts++) {
        const strata_batcher_options o = {.struct_size = sizeof o, .contexts = contexts};
        for (int i = 0; i < 3; i++) {
            open_trial(&n[i], "8 x 3", "wait_us = 300\n");
            engines[i] = n[i].engine;
        }
        OK(strata_batcher_create_over(&b, engines, 3, &o, &err));
        cr_expect_eq(ask_all(b, clients), 0);
        strata_batcher_get_stats(b, &stats);
        cr_expect_eq(stats.requests, CLIENTS * CALLS);
        cr_expect_eq(stats.failed, 0);
        cr_expect_eq(rows_of_all(b, 3), (int64_t)stats.rows);
        for (int i = 0; i < 3; i++)
            cr_expect(strata_batcher_rows_of(b, i) > 0, "engine %d did nothing", i);
        cr_expect_eq(strata_batcher_rows_of(b, 3), -1);
        strata_batcher_destroy(b);
        for (int i = 0; i < 3; i++)
            close_net(&n[i]);
    }
}

/* A request that waits behind a run on one device has the other at once. */
Test(batcher_devices, an_idle_device_takes_a_request_at_once)
{
    struct net n[2];
    float x[2][WIDTH] = {{1, 2, 3}, {4, 5, 6}}, y[2][WIDTH] = {{0}};
    strata_request *r[2];
    strata_batcher *b;
    strata_error err;
    const strata_batcher_options o = {.struct_size = sizeof o,
                                      .max_delay_ns = UINT64_C(3600000000000)};
    const char *attributes = behind_gate();
    open_trial(&n[0], "8 x 3", attributes);
    open_trial(&n[1], "8 x 3", attributes);
    const strata_engine *engines[] = {n[0].engine, n[1].engine};
    OK(strata_batcher_create_over(&b, engines, 2, &o, &err));
    shut_gate();
    for (int i = 0; i < 2; i++) {
        const void *in[] = {x[i]};
        void *out[] = {y[i]};
        const strata_request_options q = {sizeof q, 1, in, out, NULL, NULL};
        strata_batcher_stats stats;
        OK(strata_batcher_submit(b, &r[i], &q, &err));
        do /* would never end, were the second behind the first */
            strata_batcher_get_stats(b, &stats);
        while (stats.waiting);
    }
    let_run(2);
    for (int i = 0; i < 2; i++)
        OK(strata_request_wait(r[i], &err));
    cr_expect_eq(strata_batcher_rows_of(b, 0), 1);
    cr_expect_eq(strata_batcher_rows_of(b, 1), 1);
    cr_expect_eq(y[1][2], 7);
    strata_batcher_destroy(b);
    close_net(&n[0]);
    close_net(&n[1]);
}

/* All values are poison to it, as a lost device fails every run. */
static void open_lost(struct net *n)
{
    open_trial(n, "8 x 3", "poison = 1020\ncode = 12\n");
}

/* Two requests, and the device that is well is busy with one: the other meets the lost.
 */
Test(batcher_devices, a_lost_device_takes_no_request_with_it)
{
    struct net n[2];
    float x[2][WIDTH] = {{1020, 2, 3}, {1020, 5, 6}}, y[2][WIDTH] = {{0}};
    strata_request *r[2];
    strata_batcher *b;
    strata_batcher_stats stats;
    strata_error err;
    const strata_batcher_options o = {.struct_size = sizeof o, .max_batch = 1};
    open_lost(&n[0]);
    open_trial(&n[1], "8 x 3", "wait_us = 20000\n");
    const strata_engine *engines[] = {n[0].engine, n[1].engine};
    OK(strata_batcher_create_over(&b, engines, 2, &o, &err));
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 2; i++) {
            const void *in[] = {x[i]};
            void *out[] = {y[i]};
            const strata_request_options q = {sizeof q, 1, in, out, NULL, NULL};
            OK(strata_batcher_submit(b, &r[i], &q, &err));
        }
        for (int i = 0; i < 2; i++) {
            OK(strata_request_wait(r[i], &err));
            cr_expect_eq(y[i][0], 1021);
        }
    }
    strata_batcher_get_stats(b, &stats);
    cr_expect(stats.requests == 10 && stats.failed == 0);
    cr_expect_eq(strata_batcher_rows_of(b, 0), 0, "it did none well");
    cr_expect_eq(strata_batcher_rows_of(b, 1), 10);
    strata_batcher_destroy(b);
    close_net(&n[0]);
    close_net(&n[1]);
}

Test(batcher_devices, the_last_device_tells_its_failures)
{
    struct net n[2];
    struct client clients[CLIENTS];
    strata_batcher *b;
    strata_error err;
    open_lost(&n[0]);
    open_lost(&n[1]);
    const strata_engine *engines[] = {n[0].engine, n[1].engine};
    OK(strata_batcher_create_over(&b, engines, 2, NULL, &err));
    ask_all(b, clients); /* of the first client, one request has the value */
    cr_expect(clients[0].failed >= 1 && strstr(clients[0].message, "poison"), "%d: %s",
              clients[0].failed, clients[0].message);
    strata_batcher_destroy(b);
    close_net(&n[0]);
    close_net(&n[1]);
}

Test(batcher_devices, its_contexts_take_turns_as_it_is_told)
{
    static const int uses[] = {STRATA_TURNS_AUTO, STRATA_TURNS_ON, STRATA_TURNS_OFF};
    struct net n[2];
    strata_batcher *b;
    strata_error err;
    strata_batcher_options o = {.struct_size = sizeof o, .contexts = 2};
    open_trial(&n[0], "8 x 3", "");
    open_trial(&n[1], "8 x 3", "");
    const strata_engine *engines[] = {n[0].engine, n[1].engine};
    for (size_t k = 0; k < ARRAY_LENGTH(uses); k++) {
        o.turns = uses[k];
        OK(strata_batcher_create_over(&b, engines, 2, &o, &err));
        cr_expect_eq(b->n_workers, 4);
        for (int i = 0; i < b->n_workers; i++)
            cr_expect_eq(b->workers[i].context->turn.use, uses[k]);
        strata_batcher_destroy(b);
    }
    for (int i = -1; i <= 1; i += 2) {
        o.turns = 2 * i;
        cr_expect_eq(strata_batcher_create_over(&b, engines, 2, &o, &err), STRATA_EINVAL);
        cr_expect(strstr(err.message, "set STRATA_TURNS_*"), "%s", err.message);
    }
    close_net(&n[0]);
    close_net(&n[1]);
}

Test(batcher_devices, engines_that_differ_are_refused)
{
    struct net n[2];
    strata_batcher *b;
    strata_error err;
    open_trial(&n[0], "8 x 3", "");
    open_trial(&n[1], "8 x 4", "");
    const strata_engine *engines[] = {n[0].engine, n[1].engine, NULL};
    cr_expect_eq(strata_batcher_create_over(&b, engines, 2, NULL, &err), STRATA_EINVAL);
    cr_expect(strstr(err.message, "differs from the first"), "%s", err.message);
    cr_expect_eq(strata_batcher_create_over(&b, engines + 1, 2, NULL, &err),
                 STRATA_EINVAL);
    cr_expect(strstr(err.message, "engine 1 of 2 is NULL"), "%s", err.message);
    cr_expect_eq(strata_batcher_create_over(&b, engines, 0, NULL, &err), STRATA_EINVAL);
    cr_expect_null(b);
    close_net(&n[0]);
    close_net(&n[1]);
}
