/* SPDX-License-Identifier: Apache-2.0
 *
 * How others choose formats, to compare the planner with. Each fills choices[n_ops];
 * what an assignment costs is plan_cost()'s word, whatever the method believed.
 */
#ifndef BENCH_PLAN_BASELINE_H
#define BENCH_PLAN_BASELINE_H

#include "planner/solver/plan.h"

/* Every operation its cheapest choice, whatever conversions that needs. */
int baseline_fastest(const struct plan_problem *p, size_t *choices, strata_error *err);
/* Operations in order, each the choice that adds least to what is decided: its own cost
 * and the conversions of its inputs, those made for earlier readers being free. */
int baseline_greedy(const struct plan_problem *p, size_t *choices, strata_error *err);
/* Partitioned boolean quadratic programming over the edges (Anderson and Gregg, 2018):
 * each reader pays its own shortest conversion, although another may have paid for the
 * same. Reductions R0, RI and RII, and where none applies RN: fix the node of highest
 * degree to its locally best label (Scholz and Eckstein, 2002). */
int baseline_edgewise(const struct plan_problem *p, size_t *choices, strata_error *err);

#endif /* BENCH_PLAN_BASELINE_H */
