/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of sizes by steps, and parts of sizes in layers.
 */
#include "engine/context/context.h"
#include "tests/engine/sizes/sizes_net.h"

TestSuite(size_steps, .init = scratch_make, .fini = scratch_remove, .timeout = 900);

Test(size_steps, sizes_by_steps_are_the_only_ones)
{
    static const char halves[] = "[layer half]\ntype = Pooling\nkernel = 2\nstride = 2\n"
                                 "[layer whole]\ntype = Resize\nscale = 2\n"
                                 "[layer y]\ntype = ElementWise\ninputs = x, whole\n";
    struct net n;
    strata_error err;
    strata_context *c;
    cr_expect_neq(open_sizes(&n, "T = 8..32", "1 x 4 x T", halves, &err), STRATA_OK);
    cr_expect_not_null(strstr(err.message, "layer 'y'"), "%s", err.message);
    close_net(&n);
    OK(open_sizes(&n, "T = 8..32/8: 16", "1 x 4 x T", halves, &err));
    cr_expect_eq(n.engine->batch_symbol, -1);
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int64_t t = 7; t <= 33; t++) {
        const int status = strata_context_set_dimension(c, "T", t, &err);
        cr_expect_eq(status, t % 8 == 0 ? STRATA_OK : STRATA_EINVAL, "%d", (int)t);
        if (t == 17)
            cr_expect_not_null(strstr(err.message, "T = 17 is none of 8, 16, ... of "
                                                   "[profile], by steps of 8"),
                               "%s", err.message);
    }
    strata_context_destroy(c);
    close_net(&n);
}

Test(size_steps, parts_of_a_size_in_a_layer)
{
    static const char parts[] = "[layer pairs]\ntype = Shuffle\nshape = 1, 4, T/8, 8\n"
                                "[layer y]\ntype = Shuffle\nshape = 2, T*2\n";
    struct net n;
    strata_error err;
    strata_context *c;
    strata_binding b = {.struct_size = sizeof b};
    cr_expect_neq(open_sizes(&n, "T = 8..32", "1 x 4 x T", parts, &err), STRATA_OK);
    cr_expect_not_null(strstr(err.message, "T has sizes that 8 does not divide"), "%s",
                       err.message);
    close_net(&n);
    cr_expect_neq(open_sizes(&n, "T = 8..32/8", "1 x 4 x T/8", parts, &err), STRATA_OK);
    cr_expect_not_null(strstr(err.message, "no part of one"), "%s", err.message);
    close_net(&n);
    OK(open_sizes(&n, "T = 8..32/8: 16", "1 x 4 x T", parts, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int64_t t = 8; t <= 32; t += 8) {
        OK(strata_context_set_dimension(c, "T", t, &err));
        OK(strata_context_binding(c, 1, &b, &err));
        cr_expect(b.desc.rank == 2 && b.desc.dims[1] == 2 * t, "%d", (int)t);
    }
    strata_context_destroy(c);
    close_net(&n);
}
