/* SPDX-License-Identifier: Apache-2.0
 *
 * What was quantised and may be floats, on a played device with graphs: it is chosen once
 * more by what regions take in place, and whole runs decide.
 */
#include "tests/engine/quantized/mixed_net.h"

#include "tests/engine/devices/played.h"

TestSuite(mixture, .init = open_files, .fini = scratch_remove, .timeout = 600);

/* sizes: of the batch, as `profile.N=` has them. */
static void open_session(struct session *s, struct played *p, const char *sizes)
{
    const char *sets[] = {"build.costs=measure", "build.precision=fp32",
                          "build.quantised=fastest", sizes};
    strata_network_options options = {sizeof options, sets, 4, NULL, 0};
    struct text t;
    draw(&t, 0);
    cr_assert_eq(session_open(s, "host", NULL), STRATA_OK, "%s", s->err.message);
    cr_assert_eq(strata_network_load(&s->network, spill_text("net.ini", t.s), s->registry,
                                     &options, &s->err),
                 STRATA_OK, "%s", s->err.message);
    played_open(p, s->handle);
}

static void close_session(struct session *s, struct played *p)
{
    strata_memory_stats stats = {.struct_size = sizeof stats};
    strata_engine_destroy(s->engine);
    s->engine = NULL;
    strata_get_memory_stats(s->handle, &stats, NULL);
    cr_expect_eq(stats.current_bytes, 0);
    played_close(p, s->handle);
    release(s);
}

/* What is built, and that it computes what it says. */
static int build_choice(void)
{
    float y[OUTPUTS], reference[OUTPUTS];
    struct session s, plain;
    struct played p;
    struct text t;
    static const char *const sets[] = {"build.fusion=no", "build.precision=fp32"};
    open_session(&s, &p, "profile.N=2");
    cr_assert_eq(strata_engine_build(&s.engine, s.handle, s.network, &s.err), STRATA_OK,
                 "%s", s.err.message);
    const struct planner_mixes *m = s.engine->planner->mixes;
    cr_assert_not_null(m);
    cr_expect(m->in_place);
    cr_expect_gt(m->plans, 0);
    const int dropped = dropped_of(s.engine->planner);
    run(s.engine, s.handle, y);
    close_session(&s, &p);
    draw(&t, dropped);
    cr_assert_eq(session_build(&plain, spill_text("plain.ini", t.s), sets, 2), STRATA_OK,
                 "%s", plain.err.message);
    run(plain.engine, plain.handle, reference);
    cr_expect_lt(distance(y, reference), 2e-4, "%x: %g", (unsigned)dropped,
                 distance(y, reference));
    release(&plain);
    return dropped;
}

/* Fewer launches are faster here: a block that is one in floats is that. */
Test(mixture, what_has_least_launches_is_taken)
{
    spill_weights();
    cr_expect(build_choice() & 1 << BLOCK);
}

/* Runs of what the prices choose are slow for a reason that no price tells. */
Test(mixture, whole_runs_decide)
{
    spill_weights();
    const int first = build_choice();
    played_slow = played_last;
    played_slow_us = 1000;
    const int other = build_choice();
    cr_expect_neq(first, other, "%x", (unsigned)first);
    cr_expect_neq(played_last, played_slow);
}

Test(mixture, a_file_has_what_whole_runs_chose)
{
    struct session s, loaded;
    struct played p;
    spill_weights();
    open_session(&s, &p, "profile.N=2");
    cr_assert_eq(strata_engine_build(&s.engine, s.handle, s.network, &s.err), STRATA_OK,
                 "%s", s.err.message);
    const int dropped = dropped_of(s.engine->planner);
    save(&s, file);
    close_session(&s, &p);
    cr_assert_eq(load(&loaded, file), STRATA_OK, "%s", loaded.err.message);
    cr_expect_eq(dropped_of(loaded.engine->planner), dropped);
    cr_expect(loaded.engine->planner->mixes->in_place);
    release(&loaded);
}

/* They have the network that was chosen for the largest. */
Test(mixture, other_sizes_have_the_values_of_their_rows)
{
    float all[OUTPUTS], one[OUTPUTS] = {0};
    struct session s, loaded;
    struct played p;
    spill_weights();
    open_session(&s, &p, "profile.N=1, 2");
    cr_assert_eq(strata_engine_build(&s.engine, s.handle, s.network, &s.err), STRATA_OK,
                 "%s", s.err.message);
    cr_assert_eq(s.engine->n_smaller, 1);
    cr_expect_neq(dropped_of(s.engine->planner), 0);
    run(s.engine, s.handle, all);
    run_rows(s.engine, s.handle, 1, one);
    save(&s, file);
    close_session(&s, &p);
    for (int i = 0; i < OUTPUTS / 2; i++)
        cr_expect_float_eq(one[i], all[i], 1e-4);
    cr_assert_eq(load(&loaded, file), STRATA_OK, "%s", loaded.err.message);
    run_rows(loaded.engine, loaded.handle, 1, one);
    for (int i = 0; i < OUTPUTS / 2; i++)
        cr_expect_float_eq(one[i], all[i], 1e-4);
    release(&loaded);
}
