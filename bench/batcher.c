/* SPDX-License-Identifier: Apache-2.0
 *
 * The batcher against the same engine without it, in one run: whole batches one behind
 * the other (throughput), single requests now and then (what it adds), and requests that
 * come by themselves at most of what can be served (how long they take).
 *
 * Without it, a thread copies the rows of a batch in at once, runs, copies the results
 * out and waits, over and over; with it, rows are requests, each copied by itself. Both
 * take them from the same memory in the same order, larger than caches. What is not being
 * measured does not exist meanwhile: on the host it would keep a team of threads.
 *
 *     batcher [-d DEVICE] [-b BATCH,...] [-c CONTEXTS] [-w MICROSECONDS] [-t SECONDS]
 *             [-T on|off] [-m MATH] [-s SECTION.KEY=VALUE]... [-1] NETWORK.ini
 *
 * The network's variable `batch` becomes a name with the batches -b as its values. -c
 * contexts serve, as many without the batcher; -w is the batcher's max_delay; -T its
 * turns, which it takes or not by itself without; -t the time of each measurement; -1
 * ends after the throughput. Requests are one image from and to memory of
 * strata_host_alloc. Arrivals are open-loop, at exponential distances; a time counts from
 * when a request was to come, so a late generator hides nothing.
 */
#include "bench/batcher_load.h"
#include "registry/math/mode.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- set-up ---------------------------------------------------------------------- */

static int usage(void)
{
    fputs("usage: batcher [-d DEVICE] [-b BATCH,...] [-c CONTEXTS] [-w MICROSECONDS]\n"
          "               [-T on|off] [-t SECONDS] [-m MATH]\n"
          "               [-s SECTION.KEY=VALUE]... [-1] NETWORK.ini\n",
          stderr);
    return 2;
}

static bool read_turns(const char *text, int *out)
{
    *out = strcmp(text, "on") == 0 ? STRATA_TURNS_ON : STRATA_TURNS_OFF;
    return *out == STRATA_TURNS_ON || strcmp(text, "off") == 0;
}

static int parse(struct arguments *a, int argc, char **argv)
{
    int c;
    *a = (struct arguments){.batches = "1,2,4,8", .contexts = 1, .seconds = 3};
    while ((c = getopt(argc, argv, "d:b:c:w:T:t:m:s:1")) != -1)
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
        case 'T':
            if (!read_turns(optarg, &a->turns))
                return -1;
            break;
        case 't':
            a->seconds = atof(optarg);
            break;
        case 'm':
            if (!math_from_name(optarg, &a->math))
                return -1;
            break;
        case 's':
            if (a->n_set == MAX_SETS)
                return -1;
            a->set[a->n_set++] = optarg;
            break;
        case '1':
            a->first_alone = true;
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
    strata_binding b = {.struct_size = sizeof b};
    check(strata_engine_binding(e, index, &b, err), err);
    return (size_t)(b.bytes / b.desc.dims[0]);
}

static void *buffer(struct bench *b, size_t bytes, strata_error *err)
{
    void *p = strata_host_alloc(b->handle, bytes, err);
    if (!p)
        check(STRATA_ENOMEM, err);
    memset(p, 0, bytes);
    return p;
}

/* From 0 to 1 where elements are floats or halves. */
static void fill(struct bench *b, size_t bytes, strata_error *err)
{
    strata_binding in = {.struct_size = sizeof in};
    check(strata_engine_binding(b->engine, 0, &in, err), err);
    for (size_t i = 0; in.desc.dtype == STRATA_FP32 && i < bytes / 4; i++)
        ((float *)b->in)[i] = (float)random() / (float)RAND_MAX;
    for (size_t i = 0; in.desc.dtype == STRATA_FP16 && i < bytes / 2; i++)
        ((uint16_t *)b->in)[i] = (uint16_t)(0x3800 | (random() & 0x3ff));
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
    fill(b, SLOTS * (size_t)b->batch * b->in_bytes, &err);
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

/* ---- the table --------------------------------------------------------------------- */

static void measure_throughput(const struct bench *b, struct request *requests)
{
    enum { ROUNDS = 5 };
    double ratio[ROUNDS], with = 0, without = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const double alone = static_throughput(b), batched = saturated(b, requests);
        ratio[i] = batched / alone;
        with += batched / ROUNDS;
        without += alone / ROUNDS;
    }
    printf("| saturated, rows/s | %.1f | %.1f | %.3f | at least 0.97 |\n", without, with,
           quantile(ratio, ROUNDS, 0.5));
    fflush(stdout);
}

static double median_at(const struct bench *b, bool batched, double rate,
                        struct request *requests, double *times)
{
    strata_batcher *batcher = batched ? open_batcher(b) : NULL;
    const size_t n = arrive(b, batcher, rate, b->a.seconds / 2, requests, times);
    strata_batcher_destroy(batcher);
    return quantile(times, n, 0.5);
}

static void measure_alone(const struct bench *b, struct request *requests, double *times)
{
    enum { ROUNDS = 6 };
    double added[ROUNDS], with = 0, without = 0;
    const double rate = 0.1 / static_time(b, 1);
    for (int i = 0; i < ROUNDS; i++) {
        const double alone = median_at(b, false, rate, requests, times);
        const double batched = median_at(b, true, rate, requests, times);
        added[i] = (batched - alone) * 1e6;
        with += batched / ROUNDS;
        without += alone / ROUNDS;
    }
    printf("| at 10 %% load, median us | %.1f | %.1f | %+.1f us | at most +20 us |\n",
           without * 1e6, with * 1e6, quantile(added, ROUNDS, 0.5));
    fflush(stdout);
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

/* Arrivals at 85 % of what is served just before, in rounds: a machine that slows down
 * for a while would else be asked for more than it can do. */
static void measure_load(const struct bench *b, struct request *requests, double *times)
{
    enum { ROUNDS = 5 };
    double p50[ROUNDS], p99[ROUNDS], typical = 0, late = 0, whole = 0;
    strata_batcher *batcher = NULL;
    for (int i = 0; i < ROUNDS; i++) {
        strata_batcher_destroy(batcher);
        const double rate = saturated(b, requests), batch = static_time(b, b->batch);
        batcher = open_batcher(b);
        const size_t n = arrive(b, batcher, 0.85 * rate, b->a.seconds, requests, times);
        p50[i] = quantile(times, n, 0.5) / batch;
        p99[i] = quantile(times, n, 0.99) / batch;
        typical += p50[i] * batch / ROUNDS;
        late += p99[i] * batch / ROUNDS;
        whole += batch / ROUNDS;
    }
    const double median_p50 = quantile(p50, ROUNDS, 0.5),
                 median_p99 = quantile(p99, ROUNDS, 0.5);
    printf("| at 85 %% load, p50 ms | %.3f a batch | %.3f | %.2f batches | |\n",
           whole * 1e3, typical * 1e3, median_p50);
    printf("| at 85 %% load, p99 ms | %.3f a batch | %.3f | %.2f batches | under 2.5 |\n",
           whole * 1e3, late * 1e3, median_p99);
    printf("\np99 of %d rounds, in batches: %.2f to %.2f; the last round's\n", ROUNDS,
           p99[0], p99[ROUNDS - 1]);
    print_formed(batcher, b->batch);
    strata_batcher_destroy(batcher);
}

int main(int argc, char **argv)
{
    static struct request requests[MAX_REQUESTS];
    static double times[MAX_REQUESTS];
    struct bench b = {0};
    if (parse(&b.a, argc, argv) != 0)
        return usage();
    prctl(PR_SET_TIMERSLACK, 1);
    open_bench(&b);
    printf("%s on %s, batches %s, %d context%s, delay %.0f us\n\n", b.a.path,
           strata_device_name(b.handle), b.a.batches, b.a.contexts,
           b.a.contexts == 1 ? "" : "s", b.a.delay_us);
    puts("| | without | batcher | ratio | goal |\n|---|---|---|---|---|");
    measure_throughput(&b, requests);
    if (!b.a.first_alone) {
        measure_alone(&b, requests, times);
        measure_load(&b, requests, times);
    }
    close_bench(&b);
    return 0;
}
