/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches and the batcher on CUDA, against the host; contexts that take turns there.
 */
#include <math.h>
#include <pthread.h>
#include <time.h>

#include <strata/batcher.h>
#include <strata/parts.h>

#include "engine/context/context.h"
#include "tests/engine/batch_net.h"
#include "tests/cuda/device.h"

TestSuite(cuda_batch, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

enum { ROW = 3 * 6 * 6, UNITS = 7, MOST = 8, CLIENTS = 8, REQUESTS = 200 };

static float x[MOST * ROW], right[MOST * UNITS];

static void fill(void)
{
    const unsigned seed = (unsigned)time(NULL);
    srand(seed);
    fprintf(stderr, "# seed %u\n", seed);
    for (int i = 0; i < MOST * ROW; i++)
        x[i] = (float)rand() / (float)RAND_MAX * 2 - 1;
}

static void run_rows(strata_context *c, int64_t batch, float *y)
{
    strata_error err;
    OK(strata_context_set_batch(c, batch, &err));
    OK(strata_copy_in(c, 0, x, &err));
    OK(strata_context_run(c, &err));
    OK(strata_copy_out(c, 1, y, &err));
}

/* The host's answers. */
static void find_right(void)
{
    struct net n;
    strata_error err;
    strata_context *c;
    OK(open_net(&n, "", "8 x 3 x 6 x 6", "prob", conv_net, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    run_rows(c, MOST, right);
    strata_context_destroy(c);
    close_net(&n);
}

/* Of rows from `first`, what they are and what they should be. */
static double difference(const float *y, int first, int64_t rows)
{
    double worst = 0;
    for (int64_t i = 0; i < rows * UNITS; i++)
        worst = fmax(worst, fabs((double)y[i] - (double)right[first * UNITS + i]));
    return worst;
}

static const struct variant {
    const char *name, *build;
    double bound;
} variants[] = {
    {"fp32", "[build]\ncosts = analytic\n", 1e-4},
    {"fp16", "[build]\ncosts = analytic\nprecision = fp16\n", 1e-2},
};

static void open_cuda(struct net *n, const struct variant *v)
{
    strata_error err;
    char profile[256];
    snprintf(profile, sizeof profile, "[profile]\nN = 1, 3, 8\n%s", v->build);
    OK(open_net_on(n, "cuda:0", profile, "N x 3 x 6 x 6", "prob", conv_net, &err));
}

Test(cuda_batch, any_batch_gives_the_host_s_rows)
{
    strata_destroy(need_cuda());
    fill();
    find_right();
    for (size_t k = 0; k < ARRAY_LENGTH(variants); k++) {
        struct net n;
        strata_error err;
        strata_context *c;
        float y[MOST * UNITS];
        open_cuda(&n, &variants[k]);
        OK(strata_context_create(&c, n.engine, n.handle, &err));
        for (int graph = 0; graph < 2; graph++) {
            OK(strata_context_use_graph(c, graph, &err));
            OK(strata_context_prepare(c, &err));
            for (int i = 0; i < 60; i++) {
                const int batch = 1 + rand() % MOST;
                run_rows(c, batch, y);
                const double d = difference(y, 0, batch);
                cr_expect_lt(d, variants[k].bound, "%s, graph %d, batch %d: %g",
                             variants[k].name, graph, batch, d);
            }
        }
        strata_context_destroy(c);
        close_net(&n);
    }
}

static uint64_t bytes_of(const char *batches)
{
    struct net n;
    strata_error err;
    char profile[256];
    snprintf(profile, sizeof profile, "[profile]\nN = %s\n[build]\ncosts = analytic\n",
             batches);
    OK(open_net_on(&n, "cuda:0", profile, "N x 64 x 8 x 8", "last",
                   "[layer last]\ntype = Convolution\nfilters = 256\nkernel = 3x3\n"
                   "weights = w:c\n",
                   &err));
    const uint64_t bytes = strata_engine_weight_bytes(n.engine);
    close_net(&n);
    return bytes;
}

Test(cuda_batch, profiles_share_weights)
{
    strata_destroy(need_cuda());
    const uint64_t one = bytes_of("8"), four = bytes_of("5, 6, 7, 8");
    fprintf(stderr, "# weights: %llu bytes for one batch, %llu for four\n",
            (unsigned long long)one, (unsigned long long)four);
    cr_expect_lt(four, 2 * one, "near batches choose the same impl");
}

struct client {
    strata_batcher *batcher;
    unsigned seed;
    double worst;
};

static void *ask(void *arg)
{
    struct client *c = arg;
    for (int i = 0; i < REQUESTS; i++) {
        const int rows = 1 + rand_r(&c->seed) % 3, first = rand_r(&c->seed) % (9 - rows);
        float y[3 * UNITS];
        const void *in[] = {x + first * ROW};
        void *out[] = {y};
        strata_error err;
        const strata_request_options o = {
            .struct_size = sizeof o, .rows = rows, .inputs = in, .outputs = out};
        const int status = strata_batcher_run(c->batcher, &o, &err);
        const double d = status == STRATA_OK ? difference(y, first, rows) : INFINITY;
        c->worst = d > c->worst ? d : c->worst;
    }
    return NULL;
}

Test(cuda_batch, requests_get_their_own_rows_back)
{
    strata_destroy(need_cuda());
    fill();
    find_right();
    for (size_t k = 0; k < ARRAY_LENGTH(variants); k++) {
        struct net n;
        strata_error err;
        strata_batcher *b;
        strata_batcher_stats s;
        pthread_t threads[CLIENTS];
        struct client clients[CLIENTS];
        const strata_batcher_options o = {.struct_size = sizeof o,
                                          .max_delay_ns = 200000};
        open_cuda(&n, &variants[k]);
        OK(strata_batcher_create(&b, n.engine, &o, &err));
        for (int i = 0; i < CLIENTS; i++) {
            clients[i] = (struct client){b, (unsigned)rand(), 0};
            cr_assert_eq(pthread_create(&threads[i], NULL, ask, &clients[i]), 0);
        }
        for (int i = 0; i < CLIENTS; i++) {
            pthread_join(threads[i], NULL);
            cr_expect_lt(clients[i].worst, variants[k].bound, "%s: %g", variants[k].name,
                         clients[i].worst);
        }
        strata_batcher_get_stats(b, &s);
        fprintf(stderr, "# %s: %llu requests of %llu rows in %llu runs\n",
                variants[k].name, (unsigned long long)s.requests,
                (unsigned long long)s.rows, (unsigned long long)s.runs);
        cr_expect_eq(s.requests, CLIENTS * REQUESTS);
        strata_batcher_destroy(b);
        close_net(&n);
    }
}

/* ---- halves: a first layer that rounds its images ---------------------------------- */

static const char images[] =
    "[layer conv]\ntype = Convolution\nfilters = 64\nkernel = 7x7\nstride = 2\n"
    "pad = 3\nweights = w:conv\n[layer act]\ntype = Activation\n"
    "[layer pool]\ntype = Pooling\nkernel = 3x3\nstride = 2\npad = 1\n"
    "[layer mean]\ntype = Pooling\nkind = average\nglobal = yes\n"
    "[layer fc]\ntype = FullyConnected\nunits = 40\nweights = w:fc\n";

enum { IMAGE = 3 * 224 * 224, CLASSES = 40 };

/* One part a row, of memory that is not pinned. */
static void run_images(strata_context *c, int64_t rows, const float *from, float *y)
{
    strata_error err;
    strata_memory in[MOST], out[MOST];
    strata_part parts[MOST];
    for (int64_t i = 0; i < rows; i++) {
        in[i] = (strata_memory){.data = (void *)(uintptr_t)(from + i * IMAGE),
                                .bytes = IMAGE * sizeof *from};
        out[i] = (strata_memory){.data = y + i * CLASSES, .bytes = CLASSES * sizeof *y};
        parts[i] = (strata_part){.struct_size = sizeof parts[i],
                                 .rows = 1,
                                 .inputs = &in[i],
                                 .outputs = &out[i]};
    }
    OK(strata_context_run_parts(c, parts, (size_t)rows, &err));
}

Test(cuda_batch, images_that_travel_as_halves_give_the_same)
{
    static float from[MOST * IMAGE];
    float y[MOST * CLASSES], got[MOST * CLASSES];
    struct net n;
    strata_error err;
    strata_context *c;
    strata_destroy(need_cuda());
    srand((unsigned)time(NULL));
    OK(open_net_on(&n, "cuda:0",
                   "[profile]\nN = 1, 3, 8\n[build]\ncosts = analytic\n"
                   "precision = fp16\nmath = tensor_op\n",
                   "N x 3 x 224 x 224", "fc", images, &err));
    cr_expect(engine_sends_halves(n.engine->execution, 0, sizeof from));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int64_t rows = 1; rows <= MOST; rows++) {
        for (int i = 0; i < MOST * IMAGE; i++)
            from[i] = (float)rand() / (float)RAND_MAX * 4 - 2;
        OK(strata_context_set_batch(c, rows, &err));
        OK(strata_copy_in(c, 0, from, &err));
        OK(strata_context_run(c, &err));
        OK(strata_copy_out(c, 1, y, &err));
        memset(got, 0xff, sizeof got);
        run_images(c, rows, from, got);
        cr_expect_eq(memcmp(got, y, (size_t)rows * CLASSES * sizeof *y), 0, "%lld rows",
                     (long long)rows);
    }
    strata_context_destroy(c);
    close_net(&n);
}

/* ---- turns: contexts come and go between others' runs ------------------------------ */

enum { IMAGES = 4, SIDE = 256, IN = IMAGES * 3 * SIDE * SIDE, OUT = IN / 4 };
enum { THREADS = 3, CONTEXTS = 4, RUNS = 8 };

static const char layers[] = "[layer pool]\ntype = Pooling\nkind = average\n"
                             "kernel = 2x2\nstride = 2\n";

struct user {
    const strata_engine *engine;
    strata_handle *handle;
    float *x, *y;
    int number, wrong, failed, turns;
};

static void fill_image(float *image, int seed)
{
    for (int i = 0; i < IN; i++)
        image[i] = (float)((i * 37 + seed * 101) % 64) / 64;
}

static float mean_at(const float *image, int i)
{
    const int column = i % (SIDE / 2), row = i / (SIDE / 2); /* of all planes */
    const float *from = image + (ptrdiff_t)row * 2 * SIDE + column * 2;
    return (from[0] + from[1] + from[SIDE] + from[SIDE + 1]) / 4;
}

static void run_once(struct user *u, strata_context *c, int seed)
{
    strata_error err;
    strata_memory in = {u->x, IN * sizeof(float), STRATA_MEMORY_HOST, 0};
    strata_memory out = {u->y, OUT * sizeof(float), STRATA_MEMORY_HOST, 0};
    strata_part part = {
        .struct_size = sizeof part, .rows = IMAGES, .inputs = &in, .outputs = &out};
    fill_image(u->x, seed);
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

Test(cuda_batch, contexts_in_turns_come_and_go)
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
