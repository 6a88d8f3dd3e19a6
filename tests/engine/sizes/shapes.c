/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes that vary: an engine at every size of a range against engines that were built
 * for exactly that size.
 */
#include <math.h>
#include <pthread.h>
#include <strata/batcher.h>

#include "core/handle.h"
#include "engine/context/context.h"
#include "planner/planner.h"
#include "tests/engine/sizes/sizes_net.h"

TestSuite(shapes, .init = scratch_make, .fini = scratch_remove, .timeout = 900);

Test(shapes, every_size_of_a_range_is_as_built_for_it_alone)
{
    static float x[VALUES], y[VALUES], exact[VALUES];
    struct net n;
    strata_error err;
    strata_context *c;
    OK(open_sizes(&n, "T = 1..40: 8, 32, 40", "2 x T x 16", block, &err));
    cr_expect_eq(n.engine->n_smaller, 2);
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    fill(x, VALUES, 1);
    for (int64_t i = 0; i < MOST; i++) {
        const int64_t t = 1 + i * 7 % MOST;
        run(c, 2, t, x, y);
        run_exact(2, t, x, exact);
        EXPECT_SAME(y, exact, 2 * t * WIDTH, "T = %d", (int)t);
    }
    cr_expect_leq(c->n_smaller, n.engine->n_smaller + CONTEXT_MAX_VERSIONS);
    strata_context_destroy(c);
    close_net(&n);
}

Test(shapes, two_names_vary_at_once)
{
    static const int64_t sizes[][2] = {{4, 40}, {1, 1}, {3, 7}, {2, 9}, {1, 32}, {4, 39}};
    static float x[VALUES], y[VALUES], exact[VALUES];
    struct net n;
    strata_error err;
    strata_context *c;
    OK(open_sizes(&n, "N = 1, 4\nT = 1..40: 8, 32", "N x T x 16", block, &err));
    cr_expect_eq(n.engine->n_smaller, 5);
    cr_expect_eq(n.engine->batch_symbol, 0);
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    fill(x, VALUES, 2);
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        const int64_t rows = sizes[i][0], t = sizes[i][1];
        run(c, rows, t, x, y);
        cr_expect_eq(c->active->engine->sizes[0], rows == 1 ? 1 : 4, "rows are padded");
        cr_expect_eq(c->active->engine->sizes[1], t, "and no others");
        run_exact(rows, t, x, exact);
        EXPECT_SAME(y, exact, rows * t * WIDTH, "%d x %d", (int)rows, (int)t);
    }
    strata_context_destroy(c);
    close_net(&n);
}

/* ---- images ------------------------------------------------------------------------ */

/* Convolutions, fused and not, in formats of their own; parts that are joined and cut
 * where a size lets them, which hangs on its bytes. */
static const char pyramid[] =
    "[layer first]\ntype = Convolution\nfilters = 16\nkernel = 3x3\npad = 1\n"
    "weights = w:first\n"
    "[layer act]\ntype = Activation\nkind = relu\n"
    "[layer left]\ntype = Convolution\nfilters = 8\nkernel = 1x1\nweights = w:left\n"
    "inputs = act\n"
    "[layer right]\ntype = Convolution\nfilters = 8\nkernel = 3x3\npad = 1\n"
    "weights = w:right\ninputs = act\n"
    "[layer joined]\ntype = Concatenation\ninputs = left, right\n"
    "[layer cut]\ntype = Slice\naxes = 1\nbegin = 4\nend = 12\n"
    "[layer pool]\ntype = Pooling\nkind = max\nkernel = 2x2\nstride = 2\n"
    "inputs = joined\n"
    "[layer both]\ntype = Concatenation\naxis = 2\ninputs = cut, joined_cut\n"
    "[layer joined_cut]\ntype = Slice\naxes = 1\nbegin = 8\nend = 16\ninputs = joined\n"
    "[layer mean]\ntype = Reduce\nop = mean\naxes = 2, 3\ninputs = both\n"
    "[layer deep]\ntype = Reduce\nop = sum\naxes = 2, 3\ninputs = pool\n"
    "[layer y]\ntype = Concatenation\ninputs = mean, deep\n";

static int open_pyramid(struct net *n, const char *profile, const char *shape,
                        strata_error *err)
{
    char sections[256];
    snprintf(sections, sizeof sections, "%s%s", profile, analytic);
    return open_net_on(n, device(), sections, shape, "y", pyramid, err);
}

enum { SIDE = 21, IMAGE = 2 * 3 * SIDE * SIDE, FEATURES = 2 * 24 };

static void run_image(strata_context *c, int64_t h, int64_t w, const float *x, float *y)
{
    strata_error err;
    const int64_t dims[] = {2, 3, h, w};
    OK(strata_context_set_shape(c, 0, 4, dims, &err));
    OK(strata_copy_in(c, 0, x, &err));
    OK(strata_context_run(c, &err));
    OK(strata_copy_out(c, 1, y, &err));
}

Test(shapes, images_of_many_sizes)
{
    static float x[IMAGE];
    float y[FEATURES], exact[FEATURES];
    struct net n, alone;
    strata_error err;
    strata_context *c, *own;
    OK(open_pyramid(&n, "[profile]\nH = 2..21: 16\nW = 2..21: 8\n", "2 x 3 x H x W",
                    &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    fill(x, IMAGE, 8);
    for (int64_t h = 2; h <= SIDE; h++) {
        const int64_t w = 2 + h * 5 % 20;
        char shape[64];
        snprintf(shape, sizeof shape, "2 x 3 x %d x %d", (int)h, (int)w);
        run_image(c, h, w, x, y);
        OK(open_pyramid(&alone, "", shape, &err));
        OK(strata_context_create(&own, alone.engine, alone.handle, &err));
        run_image(own, h, w, x, exact);
        EXPECT_SAME(y, exact, FEATURES, "%d x %d", (int)h, (int)w);
        strata_context_destroy(own);
        close_net(&alone);
    }
    strata_context_destroy(c);
    close_net(&n);
}

/* ---- threads -------------------------------------------------------------------------
 */

struct worker {
    const struct net *net;
    const float *x;
    float (*y)[MOST * WIDTH]; /* of each T */
    unsigned seed;
    int wrong;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    strata_error err;
    strata_handle *handle;
    strata_context *c;
    float y[MOST * WIDTH];
    OK(strata_create(&handle, device(), &err));
    OK(strata_context_create(&c, w->net->engine, handle, &err));
    for (int i = 0; i < 60; i++) {
        w->seed = w->seed * 1103515245u + 12345u;
        const int64_t t = 1 + (w->seed >> 16) % MOST;
        run(c, 1, t, w->x, y);
        w->wrong += difference(y, w->y[t - 1], t * WIDTH) > 1e-4;
    }
    strata_context_destroy(c);
    strata_destroy(handle);
    return NULL;
}

Test(shapes, contexts_in_several_threads_have_sizes_of_their_own)
{
    static float x[MOST * WIDTH], y[MOST][MOST * WIDTH];
    enum { THREADS = 4 };
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct net n;
    strata_error err;
    strata_context *c;
    OK(open_sizes(&n, "T = 1..40: 16", "1 x T x 16", block, &err));
    fill(x, MOST * WIDTH, 5);
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int64_t t = 1; t <= MOST; t++)
        run(c, 1, t, x, y[t - 1]);
    strata_context_destroy(c);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&n, x, y, i + 1, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(workers[i].wrong, 0, "thread %d", i);
    }
    close_net(&n);
}

/* Requests have the largest of the other names. */
Test(shapes, a_batcher_gathers_along_the_batch)
{
    static float x[VALUES], y[2][VALUES];
    struct net n;
    strata_error err;
    strata_context *c;
    strata_batcher *batcher;
    OK(open_sizes(&n, "N = 1, 4\nT = 1..40: 8\n[runtime]\nthreads = 2", "N x T x 16",
                  block, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    fill(x, VALUES, 9);
    OK(strata_batcher_create(&batcher, n.engine, NULL, &err));
    for (int64_t rows = 1; rows <= ROWS; rows++) {
        const void *in[] = {x};
        void *out[] = {y[1]};
        const strata_request_options request = {sizeof request, rows, in, out,
                                                NULL,           NULL};
        OK(strata_batcher_run(batcher, &request, &err));
        run(c, rows, MOST, x, y[0]);
        EXPECT_SAME(y[1], y[0], rows * MOST * WIDTH, "%d rows", (int)rows);
    }
    strata_batcher_destroy(batcher);
    strata_context_destroy(c);
    close_net(&n);
}

/* ---- files, estimates ----------------------------------------------------------------
 */

Test(shapes, a_saved_engine_has_them_too)
{
    static float x[VALUES], y[VALUES], loaded_y[VALUES];
    struct net n;
    strata_error err;
    strata_context *c[2];
    strata_engine *loaded;
    strata_dimension d = {.struct_size = sizeof d};
    OK(open_sizes(&n, "N = 1, 4\nT = 2..40: 8, 32", "N x T x 16", block, &err));
    OK(strata_engine_save(n.engine, in_scratch("net.engine"), &err));
    OK(strata_engine_load(&loaded, n.handle, n.registry, in_scratch("net.engine"), &err));
    cr_assert_eq(strata_engine_dimensions(loaded), 2);
    OK(strata_engine_dimension(loaded, 0, &d, &err));
    cr_expect(strcmp(d.name, "N") == 0 && d.is_batch && d.least == 1 && d.most == 4);
    OK(strata_engine_dimension(loaded, 1, &d, &err));
    cr_expect(strcmp(d.name, "T") == 0 && !d.is_batch && d.least == 2 && d.most == 40);
    cr_expect(d.n_sizes == 3 && d.sizes[0] == 8 && d.sizes[1] == 32 && d.sizes[2] == 40);
    OK(strata_context_create(&c[0], n.engine, n.handle, &err));
    OK(strata_context_create(&c[1], loaded, n.handle, &err));
    fill(x, VALUES, 6);
    for (int64_t t = 2; t <= MOST; t += 6) {
        run(c[0], 3, t, x, y);
        run(c[1], 3, t, x, loaded_y);
        cr_expect_eq(memcmp(y, loaded_y, (size_t)(3 * t * WIDTH) * sizeof *y), 0,
                     "T = %d", (int)t);
    }
    strata_context_destroy(c[0]);
    strata_context_destroy(c[1]);
    strata_engine_destroy(loaded);
    close_net(&n);
}

Test(shapes, an_estimate_says_what_sizes_cost)
{
    struct net n;
    strata_error err;
    strata_estimate at[3];
    const int64_t sizes[3][2] = {{1, 32}, {4, 36}, {3, 40}};
    OK(open_sizes(&n, "N = 1, 4\nT = 1..40: 32", "N x T x 16", block, &err));
    for (int i = 0; i < 3; i++) {
        at[i] = (strata_estimate){.struct_size = sizeof at[i]};
        OK(strata_engine_estimate(n.engine, sizes[i], 2, &at[i], &err));
        cr_expect(at[i].predicted_us > 0 && at[i].arena_bytes > 0 && at[i].n_sizes == 2);
    }
    cr_expect(at[0].planned && at[0].sizes[0] == 1 && at[0].sizes[1] == 32);
    cr_expect(!at[1].planned && at[1].sizes[0] == 4 &&
              (at[1].sizes[1] == 32 || at[1].sizes[1] == 40));
    cr_expect(at[2].planned && at[2].sizes[0] == 4, "the batch is rounded up");
    cr_expect_lt(at[0].predicted_us, at[1].predicted_us);
    cr_expect_leq(at[1].predicted_us, at[2].predicted_us);
    close_net(&n);
}

/* ---- refusals -------------------------------------------------------------------------
 */

Test(shapes, what_the_engine_does_not_take_is_refused)
{
    static const struct {
        int index, rank;
        int64_t dims[3];
        const char *text;
    } wrong[] = {
        {0, 3, {1, 41, 16}, "T = 41 is outside of 2..40 of [profile]"},
        {0, 3, {1, 1, 16}, "T = 1 is outside of 2..40"},
        {0, 3, {5, 8, 16}, "N = 5 is outside of 1..4"},
        {0, 3, {0, 8, 16}, "N = 0 is outside of 1..4"},
        {0, 3, {1, 8, 15}, "dim 2 is 16, not 15"},
        {0, 2, {1, 8, 16}, "has 3 dims, not 2"},
        {1, 3, {1, 8, 16}, "input 1: there are 1"},
        {-1, 3, {1, 8, 16}, "input -1"},
    };
    struct net n;
    strata_error err;
    strata_context *c;
    strata_binding b = {.struct_size = sizeof b};
    OK(open_sizes(&n, "N = 1, 4\nT = 2..40", "N x T x 16", block, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    OK(strata_context_set_dimension(c, "T", 9, &err));
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        cr_expect_eq(strata_context_set_shape(c, wrong[i].index, wrong[i].rank,
                                              wrong[i].dims, &err),
                     STRATA_EINVAL);
        cr_expect_not_null(strstr(err.message, wrong[i].text), "%s", err.message);
    }
    cr_expect_eq(strata_context_set_dimension(c, "M", 9, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "no dimension 'M'; there are: N T"), "%s",
                       err.message);
    OK(strata_context_binding(c, 0, &b, &err));
    cr_expect(b.desc.dims[0] == 4 && b.desc.dims[1] == 9, "nothing has changed");
    strata_context_destroy(c);
    close_net(&n);
}

Test(shapes, a_layer_that_holds_the_size_is_named)
{
    static const struct {
        const char *layers, *text;
    } holds[] = {
        {"[layer y]\ntype = Shuffle\nshape = 0, 640\n", "layer 'y'"},
        {"[layer y]\ntype = Shuffle\nshape = 0, S, 16\n",
         "neither an integer nor a name"},
        {"[layer y]\ntype = Softmax\naxis = T\n", "'T' is not an integer"},
        {"[layer y]\ntype = FullyConnected\nunits = 4\nweights = w:y\n",
         "its weights hang on the size"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(holds); i++) {
        struct net n;
        strata_error err;
        cr_expect_neq(open_sizes(&n, "T = 1..40", "2 x T x 16", holds[i].layers, &err),
                      STRATA_OK);
        cr_expect_not_null(strstr(err.message, holds[i].text), "%s", err.message);
        close_net(&n);
    }
}

/* ---- names in layers ----------------------------------------------------------------
 */

/* A row of its own before each sequence, and a table cut to the length; `apart` keeps the
 * rows of the batch apart, the other joins them to one list and parts them again. */
#define NAMED(behind)                                                                    \
    "[layer token]\ntype = Constant\nshape = 1, 1, 16\nvalue = w\n"                      \
    "[layer tokens]\ntype = Expand\nshape = N, 1, 16\n"                                  \
    "[layer table]\ntype = Constant\nshape = 40, 16\nvalue = w\n"                        \
    "[layer places]\ntype = Slice\naxes = 0\nbegin = 0\nend = T\n"                       \
    "[layer placed]\ntype = ElementWise\ninputs = x, places\n"                           \
    "[layer long]\ntype = Concatenation\ninputs = tokens, placed\n" behind               \
    "[layer y]\ntype = Slice\naxes = 1\nbegin = -1000\nend = -1\n"

static const char apart[] =
    NAMED("[layer up]\ntype = MatrixMultiply\nunits = 16\nb = w\n");
static const char joined[] =
    NAMED("[layer flat]\ntype = Shuffle\nshape = -1, 16\n"
          "[layer up]\ntype = MatrixMultiply\nunits = 16\nb = w\n"
          "[layer parted]\ntype = Shuffle\nshape = N, -1, 16\n");

/* The network whose sizes are those numbers. */
static void run_named(const char *layers, int64_t rows, int64_t t, const float *x,
                      float *y)
{
    struct net n;
    strata_error err;
    strata_context *c;
    char profile[64];
    snprintf(profile, sizeof profile, "N = %d\nT = %d", (int)rows, (int)t);
    OK(open_sizes(&n, profile, "N x T x 16", layers, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    run(c, rows, t, x, y);
    strata_context_destroy(c);
    close_net(&n);
}

static void expect_named(const strata_engine *e, strata_handle *handle,
                         const char *layers, const char *what)
{
    static const int64_t sizes[][2] = {{4, 40}, {1, 1}, {3, 7}, {4, 39}, {2, 8}, {3, 40}};
    static float x[VALUES], y[VALUES], exact[VALUES];
    strata_error err;
    strata_context *c;
    fill(x, VALUES, 5);
    OK(strata_context_create(&c, e, handle, &err));
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        const int64_t rows = sizes[i][0], t = sizes[i][1];
        run(c, rows, t, x, y);
        run_named(layers, rows, t, x, exact);
        EXPECT_SAME(y, exact, rows * t * WIDTH, "%s: %d x %d", what, (int)rows, (int)t);
    }
    strata_context_destroy(c);
}

Test(shapes, a_name_in_a_layer_is_the_size_of_the_run)
{
    static const struct {
        const char *name, *layers;
        int batch_symbol;
    } cases[] = {{"rows apart", apart, 0}, {"rows in one list", joined, -1}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct net n;
        strata_error err;
        strata_engine *loaded;
        OK(open_sizes(&n, "N = 1, 4\nT = 1..40: 8, 32", "N x T x 16", cases[i].layers,
                      &err));
        cr_expect_eq(n.engine->batch_symbol, cases[i].batch_symbol, "%s", cases[i].name);
        expect_named(n.engine, n.handle, cases[i].layers, cases[i].name);
        OK(strata_engine_save(n.engine, in_scratch("named.engine"), &err));
        OK(strata_engine_load(&loaded, n.handle, n.registry, in_scratch("named.engine"),
                              &err));
        expect_named(loaded, n.handle, cases[i].layers, "loaded");
        strata_engine_destroy(loaded);
        close_net(&n);
    }
}

/* One name in two inputs, and two in one shape. */
Test(shapes, a_name_has_one_size)
{
    struct net n;
    strata_error err;
    strata_context *c;
    strata_binding b = {.struct_size = sizeof b};
    const int64_t square[] = {5, 5}, other[] = {5, 6}, three[] = {3, 3};
    OK(open_net_on(&n, device(), "[profile]\nT = 1..8\n[input z]\nshape = T x T\n",
                   "T x T", "y", "[layer y]\ntype = MatrixMultiply\ninputs = x, z\n",
                   &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    OK(strata_context_set_shape(c, 0, 2, square, &err));
    for (int i = 0; i < 3; i++) {
        OK(strata_context_binding(c, i, &b, &err));
        cr_expect(b.desc.dims[0] == 5 && b.desc.dims[1] == 5, "binding %d", i);
    }
    cr_expect_eq(strata_context_set_shape(c, 0, 2, other, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "5 and 6 are both named T"), "%s",
                       err.message);
    OK(strata_context_set_shape(c, 1, 2, three, &err));
    OK(strata_context_binding(c, 0, &b, &err));
    cr_expect_eq(b.desc.dims[0], 3);
    strata_context_destroy(c);
    close_net(&n);
}

/* ---- empty tensors, batches without a name --------------------------------------------
 */

Test(shapes, a_range_may_begin_at_0)
{
    struct net n;
    strata_error err;
    strata_context *c;
    float x[12], y[12] = {0};
    fill(x, 12, 7);
    OK(open_net_on(&n, device(), "[profile]\nP = 0..3\n[input past]\nshape = 1 x P x 2\n",
                   "1 x 2 x 2", "y",
                   "[layer y]\ntype = Concatenation\naxis = 1\ninputs = past, x\n",
                   &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    const int past = strata_engine_find(n.engine, "past"),
              now = strata_engine_find(n.engine, "x"),
              out = strata_engine_find(n.engine, "y");
    for (int64_t p = 0; p <= 3; p++) {
        OK(strata_context_set_dimension(c, "P", p, &err));
        OK(strata_copy_in(c, past, x, &err));
        OK(strata_copy_in(c, now, x + 6, &err));
        OK(strata_context_run(c, &err));
        OK(strata_copy_out(c, out, y, &err));
        cr_expect_eq(memcmp(y, x, (size_t)p * 8), 0, "P = %d", (int)p);
        cr_expect_eq(memcmp(y + 2 * p, x + 6, 16), 0, "P = %d", (int)p);
    }
    strata_context_destroy(c);
    close_net(&n);
}
