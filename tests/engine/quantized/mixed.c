/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks of int8 of which some regions are computed in floats: each choice gives what
 * the network without those pairs gives; prices choose; an engine file has the choice;
 * and without being asked for nothing of it happens.
 */
#include <config.h>

#include "tests/engine/quantized/mixed_net.h"

TestSuite(mixed, .init = open_files, .fini = scratch_remove, .timeout = 600);

/* ---- values -------------------------------------------------------------------------
 */

static void run_text(int dropped, const char *set, float y[OUTPUTS])
{
    const char *sets[] = {set, "build.precision=fp32"};
    struct text t;
    struct session s;
    draw(&t, dropped);
    build(&s, spill_text("net.ini", t.s), sets, 2);
    run(s.engine, s.handle, y);
    release(&s);
}

/* The same by a network without the pairs of some regions. */
static void run_dropped(int dropped, float y[OUTPUTS])
{
    static const char *const sets[] = {"build.precision=fp32"};
    struct text t;
    struct session s;
    struct network_pairs pairs;
    strata_network *net;
    bool state[REGIONS];
    draw(&t, 0);
    start(&s);
    strata_network_options options = {sizeof options, sets, 1, NULL, 0};
    cr_assert_eq(strata_network_load(&s.network, spill_text("net.ini", t.s), s.registry,
                                     &options, &s.err),
                 STRATA_OK, "%s", s.err.message);
    cr_assert_eq(network_find_pairs(&pairs, s.network, &s.err), STRATA_OK);
    cr_assert_eq(pairs.n_regions, REGIONS);
    for (int r = 0; r < REGIONS; r++)
        state[r] = dropped >> r & 1;
    cr_assert_eq(network_drop_pairs(&net, s.network, &pairs, state, &s.err), STRATA_OK);
    cr_assert_eq(strata_engine_build(&s.engine, s.handle, net, &s.err), STRATA_OK, "%s",
                 s.err.message);
    run(s.engine, s.handle, y);
    strata_network_destroy(net);
    network_free_pairs(&pairs);
    release(&s);
}

Test(mixed, every_choice_gives_what_the_network_without_those_pairs_gives)
{
    float y[OUTPUTS], reference[OUTPUTS], rounded[OUTPUTS];
    spill_weights();
    run_text(0, "build.fusion=no", rounded);
    for (int dropped = 0; dropped < 1 << REGIONS; dropped++) {
        run_text(dropped, "build.fusion=no", reference);
        run_dropped(dropped, y);
        const double far = distance(y, reference), from = distance(rounded, reference);
        cr_expect_lt(far, 2e-4, "%x: %g", (unsigned)dropped, far);
        cr_expect(dropped == 0 || from > 2 * far, "%x: %g of what rounding changes, %g",
                  (unsigned)dropped, far, from);
    }
}

/* ---- a plan -------------------------------------------------------------------------
 */

/* A device that takes so long for what computes with integers, and for all else. */
struct clock {
    struct cost_source source;
    int64_t integers, floats, wide; /* ns; wide: of a convolution of floats with 3x3 */
};

static int tell_time(struct cost_source *source, const struct planner *planner,
                     const struct cost_query *const *queries, const int64_t *best,
                     size_t n, struct cost *costs, strata_error *err)
{
    const struct clock *c = (const struct clock *)source;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const struct planner_candidate *k = queries[i]->candidate;
        const struct network_layer *l = k ? planner_run_node(planner, k)->layer : NULL;
        const bool integers =
            l && strncmp(l->type->full_name, "core::Quantized", 15) == 0;
        const bool wide = l && !integers && l->weights && l->weights[0].rank == 4 &&
                          l->weights[0].dims[2] > 1;
        costs[i] = (struct cost){!l         ? 100
                                 : integers ? c->integers
                                 : wide     ? c->wide
                                            : c->floats,
                                 0, 3};
    }
    return STRATA_OK;
}

static void plan(struct session *s, struct planner **out, struct clock c, const char *set)
{
    const char *sets[] = {set, "build.costs=measure", "build.precision=fp32"};
    struct text t;
    strata_network_options options = {sizeof options, sets, 3, NULL, 0};
    c.source = (struct cost_source){.name = "clock", .measure = tell_time};
    draw(&t, 0);
    start(s);
    cr_assert_eq(strata_network_load(&s->network, spill_text("net.ini", t.s), s->registry,
                                     &options, &s->err),
                 STRATA_OK, "%s", s->err.message);
    const struct planner_device device = {s->handle->properties, s->handle->math,
                                          s->handle->threads, false};
    cr_assert_eq(planner_make_mixed(out, s->network, &device, &c.source, &s->err),
                 STRATA_OK, "%s", s->err.message);
}

/* A 3x3 takes long in floats, but where it is part of a block; all else is fast. */
static const struct clock mixing = {.integers = 5000, .floats = 1000, .wide = 40000};

/* The least that any choice costs, and which that is. */
static int64_t find_least(struct session *s, const struct planner *mixed,
                          struct clock clock, int *choice)
{
    const struct planner_mixes *m = mixed->mixes;
    int64_t least = PLAN_INFINITE;
    clock.source = (struct cost_source){.name = "clock", .measure = tell_time};
    for (int dropped = 0; dropped < 1 << REGIONS; dropped++) {
        bool state[REGIONS];
        strata_network *net;
        struct planner *planner;
        for (int r = 0; r < REGIONS; r++)
            state[r] = dropped >> r & 1;
        cr_assert_eq(network_drop_pairs(&net, s->network, &m->pairs, state, &s->err),
                     STRATA_OK);
        cr_assert_eq(planner_make(&planner, net, &mixed->device, &clock.source, &s->err),
                     STRATA_OK, "%s", s->err.message);
        if (planner->plan->cost < least) {
            least = planner->plan->cost;
            *choice = dropped;
        }
        planner_free(planner);
        strata_network_destroy(net);
    }
    return least;
}

Test(mixed, the_cheapest_choice_is_found)
{
    static const struct clock clocks[] = {
        {.integers = 100, .floats = 1000, .wide = 9000},
        {.integers = 9000, .floats = 1000, .wide = 1000},
        {.integers = 5000, .floats = 1000, .wide = 40000}};
    int chosen[ARRAY_LENGTH(clocks)];
    spill_weights();
    for (size_t i = 0; i < ARRAY_LENGTH(clocks); i++) {
        struct session s;
        struct planner *exact, *mixed;
        int choice = 0;
        plan(&s, &exact, clocks[i], "build.quantised=exact");
        cr_expect_null(exact->mixes);
        cr_expect_eq(exact->network, s.network);
        const int64_t rounded = exact->plan->cost;
        planner_free(exact);
        release(&s);
        plan(&s, &mixed, clocks[i], "build.quantised=fastest");
        cr_assert_not_null(mixed->mixes);
        cr_expect_eq(planner_unmixed(mixed), s.network);
        chosen[i] = dropped_of(mixed);
        const int64_t least = find_least(&s, mixed, clocks[i], &choice);
        cr_expect_eq(mixed->plan->cost, least, "%zu: %x, %x costs less", i,
                     (unsigned)chosen[i], (unsigned)choice);
        cr_expect_leq(mixed->plan->cost, rounded);
        planner_free(mixed);
        release(&s);
    }
    cr_expect_eq(chosen[1], (1 << REGIONS) - 1, "%x", (unsigned)chosen[1]);
    cr_expect_eq(chosen[0] & 1 << JOIN, 0, "%x", (unsigned)chosen[0]);
    cr_expect(chosen[2] & 1 << BLOCK, "one Bottleneck: %x", (unsigned)chosen[2]);
    cr_expect_eq(chosen[2] & 1 << JOIN, 0, "%x", (unsigned)chosen[2]);
}

/* What a kind takes beyond its prices turns a region over. */
Test(mixed, what_regions_take_in_place_decides)
{
    struct session s;
    struct planner *first, *other;
    struct clock c = mixing;
    int64_t rounded[REGIONS] = {0}, floats[REGIONS] = {0};
    spill_weights();
    plan(&s, &first, mixing, "build.quantised=fastest");
    const int before = dropped_of(first);
    c.source = (struct cost_source){.name = "clock", .measure = tell_time};
    for (int r = 0; r < REGIONS; r++)
        (before >> r & 1 ? floats : rounded)[r] = INT64_C(1000000) * PLAN_UNIT_PER_NS;
    const struct planner_surplus surplus = {rounded, floats};
    cr_assert_eq(planner_mix_again(&other, first, &c.source, &surplus, &s.err), STRATA_OK,
                 "%s", s.err.message);
    cr_expect_eq(dropped_of(other), (1 << REGIONS) - 1 - before, "%x and %x",
                 (unsigned)dropped_of(other), (unsigned)before);
    cr_expect(other->mixes->in_place);
    planner_free(first);
    planner_free(other);
    release(&s);
}

Test(mixed, an_engine_file_has_the_choice)
{
    struct session s, loaded;
    struct planner *planner;
    float y[OUTPUTS], same[OUTPUTS], reference[OUTPUTS];
    spill_weights();
    plan(&s, &planner, mixing, "build.quantised=fastest");
    const int dropped = dropped_of(planner);
    const struct planner_mix block = planner->mixes->list[BLOCK];
    cr_assert_eq(engine_build_version(&s.engine, NULL, s.handle, planner, &s.err),
                 STRATA_OK, "%s", s.err.message);
    run(s.engine, s.handle, y);
    save(&s, file);
    release(&s);
    run_text(dropped, "build.fusion=no", reference);
    cr_expect_lt(distance(y, reference), 2e-4, "%g", distance(y, reference));
    cr_assert_eq(load(&loaded, file), STRATA_OK, "%s", loaded.err.message);
    const struct planner *p = loaded.engine->planner;
    cr_expect_eq(dropped_of(p), dropped);
    cr_assert_eq(p->mixes->pairs.n_regions, REGIONS);
    cr_expect_eq(memcmp(&p->mixes->list[BLOCK], &block, sizeof block), 0);
    run(loaded.engine, loaded.handle, same);
    cr_expect_eq(memcmp(y, same, sizeof y), 0);
    release(&loaded);
}

/* Hostile lists. */
Test(mixed, a_record_names_pairs_that_are_there)
{
    static const char *const lists[] = {
        "[1]",
        "[{}]",
        "[{\"first\":\"one.c\",\"last\":\"relu\",\"pairs\":[\"one.c\"],\"floats\":true,"
        "\"in_place\":false,\"cost_rounded\":1,\"cost_floats\":1}]",
        "[{\"first\":\"one.c\",\"last\":\"none\",\"pairs\":[],\"floats\":true,"
        "\"in_place\":false,\"cost_rounded\":1,\"cost_floats\":1}]",
        "[{\"first\":\"one.c\",\"last\":\"relu\",\"pairs\":[\"one.q\",\"one.q\"],"
        "\"floats\":true,\"in_place\":false,\"cost_rounded\":1,\"cost_floats\":1}]",
        "[{\"first\":\"one.c\",\"last\":\"relu\",\"pairs\":[7],\"floats\":true,"
        "\"in_place\":false,\"cost_rounded\":1,\"cost_floats\":1}]",
        "[{\"first\":\"one.c\",\"last\":\"relu\",\"pairs\":[\"one.q\"],\"floats\":true,"
        "\"in_place\":false,\"cost_rounded\":-1,\"cost_floats\":1}]",
    };
    struct session s;
    struct planner *planner;
    spill_weights();
    plan(&s, &planner, mixing, "build.quantised=exact");
    for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
        json_t *list = json_loads(lists[i], 0, NULL);
        strata_network *net = NULL;
        cr_assert_not_null(list);
        error_clear(&s.err);
        cr_expect_eq(planner_mix_recorded(&net, list, s.network, &s.err), STRATA_EPARSE,
                     "%s", lists[i]);
        cr_expect_null(net);
        json_decref(list);
    }
    planner_free(planner);
    release(&s);
}

Test(mixed, without_being_asked_for_all_is_rounded)
{
    static const char *const sets[] = {"build.precision=fp32", "build.quantised=exact"};
    float y[OUTPUTS], said[OUTPUTS];
    struct text t;
    spill_weights();
    draw(&t, 0);
    for (size_t n = 1; n <= 2; n++) {
        struct session s;
        build(&s, spill_text("net.ini", t.s), sets, n);
        cr_expect_null(s.engine->planner->mixes);
        run(s.engine, s.handle, n == 1 ? y : said);
        release(&s);
    }
    cr_expect_eq(memcmp(y, said, sizeof y), 0);
}
