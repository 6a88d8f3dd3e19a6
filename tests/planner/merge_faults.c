/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation fails once, and all from there on, while siblings are merged: an error
 * each time, or the plan that there is without the fault; nothing leaks.
 */
#include "planner/merge/merge.h"

#include <criterion/criterion.h>
#include <time.h>

#include "tests/planner/planning.h"
#include "tests/support/fault.h"

static void open_faults(void)
{
    scratch_make();
    fault_json(false);
}

TestSuite(merge_faults, .init = open_faults, .fini = scratch_remove, .timeout = 600);

/* Two groups, of which one is nested in what the other makes, and may be made within a
 * concatenation. */
static const char siblings[] =
    "[network]\nformat = 1\noutputs = c, d, er\n[weights w]\nrandom = 1\n"
    "[build]\ncosts = analytic\nformats = fp32:nchw\n"
    "[input x]\nshape = 1 x 8 x 2 x 2\n"
    "[layer a]\ntype = Convolution\ninputs = x\nfilters = 5\nkernel = 1x1\n"
    "weight = w\n[layer ar]\ntype = Activation\nkind = relu\n"
    "[layer b]\ntype = Convolution\ninputs = x\nfilters = 7\nkernel = 1x1\n"
    "weight = w\nbias = w\n[layer br]\ntype = Activation\nkind = relu\n"
    "[layer e]\ntype = Convolution\ninputs = x\nfilters = 3\nkernel = 1x1\n"
    "weight = w\n[layer er]\ntype = Activation\nkind = relu\n"
    "[layer j]\ntype = Concatenation\naxis = 1\ninputs = br, ar, x\n"
    "[layer c]\ntype = FullyConnected\ninputs = j\nunits = 3\nweight = w\n"
    "[layer d]\ntype = FullyConnected\ninputs = j\nunits = 4\nweight = w\n";

struct weights {
    float *values;
    size_t n;
};

/* All weights of the plan's network: joined ones are put together. */
static int load_weights(struct weights *w, const strata_network *net, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < net->n_layers; i++)
        for (size_t k = 0; k < net->layers[i].type->n_weights; k++) {
            const struct network_weight *one = &net->layers[i].weights[k];
            if (one->source == WEIGHT_ABSENT || status != STRATA_OK)
                continue;
            const size_t n = (size_t)network_elements(one->dims, one->rank);
            cr_assert_leq(w->n + n, 4096);
            status = network_weight_load(one, w->values + w->n, err);
            w->n += n;
        }
    return status;
}

static int merge(struct planning *p, struct weights *w)
{
    const struct planner *planner;
    w->n = 0;
    int status = planning_load(p, in_scratch("net.ini"), NULL, NULL, 0);
    if (status == STRATA_OK)
        status = planner_make_merged(&p->planner, p->network, &p->device, NULL, &p->err);
    planner = p->planner;
    return status == STRATA_OK ? load_weights(w, planner->network, &p->err) : status;
}

Test(merge_faults, an_allocation_that_fails_is_an_error_and_leaks_nothing)
{
    static float found[4096], right[4096];
    struct weights w = {found, 0}, expected = {right, 0};
    struct planning p;
    spill_text("net.ini", siblings);
    cr_assert_eq(merge(&p, &expected), STRATA_OK, "%s", p.err.message);
    const struct planner_merges *m = p.planner->merges;
    cr_expect_eq(m->groups.n, 2);
    cr_expect(m->verdicts[0].done);
    const int64_t cost = p.planner->plan->cost;
    planning_close(&p);
    fault_arm(FAULT_MEMORY, 0, false);
    cr_assert_eq(merge(&p, &w), STRATA_OK);
    const long calls = fault_disarm();
    planning_close(&p);
    const long before = fault_blocks(), stride = 1 + calls / 400;
    long errors = 0;
    for (long at = 1 + (long)time(NULL) % stride; at <= calls; at += stride) {
        fault_arm(FAULT_MEMORY, at, at & 1);
        const int status = merge(&p, &w);
        fault_disarm();
        errors += status != STRATA_OK;
        if (status != STRATA_OK)
            cr_expect(status == STRATA_ENOMEM && p.err.message[0], "%ld: %d, %s", at,
                      status, p.err.message);
        else
            cr_expect(p.planner->plan->cost == cost && w.n == expected.n &&
                          memcmp(found, right, w.n * sizeof *found) == 0,
                      "allocation %ld of %ld: another plan", at, calls);
        planning_close(&p);
        cr_expect_eq(fault_blocks(), before, "allocation %ld of %ld: %ld blocks stay", at,
                     calls, fault_blocks() - before);
    }
    cr_expect_gt(errors, 20, "%ld of %ld", errors, calls);
}
