/* SPDX-License-Identifier: Apache-2.0
 *
 * What the analytic model says of convolutions of bytes on the host, at any number of
 * threads.
 */
#include "planner/view.h"
#include "tests/planner/costing.h"

TestSuite(claims, .init = open_folder, .fini = close_folder, .timeout = 600);

/* One convolution of INT8 with a kernel of 1x1. */
static void open_bytes(struct planning *s, int channels)
{
    FILE *f = fopen(net, "w");
    cr_assert_not_null(f);
    fprintf(f,
            "[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x %d x 28 x 28\n"
            "dtype = int8\n[weights w]\nrandom = 1\n[layer y]\n"
            "type = QuantizedConvolution\nfilters = 128\nkernel = 1\n"
            "weights = w:y\n",
            channels);
    fclose(f);
    open(s, NULL);
}

static const struct planner_candidate *candidate_of(const struct planning *s,
                                                    const char *impl)
{
    const struct planner_model *m = s->planner->model;
    for (size_t i = 0; i < m->n_candidates; i++)
        if (m->candidates[i].impl && strcmp(m->candidates[i].impl->impl.name, impl) == 0)
            return &m->candidates[i];
    cr_assert_fail("there is no %s", impl);
    return NULL;
}

static const strata_layer *layer_of(const struct planning *s)
{
    return &s->planner->nodes[0].layer->type->layer;
}

/* Of the one node on so many threads: what an impl claims, whether the processor here
 * runs it or not; NULL: the least that any could take. */
static int64_t price_of(const struct planning *s, const char *impl, int threads)
{
    const struct planner_candidate *c = candidate_of(s, "c"),
                                   *named = candidate_of(s, impl ? impl : "c");
    const struct registry_impl *i = named->impl;
    struct device_properties d = s->planner->device.properties;
    struct cost_query q;
    strata_error err = {0};
    host_ceilings(&d, threads);
    cr_assert_eq(cost_query_run(&q, s->planner, c, &err), STRATA_OK, "%s", err.message);
    struct node_view v = {.in = q.in, .out = q.out, .weight = q.weights};
    planner_view(&v, s->planner, &s->planner->nodes[0], 0, c->row, NULL);
    const int64_t cost =
        impl ? cost_of_run(&v.node, &i->impl, &i->rows[named->row], layer_of(s), &d)
             : cost_bound_of_run(&v.node, layer_of(s), &d);
    cost_query_free(&q);
    return cost;
}

Test(claims, amx_comes_before_vnni_at_any_number_of_threads)
{
    static const int threads[] = {1, 2, 4, 8, 16, 64};
    struct planning s;
    open_bytes(&s, 512);
    for (size_t i = 0; i < ARRAY_LENGTH(threads); i++)
        cr_expect_lt(price_of(&s, "amx", threads[i]), price_of(&s, "vnni", threads[i]),
                     "%d threads", threads[i]);
    planning_close(&s);
}

Test(claims, amx_takes_no_depth_that_is_mostly_padding)
{
    static const int shallow[] = {1, 16, 32, 47, 65, 95};
    static const int filling[] = {48, 64, 96, 512};
    struct planning s;
    for (size_t i = 0; i < ARRAY_LENGTH(shallow); i++) {
        open_bytes(&s, shallow[i]);
        cr_expect_not_null(candidate_of(&s, "amx")->reason, "%d channels", shallow[i]);
        planning_close(&s);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(filling); i++) {
        open_bytes(&s, filling[i]);
        const char *reason = candidate_of(&s, "amx")->reason;
        cr_expect(!reason || strstr(reason, "no AMX"), "%d channels: %s", filling[i],
                  reason);
        planning_close(&s);
    }
}

Test(claims, no_bound_is_above_what_tiles_reach)
{
    const double operations = 2.0 * 128 * 512 * 28 * 28, tiles = 6500e9;
    struct planning s;
    open_bytes(&s, 512);
    for (int threads = 1; threads <= 4; threads++) {
        const double least = operations / (tiles * threads) * 1e9 * PLAN_UNIT_PER_NS;
        const double bound = (double)price_of(&s, NULL, threads);
        cr_expect_leq(bound, least + 1, "%d threads: %g, %g", threads, bound, least);
        cr_expect_geq(bound, 0.9 * least, "%d threads: %g, %g", threads, bound, least);
    }
    planning_close(&s);
}
