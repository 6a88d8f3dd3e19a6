/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests for bench/batcher: one behind the other, or as they come. Each function ends
 * the program with a message where the library fails.
 */
#ifndef BENCH_BATCHER_LOAD_H
#define BENCH_BATCHER_LOAD_H

#include <stdbool.h>

#include <strata/batcher.h>

enum { MAX_SETS = 32, SLOTS = 16, MAX_CONTEXTS = 64, MAX_REQUESTS = 1 << 20 };

struct arguments {
    const char *path, *device, *batches;
    const char *set[MAX_SETS + 1];
    size_t n_set;
    bool first_alone;
    int contexts, math, turns;
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

void check(int status, const strata_error *err);
/* Of n times; sorts them. */
double quantile(double *times, size_t n, double q);

strata_batcher *open_batcher(const struct bench *b);

/* Rows a second of whole batches: without the batcher, by as many contexts and threads as
 * it has, and with always a few batches waiting for it. */
double static_throughput(const struct bench *b);
double saturated(const struct bench *b, struct request *requests);

/* Median seconds of so many rows, alone. */
double static_time(const struct bench *b, int64_t rows);

/* Seconds that requests of one row take which come at a rate (1/s), into times; returns
 * how many there were. By the batcher, or (NULL) one by one. */
size_t arrive(const struct bench *b, strata_batcher *batcher, double rate, double seconds,
              struct request *requests, double *times);

#endif /* BENCH_BATCHER_LOAD_H */
