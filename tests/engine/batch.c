/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches: fewer rows than an engine was built for, and engines built for several.
 */
#include <math.h>
#include <time.h>

#include "engine/context/context.h"
#include "tests/engine/batch_net.h"

#include <strata/sizes.h>

TestSuite(batch, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

enum { ROW = 3 * 6 * 6, UNITS = 7, MOST = 8 };

static unsigned seed_random(void)
{
    unsigned seed = (unsigned)time(NULL);
    srand(seed);
    return seed;
}

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rand() / (float)RAND_MAX * 2 - 1;
}

/* The first `batch` rows; those of x beyond hold what no answer may show. */
static void run_rows(strata_context *c, const float *x, float *y, int64_t batch)
{
    strata_error err;
    float *data = strata_context_data(c, 0);
    OK(strata_context_set_batch(c, batch, &err));
    OK(strata_copy_in(c, 0, x, &err));
    for (int64_t i = batch * ROW; i < c->engine->batch * ROW; i++)
        data[i] = NAN;
    OK(strata_context_run(c, &err));
    memset(y, 0, MOST * UNITS * sizeof *y);
    OK(strata_copy_out(c, strata_engine_find(c->engine, "prob"), y, &err));
    for (int64_t i = batch * UNITS; i < MOST * UNITS; i++)
        cr_expect_eq(y[i], 0.0f, "rows beyond the batch are not copied");
}

static double difference(const float *a, const float *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    return worst;
}

Test(batch, the_first_rows_are_the_same_whatever_the_others_hold)
{
    struct net n;
    strata_error err;
    strata_context *c;
    float x[MOST * ROW], whole[MOST * UNITS], y[MOST * UNITS];
    unsigned seed = seed_random();
    OK(open_net(&n, "", "8 x 3 x 6 x 6", "prob", conv_net, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    cr_expect_eq(strata_engine_batch(n.engine), MOST);
    fill(x, MOST * ROW);
    run_rows(c, x, whole, MOST);
    for (int batch = 1; batch <= MOST; batch++) {
        run_rows(c, x, y, batch);
        cr_expect_eq(memcmp(y, whole, (size_t)batch * UNITS * sizeof *y), 0,
                     "batch %d, seed %u", batch, seed);
    }
    strata_context_destroy(c);
    close_net(&n);
}

Test(batch, a_run_goes_by_the_smallest_profile_that_fits)
{
    static const int64_t fits[MOST + 1] = {0, 1, 3, 3, 8, 8, 8, 8, 8};
    struct net n;
    strata_error err;
    strata_context *c;
    int64_t batches[4];
    float x[MOST * ROW], whole[MOST * UNITS], y[MOST * UNITS];
    unsigned seed = seed_random();
    OK(open_net(&n, "[profile]\nN = 8, 1, 3\n", "N x 3 x 6 x 6", "prob", conv_net, &err));
    cr_assert_eq(strata_engine_batches(n.engine, batches, 4), 3);
    cr_expect(batches[0] == 1 && batches[1] == 3 && batches[2] == 8);
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    OK(strata_context_prepare(c, &err));
    fill(x, MOST * ROW);
    run_rows(c, x, whole, MOST);
    for (int round = 0; round < 40; round++) {
        int batch = 1 + rand() % MOST;
        run_rows(c, x, y, batch);
        cr_expect_eq(c->active->engine->batch, fits[batch]);
        double d = difference(y, whole, batch * UNITS);
        cr_expect_lt(d, 1e-5, "batch %d: %g, seed %u", batch, d, seed);
    }
    strata_context_destroy(c);
    close_net(&n);
}

/* What a profile gives is, bit for bit, what an engine for that batch alone does. */
Test(batch, a_profile_is_an_engine_of_its_own)
{
    static const char *const alone[] = {"[profile]\nN = 1\n", "[profile]\nN = 3\n"};
    static const int sizes[] = {1, 3};
    float x[MOST * ROW], y[2][MOST * UNITS], z[MOST * UNITS];
    struct net n;
    strata_error err;
    strata_context *c;
    fill(x, MOST * ROW);
    OK(open_net(&n, "[profile]\nN = 1, 3, 8\n", "N x 3 x 6 x 6", "prob", conv_net, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int i = 0; i < 2; i++)
        run_rows(c, x, y[i], sizes[i]);
    strata_context_destroy(c);
    close_net(&n);
    for (int i = 0; i < 2; i++) {
        OK(open_net(&n, alone[i], "N x 3 x 6 x 6", "prob", conv_net, &err));
        cr_assert_eq(strata_engine_batch(n.engine), sizes[i]);
        OK(strata_context_create(&c, n.engine, n.handle, &err));
        run_rows(c, x, z, sizes[i]);
        cr_expect_eq(memcmp(z, y[i], sizeof z), 0, "batch %d", sizes[i]);
        strata_context_destroy(c);
        close_net(&n);
    }
}

Test(batch, memory_bound_once_serves_every_batch)
{
    struct net n;
    strata_error err;
    strata_context *c;
    float *x = aligned_alloc(256, (MOST * ROW * 4 + 255) / 256 * 256);
    float *y = aligned_alloc(256, 256), z[MOST * UNITS];
    OK(open_net(&n, "[profile]\nN = 2, 8\n", "N x 3 x 6 x 6", "prob", conv_net, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    fill(x, MOST * ROW);
    run_rows(c, x, z, 2);
    OK(strata_context_bind(c, 0, x, &err));
    OK(strata_context_bind(c, 1, y, &err));
    OK(strata_context_set_batch(c, 2, &err));
    OK(strata_context_run(c, &err));
    cr_expect_eq(memcmp(y, z, 2 * UNITS * sizeof *y), 0);
    OK(strata_context_bind(c, 1, NULL, &err));
    memset(y, 0, 256);
    OK(strata_context_run(c, &err));
    cr_expect_eq(y[0], 0.0f, "it was bound elsewhere");
    strata_context_destroy(c);
    close_net(&n);
    free(x);
    free(y);
}

Test(batch, a_saved_engine_keeps_its_batches)
{
    struct net n;
    strata_error err;
    strata_context *c;
    strata_engine *loaded;
    int64_t batches[4];
    float x[MOST * ROW], y[MOST + 1][MOST * UNITS], z[MOST * UNITS];
    fill(x, MOST * ROW);
    OK(open_net(&n, "[profile]\nN = 1, 3, 8\n", "N x 3 x 6 x 6", "prob", conv_net, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int batch = 1; batch <= MOST; batch++)
        run_rows(c, x, y[batch], batch);
    strata_context_destroy(c);
    cr_expect_eq(strata_engine_save(n.engine, in_scratch("net.ini"), &err),
                 STRATA_EINVAL, "the network would be gone");
    cr_expect(strstr(err.message, "would be replaced"), "%s", err.message);
    OK(strata_engine_save(n.engine, in_scratch("net.engine"), &err));
    OK(strata_engine_load(&loaded, n.handle, n.registry, in_scratch("net.engine"), &err));
    OK(strata_engine_save(loaded, in_scratch("net.engine"), &err)); /* the same once more */
    cr_assert_eq(strata_engine_batches(loaded, batches, 4), 3);
    cr_expect(batches[0] == 1 && batches[1] == 3 && batches[2] == 8);
    cr_expect_eq(strata_engine_weight_bytes(loaded),
                 strata_engine_weight_bytes(n.engine));
    OK(strata_context_create(&c, loaded, n.handle, &err));
    for (int batch = 1; batch <= MOST; batch++) {
        run_rows(c, x, z, batch);
        cr_expect_eq(memcmp(z, y[batch], sizeof z), 0, "batch %d", batch);
    }
    strata_context_destroy(c);
    strata_engine_destroy(loaded);
    close_net(&n);
}

/* ---- weights ----------------------------------------------------------------------- */

static uint64_t bytes_of(const char *profile, const char *layers)
{
    struct net n;
    strata_error err;
    OK(open_net(&n, profile, "N x 3 x 6 x 6", "last", layers, &err));
    uint64_t bytes = strata_engine_weight_bytes(n.engine);
    strata_memory_stats stats = {.struct_size = sizeof stats};
    strata_get_memory_stats(n.handle, &stats, NULL);
    cr_expect_eq(stats.current_bytes, bytes, "an engine has weights alone");
    close_net(&n);
    return bytes;
}

Test(batch, profiles_share_weights_dense_and_packed)
{
    static const char *const nets[] = {
        "[layer last]\ntype = FullyConnected\nunits = 512\nweights = w:fc\nimpl = c\n",
        "[layer last]\ntype = Convolution\nfilters = 64\nkernel = 3x3\nimpl = any\n"
        "weights = w:c\n",
        "[layer last]\ntype = Trial\npacks = same\n",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(nets); i++) {
        uint64_t one = bytes_of("[profile]\nN = 8\n", nets[i]);
        cr_expect_gt(one, 0);
        cr_expect_eq(bytes_of("[profile]\nN = 1, 2, 3, 4, 5, 8\n", nets[i]), one, "%s",
                     nets[i]);
    }
    const char own[] = "[layer last]\ntype = Trial\npacks = own\n";
    cr_expect_eq(bytes_of("[profile]\nN = 1, 2, 8\n", own),
                 3 * bytes_of("[profile]\nN = 8\n", own), "these cannot be shared");
}

Test(batch, packed_weights_that_differ_stay_apart)
{
    struct net n;
    strata_error err;
    strata_context *c;
    OK(open_net(&n, "[profile]\nN = 1, 2, 8\n", "N x 3", "last",
                "[layer last]\ntype = Trial\npacks = own\n", &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int batch = MOST; batch > 0; batch--) {
        OK(strata_context_set_batch(c, batch, &err));
        OK(strata_context_run(c, &err)); /* fails where they are another's */
    }
    strata_context_destroy(c);
    close_net(&n);
}

/* ---- refusals ------------------------------------------------------------------------
 */

static const struct mixing {
    const char *shape, *layers, *text;
    bool number; /* the layer holds it */
} mixing[] = {
    {"4 x 3 x 4", "[layer last]\ntype = Softmax\naxis = 0\n", "works along the batch"},
    {"4 x 3 x 4", "[layer last]\ntype = Softmax\naxis = -3\n", "works along the batch"},
    {"4 x 3 x 4", "[layer last]\ntype = Concatenation\naxis = 0\ninputs = x, x\n",
     "works along the batch"},
    {"4 x 3 x 4", "[layer last]\ntype = Slice\naxes = 0\nbegin = 1\nend = 4\n",
     "works along the batch"},
    {"4 x 3 x 4",
     "[layer last]\ntype = Slice\nbegin = 3, 0, 0\nend = -100, 3, 4\nstep = -1, 1, 1\n",
     "selects from the batch"},
    {"4 x 3 x 4", "[layer last]\ntype = Slice\nbegin = 0, 0, 0\nend = 2, 3, 4\n",
     "first dim of its output is not the batch"},
    {"4 x 4", "[layer last]\ntype = Shuffle\nfirst = 1, 0\n", "transposes the batch"},
    {"4 x 3 x 4", "[layer last]\ntype = Shuffle\nshape = 4, 12\n", "cannot have a batch",
     true},
    {"4 x 3 x 4", "[layer last]\ntype = Shuffle\nshape = -1, 4\n",
     "first dim of its output is not the batch"},
    {"4 x 3 x 4 x 5",
     "[layer last]\ntype = Padding\nbegin = 1, 0, 0, 0\nend = 0, 0, 0, 0\n",
     "first dim of its output is not the batch"},
};

Test(batch, networks_that_mix_rows_run_whole_and_refuse_less)
{
    for (size_t i = 0; i < ARRAY_LENGTH(mixing); i++) {
        const struct mixing *m = &mixing[i];
        struct net n;
        strata_error err;
        strata_context *c;
        cr_assert_eq(open_net(&n, "", m->shape, "last", m->layers, &err), STRATA_OK,
                     "%s: %s", m->layers, err.message);
        OK(strata_context_create(&c, n.engine, n.handle, &err));
        OK(strata_context_set_batch(c, 4, &err));
        OK(strata_context_run(c, &err));
        cr_expect_eq(strata_context_set_batch(c, 3, &err), STRATA_EUNSUPPORTED, "%s",
                     m->layers);
        cr_expect(strstr(err.message, m->text) && strstr(err.message, "'last'") &&
                      strstr(err.message, "net.ini:"),
                  "%s: %s", m->layers, err.message);
        strata_context_destroy(c);
        close_net(&n);
    }
}

/* The name is no batch then: such a network runs at the very sizes. */
Test(batch, rows_that_mix_are_run_as_they_are)
{
    for (size_t i = 0; i < ARRAY_LENGTH(mixing); i++) {
        const struct mixing *m = &mixing[i];
        struct net n;
        strata_error err;
        strata_context *c;
        char named[64];
        snprintf(named, sizeof named, "N%s", m->shape + 1);
        int status =
            open_net(&n, "[profile]\nN = 2, 4\n", named, "last", m->layers, &err);
        if (m->number) {
            cr_expect_eq(status, STRATA_EUNSUPPORTED, "%s", m->layers);
            cr_expect(strstr(err.message, "layer 'last'") && strstr(err.message, "N = "),
                      "%s", err.message);
            close_net(&n);
            continue;
        }
        cr_assert_eq(status, STRATA_OK, "%s: %s", m->layers, err.message);
        OK(strata_context_create(&c, n.engine, n.handle, &err));
        cr_expect_eq(strata_context_set_batch(c, 3, &err), STRATA_EUNSUPPORTED);
        OK(strata_context_set_dimension(c, "N", 3, &err));
        OK(strata_context_run(c, &err));
        cr_expect_eq(c->active->engine->sizes[0], 3);
        strata_context_destroy(c);
        close_net(&n);
    }
}

Test(batch, layers_that_keep_rows_apart_take_any_batch)
{
    static const struct mixing apart[] = {
        {"4 x 3 x 4", "[layer last]\ntype = Softmax\naxis = -1\n", ""},
        {"4 x 3 x 4", "[layer last]\ntype = Slice\naxes = 1\nbegin = 1\nend = 3\n", ""},
        {"4 x 3 x 4", "[layer last]\ntype = Shuffle\nfirst = 0, 2, 1\nshape = 0, -1\n",
         ""},
        {"4 x 3 x 4", "[layer last]\ntype = Concatenation\naxis = 1\ninputs = x, x\n",
         ""},
        {"1 x 3 x 4", "[layer last]\ntype = Identity\n", ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(apart); i++) {
        struct net n;
        strata_error err;
        OK(open_net(&n, "", apart[i].shape, "last", apart[i].layers, &err));
        cr_expect_null(n.engine->only_batch, "%s: %s", apart[i].layers,
                       n.engine->only_batch);
        close_net(&n);
    }
}

Test(batch, a_batch_the_engine_does_not_take_is_refused)
{
    static const int64_t wrong[] = {0, -1, 9, INT64_MAX, INT64_MIN};
    struct net n;
    strata_error err;
    strata_context *c;
    OK(open_net(&n, "", "8 x 3 x 6 x 6", "prob", conv_net, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        cr_expect_eq(strata_context_set_batch(c, wrong[i], &err), STRATA_EINVAL);
        cr_expect_not_null(strstr(err.message, "1 to 8"), "%s", err.message);
    }
    strata_context_destroy(c);
    close_net(&n);
}

static const struct bad_profile {
    const char *profile, *shape, *text;
} bad_profiles[] = {
    {"[profile]\nN = 1, 2\n", "4 x 3",
     "'N' has several sizes, and stands in no input's shape"},
    {"[profile]\nN = 2..\n", "N x 3", "'' is not an integer"},
    {"[profile]\nN = ..2\n", "N x 3", "'' is not an integer"},
    {"[profile]\nN = 3..2\n", "N x 3", "out of range"},
    {"[profile]\nN = 1..4:\n", "N x 3", "is not an integer"},
    {"[profile]\nN = 1..4: 2, 5\n", "N x 3", "5 is out of range"},
    {"[profile]\nN = 2..4: 1\n", "N x 3", "1 is out of range"},
    {"[profile]\nN = 1..4: 2, 2\n", "N x 3", "2 stands twice"},
    {"[profile]\nN = 2..9/2\n", "N x 3",
     "a range from 2 by steps of 2 does not end at 9"},
    {"[profile]\nN = 2..8/2: 3\n", "N x 3",
     "3 is no size of a range from 2 by steps of 2"},
    {"[profile]\nN = 2..8/0\n", "N x 3", "0 is out of range"},
    {"[profile]\nN = 2..8/\n", "N x 3", "'' is not an integer"},
    {"[profile]\nN = 1:..4\n", "N x 3", "a range is written"},
    {"[profile]\nN = 1..99: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16\n",
     "N x 3", "more than 16 sizes"},
    {"[profile]\nN = 1, 2, 3, 4, 5, 6, 7, 8, 9\nM = 1, 2, 3, 4, 5, 6, 7, 8\n", "N x M",
     "72 combinations"},
    {"[profile]\nA = 1, 2\nB = 1, 2\nC = 1, 2\nD = 1, 2\nE = 1, 2\nF = 1, 2\n"
     "G = 1, 2\nH = 1, 2\nI = 1, 2\n",
     "A x B", "more than 8 names"},
    {"[profile]\nN = 1, 1\n", "N x 3", "1 stands twice"},
    {"[profile]\nN = 0, 1\n", "N x 3", "out of range"},
    {"[profile]\nN = 1,\n", "N x 3", "net.ini:5"},
    {"[profile]\nN = 1, 2\nM = 3, 4\n", "N x 3", "'M' has several sizes"},
    {"[profile]\nN = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17\n",
     "N x 3", "more than 16 numbers"},
};

Test(batch, a_profile_that_makes_no_sense_is_an_error_with_its_place)
{
    for (size_t i = 0; i < ARRAY_LENGTH(bad_profiles); i++) {
        const struct bad_profile *b = &bad_profiles[i];
        struct net n;
        strata_error err;
        cr_expect_eq(open_net(&n, b->profile, b->shape, "last",
                              "[layer last]\ntype = Identity\n", &err),
                     STRATA_EPARSE, "%s", b->profile);
        cr_expect(strstr(err.message, b->text) && strstr(err.message, "net.ini:"),
                  "%s: %s", b->profile, err.message);
        close_net(&n);
    }
}
