/* SPDX-License-Identifier: Apache-2.0
 *
 * Dims that are sums of names of [profile].
 */
#include "engine/context/context.h"
#include "tests/engine/sizes/sizes_net.h"

TestSuite(size_sums, .init = scratch_make, .fini = scratch_remove, .timeout = 900);

/* Keys of a past and of a run, one behind the other, beside a mask of both. */
static const char joined[] =
    "[input z]\nshape = 1 x P x 2\n[input m]\nshape = 1 x P+T x 2\n"
    "[layer j]\ntype = Concatenation\naxis = 1\ninputs = z, x\n"
    "[layer s]\ntype = ElementWise\ninputs = j, m\n"
    "[layer y]\ntype = Expand\nshape = P+T, P+T, 2\n";

static void set(strata_context *c, int input, int64_t n, int wanted)
{
    const int64_t dims[] = {1, n, 2};
    strata_error err;
    cr_expect_eq(strata_context_set_shape(c, input, 3, dims, &err), wanted, "%d of %d",
                 input, (int)n);
}

static void expect_runs(const struct net *n)
{
    static float in[2 * MOST], out[MOST * MOST * 2];
    static const int sizes[][2] = {{1, 0}, {9, 7}, {4, 5}, {1, 7}, {9, 0}};
    strata_binding b = {.struct_size = sizeof b};
    strata_context *c;
    strata_error err;
    OK(strata_context_create(&c, n->engine, n->handle, &err));
    fill(in, sizeof in / sizeof *in, 3);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t t = sizes[i][0], p = sizes[i][1], all = t + p;
        set(c, 2, all, STRATA_OK); /* before those that it is the sum of */
        set(c, 0, t, STRATA_OK);
        set(c, 1, p, STRATA_OK);
        OK(strata_context_binding(c, 2, &b, &err));
        cr_expect_eq(b.desc.dims[1], all);
        for (int k = 0; k < 3; k++)
            OK(strata_copy_in(c, k, in, &err));
        OK(strata_context_run(c, &err));
        OK(strata_context_binding(c, 3, &b, &err));
        cr_expect(b.desc.dims[0] == all && b.desc.dims[1] == all && b.desc.dims[2] == 2);
        OK(strata_copy_out(c, 3, out, &err));
        for (int64_t k = 0; k < all * all * 2; k++) {
            const int64_t at = k % (all * 2), from = at < 2 * p ? at : at - 2 * p;
            cr_assert_float_eq(out[k], in[from] + in[at], 1e-6, "%d of %d + %d", (int)k,
                               (int)p, (int)t);
        }
    }
    set(c, 2, 17, STRATA_EINVAL);
    set(c, 2, 0, STRATA_EINVAL);
    strata_context_destroy(c);
}

Test(size_sums, follow_their_names)
{
    struct net n, again;
    strata_error err;
    OK(open_sizes(&n, "T = 1..9: 4\nP = 0..7", "1 x T x 2", joined, &err));
    expect_runs(&n);
    OK(strata_engine_save(n.engine, in_scratch("sums.engine"), &err));
    again = (struct net){.handle = n.handle};
    OK(strata_engine_load(&again.engine, again.handle, n.registry,
                          in_scratch("sums.engine"), &err));
    expect_runs(&again);
    strata_engine_destroy(again.engine);
    close_net(&n);
}

Test(size_sums, what_no_sum_is)
{
    static const struct {
        const char *profile, *shape, *layers, *says;
    } refused[] = {
        {"T = 1..9\nP = 1..7", "1 x T+Q x 2", "[layer y]\ntype = Identity\n",
         "'Q' is neither an integer nor a name"},
        {"T = 1..9\nP = 1..7", "1 x T+ x 2", "[layer y]\ntype = Identity\n",
         "is not an integer"},
        {"T = 1..9\nP = 1..7", "1 x T+P x T", "[layer y]\ntype = Identity\n",
         "'P' has several sizes, and stands in no input's shape"},
        {"N = 1, 4\nT = 1..9", "N x T", "[layer y]\ntype = Expand\nshape = N+1, N, T\n",
         "'N' is the batch, and stands in a sum of shape"},
        {"T = 1..9", "1 x T",
         "[state h]\nshape = 1 x T+1\nnext = y\n[layer y]\ntype = Identity\ninputs = h\n",
         "dim 1 of state 'h' has several sizes"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct net n;
        strata_error err;
        cr_expect_neq(
            open_sizes(&n, refused[i].profile, refused[i].shape, refused[i].layers, &err),
            STRATA_OK, "%s", refused[i].says);
        cr_expect_not_null(strstr(err.message, refused[i].says), "%s", err.message);
        close_net(&n);
    }
}
