/* SPDX-License-Identifier: Apache-2.0
 *
 * Plan problems with a network's graph and made-up plugins: which formats each operation
 * supports, and how fast it is in each, are drawn from a seed. What a seed draws does not
 * depend on the support, so that a format supported at 40 % is supported at 70 % too, at
 * the same cost.
 */
#ifndef BENCH_PLAN_RANDOM_H
#define BENCH_PLAN_RANDOM_H

#include "planner/planner.h"

struct random_options {
    uint64_t seed;
    int support_percent; /* of the formats, for each operation; fp32:nchw is always in */
    int n_labels;        /* formats in all: 5 or 8 */
};

struct random_problem {
    struct plan_problem problem;
    int *tensors; /* of the network, by the problem's index */
    int *index;   /* the other way round, -1 for those inside a fused node */
    int *ports;
    struct plan_reader *readers;
    int64_t **matrices;
    size_t n_matrices;
};

/* Of a planner with its nodes (planner_make_nodes) and no model yet. */
int random_problem_make(struct random_problem *out, const struct planner *planner,
                        const struct random_options *options, strata_error *err);
void random_problem_free(struct random_problem *r);

#endif /* BENCH_PLAN_RANDOM_H */
