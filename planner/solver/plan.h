/* SPDX-License-Identifier: Apache-2.0
 *
 * The solver: the best plan of a problem, why there is none, and the certificate that
 * none is better (planner/certificate/ checks it).
 */
#ifndef PLANNER_SOLVER_PLAN_H
#define PLANNER_SOLVER_PLAN_H

#include "core/status.h"
#include "planner/solver/problem.h"

/* Tell tensors who makes and who reads them, from what the operations name. `readers`:
 * room for every input of every operation, which the problem goes on to use. */
void plan_connect(struct plan_problem *p, struct plan_reader *readers);

/* Choose. options may be NULL. On a limit the best plan found and a bound come back; ties
 * are broken towards earlier formats of the table, so that neighbours agree, then by the
 * least sum of hashes of (operation name, labels, cost), then by the order of the search,
 * never by address or thread. EPLAN names the operations whose formats cannot be made to
 * meet. */
int plan_solve(struct plan **out, const struct plan_problem *p,
               const struct plan_options *options, strata_error *err);
void plan_free(struct plan *plan);
/* How much more a plan's objective may be than the least, as a share of that. */
double plan_gap(const struct plan *plan);
int plan_copy(struct plan **out, const struct plan_problem *p, const struct plan *plan,
              strata_error *err);
/* The plan of choices that were made elsewhere, beside a bound that is known; EINVAL if
 * they do not fit together. */
int plan_of_choices(struct plan **out, const struct plan_problem *p,
                    const struct plan_options *options, const size_t *choices,
                    int64_t bound, strata_error *err);

/* The cheapest plans, best first, at most `capacity`, each at most `percent` dearer than
 * the best, whose bound they share. They differ in choices. */
int plan_solve_best(struct plan **out, size_t capacity, size_t *n, double percent,
                    const struct plan_problem *p, const struct plan_options *options,
                    strata_error *err);
/* Least cost with one more ban; PLAN_INFINITE where none is left. from = -1: any. */
int plan_cost_without(int64_t *cost, const struct plan_problem *p,
                      const struct plan_options *options, const struct plan_ban *ban,
                      strata_error *err);

/* Why no plan exists: operations and bans that together leave none, where without any one
 * of them there is one. */
struct plan_conflict {
    int *ops;
    size_t n_ops;
    size_t *bans; /* indices of the options' bans */
    size_t n_bans;
};

/* EINVALID if a plan exists. */
int plan_find_conflict(struct plan_conflict *out, const struct plan_problem *p,
                       const struct plan_options *options, strata_error *err);
void plan_conflict_free(struct plan_conflict *c);

int plan_certify(struct plan_certificate **out, const struct plan_problem *p,
                 const struct plan_options *options, const struct plan *plan,
                 strata_error *err);
void plan_certificate_free(struct plan_certificate *c);
/* As text, one fact a line; *text is the caller's to free. */
int plan_certificate_write(char **text, const struct plan_certificate *c,
                           strata_error *err);
int plan_certificate_read(struct plan_certificate **out, const char *text,
                          strata_error *err);

/* Cost of an assignment, PLAN_INFINITE if a conversion is missing. */
int64_t plan_cost(const struct plan_problem *p, const size_t *choices);
/* An operation's choice in an assignment, and the labels a tensor's readers then want. */
const struct plan_choice *plan_chosen(const struct plan_problem *p, const size_t *choices,
                                      int op);
uint64_t plan_wanted(const struct plan_problem *p, const size_t *choices,
                     const struct plan_tensor *t);
/* The label that a step of the plan makes, and those made of it by later steps. */
uint64_t plan_step_labels(const struct plan *plan, const struct plan_step *step);
/* Why a step of a plan stands. */
enum plan_reason plan_step_reason(const struct plan_problem *p, const struct plan *plan,
                                  const struct plan_step *step);

/* Whether content that began as `root` loses nothing at v that u still held: what reaches
 * a label has the least precision met on the way. */
bool plan_keeps_precision(const struct plan_problem *p, int root, int u, int v);
/* Minimum-cost conversion tree from `root` to every label of the bit set `wanted`, by
 * dynamic programming over its subsets (Dreyfus and Wagner, 1971, for directed graphs).
 * Content never passes through a label of less precision than both its ends. steps may
 * be NULL, else it holds n_labels entries; of the cheapest trees it is one with the
 * fewest steps. */
int64_t plan_tree(const struct plan_problem *p, int tensor, int root, uint64_t wanted,
                  struct plan_step *steps, size_t *n_steps);

#endif /* PLANNER_SOLVER_PLAN_H */
