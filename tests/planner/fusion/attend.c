/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by a constant and the Attention behind them as one layer: which are; that
 * prices decide, and that values are those without, whichever of the ways is planned.
 */
#include "tests/planner/fusion/prices.h"

#define SELF "core::SelfAttention@1"

TestSuite(fuse_attend, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define HEAD(out)                                                                        \
    "[network]\nformat = 1\noutputs = " out "\n[weights w]\nrandom = 3\n"                \
    "[input x]\nshape = 2 x 5 x 8\n"
#define PRODUCT(more)                                                                    \
    "[layer product]\ntype = MatrixMultiply\nunits = 24\nb = w\nbias = w\n" more
#define ATTENTION(more) "[layer attention]\ntype = Attention\nheads = 2\n" more
#define ABS "[layer y]\ntype = Unary\nop = abs\ninputs = product\n"

static const struct chain_case chains[] = {
    {"product and attention", HEAD("attention") PRODUCT("") ATTENTION(""), "product", 2,
     0},
    {"without a bias, turned",
     HEAD("attention") "[layer product]\ntype = MatrixMultiply\nunits = 24\nb = w\n"
                       "transpose_b = yes\n" ATTENTION("scale = 0.5\n"),
     "product", 2, 0},
    {"what a query sees",
     HEAD("attention") PRODUCT("") ATTENTION("causal = yes\nwindow_left = 2\n"),
     "product", 2, 0},
    {"fewer heads of keys", HEAD("attention") PRODUCT("") ATTENTION("kv_heads = 1\n"),
     "product", 2, 0},
    {"something behind",
     HEAD("y") PRODUCT("") ATTENTION("") "[layer y]\ntype = Unary\nop = abs\n", "product",
     2, 0},
    {"another reader", HEAD("attention, y") PRODUCT("") ATTENTION("") ABS, "product", 0,
     0},
    {"an output between", HEAD("product, attention") PRODUCT("") ATTENTION(""), "product",
     0, 0},
    {"alpha", HEAD("attention") PRODUCT("alpha = 2\n") ATTENTION(""), "product", 0, 0},
    {"scores", HEAD("attention, attention:1") PRODUCT("") ATTENTION("scores = softmax\n"),
     "product", 0, 0},
    {"what a user multiplies by",
     "[network]\nformat = 1\noutputs = attention\n[input x]\nshape = 2 x 5 x 8\n"
     "[input b]\nshape = 8 x 24\n[layer product]\ntype = MatrixMultiply\n"
     "inputs = x, b\n" ATTENTION(""),
     "product", 0, 0},
    {"an impl that is asked for", HEAD("attention") PRODUCT("impl = c\n") ATTENTION(""),
     "product", 0, 0},
    {"a format that is asked for",
     HEAD("attention") PRODUCT("format = fp32:bmn\n") ATTENTION(""), "product", 0, 0},
    {"no fusion", HEAD("attention") PRODUCT("") ATTENTION("") "[build]\nfusion = no\n",
     "product", 0, 0},
};

Test(fuse_attend, products_and_attentions_are_of_one_layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_chain(&chains[i], SELF);
}

Test(fuse_attend, values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_chain_values(&chains[i]);
}

/* ---- prices ----------------------------------------------------------------------- */

#define BOTH HEAD("attention") PRODUCT("") ATTENTION("")

Test(fuse_attend, is_taken_where_it_is_cheaper)
{
    struct planning s;
    cr_expect_gt(plan_at_prices(&s, BOTH, SELF, 100, 1000).asked, 0);
    cr_expect_eq(chosen_for(&s, "product"), CANDIDATE_GROUP);
    cr_expect_eq(chosen_for(&s, "attention"), CANDIDATE_ABSORBED);
    cr_expect_str_eq(s.planner->fusions[chain_node(&s, "attention")].reason,
                     "product: both in one SelfAttention");
    planning_close(&s);
}

Test(fuse_attend, is_not_taken_where_it_is_not_cheaper)
{
    struct planning s;
    plan_at_prices(&s, BOTH, SELF, 100000, 1000);
    cr_expect_eq(chosen_for(&s, "product"), CANDIDATE_RUN);
    cr_expect_eq(chosen_for(&s, "attention"), CANDIDATE_RUN);
    planning_close(&s);
}

Test(fuse_attend, values_of_one_that_is_taken)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_taken_values(&chains[i], SELF);
}
