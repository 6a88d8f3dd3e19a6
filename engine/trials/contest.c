/* SPDX-License-Identifier: Apache-2.0
 *
 * Two contexts take turns, so that what the chip does to one it does to the other. Most
 * contests are plain soon. Where memory lies makes some tenths of a per cent: who holds
 * is first timed beside contexts of its own engine, and what it is ahead of them counts
 * for nothing; who seems to win is timed again in a new context, and in longer turns, in
 * which a limit of power shows.
 */
#include "engine/trials/contest.h"

/* Of time: less is noise. */
#define GAIN 0.003
#define AGAIN 0.003 /* what must be left of it */
#define LOST -0.003 /* so much worse at first sight */

static const struct round {
    double turn_ms;
    int pairs;
    double least; /* gain with which the next round is worth it; the last: it has won */
    bool fresh;   /* in a new context */
} rounds[] = {
    {2.5, 5, LOST, false},
    {4, 11, GAIN, false},
    {30, 5, AGAIN, true},
};

enum { OTHERS = 3 }; /* contexts to find a lead */
static const struct round lead_round = {.turn_ms = 4, .pairs = 5};

static int make_context(strata_context **out, const strata_engine *e, strata_error *err)
{
    int status = strata_context_create(out, e, e->handle, err);
    if (status == STRATA_OK)
        status = context_prepare_times(*out, err);
    if (status != STRATA_OK) {
        strata_context_destroy(*out);
        *out = NULL;
    }
    return status;
}

/* Beside the one before, so that the new one lies elsewhere, if there is room. */
static int open_context(struct contender *c, strata_error *err)
{
    strata_context *fresh;
    int status = make_context(&fresh, c->engine, err);
    strata_context_destroy(c->context);
    c->context = fresh;
    return status == STRATA_ENOMEM ? make_context(&c->context, c->engine, err) : status;
}

int contender_open(struct contender *c, strata_engine *engine, strata_error *err)
{
    *c = (struct contender){.engine = engine};
    return open_context(c, err);
}

/* What another context of the engine gains. */
static int time_other(const struct contender *c, double *gain, strata_error *err)
{
    strata_context *other;
    struct context_turns turns = {.gain = 0};
    int status = make_context(&other, c->engine, err);
    if (status == STRATA_OK)
        status = context_time_turns((strata_context *const[]){c->context, other},
                                    lead_round.turn_ms, lead_round.pairs, &turns, err);
    strata_context_destroy(other);
    *gain = turns.gain;
    return status;
}

int contender_find_lead(struct contender *c, strata_error *err)
{
    double lead = 0;
    int status = STRATA_OK;
    strata_error why;
    error_clear(&why);
    for (int i = 0; i < OTHERS && status == STRATA_OK; i++) {
        double gain;
        status = time_other(c, &gain, &why);
        lead -= gain / OTHERS;
    }
    c->lead = status == STRATA_OK ? lead : 0;
    log_line(STRATA_LOG_DEBUG, "trial: other contexts take %+.2f %%", 100 * c->lead);
    return status == STRATA_EDEVICELOST ? error_set(err, status, "%s", why.message)
                                        : STRATA_OK;
}

void contender_close(struct contender *c)
{
    strata_context_destroy(c->context);
    strata_engine_destroy(c->engine);
    *c = (struct contender){0};
}

int contest_hold(struct contest *out, const struct contender *holds,
                 struct contender *other, strata_error *err)
{
    *out = (struct contest){.won = true};
    for (size_t i = 0; i < ARRAY_LENGTH(rounds) && out->won; i++) {
        const struct round *r = &rounds[i];
        struct context_turns turns;
        int status = r->fresh ? open_context(other, err) : STRATA_OK;
        if (status == STRATA_OK)
            status = context_time_turns(
                (strata_context *const[]){holds->context, other->context}, r->turn_ms,
                r->pairs, &turns, err);
        if (status != STRATA_OK)
            return status;
        log_line(STRATA_LOG_DEBUG, "trial: round %zu: %.4f ms, %.4f before, %+.2f %%",
                 i + 1, turns.ms[1], turns.ms[0], -100 * turns.gain);
        out->ms[0] = turns.ms[0];
        out->ms[1] = turns.ms[1];
        out->gain = turns.gain + holds->lead;
        out->won = turns.gain >= r->least;
    }
    return STRATA_OK;
}
