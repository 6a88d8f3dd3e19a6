/* SPDX-License-Identifier: Apache-2.0
 *
 * strata bench, in the order of the work.
 *
 *   bench_options  the command line, trtexec's spellings among it
 *   bench          cases, a session each
 *   bench_devices  an engine for each of several devices
 *   bench_lane     a stream with its contexts: runs put on it and waited for
 *   bench_run      lanes driven by threads, for a time
 *   bench_result   what the times say
 *   bench_print    tables, JSON, CSV, one entry a run
 */
#ifndef TOOLS_BENCH_BENCH_H
#define TOOLS_BENCH_BENCH_H

#include <jansson.h>
#include <stdatomic.h>

#include <strata/parts.h>

#include "tools/tool.h"

/* ---- options.c ------------------------------------------------------------ */

enum { BENCH_MAX_CASES = 16 }; /* of one list */

struct bench_list {
    char *items[BENCH_MAX_CASES]; /* of one block at items[0] */
    size_t n;
};

/* What one case measures: the network's [bench] section, then the options. */
struct bench_settings {
    struct bench_options base;
    bool spin;        /* poll for the end of a run instead of sleeping */
    bool no_graph;    /* whatever [runtime] graph says */
    uint64_t idle;    /* ns between runs */
    int64_t averages; /* print the mean of every so many runs; 0: not */
    int64_t batch;    /* rows of a run; 0: as many as the engine takes */
    bool mark_all;    /* events in every run, whatever they cost */
    int turns;        /* of the streams on their device: STRATA_TURNS_* */
};

/* Unset: negative, or UINT64_MAX. */
struct bench_arguments {
    struct tool_options common;
    const char *path;
    const char *shapes; /* "x:1x3x224x224,y:1x10", or NULL */
    struct bench_list batches, precisions, streams;
    char **made; /* texts that common.set points to */
    size_t n_made, made_capacity;
    uint64_t warmup, duration;
    int64_t iterations, contexts, threads, in_flight;
    int transfers, cold_cache;
    double percentiles[BENCH_MAX_PERCENTILES];
    size_t n_percentiles;
    struct bench_settings rest; /* all but base */
    const char *times_file, *profile_file, *save_file;
    bool build_only;
    bool layers; /* a table of them after each case */
};

/* EXIT_OK, or the exit code with a message printed; bench names the command there. */
int bench_parse(struct bench_arguments *a, const struct tool_command *bench, int argc,
                char **argv);
void bench_arguments_free(struct bench_arguments *a);
/* With the network's own values where the options leave one open. */
struct bench_settings bench_settings(const struct bench_arguments *a,
                                     const strata_network *net, int64_t streams);

/* shapes.c: what --shapes say, as overrides; of a network (NULL: an engine, which refuses
 * them). */
int bench_set_shapes(struct tool_options *o, const strata_network *net, const char *list,
                     strata_error *err);
/* EINVAL where the network with those overrides has other shapes than the list says. */
int bench_check_shapes(const strata_network *net, const char *list, strata_error *err);

/* ---- devices.c --------------------------------------------------------------- */

enum { BENCH_MAX_DEVICES = 64 };

/* What --device lists: "cuda:0,cuda:1", or "cuda:all"; one, or NULL as it is given. */
struct bench_devices {
    char *names[BENCH_MAX_DEVICES];
    size_t n;
    struct tool_session sessions[BENCH_MAX_DEVICES]; /* each with an engine */
};
/* EINVAL for more than there is room for; what opening the first of cuda:all gives. */
int bench_devices_parse(struct bench_devices *d, const char *list, strata_error *err);
/* The network, then an engine, on each: tool_prepare and tool_plan. Close in every case.
 */
int bench_devices_prepare(struct bench_devices *d, struct tool_options *o,
                          const char *path, strata_error *err);
int bench_devices_plan(struct bench_devices *d, const struct tool_options *o,
                       strata_error *err);
void bench_devices_close(struct bench_devices *d);

/* ---- lane.c ----------------------------------------------------------------- */

/* One run; ms. Host times count from the begin of the measurement, device times from an
 * event that the stream passed at about that moment. Those of copies are empty where none
 * was asked for. Events take time, a tenth of a run of 30 us: most runs do without, and
 * tell what an application sees; some have them, and tell the parts. */
struct bench_sample {
    bool marked;       /* else device times are not known */
    double enqueue[2]; /* of all calls that put the run on the stream */
    double done;       /* the host knows that the run is over */
    double h2d[2], compute[2], d2h[2];
};

struct bench_slot; /* a run under way */

struct bench_lane {
    const struct bench_settings *settings;
    const strata_engine *engine;
    strata_handle *handle;
    strata_context **contexts;
    size_t n_contexts, next_context;
    struct bench_slot *slots; /* base.in_flight of them */
    size_t next_slot;
    void **host; /* of each binding, for copies */
    strata_event *base;
    double base_ms; /* when it was passed, on the host's clock */
    void *scratch;  /* written to empty the cache */
    size_t scratch_bytes;
    struct bench_sample *samples;
    size_t n_samples, capacity;
    size_t begun; /* since the lane started */
    bool record;  /* else it warms up */
    bool whole;   /* runs without events are one call: only others tell what enqueues */
};

double bench_now_ms(void);
/* Contexts lane, lane + of, ... of all of the settings'. On a lane whose memory is zero;
 * close it in every case. */
int bench_lane_open(struct bench_lane *l, const strata_engine *e, const char *device,
                    const struct bench_arguments *a, const struct bench_settings *s,
                    int64_t lane, int64_t of, strata_error *err);
void bench_lane_close(struct bench_lane *l);
/* From here on runs are recorded. */
int bench_lane_record(struct bench_lane *l, double start_ms, strata_error *err);
/* Put one more run on the stream, after waiting for the oldest if that is needed. */
int bench_lane_step(struct bench_lane *l, double start_ms, strata_error *err);
/* Wait for all that is under way. */
int bench_lane_drain(struct bench_lane *l, double start_ms, strata_error *err);

/* ---- run.c ---------------------------------------------------------------- */

struct bench_run {
    const struct bench_settings *settings;
    struct bench_lane *lanes;
    size_t n_lanes;
    double wall_ms; /* of the measurement */
    double waited;  /* of it, the part in which threads had no processor; 0 to 1 */
};
/* Warm up, then measure; the lanes hold the samples. */
int bench_run(struct bench_run *r, strata_error *err);

/* ---- result.c --------------------------------------------------------------- */

enum bench_metric {
    BENCH_LATENCY, /* from the first call to the result, as the host sees it */
    BENCH_ENQUEUE,
    BENCH_H2D,
    BENCH_COMPUTE,
    BENCH_D2H,
    BENCH_METRICS
};
extern const char *const bench_metric_names[BENCH_METRICS];

/* ms */
struct bench_stats {
    double min, mean, median, max, deviation;
    double low, high; /* between which the middle four fifths lie */
    double percentiles[BENCH_MAX_PERCENTILES];
};

enum { BENCH_MAX_NOTES = 14 };

struct bench_result {
    char device[96], network[128], precision[16], dims[128];
    int64_t batch;
    struct bench_settings settings;
    size_t n;                             /* runs */
    double wall_ms, build_ms, throughput; /* runs a second */
    struct bench_stats stats[BENCH_METRICS];
    double waited; /* the part of the time in which threads had no processor; 0 to 1 */
    double drift;  /* of the compute time, last quarter over first, less 1 */
    uint64_t weight_bytes, context_bytes, device_bytes;
    int run_threads;     /* of the kernels of a run on the host; 0 on other devices */
    double predicted_ms; /* by the plan's costs; 0: of another batch than this */
    bool graph, turns;
    char *quote; /* which number to quote */
    char *notes[BENCH_MAX_NOTES];
    size_t n_notes;
};
/* What the runs say; free it in every case. */
int bench_summarise(struct bench_result *out, const struct bench_run *r,
                    strata_error *err);
/* Whether runs did not wait for each other. */
bool bench_alone(const struct bench_result *r);
/* The sentences, once all numbers are in. */
int bench_judge(struct bench_result *r, strata_error *err);
void bench_result_free(struct bench_result *r);

/* ---- print.c ---------------------------------------------------------------- */

/* One case as a table with its sentences. */
void bench_print_case(const struct bench_result *r, int format);
/* Several in a line each. */
void bench_print_cases(const struct bench_result *results, size_t n, int format);
/* Means of every so many runs. */
void bench_print_averages(const struct bench_run *run, int64_t every);
/* Every run, with trtexec's names. */
int bench_write_times(const struct bench_run *run, const char *path, strata_error *err);

#endif /* TOOLS_BENCH_BENCH_H */
