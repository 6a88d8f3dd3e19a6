/* SPDX-License-Identifier: Apache-2.0
 *
 * Which Quantize and Dequantize are a pair that may be left out, and which regions they
 * make.
 */
#include "network/pairs/pairs.h"

#include <criterion/criterion.h>

#include "io/weights/npy.h"
#include "tests/planner/planning.h"

TestSuite(pairs, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define QUANTIZE(name, from, dtype, more)                                                \
    "[layer " name "]\ntype = Quantize\ninputs = " from "\ndtype = " dtype               \
    "\nscale = a\n" more
#define BACK(name, from, more)                                                           \
    "[layer " name "]\ntype = Dequantize\ninputs = " from "\n" more
#define DEQUANTIZE(name, from, more) BACK(name, from, "scale = a\n" more)
#define PAIR(from)                                                                       \
    QUANTIZE(from ".q", from, "int8", "") DEQUANTIZE(from ".d", from ".q", "")
#define CONVOLUTION(name, from)                                                          \
    "[layer " name "]\ntype = Convolution\nfilters = 8\nkernel = 1\nweight = w\n"        \
    "inputs = " from "\n"
#define ACT(name, from, kind)                                                            \
    "[layer " name "]\ntype = Activation\nkind = " kind "\ninputs = " from "\n"
#define SUM(name, of) "[layer " name "]\ntype = ElementWise\nop = sum\ninputs = " of "\n"

/* regions: their names, behind each other; outputs: of the network. */
static const struct {
    const char *what, *outputs, *layers, *regions;
    size_t n;
} cases[] = {
    {"a pair before each layer of a chain", "b",
     ACT("r", "x", "relu") PAIR("r") CONVOLUTION("a", "r.d") PAIR("a")
         CONVOLUTION("b", "a.d"),
     "a b ", 2},
    {"a block with its shortcut, and what follows", "end",
     ACT("r", "x", "relu") PAIR("r") CONVOLUTION("a", "r.d") PAIR("a")
         CONVOLUTION("b", "a.d") SUM("s", "b, r.d") PAIR("s") CONVOLUTION("end", "s.d"),
     "a..s end ", 3},
    {"a block that reads floats in its middle is one of the block before", "end",
     CONVOLUTION("a", "x") PAIR("a") CONVOLUTION("b", "a.d") ACT("c", "b", "tanh")
         CONVOLUTION("d", "c") PAIR("d") CONVOLUTION("end", "d.d"),
     "b..d end ", 2},
    {"an input of the network", "a", PAIR("x") CONVOLUTION("a", "x.d"), "a ", 1},
    {"two Dequantizes of one", "s",
     PAIR("x") DEQUANTIZE("other", "x.q", "") CONVOLUTION("a", "x.d")
         CONVOLUTION("b", "other") SUM("s", "a, b"),
     "a..s ", 1},
    {"integers that are an output", "a, x.q", PAIR("x") CONVOLUTION("a", "x.d"), "", 0},
    {"floats that are an output", "x.d", PAIR("x"), "", 0},
    {"integers that somebody else reads", "a, c",
     PAIR("x") CONVOLUTION("a", "x.d") "[layer c]\ntype = Cast\nto = fp32\n"
                                       "inputs = x.q\n",
     "", 0},
    {"another scale", "a",
     QUANTIZE("x.q", "x", "int8", "") BACK("x.d", "x.q", "scale = b\n")
         CONVOLUTION("a", "x.d"),
     "", 0},
    {"another zero", "a",
     QUANTIZE("x.q", "x", "u8", "zero = b\n") DEQUANTIZE("x.d", "x.q", "")
         CONVOLUTION("a", "x.d"),
     "", 0},
    {"a format that is asked for", "a",
     QUANTIZE("x.q", "x", "int8", "format = int8:nhwc\n") DEQUANTIZE("x.d", "x.q", "")
         CONVOLUTION("a", "x.d"),
     "", 0},
    {"an impl that is asked for", "a",
     QUANTIZE("x.q", "x", "int8", "impl = c\n") DEQUANTIZE("x.d", "x.q", "")
         CONVOLUTION("a", "x.d"),
     "", 0},
    {"integers from 0 on in place of a relu", "b",
     CONVOLUTION("a", "x") QUANTIZE("a.q", "a", "u8", "") DEQUANTIZE("a.d", "a.q", "")
         CONVOLUTION("b", "a.d"),
     "", 0},
    {"integers from 0 on behind a relu and maxima", "b",
     ACT("r", "x", "relu") "[layer p]\ntype = Pooling\nkernel = 2\ninputs = r\n" QUANTIZE(
         "p.q", "p", "u8", "") DEQUANTIZE("p.d", "p.q", "") CONVOLUTION("b", "p.d"),
     "b ", 1},
    {"the same between integers from 0 on", "b",
     CONVOLUTION("a", "x") QUANTIZE("a.q", "a", "u8", "") DEQUANTIZE(
         "a.d", "a.q",
         "") "[layer p]\ntype = Pooling\nkernel = 2\ninputs = a.d\n" QUANTIZE("p.q", "p",
                                                                              "u8", "")
         DEQUANTIZE("p.d", "p.q", "") CONVOLUTION("b", "p.d"),
     "b ", 1},
};

static void spill_scales(void)
{
    static const float a = 0.05F, b = 0.0625F;
    static const int64_t one[] = {1};
    cr_assert_eq(npy_write(in_scratch("a.npy"), STRATA_FP32, one, 1, &a, NULL),
                 STRATA_OK);
    cr_assert_eq(npy_write(in_scratch("b.npy"), STRATA_FP32, one, 1, &b, NULL),
                 STRATA_OK);
}

static void load(struct planning *p, size_t i)
{
    char text[8192];
    snprintf(text, sizeof text,
             "[network]\nformat = 1\noutputs = %s\n[weights w]\nrandom = 1\n"
             "[weights a]\nfile = a.npy\n[weights b]\nfile = b.npy\n"
             "[input x]\nshape = 1 x 8 x 6 x 6\n%s",
             cases[i].outputs, cases[i].layers);
    cr_assert_eq(planning_load(p, spill_text("case.ini", text), NULL, NULL, 0), STRATA_OK,
                 "%s: %s", cases[i].what, p->err.message);
}

Test(pairs, of_which_only_rounding_is_lost)
{
    spill_scales();
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning p;
        struct network_pairs pairs;
        char names[1024] = "";
        load(&p, i);
        cr_assert_eq(network_find_pairs(&pairs, p.network, &p.err), STRATA_OK);
        cr_expect_eq(pairs.n, cases[i].n, "%s: %zu pairs", cases[i].what, pairs.n);
        for (size_t r = 0; r < pairs.n_regions; r++) {
            char *name = network_region_name(p.network, &pairs.regions[r], NULL);
            strcat(strcat(names, name), " ");
            free(name);
        }
        cr_expect_str_eq(names, cases[i].regions, "%s: %s", cases[i].what, names);
        network_free_pairs(&pairs);
        planning_close(&p);
    }
}

static bool is_pairs_type(const struct network_layer *l)
{
    return strcmp(l->type->full_name, "core::Quantize@1") == 0 ||
           strcmp(l->type->full_name, "core::Dequantize@1") == 0;
}

/* Without any pair, whoever read one reads what was rounded; tensors stay who they are.
 */
Test(pairs, are_left_out_with_all_who_give_the_floats_back)
{
    spill_scales();
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning p;
        struct network_pairs pairs;
        strata_network *net;
        bool dropped[8];
        size_t left = 0;
        load(&p, i);
        cr_assert_eq(network_find_pairs(&pairs, p.network, &p.err), STRATA_OK);
        memset(dropped, true, sizeof dropped);
        cr_assert_eq(network_drop_pairs(&net, p.network, &pairs, dropped, &p.err),
                     STRATA_OK);
        cr_expect_eq(net->n_tensors, p.network->n_tensors);
        for (size_t l = 0; l < net->n_layers; l++) {
            const struct network_layer *layer = &net->layers[l];
            left += is_pairs_type(layer);
            cr_expect_eq(net->tensors[layer->outputs[0]].producer, (int)l);
            for (int k = 0; k < layer->n_inputs; k++)
                cr_expect(net->tensors[layer->inputs[k]].producer < (int)l &&
                              (net->tensors[layer->inputs[k]].producer >= 0 ||
                               layer->inputs[k] == net->inputs[0].tensor),
                          "%s: '%s' reads what nobody makes", cases[i].what, layer->name);
        }
        if (i < 5)
            cr_expect_eq(left, 0, "%s: %zu left", cases[i].what, left);
        strata_network_destroy(net);
        network_free_pairs(&pairs);
        planning_close(&p);
    }
}
