/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs in place of an engine that was just built, where its costs are measured: of each
 * of its plans, in a context of its own, on random inputs. How a plan is timed is in
 * beginnings.c.
 */
#include "engine/context/context.h"

#include <stdlib.h>

#include "planner/cost/trial.h"
#include "planner/planner.h"

#define BEGINNINGS_MS 800.0 /* for all sizes together */

/* ---- inputs ---------------------------------------------------------------- */

/* Random elements: what is computed with zeros takes less power, and so less time. */
static int fill_input(strata_context *c, size_t index, const struct trial_pattern *p,
                      strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    const struct execution *x = c->execution;
    const struct execution_value *v = &x->values[x->bindings[index].value];
    char *data = context_binding_data(c, index, err);
    size_t bytes = (size_t)v->bytes;
    size_t done = TRIAL_PATTERN * strata_dtype_size(v->desc.dtype);
    done = done < bytes ? done : bytes;
    if (!data)
        return STRATA_ENOMEM;
    int status =
        ops->copy(c->stream, data, p->of[v->desc.dtype], done, COPY_TO_DEVICE, err);
    for (size_t n; done < bytes && status == STRATA_OK; done += n) {
        n = done < bytes - done ? done : bytes - done;
        status = ops->copy(c->stream, data + done, data, n, COPY_ON_DEVICE, err);
    }
    return status;
}

static int fill_inputs(strata_context *c, strata_error *err)
{
    struct trial_pattern *p = zalloc(1, sizeof *p, "random data", err);
    int status = p ? STRATA_OK : STRATA_ENOMEM;
    if (p)
        trial_pattern_fill(p);
    for (size_t i = 0; i < c->execution->n_inputs && status == STRATA_OK; i++)
        status = fill_input(c, i, p, err);
    if (status == STRATA_OK) /* before the pattern is gone */
        status = strata_stream_synchronize(c->stream, err);
    free(p);
    return status;
}

/* ---- all of an engine's ---------------------------------------------------- */

static bool is_wanted(const strata_engine *e)
{
    return network_loaded(e->network)->build.costs.kind == COSTS_MEASURE &&
           e->handle->device->ops->capture_begin && e->execution->n_steps > 0;
}

/* By their impls' flags. */
static bool is_capturable(const strata_context *c)
{
    bool captured = c->use_graph;
    for (size_t i = 0; i < c->execution->n_nodes; i++)
        captured &= !c->nodes[i].uncaptured;
    for (size_t i = 0; i < c->n_smaller; i++)
        captured &= is_capturable(c->smaller[i]);
    return captured;
}

static int cost_plans(strata_engine *e, strata_context *c, strata_error *err)
{
    const double budget_ms = BEGINNINGS_MS / (double)(1 + e->n_smaller);
    int status = is_capturable(c) ? fill_inputs(c, err) : STRATA_EUNSUPPORTED;
    if (status == STRATA_OK)
        status = strata_context_prepare(c, err);
    if (status == STRATA_OK)
        status = context_cost_in_place(c, e->execution, budget_ms, err);
    for (size_t i = 0; i < e->n_smaller && status == STRATA_OK; i++)
        status = context_cost_in_place(c->smaller[i], e->smaller[i]->execution, budget_ms,
                                       err);
    return status;
}

int engine_cost_in_place(strata_engine *e, strata_error *err)
{
    strata_context *c = NULL;
    strata_error why;
    error_clear(&why);
    if (!is_wanted(e))
        return STRATA_OK;
    int status = strata_context_create(&c, e, e->handle, &why);
    if (status == STRATA_OK)
        status = cost_plans(e, c, &why);
    strata_context_destroy(c);
    if (status == STRATA_EDEVICELOST)
        return error_set(err, status, "%s", why.message);
    if (status != STRATA_OK)
        log_line(STRATA_LOG_INFO, "%s: no costs in place: %s", e->network->path,
                 why.message[0] ? why.message : "its runs are not one graph");
    return STRATA_OK;
}
