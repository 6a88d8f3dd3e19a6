/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch that a context's next runs are for, and with it which context runs: one is
 * inside for each batch that the engine is planned for.
 */
#include "engine/context/context.h"

#include <inttypes.h>

static int set_batch(strata_context *c, int64_t batch, strata_error *err)
{
    const strata_engine *e = c->engine;
    if (e->only_batch && batch != e->batch)
        return error_set(err, STRATA_EUNSUPPORTED, "%s: a batch of %" PRId64 ": %s",
                         e->network->path, batch, e->only_batch);
    if (batch < 1 || batch > e->batch)
        return error_set(err, STRATA_EINVAL,
                         "a batch of %" PRId64 "; the engine takes 1 to %" PRId64, batch,
                         e->batch);
    strata_context *active = c;
    for (size_t i = c->n_smaller; i > 0 && c->smaller[i - 1]->engine->batch >= batch; i--)
        active = c->smaller[i - 1];
    if (c->execution->n_states && active->engine->batch != batch)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "%s: a batch of %" PRId64 ": the plan that it would go by "
                         "changes the states of %" PRId64
                         " rows; list it in [profile], or run those",
                         e->network->path, batch, active->engine->batch);
    c->batch = batch;
    c->active = active;
    return STRATA_OK;
}

int strata_context_set_batch(strata_context *c, int64_t batch, strata_error *err)
{
    int status = context_enter(c, __func__, err);
    return status != STRATA_OK ? status : context_leave(c, set_batch(c, batch, err));
}
