/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverted residuals as one layer: which chains are one and how far, and that their
 * values are those without, whichever of the ways is planned.
 */
#include "tests/planner/fusion/chains.h"

TestSuite(fuse_inverted, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define HEAD CHAIN_HEAD
#define EXPAND CONVOLUTION("expand", 40, 1x1, "") ACT("expand6", "relu6")
#define DEPTHWISE CONVOLUTION("depthwise", 40, 3x3, "groups = 40\npad = 1\n")
#define PROJECT CONVOLUTION("project", 12, 1x1, "")
#define SUM "[layer sum]\ntype = ElementWise\nop = sum\ninputs = project, x\n"
#define BLOCK EXPAND DEPTHWISE ACT("depthwise6", "relu6") PROJECT

static const struct chain_case chains[] = {
    {"a block", HEAD("project") BLOCK, "expand", 5, 0},
    {"a block and its sum", HEAD("sum") BLOCK SUM, "expand", 5, 6},
    {"what is added on the left",
     HEAD("sum") BLOCK "[layer sum]\ntype = ElementWise\nop = sum\ninputs = x, project\n",
     "expand", 5, 6},
    {"an activation behind the sum", HEAD("relu") BLOCK SUM ACT("relu", "relu"), "expand",
     5, 7},
    {"an activation behind all", HEAD("relu") BLOCK ACT("relu", "relu"), "expand", 6, 0},
    {"a product",
     HEAD("y") BLOCK "[layer y]\ntype = ElementWise\nop = product\n"
                     "inputs = project, x\n",
     "expand", 5, 0},
    {"what is added comes later",
     HEAD("sum") BLOCK "[layer late]\ntype = Unary\nop = abs\ninputs = x\n"
                       "[layer sum]\ntype = ElementWise\nop = sum\n"
                       "inputs = project, late\n",
     "expand", 5, 0},
    {"nothing is expanded",
     HEAD("project")
         CONVOLUTION("depthwise", 12, 3x3, "groups = 12\npad = 1\nstride = 2\n")
             ACT("silu", "silu") PROJECT,
     "depthwise", 3, 0},
    {"nothing is projected",
     HEAD("y") EXPAND DEPTHWISE ACT("silu", "silu") "[layer y]\ntype = Unary\nop = abs\n",
     "expand", 4, 0},
    {"no activations",
     HEAD("project") CONVOLUTION("expand", 40, 1x1, "") DEPTHWISE PROJECT, "expand", 3,
     0},
    {"a window of 5",
     HEAD("project") EXPAND CONVOLUTION("depthwise", 40, 5x5, "groups = 40\npad = 2\n")
         PROJECT,
     "expand", 4, 0},
    {"another reader between",
     HEAD("project, y") BLOCK "[layer y]\ntype = Unary\nop = abs\ninputs = depthwise6\n",
     "expand", 4, 0},
    {"an output between", HEAD("project, depthwise6") BLOCK, "expand", 4, 0},
    {"groups of two",
     HEAD("project") EXPAND CONVOLUTION("depthwise", 40, 3x3, "groups = 20\npad = 1\n")
         PROJECT,
     "expand", 0, 0},
    {"a window that expands",
     HEAD("project") CONVOLUTION("expand", 40, 3x3, "pad = 1\n") DEPTHWISE PROJECT,
     "expand", 0, 0},
    {"strides that expand",
     HEAD("project") CONVOLUTION("expand", 40, 1x1, "stride = 2\n") DEPTHWISE PROJECT,
     "expand", 0, 0},
    {"an impl that is asked for",
     HEAD("project") CONVOLUTION("expand", 40, 1x1, "impl = c\n") DEPTHWISE PROJECT,
     "expand", 0, 0},
    {"a format that is asked for",
     HEAD("project") CONVOLUTION("expand", 40, 1x1, "format = fp32:nchw\n")
         DEPTHWISE PROJECT,
     "expand", 0, 0},
    {"one layer alone",
     HEAD("depthwise") CONVOLUTION("depthwise", 12, 3x3, "groups = 12\n"), "depthwise", 0,
     0},
};

Test(fuse_inverted, blocks_are_one_layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_chain(&chains[i], "core::InvertedResidual@1");
}

Test(fuse_inverted, values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_chain_values(&chains[i]);
}

/* What nothing would read is a mistake of the file. */
Test(fuse_inverted, a_bias_without_its_product_is_refused)
{
    static const char head[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[40],"
                               "\"data_offsets\":[0,160]}}";
    static const struct {
        const char *more, *error;
    } cases[] = {
        {"project = w\nprojected = 12\nexpand_bias = file:b\n",
         "a bias of the first product"},
        {"project_bias = file:b\n", "a bias of the second product"},
    };
    char bytes[8 + sizeof head - 1 + 160] = {sizeof head - 1};
    memcpy(bytes + 8, head, sizeof head - 1);
    spill("bias.safetensors", bytes, sizeof bytes);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct session s;
        char text[512];
        snprintf(text, sizeof text,
                 "[network]\nformat = 1\noutputs = y\n[weights w]\nrandom = 3\n"
                 "[weights file]\nfile = bias.safetensors\n"
                 "[input x]\nshape = 1 x 40 x 6 x 6\n[layer y]\n"
                 "type = InvertedResidual\nkernel = 3\npad = 1\ndepthwise = w\n%s",
                 cases[i].more);
        cr_expect_eq(session_load(&s, spill_text("net.ini", text), NULL, NULL, 0),
                     STRATA_EINVAL);
        cr_expect(strstr(s.err.message, cases[i].error), "%s", s.err.message);
        release(&s);
    }
}
