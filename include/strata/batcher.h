/* SPDX-License-Identifier: Apache-2.0
 *
 * Strata, a batcher: requests of any threads, run together.
 *
 * A request is a few rows of the network's batch. When nothing runs, a request runs at
 * once; while something does, requests gather, and go when they fill the largest batch,
 * when the oldest has waited for max_delay, or when nothing runs any more, whichever is
 * first. Each gets its own rows back, and its own failure. An engine built for several
 * batches ([profile]) is run at the smallest that fits, or first at one that is filled,
 * whichever computes more rows in its time by the plans' costs.
 */
#ifndef STRATA_BATCHER_H
#define STRATA_BATCHER_H

#include <strata/parts.h>
#include <strata/strata.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_batcher strata_batcher;
typedef struct strata_request strata_request;

typedef struct strata_batcher_options {
    size_t struct_size;
    int64_t max_batch;     /* rows run together; 0: as many as the engine takes */
    uint64_t max_delay_ns; /* of a request behind a run under way */
    int contexts;       /* that run side by side, 1 to 64; 0: 1 on the host, 2 elsewhere:
                           one copies while the other computes */
    size_t max_waiting; /* requests; more are refused with EBUSY; 0: no limit */
    int turns;          /* STRATA_TURNS_*, of the contexts of a device */
} strata_batcher_options;

/* Starts one thread a context, which on the host computes itself. The engine must outlive
 * the batcher; EUNSUPPORTED if it is not right for smaller batches than its own and
 * max_batch is not 1. options may be NULL: no delay. Any thread may use the batcher. */
STRATA_API int strata_batcher_create(strata_batcher **out, const strata_engine *engine,
                                     const strata_batcher_options *options,
                                     strata_error *err);
/* The same over engines of one network on several devices, n of them: one queue, from
 * which whichever device is free takes, with options->contexts for each. The first says
 * what the plans' costs are. A device that is lost gives back what it was running, and the
 * others go on; the last one's failures are the requests'. EINVAL: the engines differ in
 * their bindings or batch. */
STRATA_API int strata_batcher_create_over(strata_batcher **out,
                                          const strata_engine *const *engines, int n,
                                          const strata_batcher_options *options,
                                          strata_error *err);
/* Runs what was submitted, then ends the threads. No thread may submit any more;
 * requests that were not waited for must be, later. */
STRATA_API void strata_batcher_destroy(strata_batcher *batcher);

/* Called when a request is done, on a thread of the batcher: be brief, do not wait there.
 * `err` is valid during the call, its status STRATA_OK where all went well. */
typedef void (*strata_done_fn)(void *user, const strata_error *err);

typedef struct strata_request_options {
    size_t struct_size;
    int64_t rows; /* 1 to max_batch */
    /* Host memory in the order of the engine's bindings, inputs first: `rows` rows of
     * each in the binding's format (the whole of a binding that has no rows). An output
     * that is NULL is not wanted. The arrays are copied; the memory is the caller's and
     * must stay until the request is done. Memory of strata_host_alloc is fastest. */
    const void *const *inputs;
    void *const *outputs;
    strata_done_fn done; /* or NULL */
    void *user;
} strata_request_options;

/* Hands in a request. `out`, if not NULL, receives it, to be waited for exactly once;
 * with out NULL only `done` tells the end. EBUSY: max_waiting requests wait already. */
STRATA_API int strata_batcher_submit(strata_batcher *batcher, strata_request **out,
                                     const strata_request_options *options,
                                     strata_error *err);
/* Waits until it is done, after its callback, frees it and returns its status. */
STRATA_API int strata_request_wait(strata_request *request, strata_error *err);
/* submit and wait. */
STRATA_API int strata_batcher_run(strata_batcher *batcher,
                                  const strata_request_options *options,
                                  strata_error *err);

typedef struct strata_batcher_stats {
    uint64_t requests, rows;   /* done */
    uint64_t failed;           /* of the requests */
    uint64_t runs;             /* of the network */
    uint64_t padding;          /* rows computed for nothing */
    uint64_t full, late, idle; /* runs by what began them: enough rows, max_delay, or that
                                  nothing else ran */
    uint64_t waiting;          /* requests now */
} strata_batcher_stats;
STRATA_API void strata_batcher_get_stats(strata_batcher *batcher,
                                         strata_batcher_stats *out);
/* Rows that the index-th engine has done; -1: there is none. */
STRATA_API int64_t strata_batcher_rows_of(strata_batcher *batcher, int index);
/* How many runs had 1, 2, ... rows: writes the first n counts, returns how many there are
 * (max_batch). */
STRATA_API int64_t strata_batcher_histogram(strata_batcher *batcher, uint64_t *out,
                                            int64_t n);

#ifdef __cplusplus
}
#endif

#endif /* STRATA_BATCHER_H */
