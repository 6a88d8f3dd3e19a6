/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine of a network, planned, tried and timed. Apart from engine.c, which contexts
 * need, as what times runs needs contexts.
 */
#include "engine/engine.h"

#include "core/arguments.h"
#include "planner/cost/progress.h"

int strata_engine_build(strata_engine **out, strata_handle *handle,
                        const strata_network *network, strata_error *err)
{
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"handle", handle}, {"network", network});
    if (status != STRATA_OK)
        return status;
    status = engine_build_plan(out, handle, network, NULL, err);
    if (status == STRATA_OK)
        status = engine_mix_in_place(out, network, err);
    if (status == STRATA_OK)
        status = engine_try_plans(out, network, err);
    if (status == STRATA_OK)
        status = engine_cost_in_place(*out, err);
    if (status != STRATA_OK) {
        strata_engine_destroy(*out);
        *out = NULL;
    }
    return status;
}

void strata_set_interrupt(strata_interrupt_fn fn, void *user)
{
    progress_ask(fn, user);
}
