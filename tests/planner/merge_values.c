/* SPDX-License-Identifier: Apache-2.0
 *
 * Values with siblings merged: those of the network without, of random networks, at every
 * size, and from files.
 */
#include "planner/merge/merge.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <time.h>

#include "io/weights/npy.h"
#include "tests/engine/engine_session.h"

TestSuite(merge_values, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

/* ---- networks ---------------------------------------------------------------------- */

struct text {
    char s[16384];
    size_t n;
};

static void add(struct text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    t->n += (size_t)vsnprintf(t->s + t->n, sizeof t->s - t->n, format, list);
    va_end(list);
    cr_assert_lt(t->n, sizeof t->s);
}

static int pick(const int *list, int n)
{
    return list[rand() % n];
}

/* What follows each first layer of a group; its last layer's name is `name`.end. */
static void add_chain(struct text *t, const char *name, int chain)
{
    if (chain == 2)
        add(t, "[layer %s.scale]\ntype = Scale\ninputs = %s\nscale = w\nshift = w\n",
            name, name);
    if (chain > 0)
        add(t, "[layer %s.end]\ntype = Activation\nkind = %s\ninputs = %s%s\n", name,
            chain == 3 ? "tanh" : "relu", name, chain == 2 ? ".scale" : "");
}

/* A group of convolutions of `from`, with one more that is no sibling of theirs, and what
 * joins some of their results. outputs gets a sibling every other time. */
static void add_convolutions(struct text *t, struct text *outputs, const char *from,
                             int g)
{
    static const int filters[] = {1, 7, 8, 12, 16, 24, 40};
    const int n = 2 + rand() % 3, chain = rand() % 4, kernel = 1 + 2 * (rand() % 2);
    const char *end = chain ? ".end" : "";
    char name[32];
    for (int k = 0; k < n; k++) {
        snprintf(name, sizeof name, "g%d.%d", g, k);
        add(t,
            "[layer %s]\ntype = Convolution\ninputs = %s\nfilters = %d\n"
            "kernel = %dx%d\npad = %d\nweight = w\n%s",
            name, from, pick(filters, 7), kernel, kernel, kernel / 2,
            rand() % 2 ? "bias = w\n" : "");
        add_chain(t, name, chain);
    }
    snprintf(name, sizeof name, "g%d.odd", g);
    add(t,
        "[layer %s]\ntype = Convolution\ninputs = %s\nfilters = 5\nkernel = 5x5\n"
        "pad = 2\nweight = w\n",
        name, from);
    add_chain(t, name, chain);
    add(t, "[layer g%d]\ntype = Concatenation\naxis = 1\ninputs = g%d.odd%s", g, g, end);
    for (int k = rand() % 2; k < n; k++)
        add(t, ", g%d.%d%s", g, k, end);
    add(t, "\n");
    if (rand() % 2)
        add(outputs, "g%d.%d%s, ", g, rand() % 2, end);
    else /* the first one has a reader in every case */
        add(t,
            "[layer g%d.pool]\ntype = Pooling\nglobal = yes\nkind = max\n"
            "inputs = g%d.0%s\n",
            g, g, end);
    add(outputs, "g%d, ", g);
}

/* Products of one input of rank 2 or 3, by their last dim. */
static void add_products(struct text *t, struct text *outputs, int g)
{
    static const int units[] = {1, 7, 12, 16, 64};
    const bool matrix = rand() % 2;
    const int chain = matrix ? rand() % 2 : rand() % 4;
    for (int k = 0; k < 3; k++) {
        char name[32];
        snprintf(name, sizeof name, "p%d.%d", g, k);
        add(t, "[layer %s]\ntype = %s\ninputs = %s\nunits = %d\n%s = w\nbias = w\n", name,
            matrix ? "MatrixMultiply" : "FullyConnected", matrix ? "y" : "x",
            pick(units, 5), matrix ? "b" : "weight");
        add_chain(t, name, chain);
        add(outputs, "p%d.%d%s, ", g, k, chain ? ".end" : "");
    }
}

static void draw(struct text *out, int batch)
{
    static const int channels[] = {3, 7, 12, 16}, sides[] = {1, 4, 7, 9};
    struct text t = {.n = 0}, outputs = {.n = 0};
    add_convolutions(&t, &outputs, "x", 0);
    add_convolutions(&t, &outputs, "g0", 1); /* one within the results of another */
    add_convolutions(&t, &outputs, "x", 2);
    add_products(&t, &outputs, 0);
    outputs.s[outputs.n - 2] = '\0';
    const int side = pick(sides, 4);
    *out = (struct text){.n = 0};
    add(out,
        "[network]\nformat = 1\nname = drawn\noutputs = %s\n[weights w]\nrandom = %d\n"
        "[input x]\nshape = %d x %d x %d x %d\n[input y]\nshape = %d x 5 x 12\n%s",
        outputs.s, rand() % 1000, batch, pick(channels, 4), side, side, batch, t.s);
}

/* ---- values ------------------------------------------------------------------------ */

/* Draw the inputs, or append what the outputs hold to *all. */
static void exchange(struct session *s, strata_context *c, bool inputs, float **all,
                     int64_t *count)
{
    for (int i = 0; i < strata_engine_bindings(s->engine); i++) {
        strata_binding b = {.struct_size = sizeof b};
        strata_engine_binding(s->engine, i, &b, NULL);
        if (!b.is_input == inputs)
            continue;
        float *x = calloc(1, (size_t)b.bytes); /* FP32 by default */
        cr_assert_not_null(x);
        for (int64_t k = 0; inputs && k < b.bytes / 4; k++)
            x[k] = (float)(rand() % 256) / 128 - 1;
        if (inputs) {
            strata_copy_in(c, i, x, NULL);
        } else {
            strata_copy_out(c, i, x, NULL);
            *all = realloc(*all, (size_t)(*count * 4 + b.bytes));
            cr_assert_not_null(*all);
            memcpy(*all + *count, x, (size_t)b.bytes);
            *count += b.bytes / 4;
        }
        free(x);
    }
}

/* Values of all outputs, the caller's; of the second run, as memory is reused. */
static float *outputs_of(struct session *s, unsigned seed, int64_t batch, int64_t *count)
{
    strata_context *c = NULL;
    float *all = NULL;
    *count = 0;
    cr_assert_eq(strata_context_create(&c, s->engine, s->handle, &s->err), STRATA_OK,
                 "%s", s->err.message);
    if (batch)
        cr_assert_eq(strata_context_set_batch(c, batch, &s->err), STRATA_OK, "%s",
                     s->err.message);
    srand(seed);
    for (int run = 0; run < 2; run++) {
        exchange(s, c, true, NULL, NULL);
        cr_assert_eq(strata_context_run(c, &s->err), STRATA_OK, "%s", s->err.message);
    }
    exchange(s, c, false, &all, count);
    strata_context_destroy(c);
    return all;
}

static size_t merged_of(const struct planner *planner)
{
    const struct planner_merges *m = planner->merges;
    size_t n = 0;
    for (size_t i = 0; m && i < m->groups.n; i++)
        n += m->verdicts[i].done;
    return n;
}

static double difference(const float *a, const float *b, int64_t n)
{
    double worst = 0, largest = 1;
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)a[i]));
    }
    return worst / largest;
}

static void build(struct session *s, const char *path, const char *precision,
                  const char *merge)
{
    const char *set[] = {precision, merge};
    cr_assert_eq(session_build(s, path, set, 2), STRATA_OK, "%s", s->err.message);
}

static size_t expect_same(const char *path, const char *precision, double tolerance,
                          unsigned seed, int64_t batch)
{
    struct session apart, merged;
    int64_t n, m;
    build(&apart, path, precision, "build.merge=no");
    cr_expect_eq(merged_of(apart.engine->planner), 0);
    float *a = outputs_of(&apart, seed, batch, &n);
    release(&apart);
    build(&merged, path, precision, "build.merge=yes");
    const size_t done = merged_of(merged.engine->planner);
    float *b = outputs_of(&merged, seed, batch, &m);
    release(&merged);
    cr_assert(n == m && n > 0);
    const double worst = difference(a, b, n);
    cr_expect_leq(worst, tolerance, "%g, %s, seed %u: %s", worst, precision, seed,
                  slurp(path).bytes);
    free(a);
    free(b);
    return done;
}

Test(merge_values, values_are_those_without)
{
    const unsigned seed = (unsigned)time(NULL);
    size_t merged[2] = {0};
    for (unsigned i = 0; i < 12; i++) {
        struct text t;
        srand(seed + i);
        draw(&t, i & 1 ? 3 : 1);
        const char *path = spill_text("drawn.ini", t.s);
        merged[i & 1] +=
            i & 2 ? expect_same(path, "build.precision=fp16", 2e-2, seed + i, 0)
                  : expect_same(path, "build.precision=fp32", 1e-4, seed + i, 0);
    }
    cr_expect(merged[0] > 0 && merged[1] > 0, "%zu and %zu groups merged", merged[0],
              merged[1]);
}

#define SIBLING(name, filters)                                                           \
    "[layer " name "]\ntype = Convolution\nfilters = " filters                           \
    "\nkernel = 1x1\nweight = w\nbias = w\ninputs = x\n"                                 \
    "[layer " name ".r]\ntype = Activation\nkind = relu\n"

static const char several[] =
    "[network]\nformat = 1\nname = several\noutputs = a.r, j\n"
    "[profile]\nN = 1..3: 1, 3\n[weights w]\nrandom = 3\n"
    "[input x]\nshape = N x 7 x 3 x 3\n" SIBLING("a", "7") SIBLING("b", "12")
        SIBLING("c", "5") SIBLING("d", "9") "[layer j]\ntype = Concatenation\naxis = "
                                            "1\ninputs = b.r, a.r, d.r, c.r\n";

/* In layouts that any CPU has, and whose parts lie in place. */
#define JOINED(more, profile, n)                                                         \
    "[network]\nformat = 1\nname = joined\noutputs = out, " more "\n" profile            \
    "[build]\nformats = fp32:nchw, fp32:nc/8hw8\n"                                       \
    "[weights w]\nrandom = 3\n[input x]\nshape = " n                                     \
    " x 7 x 16 x 16\n" SIBLING("a", "8") SIBLING("b", "16")                              \
        SIBLING("c", "12") "[layer d]\ntype = Convolution\nfilters = 8\nkernel = 3x3\n"  \
                           "pad = 1\nweight = w\ninputs = c.r\n"                         \
                           "[layer j]\ntype = Concatenation\naxis = 1\n"                 \
                           "inputs = d, b.r, a.r\n"                                      \
                           "[layer out]\ntype = Convolution\nfilters = 4\n"              \
                           "kernel = 1x1\nweight = w\n"

/* Planes of 1 KB: in linear formats, too, all of it lies in place at batch 1. */
static const char joined[] = JOINED("b.r", "", "1");
/* Another concatenation reads one of what the first one has. */
static const char joined_beside_another[] =
    JOINED("k.c", "", "1") "[layer k]\ntype = Concatenation\naxis = 1\ninputs = d, b.r\n"
                           "[layer k.c]\ntype = Convolution\nfilters = 4\nkernel = 1x1\n"
                           "weight = w\n";
static const char joined_of_several[] = JOINED("b.r", "[profile]\nN = 1..3: 1, 3\n", "N");

static size_t joined_of(const struct planner *planner)
{
    const struct planner_merges *m = planner->merges;
    size_t n = 0;
    for (size_t i = 0; m && i < m->groups.n; i++)
        n += m->verdicts[i].done && m->groups.list[i].behind == BEHIND_JOINED;
    return n;
}

Test(merge_values, every_size_has_the_values_of_its_rows)
{
    const char *path = spill_text("several.ini", several);
    for (int64_t batch = 1; batch <= 3; batch++)
        cr_expect_eq(expect_same(path, "build.precision=fp32", 1e-4, 5, batch), 1);
}

Test(merge_values, every_size_has_them_within_a_concatenation)
{
    const char *path = spill_text("joined.ini", joined_of_several);
    for (int64_t batch = 1; batch <= 3; batch++)
        cr_expect_eq(expect_same(path, "build.precision=fp32", 1e-4, 6, batch), 1);
}

/* Two layers with one weight of a file. */
Test(merge_values, siblings_may_share_a_weight)
{
    static const char net[] =
        "[network]\nformat = 1\nname = shared\noutputs = a, b, c\n"
        "[weights f]\nfile = f.npy\n[weights w]\nrandom = 1\n"
        "[input x]\nshape = 1 x 3 x 4 x 4\n"
        "[layer a]\ntype = Convolution\nweight = f\ninputs = x\n"
        "[layer b]\ntype = Convolution\nweight = f\nbias = w\ninputs = x\n"
        "[layer c]\ntype = Convolution\nfilters = 2\nkernel = 1x1\nweight = w\n"
        "inputs = x\n";
    static const int64_t dims[] = {5, 3, 1, 1};
    float values[15];
    strata_error err = {0};
    for (int i = 0; i < 15; i++)
        values[i] = (float)(rand() % 100) / 50 - 1;
    cr_assert_eq(npy_write(in_scratch("f.npy"), STRATA_FP32, dims, 4, values, &err),
                 STRATA_OK, "%s", err.message);
    expect_same(spill_text("shared.ini", net), "build.precision=fp32", 1e-4, 7, 0);
}

/* ---- on record --------------------------------------------------------------------- */

/* Saved, loaded, and with the same values. */
static void expect_kept(const char *net, size_t n_joined, int64_t most)
{
    struct session a, b = {0};
    int64_t n, m;
    build(&a, spill_text("kept.ini", net), "build.precision=fp32", "build.merge=yes");
    cr_assert_eq(merged_of(a.engine->planner), 1);
    cr_assert_eq(joined_of(a.engine->planner), n_joined);
    cr_assert_eq(strata_engine_save(a.engine, in_scratch("a.engine"), &a.err), STRATA_OK,
                 "%s", a.err.message);
    cr_assert_eq(session_open(&b, "host", NULL), STRATA_OK);
    cr_assert_eq(strata_engine_load(&b.engine, b.handle, b.registry,
                                    in_scratch("a.engine"), &b.err),
                 STRATA_OK, "%s", b.err.message);
    cr_expect_eq(merged_of(b.engine->planner), 1);
    cr_expect_eq(joined_of(b.engine->planner), n_joined);
    cr_expect_eq(network_loaded(b.engine->network)->n_layers, a.network->n_layers);
    cr_expect_eq(b.engine->planner->plan->cost, a.engine->planner->plan->cost);
    for (int64_t batch = 1; batch <= most; batch++) {
        float *x = outputs_of(&a, 9, batch, &n), *y = outputs_of(&b, 9, batch, &m);
        cr_assert(n == m && n > 0);
        cr_expect_eq(memcmp(x, y, (size_t)n * 4), 0, "batch %d", (int)batch);
        free(x);
        free(y);
    }
    release(&a);
    release(&b);
}

Test(merge_values, an_engine_file_has_the_network_and_the_plan_with_merged_layers)
{
    expect_kept(several, 0, 3);
    expect_kept(joined, 1, 1);
    expect_kept(joined_beside_another, 1, 1);
    expect_same(spill_text("joined.ini", joined), "build.precision=fp32", 1e-4, 8, 0);
}
