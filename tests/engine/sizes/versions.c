/* SPDX-License-Identifier: Apache-2.0
 *
 * What is made of a plan at sizes between the listed ones: weights and memory that it
 * shares, how long it is kept, and impls that do not take its size.
 */
#include "engine/context/context.h"
#include "planner/planner.h"
#include "tests/engine/sizes/sizes_net.h"

TestSuite(versions, .init = scratch_make, .fini = scratch_remove, .timeout = 900);

/* ---- weights and memory ------------------------------------------------------------ */

static uint64_t bytes_now(const struct net *n)
{
    strata_memory_stats stats = {.struct_size = sizeof stats};
    strata_get_memory_stats(n->handle, &stats, NULL);
    return stats.current_bytes;
}

Test(versions, versions_share_weights_and_the_arena)
{
    static float x[VALUES], y[VALUES];
    static const char *const impls[] = {"", "impl = onednn\n"};
    for (size_t i = 0; i < ARRAY_LENGTH(impls); i++) {
        struct net n;
        strata_error err;
        strata_context *c;
        char layers[sizeof block + 32];
        snprintf(layers, sizeof layers, BLOCK("%s"), impls[i]);
        if (open_sizes(&n, "T = 1..40", "4 x T x 16", layers, &err) != STRATA_OK) {
            close_net(&n); /* built without oneDNN */
            continue;
        }
        OK(strata_context_create(&c, n.engine, n.handle, &err));
        fill(x, VALUES, 3);
        run(c, 4, MOST, x, y);
        const uint64_t before = bytes_now(&n);
        for (int64_t t = 5; t < MOST; t += 3)
            run(c, 4, t, x, y);
        cr_expect_lt(bytes_now(&n), before + strata_engine_weight_bytes(n.engine),
                     "12 versions have %llu bytes, the engine's weights %llu",
                     (unsigned long long)(bytes_now(&n) - before),
                     (unsigned long long)strata_engine_weight_bytes(n.engine));
        strata_context_destroy(c);
        close_net(&n);
    }
}

Test(versions, what_was_not_used_for_longest_is_forgotten)
{
    static float x[VALUES], y[VALUES], first[VALUES];
    struct net n;
    strata_error err;
    strata_context *c;
    OK(open_sizes(&n, "T = 1..40", "1 x T x 16", block, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    fill(x, VALUES, 4);
    run(c, 1, 11, x, first);
    const strata_context *kept = c->active;
    for (int64_t t = 12; t < 40; t++) {
        run(c, 1, t, x, y);
        run(c, 1, 11, x, y);
        cr_expect_eq(c->active, kept, "it is used all the time");
    }
    cr_expect_eq(c->n_smaller, CONTEXT_MAX_VERSIONS);
    for (int64_t t = 12; t < 40; t++)
        run(c, 1, t, x, y);
    run(c, 1, 11, x, y);
    cr_expect_eq(memcmp(y, first, 11 * WIDTH * sizeof *y), 0, "made anew it is the same");
    strata_context_destroy(c);
    close_net(&n);
}

/* Listed sizes and others: bindings have as many rows. */
Test(versions, a_range_from_0_has_rows_in_the_first_dim)
{
    enum { ALL = 4 };
    float x[ALL * WIDTH], y[ALL * WIDTH], all[ALL * WIDTH];
    struct net n;
    strata_error err;
    strata_context *c;
    strata_binding b = {.struct_size = sizeof b};
    OK(open_sizes(&n, "N = 0..4: 0, 2, 4", "N x 16", "[layer y]\ntype = Softmax\n",
                  &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    fill(x, ALL * WIDTH, 5);
    for (int64_t rows = ALL; rows >= 0; rows--) {
        OK(strata_context_set_dimension(c, "N", rows, &err));
        for (int i = 0; i < 2; i++) {
            OK(strata_context_binding(c, i, &b, &err));
            cr_assert_eq(b.desc.dims[0], rows, "N = %d: %d", (int)rows,
                         (int)b.desc.dims[0]);
            cr_assert_eq(b.bytes, rows * WIDTH * 4, "N = %d", (int)rows);
        }
        OK(strata_copy_in(c, 0, x, &err));
        OK(strata_context_run(c, &err));
        OK(strata_copy_out(c, 1, rows == ALL ? all : y, &err));
        cr_expect(rows == ALL || memcmp(y, all, (size_t)b.bytes) == 0, "N = %d",
                  (int)rows);
    }
    strata_context_destroy(c);
    close_net(&n);
}

/* ---- impls that do not take a size ----------------------------------------------------
 */

static int open_picky(struct net *n, const char *layer, strata_error *err)
{
    char layers[512], profile[128];
    snprintf(layers, sizeof layers, "[layer y]\ntype = Picky\n%s", layer);
    snprintf(profile, sizeof profile, "[profile]\nT = 1..40: 8\n%s", analytic);
    return open_net_on(n, "host", profile, "1 x T", "y", layers, err);
}

/* What the first element got; 0 after a failure. */
static float run_picky(strata_context *c, int64_t t, strata_error *err)
{
    static const float x[MOST];
    float y[MOST] = {0};
    int status = strata_context_set_dimension(c, "T", t, err);
    if (status == STRATA_OK)
        status = strata_copy_in(c, 0, x, err);
    if (status == STRATA_OK)
        status = strata_context_run(c, err);
    if (status == STRATA_OK)
        status = strata_copy_out(c, 1, y, err);
    return status == STRATA_OK ? y[t - 1] : 0;
}

Test(versions, a_layer_takes_another_impl_where_its_own_refuses)
{
    struct net n;
    strata_error err;
    strata_context *c;
    OK(open_picky(&n, "", &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int64_t t = 1; t <= MOST; t++)
        cr_expect_eq(run_picky(c, t, &err), t % 2 ? 2.0f : 1.0f, "T = %d", (int)t);
    strata_context_destroy(c);
    close_net(&n);
}

Test(versions, a_size_that_no_impl_takes_leaves_the_context_good)
{
    struct net n;
    strata_error err;
    strata_context *c;
    OK(open_picky(&n, "impl = even\n", &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int round = 0; round < 2; round++) {
        cr_expect_eq(run_picky(c, 10, &err), 1.0f);
        cr_expect_eq(run_picky(c, 7, &err), 0.0f);
        cr_expect_not_null(strstr(err.message, "7 is odd"), "%s", err.message);
        cr_expect_eq(run_picky(c, 8, &err), 1.0f);
    }
    strata_context_destroy(c);
    close_net(&n);
}

/* Runs fail where packed weights are another's. */
Test(versions, packed_weights_are_shared_where_they_are_the_same)
{
    static const char *const layers[] = {"own = no\n", "own = yes\n"};
    for (int own = 0; own < 2; own++) {
        struct net n;
        strata_error err;
        strata_context *c;
        OK(open_picky(&n, layers[own], &err));
        OK(strata_context_create(&c, n.engine, n.handle, &err));
        cr_expect_eq(run_picky(c, MOST, &err), 1.0f);
        const uint64_t before = bytes_now(&n);
        for (int64_t t = 10; t <= 20; t += 2)
            cr_expect_eq(run_picky(c, t, &err), 1.0f, "T = %d, %s", (int)t, layers[own]);
        cr_expect_eq(bytes_now(&n) - before, own ? 6 * 131072 : 0, "%s", layers[own]);
        cr_expect_eq(run_picky(c, MOST, &err), 1.0f);
        strata_context_destroy(c);
        close_net(&n);
    }
}
