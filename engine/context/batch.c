/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of a context: one context for each batch that the engine is planned for, all on
 * the stream, the bindings and the arena of the whole.
 */
#include "engine/context/context.h"

#include <inttypes.h>

int context_open_smaller(strata_context *c, strata_error *err)
{
    const strata_engine *e = c->engine;
    int status = STRATA_OK;
    c->smaller = zalloc(e->n_smaller, sizeof(*c->smaller), "a context", err);
    if (!c->smaller)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < e->n_smaller && status == STRATA_OK; i++) {
        status = context_open(&c->smaller[i], e->smaller[i], c->handle, c, err);
        c->n_smaller += status == STRATA_OK;
    }
    return status;
}

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
    c->batch = batch;
    c->active = c;
    for (size_t i = c->n_smaller; i > 0 && c->smaller[i - 1]->engine->batch >= batch; i--)
        c->active = c->smaller[i - 1];
    return STRATA_OK;
}

int strata_context_set_batch(strata_context *c, int64_t batch, strata_error *err)
{
    int status = context_enter(c, err);
    return status != STRATA_OK ? status : context_leave(c, set_batch(c, batch, err));
}
