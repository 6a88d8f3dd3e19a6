/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan's costs said beside what a run takes.
 */
#ifndef TOOLS_PREDICTED_H
#define TOOLS_PREDICTED_H

#include "engine/engine.h"

/* Of one run at the engine's own size, by the costs its plan was made from. */
double tool_predicted_us(const strata_engine *e);
/* A sentence for a run that takes another time by more than half, malloc-ed; NULL where
 * there is nothing to say. */
char *tool_doubt_costs(const strata_engine *e, double measured_us);

#endif /* TOOLS_PREDICTED_H */
