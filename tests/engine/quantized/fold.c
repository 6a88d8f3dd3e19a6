/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers between a Dequantize and a Quantize: which of them compute with integers, and
 * that they give what the layers give one by one.
 */
#include <config.h>

#include "tests/engine/engine_saved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(fold, .init = open_files, .fini = scratch_remove, .timeout = 600);

#define HEAD(shape, out)                                                                 \
    "[network]\nformat = 1\noutputs = " out "\n[input x]\nshape = " shape "\n"           \
    "[weights w]\nfile = w.safetensors\n[build]\nprecision = fp32\ncosts = analytic\n"
#define Q(name, from, scale)                                                             \
    "[layer " name "]\ntype = Quantize\ninputs = " from "\ndtype = int8\n"               \
    "scale = w:" scale "\n"
#define DQ(name, from, scale)                                                            \
    "[layer " name "]\ntype = Dequantize\ninputs = " from "\nscale = w:" scale "\n"
/* The same in e4m3. */
#define Q4(name, from, scale)                                                            \
    "[layer " name "]\ntype = Quantize\ninputs = " from "\ndtype = e4m3\n"               \
    "scale = w:" scale "\n"
#define PRODUCT(name, from, type)                                                        \
    "[layer " name "]\ntype = MatrixMultiply\ninputs = " from "\nweights = w:" type "\n"
#define ATTENTION(name, from, more)                                                      \
    "[layer " name "]\ntype = Attention\ninputs = " from "\n" more
#define CONV(name, from, more)                                                           \
    "[layer " name "]\ntype = Convolution\ninputs = " from "\nfilters = 16\n"            \
    "kernel = 3x3\npad = 1\nweights = w:conv\n" more
#define SUM(name, from) "[layer " name "]\ntype = ElementWise\ninputs = " from "\n"
#define AVERAGE(name, from, more)                                                        \
    "[layer " name "]\ntype = Pooling\nkind = average\ninputs = " from "\n" more
/* Batch norm, as an import leaves it. */
#define NORM(name, from)                                                                 \
    "[layer " name "]\ntype = Scale\ninputs = " from                                     \
    "\nscale = w:norm.scale\nshift = w:norm.shift\n"
#define RELU(name, from)                                                                 \
    "[layer " name "]\ntype = Activation\ninputs = " from "\nkind = relu\n"
#define SIGMOID(name, from)                                                              \
    "[layer " name "]\ntype = Activation\ninputs = " from "\nkind = sigmoid\n"
/* A sigmoid of bytes, and bytes of it, k: from one to the next. */
#define ROUNDED(k, from) DQ("d" k, from, "b") SIGMOID("s" k, "d" k) Q("q" k, "s" k, "b")
#define PRODUCT_OF(name, from)                                                           \
    "[layer " name "]\ntype = ElementWise\nop = product\ninputs = " from "\n"

/* What a file of weights has, drawn anew for each test. */
static void spill_weights(void)
{
    static int8_t conv[16 * 16 * 9], fc[10 * 16 * 64], matrix[32 * 10];
    static uint8_t floats[32 * 10];
    static float conv_scale[16], fc_scale = 0.0625F, bias[16], a = 0.0078125F,
                                 b = 0.03125F, matrix_scale[10], matrix_bias[10],
                                 norm_scale[16], norm_shift[16];
    struct weight_view views[] = {
        {"conv.weight", WEIGHT_I8, 4, {16, 16, 3, 3}, conv, sizeof conv},
        {"conv.weight_scale", WEIGHT_F32, 1, {16}, conv_scale, sizeof conv_scale},
        {"conv.bias", WEIGHT_F32, 1, {16}, bias, sizeof bias},
        {"up.weight", WEIGHT_I8, 4, {16, 16, 3, 3}, conv, sizeof conv},
        {"up.weight_scale", WEIGHT_F32, 4, {1, 16, 1, 1}, conv_scale, sizeof conv_scale},
        {"fc.weight", WEIGHT_I8, 2, {10, 16 * 64}, fc, sizeof fc},
        {"fc.weight_scale", WEIGHT_F32, 1, {1}, &fc_scale, sizeof fc_scale},
        {"matrix.b", WEIGHT_I8, 2, {32, 10}, matrix, sizeof matrix},
        {"matrix.weight_scale", WEIGHT_F32, 1, {10}, matrix_scale, sizeof matrix_scale},
        {"matrix.bias", WEIGHT_F32, 1, {10}, matrix_bias, sizeof matrix_bias},
        {"floats.b", WEIGHT_F8_E4M3, 2, {32, 10}, floats, sizeof floats},
        {"floats.weight_scale", WEIGHT_F32, 1, {10}, matrix_scale, sizeof matrix_scale},
        {"floats.bias", WEIGHT_F32, 1, {10}, matrix_bias, sizeof matrix_bias},
        {"norm.scale", WEIGHT_F32, 1, {16}, norm_scale, sizeof norm_scale},
        {"norm.shift", WEIGHT_F32, 1, {16}, norm_shift, sizeof norm_shift},
        {"a", WEIGHT_F32, 1, {1}, &a, sizeof a},
        {"b", WEIGHT_F32, 1, {1}, &b, sizeof b},
    };
    int8_t *const bytes[] = {conv, fc, matrix};
    const size_t counts[] = {sizeof conv, sizeof fc, sizeof matrix};
    srand((unsigned)getpid());
    for (int i = 0; i < 3; i++)
        for (size_t k = 0; k < counts[i]; k++)
            bytes[i][k] = (int8_t)(rand() % 255 - 127);
    for (size_t k = 0; k < sizeof floats; k++) /* up to 104, of any sign */
        floats[k] = (uint8_t)((rand() & 0x80) | rand() % 0x6e);
    for (int k = 0; k < 16; k++) {
        conv_scale[k] = (float)(rand() % 1000 + 500) / 262144;
        bias[k] = (float)(rand() % 1000 - 500) / 1024;
        norm_scale[k] = (float)(rand() % 2000 - 1000) / 700;
        norm_shift[k] = (float)(rand() % 1000 - 500) / 512;
    }
    for (int k = 0; k < 10; k++) {
        matrix_scale[k] = (float)(rand() % 1000 + 500) / 65536;
        matrix_bias[k] = (float)(rand() % 1000 - 500) / 1024;
    }
    cr_assert_eq(
        weights_save(in_scratch("w.safetensors"), views, ARRAY_LENGTH(views), NULL),
        STRATA_OK);
}

static const struct fold_case {
    const char *name, *ini;
    const char *nodes[8]; /* of the plan */
    double bound;         /* of the difference, in steps of the output */
} cases[] = {
    {"a convolution between two scales",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") CONV("c", "dq", "")
         Q("r", "c", "b") DQ("y", "r", "b"),
     {"q", "c + r", "y"},
     1},
    {"an activation between them",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") CONV("c", "dq", "")
         RELU("act", "c") Q("r", "act", "b") DQ("y", "r", "b"),
     {"q", "c + act + r", "y"},
     1},
    {"a batch norm and an activation between them",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") CONV("c", "dq", "")
         NORM("bn", "c") RELU("act", "bn") Q("r", "act", "b") DQ("y", "r", "b"),
     {"q", "c + bn + act + r", "y"},
     1},
    {"factors that are a number, and no bias",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a")
         CONV("c", "dq",
              "bias = none\n") "[layer bn]\ntype = Scale\ninputs = c\nscale = 0.5\n"
                               "shift = -0.25\n" Q("r", "bn", "b") DQ("y", "r", "b"),
     {"q", "c + bn + r", "y"},
     1},
    {"an average of windows, and of a plane",
     HEAD("2 x 16 x 9 x 7", "y") RELU("act", "x") Q("q", "act", "a") DQ("dq", "q", "a")
         AVERAGE("p", "dq", "kernel = 3\nstride = 3\n") Q("r", "p", "b")
             DQ("dr", "r", "b") AVERAGE("g", "dr", "global = yes\n") Q("s", "g", "a")
                 DQ("y", "s", "a"),
     {"act", "q", "p + r", "g + s", "y"},
     1},
    {"no scale behind",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") CONV("y", "dq", ""),
     {"q", "y"},
     0.001},
    {"a network's output stays whole",
     HEAD("2 x 16 x 8 x 8", "y, act") Q("q", "x", "a") DQ("dq", "q", "a")
         CONV("c", "dq", "") RELU("act", "c") Q("r", "act", "b") DQ("y", "r", "b"),
     {"q", "c + act", "r", "y"},
     1},
    {"two readers of one scale, and their sum",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") CONV("c", "dq", "")
         Q("r", "c", "b")
             DQ("s", "r", "b") "[layer sum]\ntype = ElementWise\ninputs = s, dq\n" RELU(
                 "act", "sum") Q("t", "act", "b") DQ("y", "t", "b"),
     {"q", "c + r + s + sum + act + t", "y"},
     2},
    {"a convolution and what comes past it",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") CONV("c1", "dq", "")
         Q("r", "c1", "b") DQ("s", "r", "b") CONV("c2", "s", "") NORM("bn", "c2")
             SUM("sum", "s, bn") RELU("act", "sum") Q("t", "act", "b") DQ("y", "t", "b"),
     {"q", "c1 + r", "c2 + bn + sum + act + t", "y"},
     2},
    {"the same, rounded before, to floats",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") CONV("c1", "dq", "")
         Q("r", "c1", "b") DQ("s", "r", "b") CONV("c2", "s", "bias = none\n")
             Q("u", "c2", "a") DQ("v", "u", "a") SUM("y", "v, s"),
     {"q", "c1 + r", "c2 + u + v + y"},
     2},
    {"a deconvolution",
     HEAD("2 x 16 x 5 x 6", "y") Q("q", "x", "a")
         DQ("dq", "q",
            "a") "[layer c]\ntype = Deconvolution\nstride = 2\npad = 1\noutput_pad = 1\n"
                 "weights = w:up\n" RELU("act", "c") Q("r", "act", "b") DQ("y", "r", "b"),
     {"q", "c + act + r", "y"},
     1},
    {"what is added is made later",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") CONV("c1", "dq", "")
         Q("r", "c1", "b") DQ("s", "r", "b") CONV("c2", "dq", "bias = none\n")
             Q("u", "c2", "a") DQ("v", "u", "a") SUM("sum", "s, v") Q("t", "sum", "b")
                 DQ("y", "t", "b"),
     {"q", "c1 + r", "c2 + u + v + sum + t", "y"},
     2},
    {"a sum that others read, too",
     HEAD("2 x 16 x 8 x 8", "y, sum") Q("q", "x", "a") DQ("dq", "q", "a")
         CONV("c", "dq", "") SUM("sum", "c, dq") Q("t", "sum", "b") DQ("y", "t", "b"),
     {"q", "c + sum", "t", "y"},
     1},
    {"fully connected images, and matrices",
     HEAD("3 x 16 x 8 x 8", "y") Q("q", "x", "a")
         DQ("dq", "q", "a") "[layer y]\ntype = FullyConnected\nweights = w:fc\n",
     {"q", "y"},
     0.001},
    {"a product by a constant",
     HEAD("2 x 5 x 32", "y") Q("q", "x", "a")
         DQ("dq", "q", "a") "[layer m]\ntype = MatrixMultiply\nweights = w:matrix\n" Q(
             "r", "m", "b") DQ("y", "r", "b"),
     {"q", "m + r", "y"},
     1},
    {"a product of e4m3",
     HEAD("2 x 5 x 32", "y") Q4("q", "x", "a") DQ("dq", "q", "a") PRODUCT(
         "m", "dq", "floats") RELU("act", "m") Q4("r", "act", "b") DQ("y", "r", "b"),
     {"q", "m + act + r", "y"},
     16}, /* neighbours lie so far apart */
    {"a product of e4m3 to integers",
     HEAD("2 x 5 x 32", "y") Q4("q", "x", "a") DQ("dq", "q", "a")
         PRODUCT("m", "dq", "floats") Q("r", "m", "b") DQ("y", "r", "b"),
     {"q", "dq", "m", "r", "y"},
     1},
    {"e4m3 by integers",
     HEAD("2 x 5 x 32", "y") Q4("q", "x", "a") DQ("dq", "q", "a")
         PRODUCT("m", "dq", "matrix") Q4("r", "m", "b") DQ("y", "r", "b"),
     {"q", "dq", "m", "r", "y"},
     16},
    /* Small ones: on the host floats are quicker. */
    {"attention of e4m3",
     HEAD("2 x 2 x 2 x 8", "y") Q4("q", "x", "a") DQ("dq", "q", "a") ATTENTION(
         "m", "dq, dq, dq", "causal = yes\n") Q4("r", "m", "b") DQ("y", "r", "b"),
     {"q", "m + r", "y"},
     16},
    {"attention of e4m3 to floats, packed",
     HEAD("2 x 2 x 48", "y") Q4("q", "x", "a") DQ("dq", "q", "a")
         ATTENTION("y", "dq", "heads = 2\n"),
     {"q", "y"},
     16},
    {"attention of e4m3 with a mask in floats",
     HEAD("2 x 2 x 2 x 2", "y") Q4("q", "x", "a") DQ("dq", "q", "a")
         ATTENTION("y", "dq, dq, dq, x", ""),
     {"q", "y"},
     16},
    {"attention of integers stays in floats",
     HEAD("2 x 2 x 2 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a")
         ATTENTION("y", "dq, dq, dq", ""),
     {"q", "dq", "y"},
     1},
    {"what moves elements moves e4m3",
     HEAD("2 x 16 x 8 x 8", "y") Q4("q", "x", "a")
         DQ("dq", "q", "a") "[layer s]\ntype = Shuffle\nfirst = 0, 2, 3, 1\n" Q4(
             "r", "s", "a") DQ("y", "r", "a"),
     {"q", "s + r", "y"},
     0},
    {"what moves elements moves integers",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a")
         DQ("dq", "q", "a") "[layer s]\ntype = Shuffle\nfirst = 0, 2, 3, 1\n" Q(
             "r", "s", "a") DQ("y", "r", "a"),
     {"q", "s + r", "y"},
     0},
    {"a border of any number",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a")
         DQ("dq", "q", "a") "[layer p]\ntype = Padding\nbegin = 0, 1, 2, 0\n"
                            "end = 0, 0, -1, 3\nvalue = 0.3\n" Q("r", "p", "a")
                                DQ("y", "r", "a"),
     {"q", "p + r", "y"},
     0},
    {"a border that repeats what is inside",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a")
         DQ("dq", "q", "a") "[layer p]\ntype = Padding\nmode = reflect\n"
                            "begin = 0, 0, 2, 1\n" Q("r", "p", "a") DQ("y", "r", "a"),
     {"q", "p + r", "y"},
     0},
    {"a maximum of bytes",
     HEAD("2 x 16 x 9 x 8", "y") Q("q", "x", "a") DQ(
         "dq", "q",
         "a") "[layer m]\ntype = Pooling\nkernel = 3\nstride = 2\npad = 1\n" Q("r", "m",
                                                                               "a")
         DQ("y", "r", "a"),
     {"q", "m + r", "y"},
     0},
    {"a function of bytes, rounded in between",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") SIGMOID("s", "dq")
         Q("r", "s", "a") DQ("t", "r", "a") DQ("u", "q", "a") PRODUCT_OF("p", "t, u")
             Q("v", "p", "b") DQ("y", "v", "b"),
     {"q", "s + r + t + p + v", "y"},
     0},
    {"a function of bytes that reads them twice",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") SIGMOID("s", "dq")
         PRODUCT_OF("p", "dq, s") Q("v", "p", "b") DQ("y", "v", "b"),
     {"q", "s + p + v", "y"},
     0},
    {"a function of bytes that ends where others read",
     HEAD("2 x 16 x 8 x 8", "y, t") Q("q", "x", "a") DQ("dq", "q", "a") SIGMOID("s", "dq")
         Q("r", "s", "a") DQ("t", "r", "a") RELU("p", "t") Q("v", "p", "b")
             DQ("y", "v", "b"),
     {"q", "s + r", "t", "p + v", "y"},
     0},
    {"functions of bytes that are more than one table takes",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") SIGMOID("s", "dq")
         Q("r", "s", "a") DQ("t", "r", "a") PRODUCT_OF("p", "t, dq") Q("v", "p", "b")
             ROUNDED("0", "v") ROUNDED("1", "q0") ROUNDED("2", "q1") ROUNDED("3", "q2")
                 DQ("y", "q3", "b"),
     {"q", "s + r + t + p + v + d0 + s0 + q0 + d1 + s1 + q1 + d2 + s2 + q2", "s3 + q3",
      "y"},
     0},
    {"another scale",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a") Q("r", "dq", "b")
         DQ("y", "r", "b"),
     {"q", "r", "y"},
     0},
    {"a function of two tensors stays in floats",
     HEAD("2 x 16 x 8 x 8", "y") RELU("w", "x") Q("o", "w", "b") DQ("do", "o", "b")
         Q("q", "x", "a") DQ("dq", "q", "a") PRODUCT_OF("p", "dq, do") Q("v", "p", "b")
             DQ("y", "v", "b"),
     {"w", "o", "do", "q", "dq", "p", "v", "y"},
     0},
    {"an impl that is asked for stays",
     HEAD("2 x 16 x 8 x 8", "y") Q("q", "x", "a") DQ("dq", "q", "a")
         CONV("y", "dq", "impl = c\n"),
     {"q", "dq", "y"},
     0},
};

/* All outputs of a run on inputs in [-1, 1), for the caller to free. */
static float *run(struct session *s, const char *path, const char *fusion, int64_t *n)
{
    const char *const set[] = {fusion};
    strata_context *c = NULL;
    strata_binding b = {.struct_size = sizeof b};
    build(s, path, set, 1);
    cr_assert_eq(strata_context_create(&c, s->engine, s->handle, &s->err), STRATA_OK);
    strata_engine_binding(s->engine, 0, &b, NULL);
    float *x = strata_context_data(c, 0);
    srand(7);
    for (int64_t i = 0; i < b.bytes / 4; i++)
        x[i] = (float)(rand() % 4001) / 2000 - 1;
    for (int i = 0; i < 2; i++)
        cr_assert_eq(strata_context_run(c, &s->err), STRATA_OK, "%s", s->err.message);
    strata_engine_binding(s->engine, 1, &b, NULL);
    float *y = malloc((size_t)b.bytes);
    memcpy(y, strata_context_data(c, 1), (size_t)b.bytes);
    *n = b.bytes / 4;
    strata_context_destroy(c);
    return y;
}

/* Whether impls in 8 bits are here that cost less than those of floats, and the
 * environment does not hold them back. */
static bool is_fast(void)
{
#if defined HAVE_DNNL && defined __x86_64__
    return !getenv("ONEDNN_MAX_CPU_ISA") && __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

static void expect_nodes(const struct session *s, const struct fold_case *c)
{
    if (!is_fast())
        return;
    const struct execution *x = s->engine->execution;
    size_t n = 0;
    while (n < ARRAY_LENGTH(c->nodes) && c->nodes[n])
        n++;
    cr_expect_eq(x->n_nodes, n, "%s: %zu nodes", c->name, x->n_nodes);
    for (size_t i = 0; i < n && i < x->n_nodes; i++)
        cr_expect_str_eq(x->nodes[i].name, c->nodes[i], "%s: %s", c->name,
                         x->nodes[i].name);
}

/* Folded, as it is without that, and from its file. */
static void expect_right(const struct fold_case *c)
{
    const char *path = spill_text("net.ini", c->ini);
    struct session folded, plain, loaded;
    int64_t n, m;
    double worst = 0, largest = 0;
    float *a = run(&folded, path, "build.fusion=yes", &n);
    float *b = run(&plain, path, "build.fusion=no", &m);
    cr_assert_eq(n, m);
    for (int64_t k = 0; k < n; k++) {
        worst = fmax(worst, fabs((double)a[k] - (double)b[k]));
        largest = fmax(largest, fabs((double)b[k]));
    }
    cr_expect_gt(largest, 0.25, "%s", c->name);
    cr_expect_leq(worst, c->bound * 0.03125, "%s: %g apart", c->name, worst);
    expect_nodes(&folded, c);
    save(&folded, file);
    cr_assert_eq(load(&loaded, file), STRATA_OK, "%s", loaded.err.message);
    expect_nodes(&loaded, c);
    release(&folded);
    release(&plain);
    release(&loaded);
    free(a);
    free(b);
}

Test(fold, layers_between_scales_compute_with_integers)
{
    spill_weights();
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        expect_right(&cases[i]);
}

/* On a CPU that has more: oneDNN's sums of two would saturate. */
Test(fold, instructions_that_the_environment_holds_back_are_not_used)
{
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    spill_weights();
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        expect_right(&cases[i]);
}
