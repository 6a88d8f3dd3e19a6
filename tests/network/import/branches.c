/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches whose condition a run tells: both are part of the network.
 */
#include "tests/network/import/free_model.h"
#include "tests/network/import/planned.h"

static const char model[] =
    "input x f 3\ninit n f - 0\nnode ReduceSum x -> s keepdims=0\nnode Less s,n -> c\n"
    "node If c -> y,z then_branch={ else_branch={\n"
    "node Neg x -> a\nnode Add a,a -> b\noutput a\noutput b\n}\n"
    "node Mul x,x -> d\noutput x\noutput d\n}\noutput y\noutput z\n";

Test(branches, of_one_shape_are_chosen_from)
{
    static const float in[][3] = {{1, 2, 4}, {1, -2, -4}};
    static const float wanted[][2][3] = {{{1, 2, 4}, {1, 4, 16}},
                                         {{-1, 2, 4}, {-2, 4, 8}}};
    struct free_model m = free_model_open(model, "", "", "");
    struct imported x;
    strata_error err = {0};
    cr_assert_eq(imported_open(&x, m.onnx, m.registry, NULL, &err), STRATA_OK, "%s",
                 err.message);
    for (int k = 0; k < 2; k++) {
        int64_t n;
        memcpy(imported_data(&x, 0, &n), in[k], sizeof in[k]);
        cr_assert_eq(n, 3);
        cr_assert_eq(strata_context_run(x.context, &err), STRATA_OK, "%s", err.message);
        for (int y = 0; y < 2; y++)
            for (int i = 0; i < 3; i++)
                cr_expect_eq(imported_data(&x, 1 + y, &n)[i], wanted[k][y][i],
                             "run %d, output %d, element %d", k, y, i);
    }
    imported_free(&x);
    free_model_close(&m);
}
