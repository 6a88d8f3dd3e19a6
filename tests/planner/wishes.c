/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user binds, where it can be had: integers before float layers, formats of
 * tensors that cannot have them.
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
    static const char *const formats[] = {"u8:nchw",     "u8:nhwc",        "int8:nchw",
                                          "int8:nhwc",   "int8:nc/4hw4",
                                          "int8:nc/32hw32", "i32:nchw"};
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
