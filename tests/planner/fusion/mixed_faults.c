/* SPDX-License-Identifier: Apache-2.0
 *
 * Each allocation of choosing between 8 bits and floats fails once.
 */
#include "planner/mixed/mixed.h"

#include <criterion/criterion.h>
#include <time.h>

#include "io/weights/npy.h"
#include "tests/planner/planning.h"
#include "tests/support/fault.h"

TestSuite(mixed_faults, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define PAIR(from)                                                                       \
    "[layer " from ".q]\ntype = Quantize\ninputs = " from "\ndtype = int8\nscale = a\n"  \
    "[layer " from ".d]\ntype = Dequantize\ninputs = " from ".q\nscale = a\n"
#define PRODUCT(name, from)                                                              \
    "[layer " name "]\ntype = Convolution\nfilters = 8\nkernel = 1\nweight = w\n"        \
    "inputs = " from "\n"

/* No weight is of integers: floats cost less everywhere but behind maxima. */
static const char net[] =
    "[network]\nformat = 1\noutputs = c\n[weights w]\nrandom = 1\n[weights a]\n"
    "file = a.npy\n[build]\nquantised = fastest\ncosts = analytic\n"
    "[input x]\nshape = 1 x 8 x 6 x 6\n" PRODUCT("a", "x") PAIR("a") PRODUCT("b", "a.d")
        PAIR("b") "[layer p]\ntype = Pooling\nkernel = 2\ninputs = b.d\n" PAIR("p")
            PRODUCT("c", "p.d");

/* fault: the allocation that fails; 0: none. Loading's are those of tests/registry. */
static int mix(struct planning *p, long fault, bool lasts)
{
    cr_assert_eq(planning_load(p, in_scratch("net.ini"), NULL, NULL, 0), STRATA_OK);
    fault_arm(FAULT_MEMORY, fault, lasts);
    return planner_make_mixed(&p->planner, p->network, &p->device, NULL, &p->err);
}

Test(mixed_faults, an_allocation_that_fails_is_an_error_and_leaks_nothing)
{
    static const float scale = 0.0625F;
    static const int64_t one[] = {1};
    struct planning p;
    spill_text("net.ini", net);
    cr_assert_eq(npy_write(in_scratch("a.npy"), STRATA_FP32, one, 1, &scale, NULL),
                 STRATA_OK);
    cr_assert_eq(mix(&p, 0, false), STRATA_OK, "%s", p.err.message);
    const long calls = fault_disarm();
    cr_assert_eq(p.planner->mixes->pairs.n_regions, 3);
    cr_expect(p.planner->mixes->list[0].dropped);
    const int64_t cost = p.planner->plan->cost;
    planning_close(&p);
    const long before = fault_blocks(), stride = 1 + calls / 400;
    long errors = 0;
    for (long at = 1 + (long)time(NULL) % stride; at <= calls; at += stride) {
        const int status = mix(&p, at, at & 1);
        fault_disarm();
        errors += status != STRATA_OK;
        if (status != STRATA_OK)
            cr_expect(status == STRATA_ENOMEM && p.err.message[0], "%ld: %d, %s", at,
                      status, p.err.message);
        else
            cr_expect_eq(p.planner->plan->cost, cost,
                         "allocation %ld of %ld: another plan", at, calls);
        planning_close(&p);
        cr_expect_eq(fault_blocks(), before, "allocation %ld of %ld: %ld blocks stay", at,
                     calls, fault_blocks() - before);
    }
    cr_expect_gt(errors, 20, "%ld of %ld", errors, calls);
}
