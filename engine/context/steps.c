/* SPDX-License-Identifier: Apache-2.0
 *
 * Several of the engine's steps, each checked if the context checks its nodes.
 */
#include "engine/context/context.h"

int context_enqueue_steps(strata_context *c, size_t first, size_t end, size_t *step,
                          strata_error *err)
{
    int status = STRATA_OK;
    for (size_t s = first; s < end && status == STRATA_OK; s++) {
        const struct execution_step *now = &c->execution->steps[s];
        status = c->check && context_step_acts(c, now)
                     ? context_check_step(c, now, err)
                     : context_enqueue_step(c, now, err);
        if (step)
            *step = s;
    }
    return status;
}
