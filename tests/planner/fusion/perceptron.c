/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of small products as one Perceptron: which are one and how far, and that their
 * values are those without, whichever of the ways is planned.
 */
#include "tests/planner/fusion/fusing.h"

TestSuite(fuse_perceptron, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define HEAD(out, shape)                                                                 \
    "[network]\nformat = 1\noutputs = " out "\n[weights w]\nrandom = 3\n"                \
    "[input x]\nshape = " shape "\n"
#define IMAGE(out) HEAD(out, "2 x 24 x 5 x 7")
#define ROWS(out) HEAD(out, "3 x 40")
#define SELF "[layer self]\ntype = Activation\nkind = tanh\n"
#define POOL(more) "[layer pool]\ntype = Pooling\nkind = average\nglobal = yes\n" more
#define ONE(name, n, more)                                                               \
    "[layer " name "]\ntype = Convolution\nfilters = " #n                                \
    "\nkernel = 1x1\nweight = w\nbias = w\n" more
#define FULL(name, n, more)                                                              \
    "[layer " name "]\ntype = FullyConnected\nunits = " #n "\nweight = w\n" more
#define TIMES(name, n, more)                                                             \
    "[layer " name "]\ntype = MatrixMultiply\nunits = " #n "\nb = w\nbias = w\n" more
#define ACT(name, f) "[layer " name "]\ntype = Activation\nkind = " f "\n"
#define SOFTMAX(more) "[layer prob]\ntype = Softmax\n" more
#define EXCITE(with)                                                                     \
    "[layer scaled]\ntype = ElementWise\nop = product\ninputs = self, " with "\n"
#define SQUEEZE                                                                          \
    SELF POOL("") ONE("a", 6, "") ACT("silu", "silu") ONE("b", 24, "")                   \
        ACT("gate", "sigmoid")

/* layer: where the group begins; members: of it, and of the longer one. */
static const struct {
    const char *name, *ini, *layer;
    int members, longer;
} chains[] = {
    {"squeeze-and-excite", IMAGE("scaled") SQUEEZE EXCITE("gate"), "pool", 5, 6},
    {"factors on the left",
     IMAGE("scaled") SQUEEZE
     "[layer scaled]\ntype = ElementWise\nop = product\ninputs = gate, self\n",
     "pool", 5, 6},
    {"what scales goes on", IMAGE("out") SQUEEZE EXCITE("gate") ACT("out", "relu"),
     "pool", 5, 0},
    {"another tensor is scaled",
     IMAGE("scaled") SQUEEZE
     "[layer scaled]\ntype = ElementWise\nop = product\ninputs = x, gate\n",
     "pool", 5, 0},
    {"factors are added",
     IMAGE("scaled") SQUEEZE
     "[layer scaled]\ntype = ElementWise\nop = sum\ninputs = self, gate\n",
     "pool", 5, 0},
    {"factors are an output", IMAGE("scaled, gate") SQUEEZE EXCITE("gate"), "pool", 5, 0},
    {"a head", IMAGE("prob") POOL("") FULL("fc", 10, "") SOFTMAX("axis = 1\n"), "pool", 2,
     3},
    {"a head of a convolution",
     IMAGE("prob") POOL("") ONE("fc", 10, "") SOFTMAX("axis = 1\n"), "pool", 2, 3},
    {"a head without a Softmax", IMAGE("fc") POOL("") FULL("fc", 10, "bias = w\n"),
     "pool", 2, 0},
    {"a flattened head",
     IMAGE("prob") POOL("") "[layer flat]\ntype = Shuffle\nshape = 0, -1\n" FULL(
         "fc", 10, "transposed = yes\n") SOFTMAX(""),
     "pool", 3, 4},
    {"a Reduce",
     IMAGE("prob") "[layer mean]\ntype = Reduce\nop = mean\naxes = 2, 3\n"
                   "keep_dims = yes\n" FULL("fc", 10, "") SOFTMAX("axis = 1\n"),
     "mean", 1, 3},
    {"a Softmax of something else",
     IMAGE("prob") POOL("") FULL("fc", 10, "") SOFTMAX("axis = 0\n"), "pool", 2, 0},
    {"rows",
     ROWS("c") TIMES("a", 20, "") ACT("f", "relu") TIMES("b", 12,
                                                         "transpose_b = "
                                                         "yes\n") ACT("g", "gelu")
         FULL("c", 5, ""),
     "a", 5, 0},
    {"rows and their softmax", ROWS("prob") FULL("a", 20, "") SOFTMAX(""), "a", 2, 0},
    {"four products",
     ROWS("d") FULL("a", 9, "") FULL("b", 8, "") FULL("c", 7, "") FULL("d", 6, ""), "a",
     3, 0},
    {"one product", ROWS("f") FULL("a", 20, "") ACT("f", "relu"), "a", 0, 0},
    {"another reader of the means",
     IMAGE("fc, other") POOL("") FULL("fc", 10, "") "[layer other]\ntype = Unary\n"
                                                    "op = abs\ninputs = pool\n",
     "pool", 0, 0},
    {"an output between", IMAGE("pool, fc") POOL("") FULL("fc", 10, ""), "pool", 0, 0},
    {"a maximum",
     IMAGE("fc") "[layer pool]\ntype = Pooling\nkind = max\nglobal = yes\n" FULL("fc", 10,
                                                                                 ""),
     "pool", 0, 0},
    {"an impl that is asked for", IMAGE("fc") POOL("impl = c\n") FULL("fc", 10, ""),
     "pool", 0, 0},
    {"a format that is asked for",
     IMAGE("fc") POOL("format = fp32:nchw\n") FULL("fc", 10, ""), "pool", 0, 0},
    {"many rows", HEAD("b", "64 x 40") FULL("a", 8, "") FULL("b", 6, ""), "a", 0, 0},
    {"large weights", HEAD("b", "1 x 2048") FULL("a", 2041, "") FULL("b", 6, ""), "a", 2,
     0},
    {"larger weights", HEAD("b", "1 x 2048") FULL("a", 2048, "") FULL("b", 6, ""), "a", 0,
     0},
};

static const struct planner_node *node_of(const struct planning *s, const char *layer)
{
    size_t l = 0;
    while (strcmp(s->network->layers[l].name, layer) != 0)
        l++;
    return &s->planner->nodes[l];
}

static bool is_perceptron(const struct planning *s, const struct planner_group *g)
{
    return g && g->node.layer->type == s->network->perceptron;
}

Test(fuse_perceptron, chains_are_one_layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
        struct planning s;
        cr_assert_eq(plan(&s, chains[i].ini, NULL, 0), STRATA_OK, "%s: %s",
                     chains[i].name, s.err.message);
        const struct planner_node *n = node_of(&s, chains[i].layer);
        const bool any = is_perceptron(&s, n->group) || is_perceptron(&s, n->longer);
        cr_expect_eq(any ? n->group->members : 0, chains[i].members, "%s: %d",
                     chains[i].name, n->group ? n->group->members : 0);
        cr_expect_eq(any && n->longer ? n->longer->members : 0, chains[i].longer,
                     "%s: %d", chains[i].name, n->longer ? n->longer->members : 0);
        planning_close(&s);
    }
}

Test(fuse_perceptron, values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
        if (chains[i].members == 0)
            continue;
        expect_same_values(chains[i].name, chains[i].ini, FP32, FP16, 1e-2);
        expect_same_values(chains[i].name, chains[i].ini, FP32, FP32, 1e-5);
    }
}
