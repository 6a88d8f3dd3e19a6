/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that take turns on the device: several threads get right answers, also while
 * contexts come and go between them.
 */
#include <math.h>
#include <pthread.h>

#include <strata/parts.h>

#include "engine/context/context.h"
#include "tests/cuda/device.h"
#include "tests/engine/batch_net.h"

TestSuite(cuda_turns, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

enum { ROWS = 4, SIDE = 256, IN = ROWS * 3 * SIDE * SIDE, OUT = IN / 4 };
enum { THREADS = 3, CONTEXTS = 4, RUNS = 8 };

static const char layers[] = "[layer pool]\ntype = Pooling\nkind = average\n"
                             "kernel = 2x2\nstride = 2\n";

struct user {
    const strata_engine *engine;
    strata_handle *handle;
    float *x, *y;
    int number, wrong, failed, turns;
};

static void fill(float *x, int seed)
{
    for (int i = 0; i < IN; i++)
        x[i] = (float)((i * 37 + seed * 101) % 64) / 64;
}

static float mean_at(const float *x, int i)
{
    const int column = i % (SIDE / 2), row = i / (SIDE / 2); /* of all planes */
    const float *from = x + (ptrdiff_t)row * 2 * SIDE + column * 2;
    return (from[0] + from[1] + from[SIDE] + from[SIDE + 1]) / 4;
}

static void run_once(struct user *u, strata_context *c, int seed)
{
    strata_error err;
    strata_memory in = {u->x, IN * sizeof(float), STRATA_MEMORY_HOST, 0};
    strata_memory out = {u->y, OUT * sizeof(float), STRATA_MEMORY_HOST, 0};
    strata_part part = {
        .struct_size = sizeof part, .rows = ROWS, .inputs = &in, .outputs = &out};
    fill(u->x, seed);
    memset(u->y, 0xff, OUT * sizeof(float));
    u->failed += strata_context_run_parts(c, &part, 1, &err) != STRATA_OK;
    for (int i = 0; i < OUT; i++)
        u->wrong += !(fabsf(u->y[i] - mean_at(u->x, i)) < 1e-5f);
}

static void *use(void *arg)
{
    struct user *u = arg;
    strata_error err;
    for (int k = 0; k < CONTEXTS; k++) {
        strata_context *c = NULL;
        if (strata_context_create(&c, u->engine, u->handle, &err) != STRATA_OK) {
            u->failed++;
            return NULL;
        }
        u->failed += strata_context_set_turns(c, STRATA_TURNS_ON, &err) != STRATA_OK;
        for (int run = 0; run < RUNS; run++)
            run_once(u, c, u->number * 1000 + k * RUNS + run);
        u->turns += c->turn.ran != NULL;
        strata_context_destroy(c);
    }
    return NULL;
}

Test(cuda_turns, contexts_that_come_and_go_get_right_answers)
{
    static struct user users[THREADS];
    pthread_t threads[THREADS];
    struct net n;
    strata_error err;
    strata_destroy(need_cuda());
    OK(open_net_on(&n, "cuda:0", "[build]\ncosts = analytic\n", "4 x 3 x 256 x 256",
                   "pool", layers, &err));
    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){.engine = n.engine, .number = i};
        users[i].x = malloc(IN * sizeof(float));
        users[i].y = malloc(OUT * sizeof(float));
        cr_assert(users[i].x && users[i].y);
        OK(strata_create(&users[i].handle, "cuda:0", &err));
        cr_assert_eq(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(users[i].failed, 0, "thread %d", i);
        cr_expect_eq(users[i].wrong, 0, "thread %d: %d values", i, users[i].wrong);
        cr_expect_eq(users[i].turns, CONTEXTS, "thread %d", i);
        strata_destroy(users[i].handle);
        free(users[i].x);
        free(users[i].y);
    }
    close_net(&n);
}
