/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that are computed, where the layer holds its own: the same as with constants;
 * and convolutions whose taps are where offsets say.
 */
#include <math.h>

#include "tests/network/import/free_model.h"
#include "tests/network/import/planned.h"

TestSuite(computed, .timeout = 600);

/* w: n numbers of those dims, and b: m numbers; which '@' makes of w0 and b0. */
#define WEIGHTS(n, dims, m)                                                              \
    "init o f - 0\ninit s f - 1\ninit n f - " n "\nnode Range o,n,s -> r\n"              \
    "node Sin r -> q\ninit ws i " dims "\nnode Reshape q,ws -> w0\ninit m f - " m        \
    "\nnode Range o,m,s -> b1\nnode Cos b1 -> b0\n"                                      \
    "node ReduceMean x -> e keepdims=0\nnode Mul e,o -> z\n@"

static const char constant[] = "node Identity w0 -> w\nnode Identity b0 -> b\n",
                  computed[] = "node Add w0,z -> w\nnode Add b0,z -> b\n";

static const struct {
    const char *name, *text;
} cases[] = {
    {"a convolution",
     "input x f 2x3x7x6\n" WEIGHTS(
         "108", "4 4 3 3 3",
         "4") "node Conv x,w,b -> y pads=[1,0,2,1] strides=[2,1]\noutput y\n"},
    {"one of groups, dilated",
     "input x f 2x4x9x8\n" WEIGHTS("72", "4 6 2 3 2",
                                   "6") "node Conv x,w -> y group=2 dilations=[2,1] "
                                        "auto_pad='SAME_UPPER'\noutput y\n"},
    {"one of each channel",
     "input x f 1x5x8x8\n" WEIGHTS("80", "4 5 1 4 4",
                                   "5") "node Conv x,w -> y group=5\noutput y\n"},
    {"one along a line", "input x f 3x2x11\n" WEIGHTS(
                             "30", "3 5 2 3", "5") "node Conv x,w,b -> y\noutput y\n"},
    {"one back", "input x f 2x3x5x4\n" WEIGHTS(
                     "54", "4 3 2 3 3",
                     "2") "node ConvTranspose x,w,b -> y strides=[2,3] pads=[1,0,0,1] "
                          "output_padding=[1,2]\noutput y\n"},
    {"one back, of groups",
     "input x f 2x4x5\n" WEIGHTS(
         "36", "3 4 3 3", "6") "node ConvTranspose x,w,b -> y group=2\noutput y\n"},
    {"a norm of rows",
     "input x f 3x4x5\n" WEIGHTS("5", "1 5",
                                 "5") "node LayerNormalization x,w,b -> y\noutput y\n"},
    {"one of two dims, without an addend",
     "input x f 3x4x5\n" WEIGHTS("20", "2 4 5",
                                 "5") "node LayerNormalization x,w -> y axis=1\n"
                                      "output y\n"},
    {"one without a mean",
     "input x f 3x4x5\n" WEIGHTS("5", "1 5",
                                 "5") "node RMSNormalization x,w -> y\noutput y\n"},
    {"one of images",
     "input x f 3x4x5x2\n" WEIGHTS(
         "4", "1 4", "4") "node InstanceNormalization x,w,b -> y\noutput y\n"},
    {"one of groups",
     "input x f 3x4x5x2\n" WEIGHTS(
         "4", "1 4", "4") "node GroupNormalization x,w,b -> y num_groups=2\noutput y\n"},
};

/* The output of the model, whose weights are so; the caller frees it. */
static float *run(const char *name, const char *text, const char *weights, int64_t *n)
{
    struct free_model m = free_model_open(text, weights, "", "");
    struct imported x;
    strata_error err = {0};
    int64_t count;
    cr_assert_eq(imported_open(&x, m.onnx, m.registry, NULL, &err), STRATA_OK, "%s: %s",
                 name, err.message);
    float *in = imported_data(&x, 0, &count);
    for (int64_t i = 0; i < count; i++)
        in[i] = (float)sin(0.7 * (double)i + 1);
    cr_assert_eq(strata_context_run(x.context, &err), STRATA_OK, "%s", err.message);
    const float *out = imported_data(&x, 1, n);
    float *copy = malloc((size_t)*n * sizeof *copy);
    cr_assert_not_null(copy);
    memcpy(copy, out, (size_t)*n * sizeof *copy);
    imported_free(&x);
    free_model_close(&m);
    return copy;
}

static void compare(const char *name, const char *found_text, const char *found_weights,
                    const char *wanted_text, const char *wanted_weights)
{
    int64_t n, n_found;
    float *wanted = run(name, wanted_text, wanted_weights, &n);
    float *found = run(name, found_text, found_weights, &n_found);
    cr_assert_eq(n, n_found, "%s", name);
    for (int64_t i = 0; i < n; i++)
        cr_expect_float_eq(found[i], wanted[i], 1e-5 * (1 + fabsf(wanted[i])),
                           "%s: element %lld is %g, should be %g", name, (long long)i,
                           (double)found[i], (double)wanted[i]);
    free(wanted);
    free(found);
}

Test(computed, weights_are_as_constants)
{
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        compare(cases[c].name, cases[c].text, computed, cases[c].text, constant);
}

#define IMAGE "input x f 1x2x5x6\n" WEIGHTS("54", "4 3 2 3 3", "3")
/* Elements half a row below and a quarter of a column to the right, zeros outside. */
#define MOVED                                                                            \
    "init p i 8 0 0 0 0 0 0 1 1\nnode Pad x,p -> xp\ninit ax i 2 2 3\n"                  \
    "init s0 i 2 0 0\ninit e0 i 2 5 6\nnode Slice xp,s0,e0,ax -> x0\n"                   \
    "init s1 i 2 1 0\ninit e1 i 2 6 6\nnode Slice xp,s1,e1,ax -> x1\n"                   \
    "init s2 i 2 0 1\ninit e2 i 2 5 7\nnode Slice xp,s2,e2,ax -> x2\n"                   \
    "init s3 i 2 1 1\ninit e3 i 2 6 7\nnode Slice xp,s3,e3,ax -> x3\n"                   \
    "node Add x0,x1 -> near\nnode Add x2,x3 -> far\ninit c0 f - 0.375\n"                 \
    "init c1 f - 0.125\nnode Mul near,c0 -> n0\nnode Mul far,c1 -> n1\n"                 \
    "node Add n0,n1 -> moved\n"
/* Offsets of nine taps, those of y before those of x, for each place. */
#define OFFSETS(places)                                                                  \
    "init yx f 1x1x2x1x1 0.5 0.25\ninit as i 5 1 9 2 " places                            \
    "\nnode Expand yx,as -> o5\ninit os i 4 1 18 " places                                \
    "\nnode Reshape o5,os -> off\n"

static const struct {
    const char *name, *found, *wanted;
} deformed[] = {
    {"taps that are where they are",
     IMAGE "init os i 4 1 18 5 3\nnode ConstantOfShape os -> off\n"
           "node DeformConv x,w,off,b -> y pads=[1,1,1,1] strides=[1,2]\noutput y\n",
     IMAGE "node Conv x,w,b -> y pads=[1,1,1,1] strides=[1,2]\noutput y\n"},
    {"taps between elements",
     IMAGE OFFSETS("3 4") "node DeformConv x,w,off,b -> y\noutput y\n",
     IMAGE MOVED "node Conv moved,w,b -> y\noutput y\n"},
    {"half of each",
     IMAGE OFFSETS(
         "3 4") "init h1 f - 0.5\ninit hs i 4 1 9 3 4\nnode Expand h1,hs -> half\n"
                "node DeformConv x,w,off,_,half -> y\noutput y\n",
     IMAGE MOVED "init h f - 0.5\nnode Mul moved,h -> small\n"
                 "node Conv small,w -> y\noutput y\n"},
};

Test(computed, taps_are_where_offsets_say)
{
    for (size_t c = 0; c < sizeof deformed / sizeof *deformed; c++)
        compare(deformed[c].name, deformed[c].found, computed, deformed[c].wanted,
                constant);
}
