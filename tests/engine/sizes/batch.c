/* SPDX-License-Identifier: Apache-2.0
 *
 * Which dim is the batch: one without a name, or the name that most inputs begin with.
 */
#include "engine/context/context.h"
#include "tests/engine/sizes/sizes_net.h"

TestSuite(size_batch, .init = scratch_make, .fini = scratch_remove, .timeout = 900);

Test(size_batch, rows_of_a_batch_without_a_name)
{
    struct net n;
    strata_error err;
    strata_context *c;
    strata_binding b = {.struct_size = sizeof b};
    const int64_t three[] = {3, 16}, nine[] = {9, 16};
    OK(open_net(&n, "", "8 x 16", "y", "[layer y]\ntype = Softmax\n", &err));
    cr_expect_eq(strata_engine_dimensions(n.engine), 0);
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    OK(strata_context_set_shape(c, 0, 2, three, &err));
    OK(strata_context_binding(c, 1, &b, &err));
    cr_expect(b.desc.dims[0] == 3 && b.bytes == 3 * 16 * 4);
    cr_expect_eq(strata_context_set_shape(c, 0, 2, nine, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "takes 1 to 8"), "%s", err.message);
    strata_context_destroy(c);
    close_net(&n);
}

/* The batch is what most inputs begin with; a name that one begins with is none where
 * others begin with one of one size. */
Test(size_batch, most_inputs_begin_with_the_batch)
{
    static const char inputs[] =
        "[input m]\nshape = T x 1\n[input z]\nshape = N x T x 16\n"
        "[layer s]\ntype = ElementWise\ninputs = x, z\n"
        "[layer y]\ntype = ElementWise\ninputs = s, m\n";
    static const struct {
        const char *profile, *batch;
    } cases[] = {{"T = 1..40: 8, 32\nN = 1, 4", "N"}, {"T = 1..40: 8, 32\nN = 1", NULL}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct net n;
        strata_error err;
        OK(open_sizes(&n, cases[i].profile, "N x T x 16", inputs, &err));
        const int at = n.engine->network->batch_symbol;
        cr_expect_str_eq(at < 0 ? "" : n.engine->network->symbols[at].name,
                         cases[i].batch ? cases[i].batch : "");
        close_net(&n);
    }
}
