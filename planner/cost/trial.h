/* SPDX-License-Identifier: Apache-2.0
 *
 * An impl or a conversion, set up to be timed: memory, random data, weights, state.
 */
#ifndef PLANNER_COST_TRIAL_H
#define PLANNER_COST_TRIAL_H

#include "core/handle.h"
#include "planner/view.h"

#define TRIAL_ROUNDS 5
#define TRIAL_PATTERN 4096 /* elements of random data, repeated */

/* Random elements of each dtype: floats in [-1, 1), small integers, BOOL8 of both, and
 * indices (INT32, INT64) of 0. Weights are positive, as variances must be. */
struct trial_pattern {
    float weight[TRIAL_PATTERN];
    int64_t of[STRATA_DTYPE_COUNT][TRIAL_PATTERN]; /* elements of each dtype, packed */
};
void trial_pattern_fill(struct trial_pattern *p);

struct trial {
    const struct cost_query *query;
    const struct planner *planner;
    strata_handle *handle;
    const struct planner_node *node; /* of a candidate */
    struct pack_memory packs;
    struct node_view view;
    strata_tensor *weights;
    strata_run run;
    void *state, *ctx;
    void *from, *to; /* of a conversion */
    void *graph; /* of its runs, as they are timed; NULL: put on the stream each time */
    bool set_up, opened;
    bool broken; /* failed: not to be used */
    int repeats, n;
    int64_t best; /* ns that the layer can do without this trial, 0: unknown */
    double warm;  /* ns of the run that warms up */
    double samples[TRIAL_ROUNDS]; /* ns */
    double loaded; /* ns, the least of times of a busy host; 0: there is none */
};

/* Queued on the handle's stream; wait for it before the first run. */
int trial_open(struct trial *t, const struct trial_pattern *p, strata_error *err);
/* Nothing may be under way. */
void trial_close(struct trial *t);
/* Bytes of device memory that a trial takes, about. */
int64_t trial_bytes(const struct planner *planner, const struct cost_query *q);
/* Whether there is nothing to compute. */
bool trial_empty(const struct trial *t);
/* Put so many runs on the handle's stream. */
int trial_enqueue(struct trial *t, int repeats, strata_error *err);
/* What a run reads besides weights: the k-th piece of memory, or NULL past the last. */
void *trial_input(const struct trial *t, int k, size_t *bytes);

#endif /* PLANNER_COST_TRIAL_H */
