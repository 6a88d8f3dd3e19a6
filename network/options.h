/* SPDX-License-Identifier: Apache-2.0
 *
 * What [build], [runtime] and [bench] of a network ask for. Texts belong to the network.
 */
#ifndef NETWORK_OPTIONS_H
#define NETWORK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum precision { PRECISION_FP32, PRECISION_FP16, PRECISION_ANY, PRECISION_BF16 };

/* What a plan is chosen for. */
enum objective {
    OBJECTIVE_TIME,      /* the least */
    OBJECTIVE_REFORMATS, /* the fewest, then least time */
    OBJECTIVE_MEMORY     /* the smallest arena of the fastest plans */
};

/* By default measured, once for a machine: COSTS_MEASURE takes all times anew. */
enum cost_kind { COSTS_DEFAULT, COSTS_ANALYTIC, COSTS_MEASURE, COSTS_FILE };
/* Of `costs =` and --costs: auto, analytic, measure, or else a file's path. */
enum cost_kind cost_kind_named(const char *word);
/* For what a cost file lacks. */
enum cost_miss { MISS_ERROR, MISS_MEASURE, MISS_ANALYTIC };

struct cost_options {
    enum cost_kind kind;
    enum cost_miss miss;
    char *file; /* COSTS_FILE: read */
    char *save; /* read if it exists, and written; NULL: none */
    /* Measure all candidates, for a file that others replay, or to compare plans; what a
     * file lacks is then an error, needed or not. */
    bool everything;
    uint64_t budget; /* ns of measuring; 0: no limit */
};

#define TRIALS_UNSAID UINT64_MAX

struct build_options {
    enum precision precision; /* dtypes of intermediate float tensors */
    uint64_t formats;         /* formats of intermediate tensors; 0: any */
    bool fusion;
    bool merge;       /* layers of one input into one, where that costs less */
    bool mixed;       /* floats in place of rounded ones, where that costs less */
    bool no_reformat; /* fail if the plan needs one */
    enum objective objective;
    double memory_slack;  /* OBJECTIVE_MEMORY: time given up for it, percent */
    int64_t memory_plans; /* and how many plans are weighed at most */
    int64_t plan_nodes;   /* of branch and bound, a search; 0: no limit */
    bool deterministic;   /* only impls whose runs agree bit for bit */
    bool nan;             /* only impls that never make a number of a NaN */
    uint64_t workspace;   /* bytes an impl may ask for; 0: no limit */
    int math;             /* STRATA_MATH_*: what this or the handle allows */
    struct cost_options costs;
    uint64_t trials; /* ns of trying plans in whole runs; or TRIALS_UNSAID: as who builds
                      * thinks fit */
};

static inline bool build_tries_plans(const struct build_options *b)
{
    return b->trials > 0 && b->trials != TRIALS_UNSAID;
}

/* Defaults for whoever runs the network; options of the application win. */
struct runtime_options {
    char *device;    /* "auto", "host", "cuda", "cuda:1" */
    int64_t threads; /* of the host device; 0: one a core */
    int wait;        /* of these for each other: STRATA_WAIT_SPIN, _YIELD or _SLEEP */
    bool graph;      /* on devices that have them */
};

#define BENCH_MAX_PERCENTILES 8
struct bench_options {
    uint64_t warmup, duration;          /* ns; duration 0: by iterations alone */
    int64_t iterations;                 /* at least */
    int64_t streams, contexts, threads; /* 0: as many contexts and threads as streams */
    int64_t in_flight;                  /* runs under way at a time, of a stream */
    bool transfers;  /* copy the inputs to the device and the outputs back */
    bool cold_cache; /* empty the device's cache before each run */
    int turns;       /* of the streams on their device: 1 yes, -1 no, 0 where it pays */
    double percentiles[BENCH_MAX_PERCENTILES];
    size_t n_percentiles;
};

#endif /* NETWORK_OPTIONS_H */
