/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations as exporters spell them out.
 */
#include <math.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "network/import/pattern/pattern.h"

static struct node *emit_activation(struct match *m)
{
    const int x = match_value(m, "x");
    struct node *n = match_own(m, "Activation", &x, 1);
    node_set_text(match_graph(m), n, "kind", match_word(m));
    return n;
}

/* Activations are of these alone; Max of integers stays what it is. */
static bool is_float(const struct match *m)
{
    return dtype_is_free(match_tensor(m, "x")->dtype);
}

static bool has_factor(const struct match *m)
{
    return is_float(m) && isfinite(match_number(m, "B"));
}

static struct node *emit_swish(struct match *m)
{
    struct node *n = emit_activation(m);
    node_set_real(match_graph(m), n, "alpha", match_number(m, "B"));
    return n;
}

static struct node *emit_hard_sigmoid(struct match *m)
{
    struct node *n = emit_activation(m);
    node_set_real(match_graph(m), n, "alpha", 1.0 / 6);
    node_set_real(match_graph(m), n, "beta", 0.5);
    return n;
}

/* x·clip(x/6 + 1/2, 0, 1). */
static bool hard_sigmoid_is_of_six(const struct match *m)
{
    const struct node *h = match_node(m, "h");
    return is_float(m) && match_near(node_real(h, "alpha", 0.2), 1.0 / 6) &&
           match_near(node_real(h, "beta", 0.5), 0.5);
}

static bool clips_below(const struct match *m)
{
    return is_float(m) && match_number(m, "H") == HUGE_VAL;
}

/* What two operators say in either order as one Clip. */
static struct node *emit_clip(struct match *m)
{
    struct graph *g = match_graph(m);
    static const int64_t none[1] = {0};
    int in[3] = {match_value(m, "x"), match_value(m, "L"), match_value(m, "H")};
    const struct value *high = match_tensor(m, "H");
    if (in[1] < 0) {
        void *zero = arena_get(&g->arena, 1, sizeof(double));
        in[1] = zero ? graph_add_constant(g, "", high->dtype, 0, none, zero) : VALUE_NONE;
    }
    return match_add(m, "Clip", in, 3);
}

static bool bounds_are_numbers(const struct match *m)
{
    return !isnan(match_number(m, "H")) &&
           (match_value(m, "L") < 0 || match_number(m, "L") <= match_number(m, "H"));
}

#define BY_ROOT_2 "d = Div x 1.41421356237; "
#define BY_HALF_ROOT "d = Mul x 0.70710678119; "
#define CUBE_BY_POW "p = Pow x 3; c = Mul p 0.044715; "
#define CUBE_BY_MUL "q = Mul x x; p = Mul q x; c = Mul p 0.044715; "
#define CUBE_FROM_LEFT "k = Mul x 0.044715; q = Mul k x; c = Mul q x; "
#define TANH_OF "a = Add x c; g = Mul a 0.79788456080; t = Tanh g; s = Add t 1; "
#define TANH_OF_PRODUCT                                                                  \
    "k = Mul x 0.79788456080; c = Mul x 0.044715; q = Mul c x; a = Add q 1; "            \
    "g = Mul k a; t = Tanh g; s = Add t 1; "

#define KIND(text_, word_)                                                               \
    {                                                                                    \
        .text = text_, .check = is_float, .emit = emit_activation, .word = word_         \
    }
/* x·s/2, where s is what the text before calls so. */
#define HALVED(text_, word_)                                                             \
    KIND(text_ "m = Mul x s; y = Mul m 0.5", word_),                                     \
        KIND(text_ "h = Mul x 0.5; y = Mul h s", word_),                                 \
        KIND(text_ "c2 = Mul s 0.5; y = Mul x c2", word_)

/* Bounds in one operator, before others look for it. */
static const struct pattern bounds[] = {
    {.text = "r = Relu x; y = Min r H", .check = bounds_are_numbers, .emit = emit_clip},
    {.text = "a = Max x L; y = Min a H", .check = bounds_are_numbers, .emit = emit_clip},
    {.text = "a = Min x H; y = Max a L", .check = bounds_are_numbers, .emit = emit_clip},
};
const struct pattern_table pattern_bounds = {bounds, ARRAY_LENGTH(bounds)};

static const struct pattern activations[] = {
    HALVED(BY_ROOT_2 "e = Erf d; s = Add e 1; ", "gelu"),
    HALVED(BY_HALF_ROOT "e = Erf d; s = Add e 1; ", "gelu"),
    HALVED(CUBE_BY_POW TANH_OF, "gelu_tanh"),
    HALVED(CUBE_BY_MUL TANH_OF, "gelu_tanh"),
    HALVED(CUBE_FROM_LEFT TANH_OF, "gelu_tanh"),
    HALVED(TANH_OF_PRODUCT, "gelu_tanh"),
    KIND("e = Exp x; a = Add e 1; l = Log a; t = Tanh l; y = Mul x t", "mish"),
    KIND("p = Softplus x; t = Tanh p; y = Mul x t", "mish"),
    {.text = "b = Mul x B; s = Sigmoid b; y = Mul x s",
     .check = has_factor,
     .emit = emit_swish,
     .word = "swish"},
    KIND("s = Sigmoid x; y = Mul x s", "silu"),
    KIND("a = Add x 3; c = Clip a 0 6; m = Mul x c; y = Div m 6", "hard_swish"),
    KIND("a = Add x 3; c = Clip a 0 6; m = Mul x c; y = Mul m 0.16666667", "hard_swish"),
    KIND("a = Add x 3; c = Clip a 0 6; d = Div c 6; y = Mul x d", "hard_swish"),
    KIND("a = Add x 3; c = Clip a 0 6; d = Mul c 0.16666667; y = Mul x d", "hard_swish"),
    {.text = "h = HardSigmoid x; y = Mul x h",
     .check = hard_sigmoid_is_of_six,
     .emit = emit_activation,
     .word = "hard_swish"},
    {.text = "a = Add x 3; c = Clip a 0 6; y = Div c 6",
     .check = is_float,
     .emit = emit_hard_sigmoid,
     .word = "hard_sigmoid"},
    {.text = "a = Add x 3; c = Clip a 0 6; y = Mul c 0.16666667",
     .check = is_float,
     .emit = emit_hard_sigmoid,
     .word = "hard_sigmoid"},
    KIND("e = Exp x; a = Add e 1; y = Log a", "softplus"),
    KIND("y = Clip x 0 6", "relu6"),
    {.text = "y = Clip x 0 H",
     .check = clips_below,
     .emit = emit_activation,
     .word = "relu"},
    KIND("y = Clip x 0", "relu"),
    KIND("y = Max x 0", "relu"),
};
const struct pattern_table pattern_activations = {activations, ARRAY_LENGTH(activations)};
