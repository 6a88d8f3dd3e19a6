/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans whose costs do not hold.
 */
#include "tools/predicted.h"

#include "core/text.h"
#include "planner/planner.h"

#define APART 1.5
/* Less is what a run costs beside its layers. */
#define LEAST_US 50

double tool_predicted_us(const strata_engine *e)
{
    return (double)execution_predicts(e->execution) / (PLAN_UNIT_PER_NS * 1e3);
}

char *tool_doubt_costs(const strata_engine *e, double measured_us)
{
    static const char *const sources[] = {
        [COSTS_ANALYTIC] = "they are a model's (costs = analytic)",
        [COSTS_MEASURE] = "they were measured, but not as this run finds the machine",
        [COSTS_FILE] = "they are a cost file's"};
    const double said = tool_predicted_us(e);
    const double more = said > measured_us ? said : measured_us;
    const double less = said > measured_us ? measured_us : said;
    if (more < APART * less || more - less < LEAST_US)
        return NULL;
    return text_print("the plan's costs said %.4g ms and a run takes %.4g ms: %s; try "
                      "%s",
                      said * 1e-3, measured_us * 1e-3, sources[e->planner->costs.kind],
                      e->stored
                          ? "--costs measure, building the engine anew"
                          : "--costs measure; what the user's cache holds stays until "
                            "it is removed");
}
