/* SPDX-License-Identifier: Apache-2.0
 *
 * Shuffles whose output in one layout is their input's memory in another: random ones
 * between two layers, against plans without fusion; saved and loaded; and for batches
 * smaller than what was planned.
 */
#include <time.h>

#include "tests/planner/fusion/fusing.h"

TestSuite(fuse_turned, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

enum { NETWORKS = 150, MOST = 5 /* dims */ };

static void shuffled(int64_t *order, int n)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int k = rand() % (i + 1);
        const int64_t kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

/* Other dims of as many elements: two that become one, or one that becomes two. */
static int regroup(int64_t *dims, int n)
{
    const int at = rand() % n;
    const int64_t two = dims[at] % 2 == 0 ? 2 : 1;
    if (rand() % 2 && n > 2 && at + 1 < n) {
        dims[at] *= dims[at + 1];
        memmove(dims + at + 1, dims + at + 2, (size_t)(n - at - 2) * sizeof *dims);
        return n - 1;
    }
    if (n == MOST)
        return n;
    memmove(dims + at + 1, dims + at, (size_t)(n - at) * sizeof *dims);
    dims[at] /= two;
    dims[at + 1] = two;
    return n + 1;
}

static int put(char *text, const char *key, const int64_t *list, int n, const char *gap)
{
    int at = sprintf(text, "%s = ", key);
    for (int i = 0; i < n; i++)
        at += sprintf(text + at, "%s%d", i ? gap : "", (int)list[i]);
    return at + sprintf(text + at, "\n");
}

static void write_network(char *text)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 8, 16};
    int64_t dims[MOST], first[MOST], shape[MOST], second[MOST];
    const int n = 2 + rand() % (MOST - 1);
    for (int i = 0; i < n; i++)
        dims[i] = sizes[(size_t)rand() % ARRAY_LENGTH(sizes)];
    shuffled(first, n);
    for (int i = 0; i < n; i++)
        shape[i] = dims[first[i]];
    const int out = rand() % 3 ? regroup(shape, n) : n;
    shuffled(second, out);
    char *at = text + sprintf(text, "[network]\nformat = 1\noutputs = t\n[input x]\n");
    at += put(at, "shape", dims, n, " x ");
    at += sprintf(at, "[layer r]\ntype = Activation\nkind = silu\n"
                      "[layer f]\ntype = Shuffle\n");
    at += put(at, "first", first, n, ", ");
    at += put(at, "shape", shape, out, ", ");
    at += put(at, "second", second, out, ", ");
    sprintf(at, "[layer t]\ntype = Activation\nkind = tanh\n");
}

/* Whether the Shuffle runs nothing; the engine gives the same when it is loaded. */
static bool expect_saved(const char *ini, const char *precision)
{
    struct session s;
    strata_engine *loaded = NULL;
    int64_t n, m;
    cr_assert_eq(build(&s, ini, &precision, 1), STRATA_OK, "%s: %s", ini, s.err.message);
    float *a = output(&s, &n);
    const bool erased = s.engine->execution->n_nodes == 2;
    cr_assert_eq(strata_engine_save(s.engine, in_scratch("e"), &s.err), STRATA_OK, "%s",
                 s.err.message);
    cr_assert_eq(
        strata_engine_load(&loaded, s.handle, s.registry, in_scratch("e"), &s.err),
        STRATA_OK, "%s: %s", ini, s.err.message);
    strata_engine_destroy(s.engine);
    s.engine = loaded;
    cr_expect_eq(loaded->execution->n_nodes == 2, erased, "%s", ini);
    float *b = output(&s, &m);
    cr_expect(n == m && memcmp(a, b, (size_t)n * sizeof *a) == 0, "%s", ini);
    free(a);
    free(b);
    release(&s);
    return erased;
}

Test(fuse_turned, values_are_those_without_fusion)
{
    const unsigned seed = (unsigned)time(NULL);
    char ini[1000];
    int erased = 0;
    srand(seed);
    for (int i = 0; i < NETWORKS; i++) {
        srand(seed + (unsigned)i); /* others draw, too */
        write_network(ini);
        expect_same_values(ini, ini, FP32, FP32, 1e-6);
        expect_same_values(ini, ini, FP32, FP16, 4e-3);
        erased += expect_saved(ini, i % 2 ? FP16 : FP32);
    }
    cr_expect_gt(erased, NETWORKS / 10, "seed %u: %d erased", seed, erased);
    cr_expect_lt(erased, NETWORKS, "seed %u", seed);
}

/* Rows of tokens as an image, channels last, and back. */
Test(fuse_turned, smaller_batches_have_their_rows)
{
    static const char ini[] =
        "[network]\nformat = 1\noutputs = t\n[weights w]\nrandom = 3\n"
        "[input x]\nshape = 3 x 20 x 16\n"
        "[layer r]\ntype = Activation\nkind = silu\n"
        "[layer f]\ntype = Shuffle\nfirst = 0, 2, 1\nshape = 0, 16, 4, 5\n"
        "[layer c]\ntype = Activation\nkind = sigmoid\n"
        "[layer g]\ntype = Shuffle\nshape = 0, 16, 20\nsecond = 0, 2, 1\n"
        "[layer t]\ntype = Activation\nkind = tanh\n";
    enum { IMAGE = 20 * 16 };
    struct session s;
    strata_context *c = NULL;
    const char *set = FP32;
    cr_assert_eq(build(&s, ini, &set, 1), STRATA_OK, "%s", s.err.message);
    cr_expect_eq(s.engine->execution->n_nodes, 3, "neither Shuffle runs");
    cr_assert_eq(strata_context_create(&c, s.engine, s.handle, &s.err), STRATA_OK);
    for (int batch = 3; batch > 0; batch--) {
        cr_assert_eq(strata_context_set_batch(c, batch, &s.err), STRATA_OK, "%s",
                     s.err.message);
        float *x = strata_context_data(c, 0);
        for (int i = 0; i < batch * IMAGE; i++)
            x[i] = (float)(i * 37 % 101) / 50 - 1;
        cr_assert_eq(strata_context_run(c, &s.err), STRATA_OK, "%s", s.err.message);
        const float *y = strata_context_data(c, 1);
        for (int i = 0; i < batch * IMAGE; i++) {
            const double v = (double)(float)(i * 37 % 101) / 50 - 1;
            const double silu = v / (1 + exp(-v));
            cr_assert_float_eq(y[i], tanh(1 / (1 + exp(-silu))), 1e-5, "%d of %d", i,
                               batch);
        }
    }
    strata_context_destroy(c);
    release(&s);
}
