/* SPDX-License-Identifier: Apache-2.0
 *
 * A weight of few bits beside its factors, for impls that take it so: what the file has,
 * of which the values that all others see are made. See STRATA_WEIGHT_STORED.
 */
#ifndef CHECK_HARNESS_STORED_H
#define CHECK_HARNESS_STORED_H

#include "check/harness/harness.h"

struct trial;

/* Draw t->node.stored's values, and those of weight 0 in place of `weight`; false: no
 * memory. harness_close frees. */
bool stored_draw(struct trial *t, double *weight);

#endif /* CHECK_HARNESS_STORED_H */
