/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks in a folder of their own, and all that the host can say about what their
 * layers cost: for tests of costs.
 */
#ifndef TESTS_PLANNER_COSTING_H
#define TESTS_PLANNER_COSTING_H

#include "core/handle.h"
#include "planner/cost/progress.h"
#include "tests/planner/planning.h"

static char net[300], costs[300];
static strata_handle *handle; /* what measures */

static inline void open_folder(void)
{
    scratch_make();
    cr_assert_eq(strata_create(&handle, "host", NULL), STRATA_OK);
    snprintf(net, sizeof net, "%s/net.ini", scratch);
    snprintf(costs, sizeof costs, "%s/net.costs", scratch);
}

static inline void close_folder(void)
{
    progress_enable(false);
    strata_destroy(handle);
    scratch_remove();
}

/* One fire module of SqueezeNet, under names that start with `name`. */
static inline void write_fire(const char *name)
{
    FILE *f = fopen(net, "w");
    cr_assert_not_null(f);
    fprintf(f,
            "[network]\nformat = 1\noutputs = %1$s_pool\n[runtime]\nthreads = 1\n"
            "[input %1$s_x]\nshape = 1 x 3 x 30 x 30\n[weights w]\nrandom = 1\n"
            "[layer %1$s_a]\ntype = Convolution\nfilters = 16\nkernel = 3x3\n"
            "weights = w:a\n"
            "[layer %1$s_b]\ntype = Convolution\nfilters = 24\nkernel = 1x1\n"
            "inputs = %1$s_a\nweights = w:b\n"
            "[layer %1$s_c]\ntype = Convolution\nfilters = 24\nkernel = 3x3\npad = 1\n"
            "inputs = %1$s_a\nweights = w:c\n"
            "[layer %1$s_cat]\ntype = Concatenation\ninputs = %1$s_b, %1$s_c\n"
            "[layer %1$s_d]\ntype = Convolution\nfilters = 24\nkernel = 1x1\n"
            "inputs = %1$s_a\nweights = w:b\n"
            "[layer %1$s_sum]\ntype = Concatenation\ninputs = %1$s_d, %1$s_cat\n"
            "[layer %1$s_pool]\ntype = Pooling\nkind = max\nkernel = 2x2\nstride = 2\n",
            name);
    fclose(f);
}

static inline int load(struct planning *s, const strata_registry_options *from,
                       const char *const *set, size_t n_set)
{
    int status = planning_load(s, net, from, set, n_set);
    s->device = (struct planner_device){handle->properties, handle->math};
    return status;
}

/* A problem that is ready to be solved. */
static inline void open(struct planning *s, const strata_registry_options *from)
{
    int status = load(s, from, NULL, 0);
    if (status == STRATA_OK)
        status = planning_model(s);
    cr_assert_eq(status, STRATA_OK, "%s", s->err.message);
}

static inline int plan(struct planning *s, struct cost_table *t,
                       struct cost_source *source, struct cost_options o,
                       struct cost_report *report)
{
    error_clear(&s->err);
    int status = cost_plan_from(s->planner, t, source, &o, &s->err);
    *report = s->planner->costs;
    return status;
}

/* Everything that the device can say about a problem. */
static inline void record(struct planning *s, struct cost_table *t)
{
    struct cost_report report;
    struct cost_device device;
    cost_table_init(t, "host");
    cost_device_init(&device, handle);
    cr_assert_eq(plan(s, t, &device.source,
                      (struct cost_options){.kind = COSTS_MEASURE, .everything = true},
                      &report),
                 STRATA_OK, "%s", s->err.message);
    cr_assert(report.complete);
    cr_assert_eq(report.measured, report.queries);
    cr_assert_eq(t->n, report.queries);
}

/* A recording that plays the device. */
struct replay {
    struct cost_source source;
    const struct cost_table *table;
    size_t asked;
    size_t stop_after; /* then interrupt; 0: never */
};

static inline int replay_measure(struct cost_source *source,
                                 const struct planner *planner,
                                 const struct cost_query *const *queries,
                                 const int64_t *best, size_t n, struct cost *out,
                                 strata_error *err)
{
    struct replay *r = (struct replay *)source;
    (void)planner;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n && !progress_interrupted(); i++) {
        const struct cost *c = cost_table_find(r->table, queries[i]->key);
        cr_assert_not_null(c, "%s", queries[i]->key);
        out[i] = *c;
        if (++r->asked == r->stop_after)
            progress_interrupt();
    }
    return STRATA_OK;
}

static inline struct replay replay_of(const struct cost_table *t)
{
    return (struct replay){.source = {.name = "replay", .measure = replay_measure},
                           .table = t};
}

#endif /* TESTS_PLANNER_COSTING_H */
