/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds that end because whom they ask says so (strata_set_interrupt).
 */
#include "tests/engine/engine_session.h"

TestSuite(interrupt, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

/* A network whose costs are measured. */
static int build(struct session *s)
{
    static const char *const measured[] = {"build.costs=measure"};
    return session_build(s,
                         spill_text("net.ini",
                                    "[network]\nformat = 1\noutputs = act, pool\n"
                                    "[input x]\nshape = 2 x 3 x 8 x 8\n"
                                    "[weights w]\nrandom = 1\n"
                                    "[layer conv]\ntype = Convolution\nfilters = 5\n"
                                    "kernel = 3x3\npad = 1\nweights = w:conv\n"
                                    "[layer act]\ntype = Activation\nkind = tanh\n"
                                    "[layer pool]\ntype = Pooling\nkind = average\n"
                                    "kernel = 2x2\nstride = 2\n"),
                         measured, 1);
}

static int count_and_stop(void *user)
{
    return ++*(int *)user >= 3;
}

Test(interrupt, a_build_ends_when_whom_it_asks_says_so)
{
    struct session s;
    int asked = 0;
    strata_set_interrupt(count_and_stop, &asked);
    cr_expect_eq(build(&s), STRATA_EBUSY);
    cr_expect(strstr(s.err.message, "interrupted while costs were measured") && !s.engine,
              "%s", s.err.message);
    cr_expect_geq(asked, 3);
    strata_set_interrupt(NULL, NULL);
    s.err = (strata_error){0};
    cr_expect_eq(strata_engine_build(&s.engine, s.handle, s.network, &s.err), STRATA_OK,
                 "%s", s.err.message);
    release(&s);
}

struct one_yes {
    int asked, at; /* the ask that is answered with 1 */
};

static int say_once(void *user)
{
    struct one_yes *y = user;
    return ++y->asked == y->at;
}

Test(interrupt, one_yes_ends_a_build_wherever_it_is_heard)
{
    struct one_yes y;
    struct session s;
    strata_set_interrupt(say_once, &y);
    for (int at = 1; at <= 24; at++) {
        y = (struct one_yes){.at = at};
        const int status = build(&s);
        cr_expect_eq(status, y.asked < at ? STRATA_OK : STRATA_EBUSY, "at ask %d", at);
        cr_expect_eq(s.engine == NULL, status != STRATA_OK);
        release(&s);
    }
    strata_set_interrupt(NULL, NULL);
}
