/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions: an engine's plans at sizes that none was made for. Of the plans for the next
 * larger and the next smaller listed sizes, that which costs less is instantiated there:
 * the same impls and formats, shapes and memory worked out anew.
 */
#include "engine/engine.h"

#include <strata/sizes.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arguments.h"
#include "planner/planner.h"

/* ---- a version ------------------------------------------------------------------ */

static int plan_like(struct planner **out, const strata_engine *like,
                     const strata_network *net, strata_error *err)
{
    const struct planner_device device = {like->handle->properties, like->execution->math,
                                          like->execution->threads};
    return planner_make_like(out, net, &device, like->planner, err);
}

/* By the plan, of the two, whose version costs less. */
static int plan_version(struct planner **out, const strata_engine **like,
                        const strata_engine *e, const strata_network *net,
                        const int64_t *sizes, strata_error *err)
{
    const size_t up = engine_nearest_plan(e, sizes, true),
                 down = engine_nearest_plan(e, sizes, false);
    struct planner *other = NULL;
    *like = engine_plan(e, up);
    int status = plan_like(out, *like, net, err);
    if (status != STRATA_OK || up == down)
        return status;
    if (plan_like(&other, engine_plan(e, down), net, NULL) == STRATA_OK &&
        other->plan->cost < (*out)->plan->cost) {
        struct planner *dearer = *out;
        *out = other;
        other = dearer;
        *like = engine_plan(e, down);
    }
    planner_free(other);
    return STRATA_OK;
}

int engine_make_version(strata_engine **out, const strata_engine *e,
                        strata_handle *handle, const int64_t *sizes, strata_error *err)
{
    strata_network *net = NULL;
    struct planner *planner = NULL;
    const strata_engine *like;
    *out = NULL;
    int status = network_resize(&net, e->network, sizes, err);
    if (status == STRATA_OK)
        status = plan_version(&planner, &like, e, net, sizes, err);
    if (status == STRATA_OK)
        status = engine_build_version(out, like, handle, planner, err);
    strata_network_destroy(net); /* the engine has its own reference */
    if (status != STRATA_OK)
        return status;
    memcpy((*out)->sizes, sizes, sizeof(*out)->sizes);
    status = engine_settle_rows(*out, e, err);
    if (status == STRATA_OK)
        return status;
    strata_engine_destroy(*out);
    *out = NULL;
    return status;
}

/* ---- what is told ---------------------------------------------------------------- */

int strata_engine_dimensions(const strata_engine *e)
{
    return e ? (int)e->network->n_symbols : 0;
}

int strata_engine_dimension(const strata_engine *e, int index, strata_dimension *out,
                            strata_error *err)
{
    int status = ARGUMENTS(err, {"engine", e}, {"out", out});
    if (status == STRATA_OK)
        status = struct_check(out->struct_size, SIZE_THROUGH(strata_dimension, is_batch),
                              "strata_dimension", err);
    if (status != STRATA_OK)
        return status;
    if (index < 0 || index >= (int)e->network->n_symbols)
        return error_set(err, STRATA_EINVAL, "dimension %d: there are %zu", index,
                         e->network->n_symbols);
    const struct network_symbol *s = &e->network->symbols[index];
    const strata_dimension found = {.name = s->name,
                                    .least = s->least,
                                    .most = s->most,
                                    .sizes = s->sizes,
                                    .n_sizes = (int32_t)s->n_sizes,
                                    .is_batch = index == e->batch_symbol};
    struct_give(out, &found, sizeof found);
    return STRATA_OK;
}

static double predicted_us(const struct execution *x)
{
    return (double)execution_predicts(x) / (PLAN_UNIT_PER_NS * 1e3);
}

/* What a run takes of what the prices of its steps add up to: about the same at a size
 * near by. */
static double in_place_share(const struct execution *x)
{
    return x->cost > 0 ? (double)execution_predicts(x) / (double)x->cost : 1;
}

static int estimate(strata_estimate *out, const strata_engine *e, const int64_t *sizes,
                    strata_error *err)
{
    strata_network *net = NULL;
    struct planner *planner = NULL;
    struct execution *x = NULL;
    const strata_engine *like;
    int status = network_resize(&net, e->network, sizes, err);
    if (status == STRATA_OK)
        status = plan_version(&planner, &like, e, net, sizes, err);
    if (status == STRATA_OK)
        status = execution_make(&x, planner, planner->plan, err);
    if (status == STRATA_OK) {
        out->predicted_us = predicted_us(x) * in_place_share(like->execution);
        out->arena_bytes = x->arena_bytes;
        memcpy(out->sizes, like->sizes, sizeof like->sizes);
    }
    execution_free(x);
    planner_free(planner);
    strata_network_destroy(net);
    return status;
}

int strata_engine_estimate(const strata_engine *e, const int64_t *wanted, int n,
                           strata_estimate *out, strata_error *err)
{
    int64_t sizes[NETWORK_MAX_SYMBOLS] = {0};
    /* an engine of one shape has none to give */
    const void *given = n == 0 ? (const void *)sizes : wanted;
    int status = ARGUMENTS(err, {"engine", e}, {"sizes", given}, {"out", out});
    if (status == STRATA_OK)
        status = struct_check(out->struct_size, SIZE_THROUGH(strata_estimate, sizes),
                              "strata_estimate", err);
    if (status == STRATA_OK && n != (int)e->network->n_symbols)
        status = error_set(err, STRATA_EINVAL, "%d sizes; the engine has %zu dimensions",
                           n, e->network->n_symbols);
    for (int i = 0; i < n && status == STRATA_OK; i++)
        status = network_check_size(e->network, i, wanted[i], err);
    if (status != STRATA_OK)
        return status;
    engine_run_sizes(e, wanted, sizes);
    const strata_engine *listed = engine_plan(e, engine_nearest_plan(e, sizes, true));
    strata_estimate found = {.planned = engine_has_sizes(listed, sizes),
                             .n_sizes = (int32_t)n};
    if (found.planned) {
        found.predicted_us = predicted_us(listed->execution);
        found.arena_bytes = listed->execution->arena_bytes;
        memcpy(found.sizes, sizes, sizeof sizes);
    } else if ((status = estimate(&found, e, sizes, err)) != STRATA_OK) {
        return status;
    }
    struct_give(out, &found, sizeof found);
    return STRATA_OK;
}
