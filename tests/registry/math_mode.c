/* SPDX-License-Identifier: Apache-2.0
 *
 * Math modes by name and in order, and what plugins are told of them.
 */
#include "registry/math/mode.h"

#include <criterion/criterion.h>

Test(math_mode, math_modes_have_names_and_an_order)
{
    int mode = -1;
    for (int m = STRATA_MATH_DEFAULT; m <= STRATA_MATH_TF32; m++) {
        cr_expect(math_from_name(math_name(m), &mode));
        cr_expect_eq(mode, m);
        for (int n = STRATA_MATH_DEFAULT; n <= m; n++)
            cr_expect(math_join(m, n) == m && math_join(n, m) == m);
    }
    cr_expect(!math_from_name("fp32", &mode) && mode == STRATA_MATH_TF32);
}

/* A plugin that knows no TF32 finds the mode that it does know. */
Test(math_mode, a_plugin_is_told_what_it_may_use)
{
    strata_node n = {.struct_size = sizeof n};
    for (int m = STRATA_MATH_DEFAULT; m <= STRATA_MATH_TF32; m++) {
        math_tell(&n, m);
        cr_expect_eq(math_of(&n), m);
        cr_expect_eq(n.math, m ? STRATA_MATH_TENSOR_OP : STRATA_MATH_DEFAULT);
        cr_expect_eq(strata_may_use_tf32(&n), m == STRATA_MATH_TF32);
    }
    n.struct_size = offsetof(strata_node, tf32); /* of a host of ABI 1.6 */
    cr_expect_not(strata_may_use_tf32(&n));
}
