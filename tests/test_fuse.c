/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusion, aliases and concatenation in place: the values are those without, and what must
 * stay by itself does.
 */
#include "core/engine.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/strata-fuse-XXXXXX";
static char path[64];

static void open_folder(void)
{
    cr_assert_neq(mkdtemp(folder), NULL);
    snprintf(path, sizeof path, "%s/net.ini", folder);
}

static void close_folder(void)
{
    unlink(path);
    rmdir(folder);
}

TestSuite(fuse, .init = open_folder, .fini = close_folder, .timeout = 120);

struct session {
    strata_registry *registry;
    strata_handle *handle;
    strata_network *network;
    strata_engine *engine;
    strata_error err;
};

#define HEAD(out) "[network]\nformat = 1\noutputs = " out "\n[weights w]\nrandom = 7\n"
#define INPUT "[input x]\nshape = 1 x 16 x 9 x 9\n"
#define CONV(name, more)                                                                 \
    "[layer " name "]\ntype = Convolution\nfilters = 16\nkernel = 3x3\npad = 1\n"        \
    "weights = w:" name "\n" more
#define RELU(name, more) "[layer " name "]\ntype = Activation\nkind = relu\n" more
#define SCALE(name, more)                                                                \
    "[layer " name "]\ntype = Scale\nscale = w:" name ".scale\nshift = w:" name          \
    ".shift\nmode = channel\n" more

/* What the nodes that run are named, in their order; "" ends the list. */
static const struct {
    const char *name, *ini, *nodes[4];
} cases[] = {
    {"activation", HEAD("r") INPUT CONV("c", "") RELU("r", ""), {"c + r"}},
    {"channel scale", HEAD("s") INPUT CONV("c", "") SCALE("s", ""), {"c + s"}},
    {"uniform scale, two of them",
     HEAD("t") INPUT CONV("c", "") "[layer s]\ntype = Scale\nscale = 0.5\nshift = 0.25\n"
                                   "[layer t]\ntype = Scale\nscale = -3\n",
     {"c + s + t"}},
    {"power stays",
     HEAD("s") INPUT CONV("c", "") "[layer s]\ntype = Scale\nscale = 0.5\npower = 2\n",
     {"c", "s"}},
    {"scale and activation",
     HEAD("r") INPUT CONV("c", "") SCALE("s", "") RELU("r", ""),
     {"c + s + r"}},
    {"scale after activation stays",
     HEAD("s") INPUT CONV("c", "") RELU("r", "") SCALE("s", ""),
     {"c + r", "s"}},
    {"residual",
     HEAD("sum") INPUT CONV("a", "") CONV("b", "") "[layer sum]\ntype = ElementWise\n"
                                                   "op = sum\ninputs = a, b\n",
     {"a", "b + sum"}},
    {"scale, residual and activation",
     HEAD("r") INPUT CONV("a", "") CONV("b", "")
         SCALE("s", "") "[layer sum]\ntype = ElementWise\n"
                        "op = sum\ninputs = s, a\n" RELU("r", ""),
     {"a", "b + s + sum + r"}},
    {"broadcast sum stays",
     HEAD("sum") INPUT "[input y]\nshape = 1 x 1 x 9 x 9\n" CONV(
         "a",
         "inputs = x\n") "[layer sum]\ntype = ElementWise\nop = sum\ninputs = a, y\n",
     {"a", "sum"}},
    {"product stays",
     HEAD("p") INPUT CONV("a", "") CONV("b", "") "[layer p]\ntype = ElementWise\n"
                                                 "op = product\ninputs = a, b\n",
     {"a", "b", "p"}},
    {"several readers",
     HEAD("p") INPUT CONV("a", "") RELU("r", "") CONV(
         "b",
         "inputs = a\n") "[layer p]\ntype = ElementWise\nop = product\ninputs = r, b\n",
     {"a", "r", "b", "p"}},
    {"a pinned impl stays by itself",
     HEAD("r") INPUT CONV("c", "") RELU("r", "impl = c\n"),
     {"c", "r"}},
    {"a pinned tensor exists",
     HEAD("r") INPUT CONV("c", "format = fp32:nchw, fp16:nchw\n") RELU("r", ""),
     {"c", "r"}},
    {"fully connected",
     HEAD("r") INPUT
     "[layer f]\ntype = FullyConnected\nunits = 24\nweights = w:f\n" SCALE("s", "")
         RELU("r", ""),
     {"f + s + r"}},
    {"shuffles, the first a transposition",
     HEAD("b") INPUT
     "[layer a]\ntype = Shuffle\nfirst = 0, 2, 3, 1\n"
     "[layer b]\ntype = Shuffle\nfirst = 0, 3, 1, 2\nshape = 1, 4, 36, 9\n"
     "second = 0, 2, 1, 3\n",
     {"a + b"}},
    {"shuffles, the second a transposition",
     HEAD("b") INPUT
     "[layer a]\ntype = Shuffle\nfirst = 0, 2, 1, 3\nshape = 0, 3, -1, 4\n"
     "second = 0, 3, 1, 2\n"
     "[layer b]\ntype = Shuffle\nfirst = 0, 3, 1, 2\nsecond = 0, 2, 3, 1\n",
     {"a + b"}},
    {"shuffles that both reshape",
     HEAD("b") INPUT
     "[layer a]\ntype = Shuffle\nfirst = 0, 2, 1, 3\nshape = 0, 3, -1, 4\n"
     "[layer b]\ntype = Shuffle\nshape = 0, 4, 3, -1\nsecond = 0, 2, 1, 3\n",
     {"a", "b"}},
    {"reshape, identity and neutral scale are erased",
     HEAD("t") INPUT RELU("r", "") "[layer i]\ntype = Identity\n[layer s]\ntype = Scale\n"
                                   "[layer f]\ntype = Shuffle\nshape = 0, -1\n"
                                   "[layer t]\ntype = Activation\nkind = tanh\n",
     {"r", "t"}},
};

static int build(struct session *s, const char *ini, const char *const *set, size_t n_set)
{
    strata_network_options options = {sizeof options, set, n_set, NULL, 0};
    FILE *f = fopen(path, "w");
    cr_assert_neq(f, NULL);
    fputs(ini, f);
    fclose(f);
    memset(s, 0, sizeof *s);
    int status = strata_registry_create(&s->registry, NULL, &s->err);
    if (status == STRATA_OK)
        status = strata_create(&s->handle, "host", &s->err);
    if (status == STRATA_OK)
        status = strata_network_load(&s->network, path, s->registry, &options, &s->err);
    if (status == STRATA_OK)
        status = strata_engine_build(&s->engine, s->handle, s->network, &s->err);
    return status;
}

static void release(struct session *s)
{
    strata_engine_destroy(s->engine);
    strata_network_destroy(s->network);
    strata_destroy(s->handle);
    strata_registry_destroy(s->registry);
}

/* Values of the first output, for the caller to free; run twice, as memory is reused. */
static float *output(struct session *s, int64_t *count)
{
    strata_context *c = NULL;
    strata_binding b;
    const strata_engine *e = s->engine;
    cr_assert_eq(strata_context_create(&c, e, s->handle, &s->err), STRATA_OK, "%s",
                 s->err.message);
    srand(42);
    for (int i = 0; i < (int)e->n_inputs; i++) {
        cr_assert_eq(strata_engine_binding(e, i, &b, NULL), STRATA_OK);
        float *x = strata_context_data(c, i);
        for (int64_t k = 0; k < b.bytes / 4; k++)
            x[k] = (float)(rand() % 256) / 128 - 1;
    }
    for (int run = 0; run < 2; run++)
        cr_assert_eq(strata_context_run(c, &s->err), STRATA_OK, "%s", s->err.message);
    cr_assert_eq(strata_engine_binding(e, (int)e->n_inputs, &b, NULL), STRATA_OK);
    float *values = malloc((size_t)b.bytes);
    cr_assert_neq(values, NULL);
    memcpy(values, strata_context_data(c, (int)e->n_inputs), (size_t)b.bytes);
    *count = b.bytes / 4;
    strata_context_destroy(c);
    return values;
}

static double worst_difference(const float *a, const float *b, int64_t n)
{
    double worst = 0, largest = 1e-30;
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)a[i]));
    }
    return worst / largest;
}

static void expect_same_values(const char *name, const char *ini, const char *precision,
                               double tolerance)
{
    struct session plain, fused;
    const char *no[] = {"build.fusion=no", "build.precision=fp32"};
    int64_t n, m;
    cr_assert_eq(build(&plain, ini, no, 2), STRATA_OK, "%s: %s", name, plain.err.message);
    float *a = output(&plain, &n);
    release(&plain);
    cr_assert_eq(build(&fused, ini, &precision, 1), STRATA_OK, "%s: %s", name,
                 fused.err.message);
    float *b = output(&fused, &m);
    release(&fused);
    cr_assert_eq(n, m);
    double worst = worst_difference(a, b, n);
    cr_expect_leq(worst, tolerance, "%s, %s: %g", name, precision, worst);
    free(a);
    free(b);
}

Test(fuse, values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        expect_same_values(cases[i].name, cases[i].ini, "build.precision=fp32", 1e-5);
        expect_same_values(cases[i].name, cases[i].ini, "build.precision=fp16", 4e-3);
    }
}

Test(fuse, nodes_are_what_runs)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct session s;
        cr_assert_eq(build(&s, cases[i].ini, NULL, 0), STRATA_OK, "%s: %s", cases[i].name,
                     s.err.message);
        size_t n = 0;
        while (n < ARRAY_LENGTH(cases[i].nodes) && cases[i].nodes[n])
            n++;
        cr_expect_eq(s.engine->n_nodes, n, "%s: %zu nodes", cases[i].name,
                     s.engine->n_nodes);
        for (size_t k = 0; k < n && k < s.engine->n_nodes; k++)
            cr_expect_str_eq(s.engine->nodes[k].name, cases[i].nodes[k], "%s: %s",
                             cases[i].name, s.engine->nodes[k].name);
        release(&s);
    }
}

Test(fuse, every_layer_not_fused_has_a_reason)
{
    struct session s;
    cr_assert_eq(build(&s, cases[3].ini, NULL, 0), STRATA_OK, "%s", s.err.message);
    const struct engine_fusion *f = &s.engine->fusions[1];
    cr_expect_not(f->possible);
    cr_expect_not(f->done);
    cr_assert_neq(f->reason, NULL);
    cr_expect_str_eq(f->reason, "c: a power is not linear");
    release(&s);
}

/* ---- concatenation in place ---------------------------------------------------------
 */

#define FIRE(shape)                                                                      \
    HEAD("last")                                                                         \
    "[input x]\nshape = " shape "\n" CONV("q", "") RELU("qr", "")                        \
        CONV("a", "inputs = qr\n") RELU("ar", "") CONV("b", "inputs = qr\n")             \
            RELU("br", "") "[layer cat]\ntype = Concatenation\ninputs = ar, br\n"        \
                           "[layer last]\ntype = Pooling\nkind = max\nkernel = 2x1\n"

static const struct {
    const char *name, *ini;
    bool in_place;
} joins[] = {
    {"one image", FIRE("1 x 16 x 8 x 8"), true},
    {"two images", FIRE("2 x 16 x 8 x 8"), false},
    {"slices that are not aligned", FIRE("1 x 16 x 3 x 1"), false},
    {"one tensor twice",
     HEAD("last")
         INPUT CONV("a", "") "[layer cat]\ntype = Concatenation\ninputs = a, a\n"
                             "[layer last]\ntype = Pooling\nkind = max\nkernel = 2x2\n",
     false},
    {"a growing list",
     HEAD("last") "[input x]\nshape = 1 x 16 x 8 x 8\n" CONV("a", "") CONV("b", "") CONV(
         "c", "") "[layer ab]\ntype = Concatenation\ninputs = a, b\n"
                  "[layer abc]\ntype = Concatenation\ninputs = ab, c\n" RELU("last", ""),
     true},
    {"a growing list, written out each time",
     HEAD("last") "[input x]\nshape = 1 x 16 x 8 x 8\n" CONV("a", "") CONV("b", "")
         CONV("c", "") CONV(
             "d",
             "") "[layer ab]\ntype = Concatenation\ninputs = a, b\n"
                 "[layer abc]\ntype = Concatenation\ninputs = a, b, c\n"
                 "[layer abcd]\ntype = Concatenation\ninputs = a, b, c, d\n"
                 "[layer p]\ntype = Pooling\nkind = max\nkernel = 1x1\ninputs = ab\n"
                 "[layer q]\ntype = Pooling\nkind = max\nkernel = 1x1\ninputs = abc\n"
                 "[layer r]\ntype = Pooling\nkind = max\nkernel = 1x1\ninputs = abcd\n"
                 "[layer last]\ntype = Concatenation\ninputs = p, q, r\n",
     true},
    {"its output is the network's",
     HEAD("cat") "[input x]\nshape = 1 x 16 x 8 x 8\n" CONV("a", "")
         CONV("b", "") "[layer cat]\ntype = Concatenation\ninputs = a, b\n",
     true},
    {"a part has other readers",
     HEAD("last") "[input x]\nshape = 1 x 16 x 8 x 8\n" CONV("a", "")
         CONV("b", "") "[layer cat]\ntype = Concatenation\ninputs = a, b\n"
                       "[layer t]\ntype = Activation\nkind = tanh\ninputs = a\n"
                       "[layer last]\ntype = Concatenation\ninputs = t, cat\n",
     true},
};

Test(fuse, concatenations_in_place_have_the_same_values)
{
    for (size_t i = 0; i < ARRAY_LENGTH(joins); i++) {
        expect_same_values(joins[i].name, joins[i].ini, "build.precision=fp32", 1e-5);
        expect_same_values(joins[i].name, joins[i].ini, "build.precision=fp16", 4e-3);
    }
}

Test(fuse, concatenations_vanish_where_slices_are_whole)
{
    for (size_t i = 0; i < ARRAY_LENGTH(joins); i++) {
        struct session s;
        bool runs = false;
        cr_assert_eq(build(&s, joins[i].ini, NULL, 0), STRATA_OK, "%s: %s", joins[i].name,
                     s.err.message);
        for (size_t k = 0; k < s.engine->n_nodes; k++)
            runs |=
                strcmp(s.engine->nodes[k].layer->type->layer.name, "Concatenation") == 0;
        cr_expect_neq(runs, joins[i].in_place, "%s", joins[i].name);
        release(&s);
    }
}
