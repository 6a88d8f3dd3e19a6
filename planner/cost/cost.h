/* SPDX-License-Identifier: Apache-2.0
 *
 * What running an impl and converting a tensor cost. A cost belongs to a key: a line of
 * text that says all that a time depends on (layer, attributes, shapes, impl and the
 * build of its module, formats, threads) and nothing that it does not (names that the
 * user gave), so that equal layers share one measurement.
 *
 *   cost_key       a candidate or a conversion -> its key
 *   cost_analytic  a model of the device's ceilings; a lower bound from the same
 *   cost_file      tables of costs by key, and their text form
 *   cost_cache     the file that is kept for a machine
 *   cost_measure   times of the device
 *   cost_near      plans of the same problem that leave ways to run it (near.h)
 *   cost_in_place  times of a finished run's beginnings -> what each step adds to it
 *   cost           a plan from these, asking for as few measurements as prove it
 */
#ifndef PLANNER_COST_COST_H
#define PLANNER_COST_COST_H

#include "core/device.h"
#include "network/options.h"
#include "planner/solver/plan.h"

struct execution;
struct planner;
struct planner_candidate;
struct planner_node;
struct registry_row;

/* ---- analytic (analytic.c) ---------------------------------------------------- */

/* The impl's claims of the device's ceilings. Results are in 1/16 ns, at least 1. Of
 * equal claims the row with fewer formats costs less. */
int64_t cost_of_run(const strata_node *n, const strata_impl *impl,
                    const struct registry_row *row, const strata_layer *layer,
                    const struct device_properties *d);
/* bytes of the source and of the destination. */
int64_t cost_of_reformat(int64_t from_bytes, int64_t to_bytes,
                         const struct device_properties *d);
/* What no impl of the layer and no conversion can beat: arithmetic saved by clever
 * algorithms and data that lies in caches are allowed for. */
int64_t cost_bound_of_run(const strata_node *n, const strata_layer *layer,
                          const struct device_properties *d);
int64_t cost_bound_of_reformat(int64_t from_bytes, int64_t to_bytes,
                               const struct device_properties *d);

/* ---- queries and keys (key.c) --------------------------------------------------
 */

/* One thing that has a cost. Views of the tensors are complete but for data. */
struct cost_query {
    char *key;
    const struct planner_candidate *candidate; /* NULL: a conversion */
    strata_tensor *in, *out, *weights;         /* of the candidate */
    strata_desc from, to;                      /* of the conversion */
    const char *layer;                         /* a user's name, for messages */
};
/* Fills everything; free with cost_query_free in every case. */
int cost_query_run(struct cost_query *q, const struct planner *planner,
                   const struct planner_candidate *c, strata_error *err);
int cost_query_reformat(struct cost_query *q, const struct planner *planner, int tensor,
                        int from, int to, strata_error *err);
void cost_query_free(struct cost_query *q);
/* Of a candidate's node: a port before this one that reads the same tensor in the same
 * format; or -1. Both are one piece of memory. */
int cost_port_before(const struct planner_node *n, const struct planner_candidate *c,
                     int port);
/* Whether a run drives out of the device's cache what it left there: then it finds only
 * its inputs, which the layer before has just written. */
bool cost_is_cold(const struct planner *planner);

/* ---- tables and files (file.c) -------------------------------------------------
 */

#define COST_KEY_MAX 4000                 /* bytes */
#define COST_FILE_MAX (64 << 20)          /* bytes */
#define COST_NS_MAX INT64_C(100000000000) /* 100 s: no kernel takes longer */

struct cost {
    int64_t ns;     /* median */
    int64_t spread; /* ns between the quartiles */
    int runs;       /* timed */
    bool loaded;    /* threads waited for processors in all of them */
};

struct cost_entry {
    char *key;
    struct cost cost;
};

/* Sorted by key. */
struct cost_table {
    char device[64];
    struct cost_entry *entries;
    size_t n, capacity;
};

void cost_table_init(struct cost_table *t, const char *device);
void cost_table_free(struct cost_table *t);
/* NULL if it is not there. */
const struct cost *cost_table_find(const struct cost_table *t, const char *key);
/* Add or replace. */
int cost_table_put(struct cost_table *t, const char *key, struct cost cost,
                   strata_error *err);
/* Which of two for one key stays: one of a quiet machine, the one with more runs, and of
 * two alike in that the lower. */
bool cost_is_better(const struct cost *a, const struct cost *b);
/* How many are loaded; and a table of these, or of the others, the caller's. */
size_t cost_table_loaded(const struct cost_table *t);
int cost_table_part(struct cost_table *out, const struct cost_table *t, bool loaded,
                    strata_error *err);
/* Add another table's entries, the better of two. EMISMATCH if the devices differ. */
int cost_table_merge(struct cost_table *t, const struct cost_table *other,
                     strata_error *err);
/* Text to table and back. `path` is for messages, "PATH:LINE: what". */
int cost_table_parse(struct cost_table *t, const char *text, size_t size,
                     const char *path, strata_error *err);
int cost_table_read(struct cost_table *t, const char *path, strata_error *err);
/* Bytes of its text, about. */
size_t cost_table_bytes(const struct cost_table *t);
/* The text, the caller's to free. */
int cost_table_text(char **text, size_t *size, const struct cost_table *t,
                    strata_error *err);
int cost_table_write(const struct cost_table *t, const char *path, strata_error *err);

/* ---- sources ------------------------------------------------------------------------
 */

/* Whatever can tell costs that are not known yet: the device, or a recording of it. */
struct cost_source {
    const char *name;
    /* Fill costs[i] of n queries about the planner's candidates and tensors, best with
     * all at hand so that they can be interleaved. `best` of a query, in ns, is what its
     * layer can do already, 0 if unknown: far slower ones need not be timed well. costs,
     * cleared by the caller, keeps runs 0 for what was not done for lack of time or after
     * progress_interrupt(). */
    int (*measure)(struct cost_source *s, const struct planner *planner,
                   const struct cost_query *const *queries, const int64_t *best, size_t n,
                   struct cost *costs, strata_error *err);
    double deadline; /* of progress_now(), for all plans of an engine; 0: none yet */
    bool confirms;   /* times differ, so that a second one tells more */
    /* Warnings that were given: one of each is enough for an engine. */
    bool told_late, told_busy, told_unkept;
};

/* Times on a handle's device and stream (measure.c): the one part of planning that needs
 * the device to be here. */
struct cost_device {
    struct cost_source source;
    strata_handle *handle;
};
void cost_device_init(struct cost_device *d, strata_handle *handle);

/* ---- the user's cache (cache.c) ------------------------------------------------------
 */

#define COST_CACHE_MAX (16 << 20) /* bytes, past which only the last network's stay */

/* The cost file of a machine's device in the user's cache folder (core/installed.h),
 * malloc-ed. STRATA_EIO: the folder cannot be made; STRATA_ENOTFOUND: there is none. */
int cost_cache_path(char **out, const struct device_properties *d, strata_error *err);

/* ---- planning (cost.c, source.c) ----------------------------------------------------
 */

/* What planning took. */
struct cost_report {
    enum cost_kind kind;
    size_t queries, measured, solved; /* distinct keys, of them timed; plans made */
    size_t unknown;                   /* numbers of the problem that are lower bounds */
    size_t loaded; /* known costs that no quiet moment of the host was found for */
    size_t mended; /* of those that were, for which one was found now */
    bool kept;     /* what was measured is in the user's cache, but for these */
    bool complete; /* every cost of the plan is known, and nothing unknown can beat it */
    double seconds;
};

/* ---- in place (in_place.c) ------------------------------------------------------- */

/* What the steps before `end` take together. */
struct cost_prefix {
    size_t end;
    double ns;
};
/* Each step's cost in place, of n prefixes, the last of which is the whole: ends ascend,
 * and each follows a step that does something. The prefixes are changed. A whole of no
 * time leaves the execution without. */
void cost_in_place(struct execution *x, struct cost_prefix *prefixes, size_t n);

/* Costs that were measured beside planning, for where the network's options keep such:
 * the file that was asked for, or the user's cache. */
int cost_save(const struct planner *planner, const struct cost_table *measured,
              strata_error *err);

/* What a kind means: never COSTS_DEFAULT, for which the user's STRATA_COSTS speaks. */
enum cost_kind cost_kind_of(enum cost_kind kind);
/* The planner's plan, by the network's options and its plan_options. source: who measures
 * what the options let be measured; NULL: nobody. */
int cost_plan(struct planner *planner, struct cost_source *source, strata_error *err);
/* The same from a table and a source (NULL: what the table lacks is an error when the
 * plan needs it). Measured costs are added to the table. */
int cost_plan_from(struct planner *planner, struct cost_table *table,
                   struct cost_source *source, const struct cost_options *options,
                   strata_error *err);

#endif /* PLANNER_COST_COST_H */
