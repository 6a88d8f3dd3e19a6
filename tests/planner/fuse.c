/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusion, aliases and concatenation in place: the values are those without, and what must
 * stay by itself does.
 */
#include "tests/planner/fusion/fusing.h"

TestSuite(fuse, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

#define HEAD(out) "[network]\nformat = 1\noutputs = " out "\n[weights w]\nrandom = 7\n"
#define INPUT "[input x]\nshape = 1 x 16 x 9 x 9\n"
#define CONV(name, more)                                                                 \
    "[layer " name "]\ntype = Convolution\nfilters = 16\nkernel = 3x3\npad = 1\n"        \
    "weights = w:" name "\n" more
#define RELU(name, more) "[layer " name "]\ntype = Activation\nkind = relu\n" more
#define SCALE(name, more)                                                                \
    "[layer " name "]\ntype = Scale\nscale = w:" name ".scale\nshift = w:" name          \
    ".shift\nmode = channel\n" more

/* p = r[:8] * tanh(r[some 8]) */
#define SLICES(shape, range)                                                             \
    HEAD("p")                                                                            \
    "[input x]\nshape = " shape                                                          \
    "\n" RELU("r", "") "[layer a]\ntype = Slice\naxes = 1\nbegin = 0\nend = 8\n"         \
                       "[layer b]\ntype = Slice\ninputs = r\naxes = 1\n" range           \
                       "[layer t]\ntype = Activation\nkind = tanh\n"                     \
                       "[layer p]\ntype = ElementWise\nop = product\ninputs = a, t\n"

/* What the nodes that run are named, in their order; "" ends the list. */
static const struct {
    const char *name, *ini, *nodes[5];
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
    {"scale by itself takes an activation",
     HEAD("r") INPUT SCALE("s", "") RELU("r", ""),
     {"s + r"}},
    {"scale takes scales and an activation",
     HEAD("r") INPUT SCALE("s", "") SCALE("t", "") "[layer u]\ntype = Scale\n"
                                                   "shift = 0.5\n" RELU("r", ""),
     {"s + t + u + r"}},
    {"a uniform scale takes one of channels",
     HEAD("t") INPUT
     "[layer s]\ntype = Scale\nscale = 0.5\nshift = 0.25\n" SCALE("t", ""),
     {"s + t"}},
    {"a scale with a power takes an activation, no scale",
     HEAD("r") INPUT "[layer s]\ntype = Scale\nshift = 9\npower = 2\n" SCALE("t", "")
         RELU("r", ""),
     {"s", "t + r"}},
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
    {"depthwise, scale and activation",
     HEAD("t") INPUT "[layer i]\ntype = Activation\nkind = tanh\nformat = fp32:nc/8hw8, "
                     "fp16:nc/2hw2\n[layer c]\ntype = Convolution\nfilters = 16\n"
                     "groups = 16\nkernel = 3x3\npad = 1\nweights = w:c\n" SCALE(
                         "s", "") "[layer t]\ntype = Activation\nkind = sigmoid\n",
     {"i", "c + s + t"}},
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
    {"a transpose that moves dims of 1 alone is erased",
     HEAD("t") "[input x]\nshape = 2 x 1 x 9 x 5\n" RELU("r", "")
         "[layer f]\ntype = Shuffle\nfirst = 0, 2, 3, 1\n"
         "[layer t]\ntype = Activation\nkind = tanh\n",
     {"r", "t"}},
    {"so are both of a Shuffle, around a reshape",
     HEAD("t") "[input x]\nshape = 1 x 6 x 1 x 5\n" RELU("r", "")
         "[layer f]\ntype = Shuffle\nfirst = 2, 1, 0, 3\nshape = 2, 1, 15\n"
         "second = 1, 0, 2\n"
         "[layer t]\ntype = Activation\nkind = tanh\n",
     {"r", "t"}},
    {"a transpose that no layout has stays",
     HEAD("t") "[input x]\nshape = 2 x 1 x 3 x 5 x 7\n" RELU("r", "")
         "[layer f]\ntype = Shuffle\nfirst = 0, 3, 2, 1, 4\n"
         "[layer t]\ntype = Activation\nkind = tanh\n",
     {"r", "f", "t"}},
    {"one after a reshape, too",
     HEAD("t") "[input x]\nshape = 2 x 6 x 3 x 5\n" RELU("r", "")
         "[layer f]\ntype = Shuffle\nshape = 4, 3, 1, 3, 5\nsecond = 0, 3, 2, 1, 4\n"
         "[layer t]\ntype = Activation\nkind = tanh\n",
     {"r", "f", "t"}},
    {"a transpose from channels-last is erased",
     HEAD("t") "[input x]\nshape = 2 x 3 x 9 x 5\n" RELU("r", "")
         "[layer f]\ntype = Shuffle\nfirst = 0, 2, 3, 1\n"
         "[layer t]\ntype = Activation\nkind = tanh\n",
     {"r", "t"}},
    {"one to channels-last, behind rows of tokens",
     HEAD("t") "[input x]\nshape = 2 x 20 x 16\n" RELU("r", "")
         "[layer f]\ntype = Shuffle\nfirst = 0, 2, 1\nshape = 0, 16, 4, 5\n"
         "[layer t]\ntype = Activation\nkind = tanh\n",
     {"r", "t"}},
    {"and back to rows of tokens",
     HEAD("t") "[input x]\nshape = 2 x 16 x 4 x 5\n" RELU("r", "")
         "[layer f]\ntype = Shuffle\nshape = 0, 16, 20\nsecond = 0, 2, 1\n"
         "[layer t]\ntype = Activation\nkind = tanh\n",
     {"r", "t"}},
    {"heads of tokens stay",
     HEAD("t") "[input x]\nshape = 2 x 20 x 16\n" RELU("r", "")
         "[layer f]\ntype = Shuffle\nshape = 0, 20, 2, 8\nsecond = 0, 2, 1, 3\n"
         "[layer t]\ntype = Activation\nkind = tanh\n",
     {"r", "f", "t"}},
    {"halves are erased, though one is written over",
     SLICES("1 x 16 x 8 x 8", "begin = -8\nend = 16\n"),
     {"r", "t + p"}},
    {"a slice of part of a vector of 256 bytes is read where it lies",
     SLICES("1 x 16 x 9 x 9", "begin = 8\nend = 16\n"),
     {"r", "t + p"}},
    {"a slice with steps stays",
     SLICES("1 x 16 x 8 x 8", "begin = 0\nend = 16\nstep = 2\n"),
     {"r", "b", "t + p"}},
    {"so are slices of two images",
     SLICES("2 x 16 x 8 x 8", "begin = 8\nend = 16\n"),
     {"r", "t + p"}},
};

Test(fuse, values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        expect_same_values(cases[i].name, cases[i].ini, FP32, FP32, 1e-5);
        expect_same_values(cases[i].name, cases[i].ini, FP32, FP16, 4e-3);
    }
}

/* Whole vectors and not, more than a thread takes at once and less, 2 to 5 dims. */
Test(fuse, scales_take_activations_in_every_format)
{
    static const char *const shapes[] = {"2 x 17 x 5 x 7", "1 x 8 x 1 x 1", "3 x 33",
                                         "1 x 48 x 57 x 31", "2 x 5 x 3 x 4 x 3"};
    static const char *const formats[] = {"fp32:nchw",      "fp32:nhwc", "fp32:nc/8hw8",
                                          "fp32:nc/16hw16", "fp16:nchw", "fp16:nhwc8",
                                          "fp16:nc/2hw2",   "fp16:nhwc"};
    static const char *const kinds[] = {"relu", "leaky_relu\nalpha = 0.1", "relu6",
                                        "clip\nalpha = -0.5\nbeta = 0.25", "sigmoid"};
    char ini[1000];
    for (size_t s = 0; s < ARRAY_LENGTH(shapes); s++)
        for (size_t f = 0; f < ARRAY_LENGTH(formats); f++)
            for (size_t k = 0; k < ARRAY_LENGTH(kinds); k++) {
                const bool half = formats[f][2] == '1';
                const char *precision = half ? FP16 : FP32;
                snprintf(ini, sizeof ini,
                         HEAD("t") "[input x]\nshape = %s\n" SCALE("s", "")
                             SCALE("u", "") "[layer r]\ntype = Activation\nformat = %s\n"
                                            "kind = %s\n" RELU("t", ""),
                         shapes[s], formats[f], kinds[k]);
                expect_same_values(shapes[s], ini, precision, precision,
                                   half ? 4e-3 : 1e-5);
            }
}

/* Planes that are cut otherwise, and dims of 1 that move; some in linear formats only. */
Test(fuse, shuffles_are_erased_in_every_format)
{
    static const struct {
        const char *shape, *shuffle;
        bool linear;
    } shuffles[] = {
        {"2 x 17 x 4 x 6", "shape = 0, 0, 24\n", false},
        {"2 x 17 x 4 x 6", "shape = 0, 0, 2, 3, 4\n", false},
        {"2 x 17 x 1 x 6", "first = 0, 1, 3, 2\n", false},
        {"2 x 17 x 1 x 6 x 5", "shape = 0, 0, 6, 1, 5\nsecond = 3, 0, 1, 2, 4\n", true},
        {"2 x 17 x 1 x 1", "shape = 0, 0\n", false},
        {"2 x 17", "shape = 0, 0, 1, 1\n", false},
        {"2 x 1 x 6 x 5", "first = 0, 2, 3, 1\n", true},
        {"1 x 17 x 3", "first = 1, 0, 2\n", true},
    };
    static const char *const formats[] = {"fp32:nchw", "fp16:nchw",      "fp32:nhwc",
                                          "fp16:nhwc", "fp32:nc/8hw8",   "fp16:nhwc8",
                                          "fp16:nc/2hw2", "fp32:nc/16hw16"};
    char ini[1000];
    for (size_t s = 0; s < ARRAY_LENGTH(shuffles); s++)
        for (size_t f = 0; f < ARRAY_LENGTH(formats); f++) {
            const bool half = formats[f][2] == '1';
            const char *precision = half ? FP16 : FP32;
            struct planning p;
            snprintf(ini, sizeof ini,
                     HEAD("t") "[input x]\nshape = %s\n[layer r]\ntype = Activation\n"
                               "kind = sigmoid\nformat = %s\n[layer f]\ntype = Shuffle\n"
                               "%sformat = %s\n[layer t]\ntype = Activation\n"
                               "kind = relu\n",
                     shuffles[s].shape, formats[f], shuffles[s].shuffle, formats[f]);
            expect_same_values(shuffles[s].shuffle, ini, precision, precision,
                               half ? 4e-3 : 1e-5);
            cr_assert_eq(plan(&p, ini, &precision, 1), STRATA_OK, "%s", p.err.message);
            cr_expect_eq(p.execution->n_nodes, shuffles[s].linear && f > 1 ? 3 : 2,
                         "%s, %s: %zu nodes", formats[f], shuffles[s].shuffle,
                         p.execution->n_nodes);
            planning_close(&p);
        }
}

Test(fuse, nodes_are_what_runs)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning s;
        cr_assert_eq(plan(&s, cases[i].ini, NULL, 0), STRATA_OK, "%s: %s", cases[i].name,
                     s.err.message);
        size_t n = 0;
        while (n < ARRAY_LENGTH(cases[i].nodes) && cases[i].nodes[n])
            n++;
        cr_expect_eq(s.execution->n_nodes, n, "%s: %zu nodes", cases[i].name,
                     s.execution->n_nodes);
        for (size_t k = 0; k < n && k < s.execution->n_nodes; k++)
            cr_expect_str_eq(s.execution->nodes[k].name, cases[i].nodes[k], "%s: %s",
                             cases[i].name, s.execution->nodes[k].name);
        planning_close(&s);
    }
}

/* The reason of the layer that is named last. */
static const struct {
    const char *ini, *set, *layer, *reason;
    bool done;
} reasons[] = {
    {HEAD("r") INPUT CONV("c", "") RELU("r", ""), NULL, "r", "c: applied in its epilogue",
     true},
    {HEAD("s") INPUT CONV("c", "") SCALE("s", ""), NULL, "s",
     "c: folded into its weights", true},
    {HEAD("sum") INPUT CONV("a", "") CONV("b", "") "[layer sum]\ntype = ElementWise\n"
                                                   "op = sum\ninputs = a, b\n",
     NULL, "sum", "b: added in its epilogue", true},
    {HEAD("b") INPUT "[layer a]\ntype = Shuffle\nfirst = 0, 2, 3, 1\n"
                     "[layer b]\ntype = Shuffle\nfirst = 0, 3, 1, 2\n"
                     "shape = 1, 4, 36, 9\nsecond = 0, 2, 1, 3\n",
     NULL, "b", "a: both are one Shuffle", true},
    {HEAD("t") INPUT RELU("r", "") "[layer i]\ntype = Identity\n" RELU("t", ""), NULL,
     "i", "its output is its input's memory, or a part of it", true},
    {HEAD("s") INPUT CONV("c", "") "[layer s]\ntype = Scale\npower = 2\n", NULL, "s",
     "c: a power is not linear", false},
    {HEAD("s") INPUT RELU("c", "") SCALE("s", ""), NULL, "s",
     "c: it has no weights to fold a Scale into", false},
    {HEAD("s") INPUT SCALE("c", "") SCALE("s", ""), NULL, "s",
     "c: folded into its weights", true},
    {HEAD("s") INPUT "[layer c]\ntype = Scale\npower = 2\n" SCALE("s", ""), NULL, "s",
     "c: a power is not linear", false},
    {HEAD("s") INPUT CONV("c", "") RELU("r", "") SCALE("s", ""), NULL, "s",
     "c: an epilogue is activation(x + residual)", false},
    {HEAD("r") INPUT "[layer c]\ntype = Softmax\n" RELU("r", ""), NULL, "r",
     "c: no impl of it computes this activation", false},
    {HEAD("r, c") INPUT CONV("c", "") RELU("r", ""), NULL, "r",
     "c: its output is a network output", false},
    {HEAD("r, t") INPUT CONV("c", "") RELU("r", "") RELU("t", "inputs = c\n"), NULL, "r",
     "c: its output has other readers", false},
    {HEAD("r") INPUT CONV("c", "format = fp32:nchw\n") RELU("r", ""), NULL, "r",
     "c: the network gives its output a format", false},
    {HEAD("r") INPUT CONV("c", "") RELU("r", "impl = c\n"), NULL, "r",
     "c: the network asks for an impl of this layer", false},
    {HEAD("sum") INPUT CONV("c", "") "[layer sum]\ntype = ElementWise\ninputs = c, c\n",
     NULL, "sum", "c: its output has other readers", false},
    {HEAD("sum") INPUT "[input y]\nshape = 1 x 1 x 9 x 9\n" CONV(
         "c", "inputs = x\n") "[layer sum]\ntype = ElementWise\ninputs = c, y\n",
     NULL, "sum", "c: the operands differ in shape", false},
    {HEAD("sum") INPUT "[layer c]\ntype = Softmax\n"
                       "[layer sum]\ntype = ElementWise\ninputs = c, x\n",
     NULL, "sum", "c: no impl of it adds a residual", false},
    {HEAD("b") INPUT RELU("r", "") "[layer b]\ntype = Shuffle\nfirst = 0, 3, 2, 1\n",
     NULL, "b", "r: only a Shuffle is composed with it", false},
    {HEAD("b") INPUT
     "[layer a]\ntype = Shuffle\nfirst = 0, 2, 1, 3\nshape = 0, 3, -1, 4\n"
     "[layer b]\ntype = Shuffle\nshape = 0, 4, 3, -1\n"
     "second = 0, 2, 1, 3\n",
     NULL, "b", "a: the reshapes do not compose", false},
    {SLICES("1 x 16 x 8 x 8", "begin = 8\nend = 16\n"), "build.fusion=no", "p", NULL,
     false},
};

Test(fuse, every_layer_that_is_or_might_be_fused_has_a_reason)
{
    for (size_t i = 0; i < ARRAY_LENGTH(reasons); i++) {
        struct planning s;
        cr_assert_eq(plan(&s, reasons[i].ini, &reasons[i].set, reasons[i].set != NULL),
                     STRATA_OK, "%zu: %s", i, s.err.message);
        size_t l = 0;
        while (strcmp(s.network->layers[l].name, reasons[i].layer) != 0)
            l++;
        const struct planner_fusion *f = &s.planner->fusions[l];
        cr_expect_eq(f->done, reasons[i].done, "%zu", i);
        if (!reasons[i].reason)
            cr_expect_eq(f->reason, NULL, "%zu: %s", i, f->reason);
        else
            cr_expect(f->reason && !strcmp(f->reason, reasons[i].reason), "%zu: %s", i,
                      f->reason ? f->reason : "none");
        planning_close(&s);
    }
}

/* ---- concatenation in place ---------------------------------------------------------
 */

#define FIRE(shape)                                                                      \
    HEAD("last")                                                                         \
    "[input x]\nshape = " shape "\n" CONV("q", "") RELU("qr", "")                        \
        CONV("a", "inputs = qr\n") RELU("ar", "") CONV("b", "inputs = qr\n")             \
            RELU("br", "") "[layer cat]\ntype = Concatenation\ninputs = ar, br\n"        \
                           "[layer last]\ntype = Pooling\nkind = max\nkernel = 2x1\n"

/* why: told of the layer 'cat' where it stays. */
static const struct {
    const char *name, *ini;
    bool in_place;
    const char *why;
} joins[] = {
    {"one image", FIRE("1 x 16 x 8 x 8"), true, NULL},
    {"two images", FIRE("2 x 16 x 8 x 8"), true, NULL},
    {"slices that are not aligned", FIRE("1 x 16 x 3 x 1"), false,
     "no impl before it writes inside another tensor"},
    {"one tensor twice",
     HEAD("last")
         INPUT CONV("a", "") "[layer cat]\ntype = Concatenation\ninputs = a, a\n"
                             "[layer last]\ntype = Pooling\nkind = max\nkernel = 2x2\n",
     false, "as fp32:nchw, 'a' is read by it twice"},
    {"a growing list",
     HEAD("last") "[input x]\nshape = 1 x 16 x 8 x 8\n" CONV("a", "") CONV("b", "") CONV(
         "c", "") "[layer ab]\ntype = Concatenation\ninputs = a, b\n"
                  "[layer abc]\ntype = Concatenation\ninputs = ab, c\n" RELU("last", ""),
     true, NULL},
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
     true, NULL},
    {"a growing list of three images",
     HEAD("last") "[input x]\nshape = 3 x 16 x 8 x 8\n" CONV("a", "") CONV("b", "") CONV(
         "c", "") "[layer ab]\ntype = Concatenation\ninputs = a, b\n"
                  "[layer p]\ntype = Pooling\nkind = max\nkernel = 1x1\n"
                  "[layer abc]\ntype = Concatenation\ninputs = ab, c\n"
                  "[layer q]\ntype = Pooling\nkind = max\nkernel = 1x1\n"
                  "[layer last]\ntype = Concatenation\ninputs = p, q\n",
     true, NULL},
    {"thirds of two images, split and joined again",
     HEAD("last") "[input x]\nshape = 2 x 16 x 5 x 7\n"
                  "[layer a]\ntype = Convolution\nfilters = 48\nkernel = 1x1\n"
                  "weights = w:a\n"
                  "[layer s]\ntype = Slice\nparts = 3\naxis = 1\n" CONV(
                      "b", "inputs = s:1\n") CONV("c", "inputs = s:2\n")
         "[layer d]\ntype = Activation\nkind = sigmoid\ninputs = s\n"
         "[layer cat]\ntype = Concatenation\ninputs = c, b, d\n"
         "[layer last]\ntype = Pooling\nkind = max\nkernel = 2x2\n",
     true, NULL},
    {"its output is the network's",
     HEAD("cat") "[input x]\nshape = 1 x 16 x 8 x 8\n" CONV("a", "")
         CONV("b", "") "[layer cat]\ntype = Concatenation\ninputs = a, b\n",
     true, NULL},
    {"a part has other readers",
     HEAD("last") "[input x]\nshape = 1 x 16 x 8 x 8\n" CONV("a", "")
         CONV("b", "") "[layer cat]\ntype = Concatenation\ninputs = a, b\n"
                       "[layer t]\ntype = Activation\nkind = tanh\ninputs = a\n"
                       "[layer last]\ntype = Concatenation\ninputs = t, cat\n",
     true, NULL},
};

Test(fuse, concatenations_in_place_have_the_same_values)
{
    for (size_t i = 0; i < ARRAY_LENGTH(joins); i++) {
        expect_same_values(joins[i].name, joins[i].ini, FP32, FP32, 1e-5);
        expect_same_values(joins[i].name, joins[i].ini, FP32, FP16, 4e-3);
    }
}

Test(fuse, concatenations_vanish_where_slices_are_whole)
{
    /* Whatever layout the CPU's vectors make the cheapest. */
    static const char *const planes[] = {"build.formats=fp32:nchw, fp32:nc/8hw8"};
    for (size_t i = 0; i < ARRAY_LENGTH(joins); i++) {
        struct planning s;
        bool runs = false;
        cr_assert_eq(plan(&s, joins[i].ini, planes, ARRAY_LENGTH(planes)), STRATA_OK,
                     "%s: %s", joins[i].name, s.err.message);
        for (size_t k = 0; k < s.execution->n_nodes; k++)
            runs |= strcmp(s.execution->nodes[k].layer->type->layer.name,
                           "Concatenation") == 0;
        cr_expect_neq(runs, joins[i].in_place, "%s", joins[i].name);
        for (size_t l = 0; l < s.network->n_layers; l++)
            if (joins[i].why && strcmp(s.network->layers[l].name, "cat") == 0)
                cr_expect_str_eq(s.planner->fusions[l].reason, joins[i].why, "%s: %s",
                                 joins[i].name, s.planner->fusions[l].reason);
        planning_close(&s);
    }
}
