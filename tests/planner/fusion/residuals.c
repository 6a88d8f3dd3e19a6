/* SPDX-License-Identifier: Apache-2.0
 *
 * Residuals that lie inside larger tensors: a range of what they are cut from, or a part
 * of the concatenation that reads them, too. Those that may be are added where they lie,
 * and the values are those without fusion.
 */
#include "tests/planner/fusion/fusing.h"

TestSuite(fuse_residuals, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define HEAD(batch)                                                                      \
    "[network]\nformat = 1\noutputs = y\n[weights w]\nrandom = 3\n"                      \
    "[input image]\nshape = " #batch " x 12 x 9 x 7\n"                                   \
    "[layer x]\ntype = Activation\nkind = tanh\n"
#define PRODUCT_OF(name, in, filters)                                                    \
    "[layer " name "]\ntype = Convolution\nkernel = 1\nfilters = " #filters              \
    "\nweight = w\nbias = w\ninputs = " in "\n"
#define PRODUCT(name, in, filters, impl) PRODUCT_OF(name, in, filters) "impl = " impl "\n"
#define TWO(name, op, a, b)                                                              \
    "[layer " name "]\ntype = ElementWise\nop = " op "\ninputs = " a ", " b "\n"
#define ACT(name, in)                                                                    \
    "[layer " name "]\ntype = Activation\nkind = relu\ninputs = " in "\n"
/* Filters [begin, end) of 24 are added to a product of as many. */
#define CUT(batch, begin, end, filters, impl)                                            \
    HEAD(batch)                                                                          \
    PRODUCT("p", "x", 24, "any")                                                         \
    "[layer s]\ntype = Slice\naxes = 1\nbegin = " #begin "\nend = " #end                 \
    "\n" PRODUCT("m", "x", filters, impl) TWO("z", "sum", "m", "s") ACT("y", "z")

#define JOINED                                                                           \
    HEAD(2)                                                                              \
    TWO("r", "product", "image", "x")                                                    \
    TWO("p", "max", "image", "x")                                                        \
    "[layer j]\ntype = Concatenation\naxis = 1\ninputs = r, p\n" PRODUCT(                \
        "m", "j", 12, "any") TWO("y", "sum", "m", "p")

static const struct residual_case {
    const char *name, *ini, *format;
    bool inside; /* a residual lies so */
    size_t run;  /* layers that do, with fusion */
} cases[] = {
    {"the first channels", CUT(2, 0, 16, 16, "any"), "fp32:nhwc", true, 3},
    {"the last channels", CUT(2, 8, 24, 16, "any"), "fp32:nhwc", true, 3},
    {"of one image", CUT(1, 4, 20, 16, "any"), "fp32:nhwc", true, 3},
    {"planes of several images", CUT(3, 4, 20, 16, "any"), "fp32:nchw", true, 3},
    {"vectors of channels", CUT(3, 8, 24, 16, "any"), "fp32:nc/8hw8", true, 3},
    {"a half of a vector", CUT(3, 4, 20, 16, "any"), "fp32:nc/8hw8", false, 4},
    {"channels that begin within 16 bytes", CUT(2, 2, 18, 16, "any"), "fp32:nhwc", false,
     4},
    {"for an impl that takes dense ones", CUT(3, 4, 20, 16, "c"), "fp32:nchw", false, 4},
    {"made inside a concatenation", JOINED, "fp32:nhwc", true, 4},
};

static bool adds_inside(const struct execution *x)
{
    for (size_t i = 0; i < x->n_nodes; i++)
        if (x->nodes[i].residual_value >= 0 &&
            x->values[x->nodes[i].residual_value].pitched)
            return true;
    return false;
}

/* Between layers. */
static int count_copies(const struct execution *x)
{
    int copies = 0;
    for (size_t i = 0; i < x->n_steps; i++) {
        const struct execution_step *s = &x->steps[i];
        copies += s->kind == STEP_REFORMAT && x->values[s->from].binding < 0 &&
                  x->values[s->to].binding < 0;
    }
    return copies;
}

static void expect_case(const struct residual_case *c)
{
    char formats[64], path[300];
    const char *no[] = {"build.fusion=no", FP32, formats, "build.costs=analytic",
                        "build.merge=no"};
    const char *const *set = no + 1;
    struct session plain, fused;
    strata_engine *again = NULL;
    int64_t n, m;
    snprintf(formats, sizeof formats, "build.formats=%s", c->format);
    cr_assert_eq(build(&plain, c->ini, no, 5), STRATA_OK, "%s: %s", c->name,
                 plain.err.message);
    float *a = output(&plain, &n);
    release(&plain);
    cr_assert_eq(build(&fused, c->ini, set, 4), STRATA_OK, "%s: %s", c->name,
                 fused.err.message);
    float *b = output(&fused, &m);
    cr_assert_eq(n, m);
    cr_expect_leq(worst_difference(a, b, n), 1e-6, "%s", c->name);
    cr_expect_eq(adds_inside(fused.engine->execution), c->inside, "%s", c->name);
    cr_expect_eq(fused.engine->execution->n_nodes, c->run, "%s: %zu run", c->name,
                 fused.engine->execution->n_nodes);
    cr_expect_eq(count_copies(fused.engine->execution), 0, "%s", c->name);
    snprintf(path, sizeof path, "%s/residuals.engine", scratch);
    cr_assert_eq(strata_engine_save(fused.engine, path, &fused.err), STRATA_OK, "%s",
                 fused.err.message);
    cr_assert_eq(
        strata_engine_load(&again, fused.handle, fused.registry, path, &fused.err),
        STRATA_OK, "%s: %s", c->name, fused.err.message);
    cr_expect_eq(adds_inside(again->execution), c->inside, "%s", c->name);
    strata_engine_destroy(again);
    release(&fused);
    free(a);
    free(b);
}

Test(fuse_residuals, are_added_where_they_lie)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_case(&cases[i]);
}

/* The first block of a ResNet, whose shortcut and first product are one. */
static const char block[] = HEAD(1) PRODUCT_OF(
    "p", "x", 320) "[layer s]\ntype = Slice\naxis = 1\nsplit = 256, 64\n" ACT("c", "s:1")
    PRODUCT_OF("m", "c", 256) TWO("z", "sum", "m", "s") ACT("y", "z");

Test(fuse_residuals, are_added_there_on_cuda)
{
    static const char *const precisions[] = {FP32, FP16};
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        const char *set[] = {precisions[i], "build.costs=analytic",
                             "build.formats=fp32:nhwc, fp16:nhwc8"};
        struct planning p;
        cr_assert_eq(planning_load(&p, spill_text("net.ini", block), NULL, set, 3),
                     STRATA_OK, "%s", p.err.message);
        p.device = planning_cuda();
        p.device.math = STRATA_MATH_TENSOR_OP;
        const bool runs = planning_has_cuda(&p);
        if (runs) {
            cr_assert_eq(planning_make(&p, NULL), STRATA_OK, "%s", p.err.message);
            cr_expect(adds_inside(p.execution), "%s", precisions[i]);
            cr_expect_eq(count_copies(p.execution), 0, "%s", precisions[i]);
        }
        planning_close(&p);
        if (!runs)
            cr_skip_test("the plugins were built without CUDA");
    }
}
