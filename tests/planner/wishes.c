/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user binds, where it can be had: integers before float layers, formats of
 * tensors that cannot have them, those of inputs and outputs beside the precision.
 */
#include "tests/planner/planning.h"

TestSuite(wishes, .init = scratch_make, .fini = scratch_remove, .timeout = 120);

static void open_text(struct planning *p, const char *text)
{
    cr_assert_eq(planning_open(p, spill_text("net.ini", text), NULL, 0), STRATA_OK, "%s",
                 p->err.message);
}

/* The format that step `step` reads or writes. */
static const char *format_of(const struct planning *p, size_t step, bool output)
{
    const struct execution *x = p->execution;
    const struct execution_step *s = &x->steps[step];
    int value = s->kind != STEP_RUN ? output ? s->to : s->from
                : output            ? x->nodes[s->node].out_values[0]
                                    : x->nodes[s->node].in_values[0];
    return format_mask_name(UINT64_C(1) << x->values[value].format, 4);
}

Test(wishes, every_integer_format_is_converted_for_a_float_layer)
{
    static const char *const formats[] = {"u8:nchw",   "u8:nhwc",      "int8:nchw",
                                          "int8:nhwc", "int8:nc/4hw4", "int8:nc/32hw32",
                                          "i32:nchw"};
    static const char *const precisions[] = {"fp32", "fp16", "any"};
    for (size_t i = 0; i < ARRAY_LENGTH(formats) * ARRAY_LENGTH(precisions); i++) {
        struct planning p;
        char text[400];
        const char *format = formats[i / ARRAY_LENGTH(precisions)];
        snprintf(text, sizeof text,
                 "[network]\nformat = 1\noutputs = y\n[build]\nprecision = %s\n"
                 "[input x]\nshape = 1 x 4 x 8 x 8\nformat = %s\n"
                 "[layer y]\ntype = Activation\nkind = sigmoid\n",
                 precisions[i % ARRAY_LENGTH(precisions)], format);
        open_text(&p, text);
        cr_expect_eq(p.execution->steps[0].kind, STEP_REFORMAT);
        cr_expect_str_eq(format_of(&p, 0, false), format);
        planning_close(&p);
    }
}

static const char flat_net[] =
    "[network]\nformat = 1\noutputs = y\n[build]\nformats = fp16:nhwc8\n"
    "precision = fp16\n[input x]\nshape = 1 x 4 x 8 x 8\n"
    "[layer a]\ntype = Activation\nkind = relu\n"
    "[layer f]\ntype = Shuffle\nshape = 256\n"
    "[layer y]\ntype = Activation\nkind = sigmoid\n";

Test(wishes, formats_hold_where_a_tensor_can_have_one)
{
    struct planning p;
    open_text(&p, flat_net);
    const struct network_layer *layers = p.network->layers;
    cr_expect(planner_wish_holds(p.network, &layers[0]));
    cr_expect_not(planner_wish_holds(p.network, &layers[1]), "its output is of rank 1");
    cr_expect_not(planner_wish_holds(p.network, &layers[2]));
    for (size_t i = 0; i < p.execution->n_steps; i++) {
        const struct execution_step *s = &p.execution->steps[i];
        if (s->kind == STEP_RUN && p.execution->nodes[s->node].layer == layers)
            cr_expect_str_eq(format_of(&p, i, true), "fp16:nhwc8");
    }
    planning_close(&p);
}

Test(wishes, a_refusal_names_formats_that_the_tensor_can_have)
{
    struct planning p;
    const char *set = "build.precision=fp32";
    int status = planning_open(&p, spill_text("net.ini", flat_net), &set, 1);
    cr_expect_eq(status, STRATA_EPLAN);
    cr_expect_not_null(strstr(p.err.message, "formats = fp16:nhwc8"), "%s",
                       p.err.message);
    planning_close(&p);
}

/* ---- inputs and outputs, on CUDA ------------------------------------------------------
 */

#define IMAGE(out)                                                                       \
    "[network]\nformat = 1\noutputs = " out "\n[weights w]\nrandom = 3\n"                \
    "[input x]\nshape = 8 x 3 x 64 x 64\n"                                               \
    "[build]\nprecision = fp16\nmath = tensor_op\ncosts = analytic\n"
#define CONVOLUTION                                                                      \
    "[layer conv]\ntype = Convolution\nfilters = 64\nkernel = 7\nstride = 2\npad = 3\n"  \
    "weight = w\n"
#define RELU "[layer relu]\ntype = Activation\nkind = relu\n"
#define LAST                                                                             \
    "[layer pool]\ntype = Pooling\nkind = average\nglobal = yes\n"                       \
    "[layer prob]\ntype = Softmax\n"

/* Formats that the first layer reads and the last one writes, and the reformats. */
static const struct end_case {
    const char *name, *ini, *first, *last;
    size_t reformats;
} ends[] = {
    {"a first layer that reads FP32, a last one that writes it",
     IMAGE("prob") CONVOLUTION LAST, "fp32:nchw", "fp32:nchw", 0},
    {"no impl of the last one writes FP32", IMAGE("relu") CONVOLUTION RELU, "fp32:nchw",
     "fp16:nhwc8", 1},
    {"no impl of the first one reads it", IMAGE("prob") RELU LAST, "fp16:nchw",
     "fp32:nchw", 1},
    {"one layer alone computes in what precision says",
     IMAGE("prob") "[layer prob]\ntype = Softmax\naxis = -1\n", "fp16:nchw", "fp16:nchw",
     2},
    {"formats bind ends, too",
     IMAGE("prob") "formats = fp16:nchw, fp16:nhwc8\n" CONVOLUTION LAST, "fp16:nchw",
     "fp16:nchw", 2},
};

Test(wishes, ends_of_a_network_keep_the_formats_that_they_are_bound_in)
{
    for (size_t i = 0; i < ARRAY_LENGTH(ends); i++) {
        struct planning p;
        size_t reformats = 0;
        cr_assert_eq(planning_load(&p, spill_text("net.ini", ends[i].ini), NULL, NULL, 0),
                     STRATA_OK, "%s", p.err.message);
        p.device = planning_cuda();
        if (!planning_has_cuda(&p)) {
            planning_close(&p);
            cr_skip_test("the plugins were built without CUDA");
        }
        cr_assert_eq(planning_make(&p, NULL), STRATA_OK, "%s", p.err.message);
        const struct execution *x = p.execution;
        const struct execution_node *last = &x->nodes[x->n_nodes - 1];
        const int in = x->values[x->nodes[0].in_values[0]].format;
        const int out = x->values[last->out_values[0]].format;
        for (size_t k = 0; k < x->n_steps; k++)
            reformats += x->steps[k].kind == STEP_REFORMAT;
        cr_expect_str_eq(format_mask_name(UINT64_C(1) << in, 4), ends[i].first, "%s",
                         ends[i].name);
        cr_expect_str_eq(format_mask_name(UINT64_C(1) << out, 4), ends[i].last, "%s",
                         ends[i].name);
        cr_expect_eq(reformats, ends[i].reformats, "%s", ends[i].name);
        planning_close(&p);
    }
}
