/* SPDX-License-Identifier: Apache-2.0
 *
 * What impls say to tensors that lie inside larger ones.
 */
#include "tests/broken/build.h"
#include "tests/planner/planning.h"

TestSuite(inside, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

/* Not a refusal: a plan that copies instead would be slower for no reason that anybody
 * sees. */
Test(inside, an_impl_without_memory_is_named)
{
    static const char joined[] = "[network]\nformat = 1\noutputs = y\n"
                                 "[input x]\nshape = 2 x 4 x 3 x 3\n"
                                 "[layer a]\ntype = Tight\n"
                                 "[layer b]\ntype = Tight\ninputs = x\n"
                                 "[layer j]\ntype = Concatenation\naxis = 1\n"
                                 "inputs = a, b\n"
                                 "[layer y]\ntype = Activation\nkind = tanh\n";
    const char *files[] = {build("tight.so", "modules/tight_layers.c", SHARED)};
    const strata_registry_options from = {
        .struct_size = sizeof from, .files = files, .n_files = 1};
    struct planning s;
    int status = planning_load(&s, spill_text("net.ini", joined), &from, NULL, 0);
    cr_assert_eq(status, STRATA_OK, "%s", s.err.message);
    cr_expect_eq(planning_make(&s, NULL), STRATA_ENOMEM);
    cr_expect_not_null(strstr(s.err.message, "layer 'a', impl tight: out of memory"),
                       "'%s'", s.err.message);
    planning_close(&s);
}
