/* SPDX-License-Identifier: Apache-2.0
 *
 * Math modes of engines: who allows them, and that a file keeps them.
 */
#include "tests/engine/engine_session.h"

TestSuite(math, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

static const char small[] = "[network]\nformat = 1\noutputs = act\n"
                            "[input x]\nshape = 2 x 3 x 8 x 8\n"
                            "[layer act]\ntype = Activation\nkind = tanh\n";

static int build(struct session *s, const char *const *set, size_t n_set)
{
    return session_build(s, spill_text("net.ini", small), set, n_set);
}

Test(math, tensor_cores_are_allowed_by_the_handle_or_the_network)
{
    static const char *const allow[] = {"build.math=tensor_op"};
    struct session s;
    cr_assert_eq(build(&s, NULL, 0), STRATA_OK);
    cr_expect_eq(s.engine->execution->math, STRATA_MATH_DEFAULT);
    strata_engine_destroy(s.engine);
    cr_assert_eq(strata_set_math_mode(s.handle, STRATA_MATH_TENSOR_OP, NULL), STRATA_OK);
    cr_assert_eq(strata_engine_build(&s.engine, s.handle, s.network, &s.err), STRATA_OK);
    cr_expect_eq(s.engine->execution->math, STRATA_MATH_TENSOR_OP);
    release(&s);
    cr_assert_eq(build(&s, allow, 1), STRATA_OK, "%s", s.err.message);
    cr_expect_eq(s.engine->execution->math, STRATA_MATH_TENSOR_OP);
    release(&s);
}

/* Of a handle and a network the one that allows more. Of a file it is the file's. */
Test(math, math_modes_are_joined_and_saved)
{
    static const char *const allow[] = {"build.math=tf32"};
    struct session s;
    strata_engine *loaded = NULL;
    cr_assert_eq(build(&s, allow, 1), STRATA_OK, "%s", s.err.message);
    cr_expect_eq(s.engine->execution->math, STRATA_MATH_TF32);
    strata_engine_destroy(s.engine);
    cr_assert_eq(strata_set_math_mode(s.handle, STRATA_MATH_TENSOR_OP, NULL), STRATA_OK);
    cr_assert_eq(strata_engine_build(&s.engine, s.handle, s.network, &s.err), STRATA_OK);
    cr_expect_eq(s.engine->execution->math, STRATA_MATH_TF32);
    cr_assert_eq(strata_engine_save(s.engine, in_scratch("tf32.engine"), &s.err),
                 STRATA_OK, "%s", s.err.message);
    cr_assert_eq(strata_set_math_mode(s.handle, STRATA_MATH_DEFAULT, NULL), STRATA_OK);
    cr_assert_eq(strata_engine_load(&loaded, s.handle, s.registry,
                                    in_scratch("tf32.engine"), &s.err),
                 STRATA_OK, "%s", s.err.message);
    cr_expect_eq(loaded->execution->math, STRATA_MATH_TF32);
    strata_engine_destroy(loaded);
    release(&s);
}
