/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions with the maxima behind them as one layer, whose results may be bytes:
 * which are; that prices decide, and that values are those without, whichever of the ways
 * is planned; and that none is timed where only a plain loop runs it.
 */
#include "io/weights/weights.h"
#include "tests/planner/fusion/prices.h"

#define POOLED "core::PooledConvolution@1"

/* Scales, which are read from a file. */
static void make(void)
{
    const float step = 0x1p-6F, below = -0x1p-6F;
    const struct weight_view views[] = {
        {"s", WEIGHT_F32, 1, {1}, &step, sizeof step},
        {"below", WEIGHT_F32, 1, {1}, &below, sizeof below},
    };
    scratch_make();
    cr_assert_eq(weights_save(in_scratch("scales.safetensors"), views, 2, NULL),
                 STRATA_OK);
}

TestSuite(fuse_pooled, .init = make, .fini = scratch_remove, .timeout = 300);

#define HEAD CHAIN_HEAD
#define FIRST CONVOLUTION("conv", 8, 3x3, "pad = 1\n")
#define RELU ACT("relu", "relu")
#define MAXIMA(more) "[layer pool]\ntype = Pooling\nkernel = 3x3\nstride = 2\n" more
#define ABS(name, of) "[layer " name "]\ntype = Unary\nop = abs\ninputs = " of "\n"

/* Its first part is read by the second, too. */
#define JOINED(more)                                                                     \
    HEAD("y")                                                                            \
    FIRST RELU MAXIMA(more)                                                              \
        ABS("abs", "pool") "[layer y]\ntype = Concatenation\naxis = 1\n"                 \
                           "inputs = pool, abs\n"

/* To bytes and back. */
#define ROUNDED(scale, more)                                                             \
    "[weights scales]\nfile = scales.safetensors\n[layer q]\ntype = Quantize\n"          \
    "scale = scales:" scale "\n" more                                                    \
    "[layer y]\ntype = Dequantize\nscale = scales:" scale "\n"

#define BYTES HEAD("y") FIRST RELU MAXIMA("pad = 1\n") ROUNDED("s", "dtype = int8\n")

static const struct chain_case chains[] = {
    {"maxima of an activation", HEAD("pool") FIRST RELU MAXIMA("pad = 1\n"), "conv", 3,
     0},
    {"maxima of results", HEAD("pool") FIRST MAXIMA(""), "conv", 2, 0},
    {"something behind", HEAD("y") FIRST RELU MAXIMA("") ABS("y", "pool"), "conv", 3, 0},
    {"a concatenation", JOINED("pad = 1\n"), "conv", 3, 0},
    {"another activation",
     HEAD("pool") FIRST ACT("relu", "silu") MAXIMA("ceil_mode = yes\n"), "conv", 3, 0},
    {"bounds",
     HEAD("pool") FIRST "[layer clip]\ntype = Activation\nkind = clip\n"
                        "alpha = -0.5\nbeta = 1\n" MAXIMA(""),
     "conv", 3, 0},
    {"strides and groups",
     HEAD("pool") CONVOLUTION("conv", 6, 3x2, "groups = 3\nstride = 2x1\n")
         MAXIMA("pad = 1\ndilation = 2\n"),
     "conv", 2, 0},
    {"no bias",
     HEAD("pool") "[layer conv]\ntype = Convolution\nfilters = 8\nkernel = 3x3\n"
                  "weight = w\n" MAXIMA("pad_mode = same_lower\n"),
     "conv", 2, 0},
    {"maxima that become bytes", BYTES, "conv", 3, 4},
    {"results that become bytes", HEAD("y") FIRST MAXIMA("") ROUNDED("s", ""), "conv", 2,
     3},
    {"bytes by a scale below 0",
     HEAD("y") FIRST RELU MAXIMA("") ROUNDED("below", "dtype = int8\n"), "conv", 3, 0},
    {"maxima that are read as floats, too",
     HEAD("y, z") FIRST RELU MAXIMA("") ROUNDED("s", "") ABS("z", "pool"), "conv", 3, 0},
    {"means", HEAD("pool") FIRST RELU MAXIMA("kind = average\n"), "conv", 0, 0},
    {"where they are", HEAD("pool, pool:1") FIRST RELU MAXIMA("indices = yes\n"), "conv",
     0, 0},
    {"of the whole image",
     HEAD("pool") FIRST "[layer pool]\ntype = Pooling\nglobal = yes\n", "conv", 0, 0},
    {"two activations", HEAD("pool") FIRST RELU ACT("more", "tanh") MAXIMA(""), "conv", 0,
     0},
    {"results are read twice", HEAD("pool, y") FIRST MAXIMA("") ABS("y", "conv"), "conv",
     0, 0},
    {"the activation is an output", HEAD("pool, relu") FIRST RELU MAXIMA(""), "conv", 0,
     0},
    {"an impl that is asked for",
     HEAD("pool") CONVOLUTION("conv", 8, 3x3, "impl = c\n") MAXIMA(""), "conv", 0, 0},
    {"a format that is asked for",
     HEAD("pool") CONVOLUTION("conv", 8, 3x3, "format = fp32:nchw\n") MAXIMA(""), "conv",
     0, 0},
    {"no fusion", HEAD("pool") FIRST MAXIMA("") "[build]\nfusion = no\n", "conv", 0, 0},
};

Test(fuse_pooled, maxima_are_of_one_layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_chain(&chains[i], POOLED);
}

Test(fuse_pooled, values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_chain_values(&chains[i]);
}

/* ---- prices ----------------------------------------------------------------------- */

static struct prices plan_at(struct planning *s, const char *ini, int64_t made,
                             int64_t other)
{
    return plan_at_prices(s, ini, POOLED, made, other);
}

static const char *reason_of(const struct planning *s, const char *layer)
{
    return s->planner->fusions[chain_node(s, layer)].reason;
}

#define STEM HEAD("pool") FIRST RELU MAXIMA("pad = 1\n")

Test(fuse_pooled, is_taken_where_it_is_cheaper)
{
    struct planning s;
    cr_expect_gt(plan_at(&s, STEM, 100, 1000).asked, 0);
    cr_expect_eq(chosen_for(&s, "conv"), CANDIDATE_GROUP);
    cr_expect_eq(chosen_for(&s, "relu"), CANDIDATE_ABSORBED);
    cr_expect_eq(chosen_for(&s, "pool"), CANDIDATE_ABSORBED);
    cr_expect_str_eq(reason_of(&s, "pool"), "conv: all in one PooledConvolution");
    cr_expect(s.planner->fusions[chain_node(&s, "pool")].done);
    planning_close(&s);
}

Test(fuse_pooled, is_weighed_against_maxima_that_round)
{
    struct planning s;
    plan_at(&s, BYTES, 100, 1000);
    cr_expect_eq(chosen_for(&s, "conv"), CANDIDATE_LONGER);
    cr_expect_eq(chosen_for(&s, "pool"), CANDIDATE_ABSORBED);
    cr_expect_eq(chosen_for(&s, "q"), CANDIDATE_ABSORBED);
    planning_close(&s);
    plan_at(&s, BYTES, 100000, 1000);
    cr_expect_eq(chosen_for(&s, "conv"), CANDIDATE_RUN);
    cr_expect_neq(chosen_for(&s, "pool"), CANDIDATE_ABSORBED);
    planning_close(&s);
}

/* Two images, so that its results lie apart there. */
Test(fuse_pooled, is_written_inside_a_concatenation)
{
    static const char *const parts[] = {"conv", "relu", "pool", "abs"};
    struct planning s;
    plan_at(&s, JOINED(""), 100, 1000);
    cr_expect_eq(chosen_for(&s, "conv"), CANDIDATE_GROUP);
    cr_expect_eq(chosen_for(&s, "y"), CANDIDATE_JOIN);
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        cr_expect(
            planner_chosen(s.planner, s.planner->plan, chain_node(&s, parts[i]))->homed,
            "%s", parts[i]);
    planning_close(&s);
}

Test(fuse_pooled, is_not_taken_where_it_is_not_cheaper)
{
    struct planning s;
    plan_at(&s, STEM, 100000, 1000);
    cr_expect_eq(chosen_for(&s, "conv"), CANDIDATE_RUN);
    cr_expect_eq(chosen_for(&s, "pool"), CANDIDATE_RUN);
    cr_expect(s.planner->fusions[chain_node(&s, "relu")].done); /* an epilogue */
    cr_expect_str_eq(reason_of(&s, "pool"), "conv: running it by itself costs less");
    planning_close(&s);
}

/* The plan that takes it, run. */
Test(fuse_pooled, values_of_one_that_is_taken)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_taken_values(&chains[i], POOLED);
}

/* A host's plain loop against its convolutions, in one that computes. */
Test(fuse_pooled, is_not_timed_where_its_claims_are_hopeless)
{
    static const char ini[] =
        "[network]\nformat = 1\noutputs = pool\n[weights w]\nrandom = 3\n"
        "[runtime]\nthreads = 2\n" /* what more of them save depends on how many */
        "[input x]\nshape = 1 x 64 x 56 x 56\n" CONVOLUTION("conv", 64, 3x3, "pad = 1\n")
            RELU MAXIMA("");
    struct planning s;
    struct prices p = plan_at(&s, ini, 1, 1000);
    const struct planner_node *n = &s.planner->nodes[chain_node(&s, "conv")];
    cr_expect_eq(p.asked, 0);
    cr_expect_eq(chain_members(n->group, POOLED), 3);
    cr_expect_eq(chosen_for(&s, "conv"), CANDIDATE_RUN);
    cr_expect(strstr(reason_of(&s, "pool"), "by its claims"), "%s",
              reason_of(&s, "pool"));
    planning_close(&s);
}

/* ---- on CUDA, by the analytic model -------------------------------------------------
 */

static void expect_on_cuda(const char *ini, enum candidate_kind wanted)
{
    struct planning s;
    cr_assert_eq(planning_load(&s, spill_text("net.ini", ini), NULL, NULL, 0), STRATA_OK,
                 "%s", s.err.message);
    s.device = planning_cuda();
    s.device.properties.flops[STRATA_INT8] = 1200e12;
    if (!planning_has_cuda(&s)) {
        planning_close(&s);
        cr_skip_test("the plugins were built without CUDA");
    }
    cr_assert_eq(planning_make(&s, NULL), STRATA_OK, "%s", s.err.message);
    cr_expect_eq(chosen_for(&s, "conv"), wanted);
    cr_expect_eq(chosen_for(&s, "pool"), CANDIDATE_ABSORBED);
    planning_close(&s);
}

#define CUDA_STEM(outputs)                                                               \
    "[network]\nformat = 1\noutputs = " outputs "\n[weights w]\nrandom = 3\n"            \
    "[input image]\nshape = 8 x 3 x 224 x 224\n"                                         \
    "[build]\nprecision = fp16\nmath = tensor_op\ncosts = analytic\n" CONVOLUTION(       \
        "conv", 64, 7x7, "stride = 2\npad = 3\n") RELU MAXIMA("pad = 1\n")

Test(fuse_pooled, first_layers_are_taken_on_cuda)
{
    expect_on_cuda(CUDA_STEM("pool"), CANDIDATE_GROUP);
}

Test(fuse_pooled, bytes_are_taken_on_cuda)
{
    expect_on_cuda(CUDA_STEM("y") ROUNDED("s", "dtype = int8\n"), CANDIDATE_LONGER);
}
