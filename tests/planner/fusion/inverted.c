/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverted residuals as one layer: which chains are one and how far, and that their
 * values are those without, whichever of the ways is planned.
 */
#include "tests/planner/fusing.h"

TestSuite(fuse_inverted, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define HEAD(out)                                                                        \
    "[network]\nformat = 1\noutputs = " out "\n[weights w]\nrandom = 3\n"                \
    "[input image]\nshape = 2 x 12 x 9 x 7\n"                                            \
    "[layer x]\ntype = Activation\nkind = tanh\n"
#define CONVOLUTION(name, n, size, more)                                                 \
    "[layer " name "]\ntype = Convolution\nfilters = " #n "\nkernel = " #size            \
    "\nweight = w\nbias = w\n" more
#define EXPAND CONVOLUTION("expand", 40, 1x1, "") ACT("expand6", "relu6")
#define DEPTHWISE CONVOLUTION("depthwise", 40, 3x3, "groups = 40\npad = 1\n")
#define PROJECT CONVOLUTION("project", 12, 1x1, "")
#define SUM "[layer sum]\ntype = ElementWise\nop = sum\ninputs = project, x\n"
#define ACT(name, f) "[layer " name "]\ntype = Activation\nkind = " f "\n"
#define BLOCK EXPAND DEPTHWISE ACT("depthwise6", "relu6") PROJECT

/* layer: where the group begins; members: of it, and of the longer one. */
static const struct {
    const char *name, *ini, *layer;
    int members, longer;
} chains[] = {
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

static const struct planner_node *node_of(const struct planning *s, const char *layer)
{
    size_t l = 0;
    while (strcmp(s->network->layers[l].name, layer) != 0)
        l++;
    return &s->planner->nodes[l];
}

static int members_of(const struct planning *s, const struct planner_group *g)
{
    return g && g->node.layer->type == s->network->inverted_residual ? g->members : 0;
}

Test(fuse_inverted, blocks_are_one_layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
        struct planning s;
        cr_assert_eq(plan(&s, chains[i].ini, NULL, 0), STRATA_OK, "%s: %s",
                     chains[i].name, s.err.message);
        const struct planner_node *n = node_of(&s, chains[i].layer);
        cr_expect_eq(members_of(&s, n->group), chains[i].members, "%s: %d",
                     chains[i].name, members_of(&s, n->group));
        cr_expect_eq(members_of(&s, n->longer), chains[i].longer, "%s: %d",
                     chains[i].name, members_of(&s, n->longer));
        planning_close(&s);
    }
}

Test(fuse_inverted, values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
        if (chains[i].members == 0)
            continue;
        expect_same_values(chains[i].name, chains[i].ini, FP32, FP16, 1e-2);
        expect_same_values(chains[i].name, chains[i].ini, FP32, FP32, 1e-5);
    }
}
