/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalizations as exporters spell them out.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "network/import/pattern/pattern.h"

/* Whether a mean is over the last dims, kept as dims of 1; how many they are in *n. */
static bool is_over_last(const struct match *m, const char *mean, const char *axes,
                         int64_t *n)
{
    const struct value *x = match_tensor(m, "x"), *a = match_tensor(m, axes);
    bool listed[STRATA_MAX_RANK] = {false};
    *n = value_count(a);
    if (*n < 1 || *n > x->rank || !node_integer(match_node(m, mean), "keepdims", 1))
        return false;
    for (int64_t i = 0; i < *n; i++) {
        const int64_t axis = value_integer(a, i);
        if (axis < -x->rank || axis >= x->rank)
            return false;
        listed[axis < 0 ? axis + x->rank : axis] = true;
    }
    for (int64_t i = 0; i < *n; i++)
        if (!listed[x->rank - 1 - i])
            return false;
    return true;
}

static bool is_rms(const struct match *m)
{
    int64_t n;
    return is_over_last(m, "v", "C", &n) && isfinite(match_number(m, "E"));
}

static bool is_layer(const struct match *m)
{
    int64_t of_mean, of_square;
    return is_over_last(m, "m", "A", &of_mean) && is_over_last(m, "v", "C", &of_square) &&
           of_mean == of_square && isfinite(match_number(m, "E"));
}

/* G and B are the factor and the addend, where the text has them. */
static struct node *emit_rows(struct match *m)
{
    const int in[3] = {match_value(m, "x"), match_value(m, "G"), match_value(m, "B")};
    const int given = in[2] >= 0 ? 3 : in[1] >= 0 ? 2 : 1;
    struct node *n = match_add(m, match_word(m), in, given);
    const struct value *axes = match_tensor(m, "C");
    node_set_integer(match_graph(m), n, "axis", -value_count(axes));
    node_set_real(match_graph(m), n, "epsilon", match_number(m, "E"));
    return n;
}

/* x as [N, groups, ...], whose groups are normalized, and back. */
static bool is_group(const struct match *m)
{
    const struct value *x = match_tensor(m, "x"), *r = match_tensor(m, "r");
    return x->rank > 2 && r->rank == 3 && x->dims[0] == r->dims[0] && r->dims[1] > 0 &&
           x->dims[1] % r->dims[1] == 0;
}

static struct node *emit_group(struct match *m)
{
    const struct value *x = match_tensor(m, "x");
    const int64_t groups = match_tensor(m, "r")->dims[1], channels = x->dims[1];
    const double epsilon = node_real(match_node(m, "n"), "epsilon", 1e-5);
    const int in[3] = {match_value(m, "x"), match_constant(m, "G", 1, &channels, 1),
                       match_constant(m, "B", 1, &channels, 1)};
    if (in[1] < 0 || in[2] < 0)
        return NULL;
    struct node *n = match_add(m, "GroupNormalization", in, 3);
    node_set_integer(match_graph(m), n, "num_groups", groups);
    node_set_real(match_graph(m), n, "epsilon", epsilon);
    return n;
}

#define SQUARE_BY_POW(x) "p = Pow " x " 2; "
#define SQUARE_BY_MUL(x) "p = Mul " x " " x "; "
#define DEVIATION "v = ReduceMean p C; e = Add v E; s = Sqrt e; "
#define OVER_BY_DIV(x, y) y " = Div " x " s"
#define OVER_BY_MUL(x, y) "r = Reciprocal s; " y " = Mul " x " r"
#define OVER_BY_ONE(x, y) "r = Div 1 s; " y " = Mul " x " r"

#define ROW(text_, check_, op_)                                                          \
    {                                                                                    \
        .text = text_, .check = check_, .emit = emit_rows, .word = op_                   \
    }
#define LAYER_ENDS(text_, over_)                                                         \
    ROW(text_ over_("d", "n") "; w = Mul n G; y = Add w B", is_layer,                    \
        "LayerNormalization"),                                                           \
        ROW(text_ over_("d", "n") "; y = Mul n G", is_layer, "LayerNormalization"),      \
        ROW(text_ over_("d", "y"), is_layer, "LayerNormalization")
#define LAYER(square_)                                                                   \
    LAYER_ENDS("m = ReduceMean x A; d = Sub x m; " square_("d") DEVIATION, OVER_BY_DIV), \
        LAYER_ENDS("m = ReduceMean x A; d = Sub x m; " square_("d") DEVIATION,           \
                   OVER_BY_MUL),                                                         \
        LAYER_ENDS("m = ReduceMean x A; d = Sub x m; " square_("d") DEVIATION,           \
                   OVER_BY_ONE)
#define RMS_ENDS(text_, over_)                                                           \
    ROW(text_ over_("x", "n") "; y = Mul n G", is_rms, "RMSNormalization"),              \
        ROW(text_ over_("x", "y"), is_rms, "RMSNormalization")
#define RMS(square_)                                                                     \
    RMS_ENDS(square_("x") DEVIATION, OVER_BY_DIV),                                       \
        RMS_ENDS(square_("x") DEVIATION, OVER_BY_MUL),                                   \
        RMS_ENDS(square_("x") DEVIATION, OVER_BY_ONE)

static const struct pattern rows[] = {
    LAYER(SQUARE_BY_POW),
    LAYER(SQUARE_BY_MUL),
    RMS(SQUARE_BY_POW),
    RMS(SQUARE_BY_MUL),
    {.text = "r = Reshape x R; n = InstanceNormalization r 1 0; q = Reshape n S; "
             "w = Mul q G; y = Add w B",
     .check = is_group,
     .emit = emit_group},
};

const struct pattern_table pattern_normalizations = {rows, ARRAY_LENGTH(rows)};
