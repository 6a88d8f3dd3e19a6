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

static const char added[] = "[network]\nformat = 1\noutputs = y\n"
                            "[input x]\nshape = 2 x 24 x 3 x 3\n"
                            "[input t]\nshape = 2 x 16 x 3 x 3\n"
                            "[layer a]\ntype = Adding\ninputs = x\n"
                            "[layer s]\ntype = Slice\naxes = 1\nbegin = 4\nend = 20\n"
                            "[layer m]\ntype = Adding\ninputs = t\n"
                            "[layer y]\ntype = ElementWise\nop = sum\ninputs = m, s\n";

/* Whether the residual of m lies inside a; flags: of the module. */
static bool adds_inside(const char *name, const char *flags)
{
    const char *files[] = {build(name, "modules/adding_layers.c", SHARED "%s", flags)};
    const strata_registry_options from = {
        .struct_size = sizeof from, .files = files, .n_files = 1};
    struct planning s;
    bool inside = false;
    int status = planning_load(&s, spill_text("net.ini", added), &from, NULL, 0);
    cr_assert_eq(status, STRATA_OK, "%s", s.err.message);
    cr_assert_eq(planning_make(&s, NULL), STRATA_OK, "%s", s.err.message);
    for (size_t i = 0; i < s.execution->n_nodes; i++) {
        const int value = s.execution->nodes[i].residual_value;
        inside |= value >= 0 && s.execution->values[value].pitched;
    }
    planning_close(&s);
    return inside;
}

Test(inside, accept_is_asked_about_a_residual_there)
{
    cr_expect(adds_inside("adding.so", ""));
    cr_expect_not(adds_inside("dense.so", " -DDENSE=1"));
}
