/* SPDX-License-Identifier: Apache-2.0
 *
 * A device on which layers of one type take one time and all else another: what is
 * planned at those prices.
 */
#ifndef TESTS_PLANNER_FUSION_PRICES_H
#define TESTS_PLANNER_FUSION_PRICES_H

#include "core/handle.h"
#include "planner/cost/cost.h"
#include "tests/planner/fusion/chains.h"

struct prices {
    struct cost_source source;
    const char *type;    /* full name */
    int64_t made, other; /* ns */
    size_t asked;        /* of that type */
};

static inline int price(struct cost_source *source, const struct planner *planner,
                        const struct cost_query *const *queries, const int64_t *best,
                        size_t n, struct cost *out, strata_error *err)
{
    struct prices *p = (struct prices *)source;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const struct planner_candidate *c = queries[i]->candidate;
        const bool made =
            c &&
            strcmp(planner_run_node(planner, c)->layer->type->full_name, p->type) == 0;
        out[i] = (struct cost){.ns = made ? p->made : p->other, .runs = 3};
        p->asked += made;
    }
    return STRATA_OK;
}

/* For the host that runs the tests. */
static inline struct prices plan_at_prices(struct planning *s, const char *ini,
                                           const char *type, int64_t made, int64_t other)
{
    static const char *const set[] = {"build.costs=measure"};
    struct prices p = {{.name = "prices", .measure = price}, type, made, other, 0};
    strata_handle *handle;
    cr_assert_eq(planning_load(s, spill_text("net.ini", ini), NULL, set, 1), STRATA_OK,
                 "%s", s->err.message);
    cr_assert_eq(strata_create(&handle, "host", NULL), STRATA_OK);
    s->device = (struct planner_device){handle->properties, handle->math};
    cr_assert_eq(planning_make(s, &p.source), STRATA_OK, "%s", s->err.message);
    strata_destroy(handle);
    return p;
}

static inline enum candidate_kind chosen_for(const struct planning *s, const char *layer)
{
    return planner_chosen(s->planner, s->planner->plan, chain_node(s, layer))->kind;
}

static inline bool runs_type(const struct session *s, const char *type)
{
    const struct execution *x = s->engine->execution;
    for (size_t i = 0; i < x->n_nodes; i++)
        if (strcmp(x->nodes[i].layer->type->full_name, type) == 0)
            return true;
    return false;
}

/* The plan that takes a layer of that type for the chain, run: values are those without
 * any fusion. A chain of no members is left out. */
static inline void expect_taken_values(const struct chain_case *chain, const char *type)
{
    const char *no[] = {"build.fusion=no", FP32};
    const char *set[] = {"build.costs=taken.costs", "build.costs_miss=analytic", FP32};
    struct planning s;
    struct session plain, fused;
    char costs[300];
    int64_t n, m;
    if (chain->members == 0)
        return;
    snprintf(costs, sizeof costs, "%s/taken.costs", scratch);
    plan_at_prices(&s, chain->ini, type, 10, 100000);
    cr_assert_eq(cost_table_write(&s.planner->known, costs, &s.err), STRATA_OK, "%s",
                 s.err.message);
    planning_close(&s);
    cr_assert_eq(build(&plain, chain->ini, no, 2), STRATA_OK, "%s", plain.err.message);
    float *a = output(&plain, &n);
    release(&plain);
    cr_assert_eq(build(&fused, chain->ini, set, 3), STRATA_OK, "%s", fused.err.message);
    cr_expect(runs_type(&fused, type), "%s", chain->name);
    float *b = output(&fused, &m);
    release(&fused);
    cr_assert_eq(n, m);
    cr_expect_leq(worst_difference(a, b, n), 1e-5, "%s", chain->name);
    free(a);
    free(b);
}

#endif /* TESTS_PLANNER_FUSION_PRICES_H */
