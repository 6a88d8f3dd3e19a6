/* SPDX-License-Identifier: Apache-2.0
 *
 * What was quantised, and may be computed in floats where that is faster
 * (planner/mixed/mixed.h), by whole runs. Kernels of 8 bits and of floats differ in what
 * they take between their neighbours beyond their prices, all of a kind in the same
 * direction, so that prices choose wrongly for many regions at once. So a plan of all
 * rounded and one of all floats are timed in place, the mixture is found again by what
 * each region took, and of these and the first mixture the fastest stays.
 */
#include "engine/trials/contest.h"

#include <stdlib.h>

#include "planner/mixed/mixed.h"

#define IN_PLACE_MS 300.0 /* to time the steps of a plan */

enum { ROUNDED, FLOATS, KINDS };

struct mixture {
    strata_handle *handle;
    struct cost_device costs;
    struct contender best, alike[KINDS], again;
    size_t n;                         /* regions */
    int64_t *places, *surplus[KINDS]; /* of each region; of each kind */
};

bool engine_mixes_in_place(const strata_handle *handle, const struct build_options *b)
{
    return b->mixed && (b->costs.kind == COSTS_MEASURE || build_tries_plans(b)) &&
           handle->device->ops->capture_begin;
}

static bool is_wanted(const strata_engine *e, const struct build_options *b)
{
    return engine_mixes_in_place(e->handle, b) && e->planner->mixes &&
           !e->planner->record && e->planner->costs.kind == COSTS_MEASURE &&
           e->execution->n_steps > 0;
}

/* Whether two engines round the same. */
static bool are_alike(const strata_engine *a, const strata_engine *b)
{
    const struct planner_mixes *x = a->planner->mixes, *y = b->planner->mixes;
    for (size_t r = 0; r < x->pairs.n_regions; r++)
        if (x->list[r].dropped != y->list[r].dropped)
            return false;
    return true;
}

/* Takes the planner, and has it timed. */
static int open_engine(struct contender *c, const struct mixture *m,
                       struct planner *planner, strata_error *err)
{
    strata_engine *engine;
    int status = engine_build_version(&engine, NULL, m->handle, planner, err);
    return status == STRATA_OK ? contender_open(c, engine, err) : status;
}

/* What regions take in place beyond their prices, all of a kind. */
static int time_alike(struct mixture *m, int kind, strata_error *err)
{
    const struct planner *before = m->best.engine->planner;
    struct contender *c = &m->alike[kind];
    struct planner *planner;
    int status =
        planner_mix_alike(&planner, before, kind == FLOATS, &m->costs.source, err);
    if (status == STRATA_OK)
        status = open_engine(c, m, planner, err);
    if (status == STRATA_OK)
        status =
            context_cost_in_place(c->context, c->engine->execution, IN_PLACE_MS, err);
    if (status == STRATA_OK && c->engine->execution->in_place == 0)
        status = error_set(err, STRATA_EUNSUPPORTED, "runs are not one graph");
    if (status != STRATA_OK)
        return status;
    planner_mix_bill(m->places, before->mixes, c->engine->execution, true);
    planner_mix_bill(m->surplus[kind], before->mixes, c->engine->execution, false);
    for (size_t r = 0; r < m->n; r++)
        m->surplus[kind][r] = m->places[r] - m->surplus[kind][r];
    return STRATA_OK;
}

static int mix_again(struct mixture *m, strata_error *err)
{
    const struct planner_surplus surplus = {m->surplus[ROUNDED], m->surplus[FLOATS]};
    struct planner *planner;
    int status = planner_mix_again(&planner, m->best.engine->planner, &m->costs.source,
                                   &surplus, err);
    return status == STRATA_OK ? open_engine(&m->again, m, planner, err) : status;
}

/* All are told what the last mixture was chosen by; what each rounds is its own. */
static void share_verdicts(const struct mixture *m)
{
    const struct planner_mixes *from = m->again.engine->planner->mixes;
    const struct contender *others[] = {&m->best, &m->alike[ROUNDED], &m->alike[FLOATS]};
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
        struct planner_mixes *to = others[i]->engine->planner->mixes;
        to->in_place = from->in_place;
        to->plans += from->plans;
        for (size_t r = 0; r < m->n; r++) {
            to->list[r].rounded = from->list[r].rounded;
            to->list[r].floats = from->list[r].floats;
        }
    }
}

/* The other takes the place of the best, if its runs are faster. */
static int hold(struct mixture *m, struct contender *other, const char *what,
                strata_error *err)
{
    struct contest contest;
    if (are_alike(m->best.engine, other->engine))
        return STRATA_OK;
    const int status = contest_hold(&contest, &m->best, other, err);
    if (status != STRATA_OK)
        return status;
    log_line(STRATA_LOG_INFO, "%s a run takes %.4f ms, %.4f before%s", what,
             contest.ms[1], contest.ms[0], contest.won ? ": taken" : "");
    if (contest.won) {
        const struct contender best = m->best;
        m->best = *other;
        *other = best;
    }
    return STRATA_OK;
}

static int hold_all(struct mixture *m, strata_error *err)
{
    int status = contender_find_lead(&m->best, err);
    if (status == STRATA_OK)
        status = hold(m, &m->again, "mixed by what regions take in place,", err);
    if (status == STRATA_OK)
        status = hold(m, &m->alike[FLOATS], "in floats", err);
    if (status == STRATA_OK)
        status = hold(m, &m->alike[ROUNDED], "in 8 bits", err);
    return status;
}

/* Takes the engine. */
static int open_mixture(struct mixture *m, strata_engine *e, strata_error *err)
{
    *m = (struct mixture){.handle = e->handle, .n = e->planner->mixes->pairs.n_regions};
    cost_device_init(&m->costs, e->handle);
    int status = contender_open(&m->best, e, err);
    if (status != STRATA_OK)
        return status;
    m->places = zalloc(m->n, (1 + KINDS) * sizeof *m->places, "regions", err);
    if (!m->places)
        return STRATA_ENOMEM;
    for (int kind = 0; kind < KINDS; kind++)
        m->surplus[kind] = m->places + (size_t)(1 + kind) * m->n;
    return STRATA_OK;
}

/* The best one's engine stays. */
static strata_engine *close_mixture(struct mixture *m)
{
    strata_engine *best = m->best.engine;
    m->best.engine = NULL;
    contender_close(&m->best);
    contender_close(&m->again);
    for (int kind = 0; kind < KINDS; kind++)
        contender_close(&m->alike[kind]);
    free(m->places);
    return best;
}

int engine_mix_in_place(strata_engine **engine, const strata_network *network,
                        strata_error *err)
{
    struct mixture m;
    strata_error why;
    error_clear(&why);
    if (!is_wanted(*engine, &network->build))
        return STRATA_OK;
    int status = open_mixture(&m, *engine, &why);
    for (int kind = 0; kind < KINDS && status == STRATA_OK; kind++)
        status = time_alike(&m, kind, &why);
    if (status == STRATA_OK)
        status = mix_again(&m, &why);
    if (status == STRATA_OK) {
        share_verdicts(&m);
        status = hold_all(&m, &why);
    }
    *engine = close_mixture(&m);
    if (status == STRATA_EDEVICELOST || status == STRATA_EBUSY)
        return error_set(err, status, "%s", why.message);
    if (status != STRATA_OK)
        log_line(STRATA_LOG_INFO, "not mixed again in place: %s", why.message);
    return STRATA_OK;
}
