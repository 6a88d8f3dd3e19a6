/* SPDX-License-Identifier: Apache-2.0
 *
 * Two contexts take turns, so that what the chip does to one it does to the other. Most
 * contests are plain soon. Who seems to win is timed again in a context of its own, for
 * where memory lies makes some tenths of a per cent; and in longer turns, in which a
 * limit of power shows.
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
        out->gain = turns.gain;
        out->won = turns.gain >= r->least;
    }
    return STRATA_OK;
}
