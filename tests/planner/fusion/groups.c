/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise layers in one pass: which of them are one, and that the values are those
 * without.
 */
#include "tests/planner/fusion/fusing.h"

TestSuite(fuse_groups, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

#define HEAD(out) "[network]\nformat = 1\noutputs = " out "\n[weights w]\nrandom = 7\n"
#define CONV(name, more)                                                                 \
    "[layer " name "]\ntype = Convolution\nfilters = 16\nkernel = 3x3\npad = 1\n"        \
    "weights = w:" name "\n" more
#define RELU(name, more) "[layer " name "]\ntype = Activation\nkind = relu\n" more
#define UNARY(name, op) "[layer " name "]\ntype = Unary\nop = " op "\n"
#define BINARY(name, op, a, b)                                                           \
    "[layer " name "]\ntype = ElementWise\nop = " op "\ninputs = " a ", " b "\n"
#define PLANE "[input x]\nshape = 2 x 9 x 5 x 7\n[input z]\nshape = 9 x 1 x 1\n"

static const struct {
    const char *name, *ini, *nodes[4];
} groups[] = {
    {"a chain that reads its beginning again",
     HEAD("y") PLANE UNARY("a", "exp\ninputs = x") BINARY("b", "product", "a", "x")
         UNARY("c", "neg") BINARY("y", "sum", "x", "c"),
     {"a + b + c + y"}},
    {"an operand that broadcasts",
     HEAD("y") PLANE UNARY("a", "tanh\ninputs = x") BINARY("b", "sub", "a", "z")
         UNARY("y", "abs"),
     {"a + b + y"}},
    {"an operand made within the chain begins it later",
     HEAD("y") PLANE UNARY("a", "exp\ninputs = x") UNARY("b", "neg\ninputs = z")
         UNARY("c", "abs") BINARY("d", "sum", "a", "c") UNARY("y", "sqrt"),
     {"a", "b + c", "d + y"}},
    {"truths inside of it",
     HEAD("y") PLANE "[layer a]\ntype = Compare\nop = less\ninputs = x, z\n"
                     "[layer y]\ntype = Select\ninputs = a, x, z\n",
     {"a + y"}},
    {"a Scale and a mean inside of it",
     HEAD("y")
         PLANE UNARY("a", "abs\ninputs = x") "[layer b]\ntype = Scale\nscale = -3\nshift "
                                             "= 0.25\n" BINARY("y", "mean", "b, x", "z"),
     {"a + b + y"}},
    {"a Scale with a power stays",
     HEAD("y") PLANE UNARY("a", "abs\ninputs = x") "[layer y]\ntype = Scale\npower = 3\n",
     {"a", "y"}},
    {"a tensor with two readers stays",
     HEAD("y, d") PLANE UNARY("a", "exp\ninputs = x") UNARY("y", "neg")
         UNARY("d", "abs\ninputs = a"),
     {"a", "y", "d"}},
    {"an output of the network stays",
     HEAD("a, y") PLANE UNARY("a", "exp\ninputs = x") UNARY("y", "neg"),
     {"a", "y"}},
    {"a format that was asked for stays",
     HEAD("y") PLANE UNARY("a", "exp\ninputs = x\nformat = fp32:nhwc") UNARY("y", "neg"),
     {"a", "y"}},
    {"integers stay",
     HEAD("y") "[input x]\nshape = 2 x 8\ndtype = i32\n" UNARY("a", "abs")
         UNARY("y", "neg"),
     {"a", "y"}},
    {"an activation behind a convolution is its own",
     HEAD("y") "[input x]\nshape = 1 x 16 x 9 x 9\n" CONV("c", "") RELU("r", "")
         UNARY("a", "exp") UNARY("y", "neg"),
     {"c + r", "a + y"}},
};

Test(fuse_groups, groups_are_what_runs)
{
    for (size_t i = 0; i < ARRAY_LENGTH(groups); i++) {
        struct planning s;
        size_t n = 0;
        cr_assert_eq(plan(&s, groups[i].ini, NULL, 0), STRATA_OK, "%s: %s",
                     groups[i].name, s.err.message);
        for (; n < s.execution->n_nodes && n < 4 && groups[i].nodes[n]; n++)
            cr_expect_str_eq(s.execution->nodes[n].name, groups[i].nodes[n], "%s: '%s'",
                             groups[i].name, s.execution->nodes[n].name);
        cr_expect_eq(n, s.execution->n_nodes, "%s: %zu nodes", groups[i].name,
                     s.execution->n_nodes);
        cr_expect(n == 4 || !groups[i].nodes[n], "%s", groups[i].name);
        planning_close(&s);
    }
}

Test(fuse_groups, groups_have_the_values_of_their_layers)
{
    for (size_t i = 0; i < ARRAY_LENGTH(groups); i++) {
        if (strstr(groups[i].ini, "i32") || strstr(groups[i].name, "outputs"))
            continue;
        expect_same_values(groups[i].name, groups[i].ini, FP32, FP32, 1e-5);
        if (strstr(groups[i].ini, "fp32:"))
            continue;
        expect_same_values(groups[i].name, groups[i].ini, FP32, FP16, 1e-2);
        expect_same_values(groups[i].name, groups[i].ini, FP32, "build.precision=bf16",
                           8e-2);
    }
}

/* More operands than a pass reads: it ends, and another begins. */
Test(fuse_groups, a_chain_ends_where_a_pass_is_full)
{
    char ini[6000];
    size_t used = (size_t)snprintf(ini, sizeof ini, HEAD("l29"));
    struct planning s;
    for (int i = 0; i <= 30; i++)
        used += (size_t)snprintf(ini + used, sizeof ini - used,
                                 "[input x%d]\nshape = 2 x 8\n", i);
    for (int i = 0; i < 30; i++)
        used += (size_t)snprintf(ini + used, sizeof ini - used,
                                 "[layer l%d]\ntype = ElementWise\nop = sub\n"
                                 "inputs = %c%d, x%d\n",
                                 i, i ? 'l' : 'x', i ? i - 1 : 30, i);
    cr_assert_eq(plan(&s, ini, NULL, 0), STRATA_OK, "%s", s.err.message);
    cr_expect_eq(s.execution->n_nodes, 5, "%zu nodes", s.execution->n_nodes);
    planning_close(&s);
    expect_same_values("thirty operands", ini, FP32, FP32, 1e-5);
}
