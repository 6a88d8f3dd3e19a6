/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine of a network, planned, tried and timed. Apart from engine.c, which contexts
 * need, as what times runs needs contexts.
 */
#include "engine/engine.h"

#include "core/arguments.h"
#include "planner/cost/progress.h"

static int build(strata_engine **out, strata_handle *handle,
                 const strata_network *network, strata_error *err)
{
    int status = engine_build_plan(out, handle, network, NULL, err);
    if (status == STRATA_OK)
        status = engine_mix_in_place(out, network, err);
    if (status == STRATA_OK)
        status = engine_try_plans(out, network, err);
    if (status == STRATA_OK)
        status = engine_cost_in_place(*out, err);
    if (status == STRATA_OK && progress_was_ended()) /* heard where no step cared */
        status = error_set(err, STRATA_EBUSY, "%s: interrupted", network->path);
    return status;
}

int strata_engine_build(strata_engine **out, strata_handle *handle,
                        const strata_network *network, strata_error *err)
{
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"handle", handle}, {"network", network});
    if (status != STRATA_OK)
        return status;
    progress_ask_anew();
    status = build(out, handle, network, err);
    progress_ask_anew();
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
