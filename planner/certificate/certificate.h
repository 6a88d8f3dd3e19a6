/* SPDX-License-Identifier: Apache-2.0
 *
 * The independent checker: it shares the problem's structs with the solver and no code.
 */
#ifndef PLANNER_CERTIFICATE_CERTIFICATE_H
#define PLANNER_CERTIFICATE_CERTIFICATE_H

#include "core/status.h"
#include "planner/solver/problem.h"

/* STRATA_OK, or EMISMATCH with what does not hold. */
int plan_check(const struct plan_problem *p, const struct plan_options *options,
               const struct plan_certificate *c, strata_error *err);

#endif /* PLANNER_CERTIFICATE_CERTIFICATE_H */
