/* SPDX-License-Identifier: Apache-2.0
 *
 * The batcher against the same engine without it, in one run: whole batches one behind
 * the other (throughput), single requests now and then (what it adds), and requests that
 * come by themselves at most of what can be served (how long they take).
 *
 *     batcher [-d DEVICE] [-b BATCH,...] [-c CONTEXTS] [-w MICROSECONDS] [-t SECONDS]
 *             [-m default|tensor_op] [-s SECTION.KEY=VALUE]... NETWORK.ini
 *
 * The network's variable `batch` becomes a name with the batches -b as its values. -c
 * contexts serve, as many without the batcher; -w is the batcher's max_delay; -t the time
 * of each measurement. Requests are one image from and to memory of strata_host_alloc.
 * Arrivals are open-loop, at exponential distances; a time counts from when a request
 * was to come, so a late generator hides nothing.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <strata/batcher.h>

enum { MAX_SETS = 32, SLOTS = 64, MAX_CONTEXTS = 64, MAX_REQUESTS = 1 << 20 };

struct arguments {
    const char *path, *device, *batches;
    const char *set[MAX_SETS + 1];
    size_t n_set;
    int contexts, math;
    double delay_us, seconds;
};

struct bench {
    struct arguments a;
    strata_handle *handle;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
    int64_t batch;
    size_t in_bytes, out_bytes; /* of a row */
    char *in, *out;             /* SLOTS times `batch` rows each */
};

struct request {
    double due, done; /* seconds */
};

static _Noreturn void fail(const strata_error *err)
{
    fprintf(stderr, "batcher: %s\n", err->message);
    exit(1);
}

static void check(int status, const strata_error *err)
{
    if (status != STRATA_OK)
        fail(err);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sleep_until(double when)
{
    const struct timespec t = {.tv_sec = (time_t)when,
                               .tv_nsec = (long)((when - floor(when)) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* ---- set-up ---------------------------------------------------------------------- */

static int usage(void)
{
    fputs("usage: batcher [-d DEVICE] [-b BATCH,...] [-c CONTEXTS] [-w MICROSECONDS]\n"
          "               [-t SECONDS] [-m default|tensor_op] [-s SECTION.KEY=VALUE]...\n"
          "               NETWORK.ini\n",
          stderr);
    return 2;
}

static int parse(struct arguments *a, int argc, char **argv)
{
    int c;
    *a = (struct arguments){.batches = "1,2,4,8", .contexts = 1, .seconds = 3};
    while ((c = getopt(argc, argv, "d:b:c:w:t:m:s:")) != -1)
        switch (c) {
        case 'd':
            a->device = optarg;
            break;
        case 'b':
            a->batches = optarg;
            break;
        case 'c':
            a->contexts = atoi(optarg);
            break;
        case 'w':
            a->delay_us = atof(optarg);
            break;
        case 't':
            a->seconds = atof(optarg);
            break;
        case 'm':
            a->math = strcmp(optarg, "tensor_op") == 0 ? STRATA_MATH_TENSOR_OP
                                                       : STRATA_MATH_DEFAULT;
            break;
        case 's':
            if (a->n_set == MAX_SETS)
                return -1;
            a->set[a->n_set++] = optarg;
            break;
        default:
            return -1;
        }
    a->path = argv[optind];
    return optind == argc - 1 && a->contexts >= 1 && a->contexts <= MAX_CONTEXTS &&
                   a->seconds > 0
               ? 0
               : -1;
}

static size_t row_bytes(const strata_engine *e, int index, strata_error *err)
{
    strata_binding b;
    check(strata_engine_binding(e, index, &b, err), err);
    return (size_t)(b.bytes / b.desc.dims[0]);
}

static void *buffer(struct bench *b, size_t bytes, strata_error *err)
{
    void *p = strata_host_alloc(b->handle, bytes, err);
    if (!p)
        fail(err);
    memset(p, 0, bytes);
    return p;
}

static void open_bench(struct bench *b)
{
    strata_error err;
    char profile[256];
    static const char *const define[] = {"batch=N"};
    snprintf(profile, sizeof profile, "profile.N=%s", b->a.batches);
    b->a.set[b->a.n_set++] = profile;
    const strata_network_options options = {.struct_size = sizeof options,
                                            .set = b->a.set,
                                            .n_set = b->a.n_set,
                                            .define = define,
                                            .n_define = 1};
    check(strata_create(&b->handle, b->a.device, &err), &err);
    check(strata_set_math_mode(b->handle, b->a.math, &err), &err);
    check(strata_registry_create(&b->registry, NULL, &err), &err);
    check(strata_network_load(&b->network, b->a.path, b->registry, &options, &err), &err);
    check(strata_engine_build(&b->engine, b->handle, b->network, &err), &err);
    if (strata_engine_bindings(b->engine) != 2) {
        fputs("batcher: the network needs one input and one output\n", stderr);
        exit(1);
    }
    b->batch = strata_engine_batch(b->engine);
    b->in_bytes = row_bytes(b->engine, 0, &err);
    b->out_bytes = row_bytes(b->engine, 1, &err);
    b->in = buffer(b, SLOTS * (size_t)b->batch * b->in_bytes, &err);
    b->out = buffer(b, SLOTS * (size_t)b->batch * b->out_bytes, &err);
}

static void close_bench(struct bench *b)
{
    const size_t rows = SLOTS * (size_t)b->batch;
    strata_host_free(b->handle, b->in, rows * b->in_bytes);
    strata_host_free(b->handle, b->out, rows * b->out_bytes);
    strata_engine_destroy(b->engine);
    strata_network_destroy(b->network);
    strata_registry_destroy(b->registry);
    strata_destroy(b->handle);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the times in seconds; sorts them. */
static double quantile(double *times, size_t n, double q)
{
    qsort(times, n, sizeof *times, compare);
    return n ? times[(size_t)(q * (double)(n - 1))] : 0;
}

/* ---- without the batcher ----------------------------------------------------------- */

static void run_rows(const struct bench *b, strata_context *c, size_t slot)
{
    strata_error err;
    check(strata_enqueue_copy_in(c, 0, b->in + slot * b->in_bytes, &err), &err);
    check(strata_context_enqueue(c, NULL, &err), &err);
    check(strata_enqueue_copy_out(c, 1, b->out + slot * b->out_bytes, &err), &err);
    check(strata_context_wait(c, &err), &err);
}

struct server {
    const struct bench *b;
    int number;
    pthread_barrier_t *begin;
    double end;
    size_t rows;
};

static void *serve_batches(void *arg)
{
    struct server *s = arg;
    const struct bench *b = s->b;
    strata_error err;
    strata_handle *h;
    strata_context *c;
    check(strata_create(&h, b->a.device, &err), &err);
    check(strata_context_create(&c, b->engine, h, &err), &err);
    check(strata_context_prepare(c, &err), &err);
    pthread_barrier_wait(s->begin);
    const double end = now() + b->a.seconds;
    while ((s->end = now()) < end) {
        run_rows(b, c, (size_t)(s->number % SLOTS) * (size_t)b->batch);
        s->rows += (size_t)b->batch;
    }
    strata_context_destroy(c);
    strata_destroy(h);
    return NULL;
}

/* Rows a second of whole batches, by as many contexts and threads as the batcher has. */
static double static_throughput(const struct bench *b)
{
    pthread_t threads[MAX_CONTEXTS];
    struct server servers[MAX_CONTEXTS] = {{0}};
    pthread_barrier_t begin;
    size_t rows = 0;
    double end = 0;
    pthread_barrier_init(&begin, NULL, (unsigned)b->a.contexts + 1);
    for (int i = 0; i < b->a.contexts; i++) {
        servers[i] = (struct server){.b = b, .number = i, .begin = &begin};
        if (pthread_create(&threads[i], NULL, serve_batches, &servers[i]) != 0)
            abort();
    }
    pthread_barrier_wait(&begin);
    const double start = now();
    for (int i = 0; i < b->a.contexts; i++) {
        pthread_join(threads[i], NULL);
        rows += servers[i].rows;
        end = servers[i].end > end ? servers[i].end : end;
    }
    pthread_barrier_destroy(&begin);
    return (double)rows / (end - start);
}

/* Median seconds of a batch, alone. */
static double static_time(const struct bench *b, strata_context *c, int64_t rows)
{
    double times[1000];
    size_t n = 0;
    strata_error err;
    check(strata_context_set_batch(c, rows, &err), &err);
    run_rows(b, c, 0);
    for (const double end = now() + b->a.seconds / 4; n < 1000 && (now() < end || n < 5);
         n++) {
        times[n] = now();
        run_rows(b, c, 0);
        times[n] = now() - times[n];
    }
    return quantile(times, n, 0.5);
}

/* ---- arrivals ---------------------------------------------------------------------- */

static double exponential(double rate)
{
    return -log(1 - (double)random() / ((double)RAND_MAX + 1)) / rate;
}

static atomic_size_t answered;

static void answer(void *user, const strata_error *err)
{
    struct request *r = user;
    if (err->status != STRATA_OK)
        fail(err);
    r->done = now();
    atomic_fetch_add(&answered, 1);
}

static void submit(const struct bench *b, strata_batcher *batcher, struct request *r,
                   size_t slot)
{
    strata_error err;
    slot %= SLOTS * (size_t)b->batch;
    const void *in[] = {b->in + slot * b->in_bytes};
    void *out[] = {b->out + slot * b->out_bytes};
    const strata_request_options o = {.struct_size = sizeof o,
                                      .rows = 1,
                                      .inputs = in,
                                      .outputs = out,
                                      .done = answer,
                                      .user = r};
    check(strata_batcher_submit(batcher, NULL, &o, &err), &err);
}

static void wait_for(size_t n)
{
    while (atomic_load(&answered) < n)
        sleep_until(now() + 50e-6);
}

static int by_end(const void *a, const void *b)
{
    const struct request *x = a, *y = b;
    return (x->done > y->done) - (x->done < y->done);
}

/* Of requests, from the first batch done after a sixth of the time to the last in time.
 */
static double rate_between(struct request *requests, size_t n, double begin, double end)
{
    size_t first = 0, last = 0;
    qsort(requests, n, sizeof *requests, by_end);
    for (size_t i = 0; i < n && requests[i].done <= end; i++) {
        first = requests[i].done < begin + (end - begin) / 6 ? i : first;
        last = i;
    }
    return (double)(last - first) / (requests[last].done - requests[first].done);
}

/* Rows a second with always a few batches waiting. */
static double saturated(const struct bench *b, strata_batcher *batcher,
                        struct request *requests)
{
    const size_t ahead = (size_t)b->batch * (size_t)(b->a.contexts + 2);
    const double begin = now(), end = begin + b->a.seconds;
    size_t n = 0;
    atomic_store(&answered, 0);
    while (now() < end && n < MAX_REQUESTS) {
        while (n < atomic_load(&answered) + ahead && n < MAX_REQUESTS) {
            submit(b, batcher, &requests[n], n);
            n++;
        }
        sleep_until(now() + 50e-6);
    }
    wait_for(n);
    return rate_between(requests, n, begin, end);
}

/* Times of requests at a rate, into `times`: by the batcher, or (NULL) one by one. */
static size_t arrive(const struct bench *b, strata_batcher *batcher, strata_context *c,
                     double rate, double seconds, struct request *requests, double *times)
{
    const double begin = now() + 0.01;
    size_t n = 0;
    atomic_store(&answered, 0);
    for (double due = begin; due < begin + seconds && n < MAX_REQUESTS; n++) {
        due += exponential(rate);
        sleep_until(due);
        requests[n].due = due;
        if (batcher) {
            submit(b, batcher, &requests[n], n);
        } else {
            run_rows(b, c, n % SLOTS);
            requests[n].done = now();
        }
    }
    if (batcher)
        wait_for(n);
    for (size_t i = 0; i < n; i++)
        times[i] = requests[i].done - requests[i].due;
    return n;
}

/* ---- the table --------------------------------------------------------------------- */

static void measure_throughput(const struct bench *b, strata_batcher *batcher,
                               struct request *requests, double *rate)
{
    double ratio[3], with = 0, without = 0;
    for (int i = 0; i < 3; i++) {
        double alone = static_throughput(b), batched = saturated(b, batcher, requests);
        ratio[i] = batched / alone;
        with += batched / 3;
        without += alone / 3;
    }
    *rate = with;
    printf("| saturated, images/s | %.1f | %.1f | %.3f | at least 0.97 |\n", without,
           with, quantile(ratio, 3, 0.5));
}

static void measure_alone(const struct bench *b, strata_batcher *batcher,
                          strata_context *c, struct request *requests, double *times)
{
    enum { ROUNDS = 6 };
    double added[ROUNDS], with = 0, without = 0;
    const double rate = 0.1 / static_time(b, c, 1);
    for (int i = 0; i < ROUNDS; i++) {
        const double seconds = b->a.seconds / 2;
        size_t n = arrive(b, NULL, c, rate, seconds, requests, times);
        double alone = quantile(times, n, 0.5);
        n = arrive(b, batcher, c, rate, seconds, requests, times);
        double batched = quantile(times, n, 0.5);
        added[i] = (batched - alone) * 1e6;
        with += batched / ROUNDS;
        without += alone / ROUNDS;
    }
    printf("| at 10 %% load, median us | %.1f | %.1f | %+.1f us | at most +20 us |\n",
           without * 1e6, with * 1e6, quantile(added, ROUNDS, 0.5));
}

static void measure_load(const struct bench *b, strata_batcher *batcher,
                         strata_context *c, double rate, struct request *requests,
                         double *times)
{
    const double batch = static_time(b, c, b->batch);
    const size_t n =
        arrive(b, batcher, c, 0.85 * rate, 4 * b->a.seconds, requests, times);
    printf("| at 85 %% load, p50 ms | %.3f a batch | %.3f | %.2f batches | |\n",
           batch * 1e3, quantile(times, n, 0.5) * 1e3, quantile(times, n, 0.5) / batch);
    printf("| at 85 %% load, p99 ms | %.3f a batch | %.3f | %.2f batches | under 2.5 |\n",
           batch * 1e3, quantile(times, n, 0.99) * 1e3, quantile(times, n, 0.99) / batch);
    printf("\n%zu requests at 85 %% load\n", n);
}

static void print_formed(strata_batcher *batcher, int64_t batch)
{
    strata_batcher_stats s;
    uint64_t *histogram = calloc((size_t)batch, sizeof *histogram);
    strata_batcher_get_stats(batcher, &s);
    if (!histogram)
        return;
    strata_batcher_histogram(batcher, histogram, batch);
    printf("runs %llu (full %llu, late %llu, idle %llu), padding %llu of %llu rows; rows "
           "together:",
           (unsigned long long)s.runs, (unsigned long long)s.full,
           (unsigned long long)s.late, (unsigned long long)s.idle,
           (unsigned long long)s.padding, (unsigned long long)(s.padding + s.rows));
    for (int64_t i = 0; i < batch; i++)
        if (histogram[i])
            printf(" %lld:%llu", (long long)i + 1, (unsigned long long)histogram[i]);
    printf("\n");
    free(histogram);
}

int main(int argc, char **argv)
{
    static struct request requests[MAX_REQUESTS];
    static double times[MAX_REQUESTS];
    struct bench b = {0};
    strata_error err;
    strata_batcher *batcher;
    strata_context *c;
    double rate;
    if (parse(&b.a, argc, argv) != 0)
        return usage();
    prctl(PR_SET_TIMERSLACK, 1);
    open_bench(&b);
    const strata_batcher_options o = {.struct_size = sizeof o,
                                      .contexts = b.a.contexts,
                                      .max_delay_ns = (uint64_t)(b.a.delay_us * 1e3)};
    check(strata_batcher_create(&batcher, b.engine, &o, &err), &err);
    check(strata_context_create(&c, b.engine, b.handle, &err), &err);
    check(strata_context_prepare(c, &err), &err);
    printf("%s on %s, batches %s, %d context%s, delay %.0f us\n\n", b.a.path,
           strata_device_name(b.handle), b.a.batches, b.a.contexts,
           b.a.contexts == 1 ? "" : "s", b.a.delay_us);
    puts("| | without | batcher | ratio | goal |\n|---|---|---|---|---|");
    measure_throughput(&b, batcher, requests, &rate);
    fflush(stdout);
    measure_alone(&b, batcher, c, requests, times);
    fflush(stdout);
    measure_load(&b, batcher, c, rate, requests, times);
    print_formed(batcher, b.batch);
    strata_context_destroy(c);
    strata_batcher_destroy(batcher);
    close_bench(&b);
    return 0;
}
