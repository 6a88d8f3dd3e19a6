/* SPDX-License-Identifier: Apache-2.0
 *
 * What a module does when it does not get what it asks for: no strata.pack/1, no memory
 * from it, and a malloc that fails the first time, the second, and so on.
 */
#include <stdio.h>
#include <string.h>

#include "check/module_range.h"
#include "check/test/test.h"

#define MOST_REFUSALS 200 /* of one impl */

/* One life under refusal; what it did wrong is told. */
static void try_life(struct trial *t, int row, bool refuse_pack, bool no_pack)
{
    struct session s = {0};
    t->node.no_pack = no_pack;
    int status = trial_session(t, &s, row);
    s.refuse_pack = refuse_pack;
    if (status == STRATA_OK)
        status = session_open(&s);
    if (status == STRATA_OK)
        status = session_run(&s, session_patterns[0]);
    session_close(&s);
    if (s.fault)
        trial_session_problem(t, &s, s.fault);
    session_free(&s);
    t->node.no_pack = false;
    t->result.runs++;
}

/* What the module's own code asks for from setup to teardown. */
static int refuse_each(struct trial *t, int row, unsigned k)
{
    struct session s = {0};
    int status = trial_session(t, &s, row);
    check_allocations->refuse(k);
    if (status == STRATA_OK)
        status = session_open(&s);
    if (status == STRATA_OK)
        status = session_run(&s, session_patterns[0]);
    session_close(&s);
    const int asked = (int)check_allocations->count();
    check_allocations->refuse(0);
    if (s.fault)
        trial_session_problem(t, &s, s.fault);
    session_free(&s);
    return asked;
}

static void refuse_memory(struct trial *t, int row)
{
    const void *begin, *end;
    char variant[64];
    if (!check_allocations || !module_range(t->impl->impl.run, &begin, &end))
        return;
    check_allocations->watch(begin, end);
    const int asked = refuse_each(t, row, 0);
    for (int k = 1; k <= asked && k <= MOST_REFUSALS; k++) {
        snprintf(variant, sizeof variant, "malloc refused the %d. time of %d", k, asked);
        t->variant = variant;
        t->target->place(t, t->target->user);
        refuse_each(t, row, (unsigned)k);
        t->result.runs++;
    }
    t->variant = NULL;
    check_allocations->stop();
}

static void refuse(struct trial *t, int row)
{
    static const struct {
        const char *variant;
        bool refuse_pack, no_pack;
    } lives[] = {
        {"strata.pack/1 has no memory", true, false},
        {"no strata.pack/1", false, true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(lives); i++) {
        t->variant = lives[i].variant;
        t->target->place(t, t->target->user);
        try_life(t, row, lives[i].refuse_pack, lives[i].no_pack);
    }
    refuse_memory(t, row);
}

void check_errors(struct check_child *c)
{
    snprintf(c->report->fatal, sizeof c->report->fatal, "unchecked-memory");
    c->target.visit = refuse;
    cases_run(c, CASES_FEW);
    c->report->fatal[0] = '\0';
}
