/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic with one constant for all elements, or one a channel.
 */
#include <math.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "network/import/pattern/pattern.h"

/* Whether a constant has one number, or one for each channel of x. */
static bool is_of_channels(const struct value *c, const struct value *x)
{
    if (value_count(c) == 1)
        return c->rank <= x->rank;
    for (int d = 0; d < c->rank; d++)
        if (c->dims[d] != (x->rank - c->rank + d == 1 ? x->dims[1] : 1))
            return false;
    return c->rank >= x->rank - 1 && c->rank <= x->rank;
}

static bool takes(const struct match *m, const char *name)
{
    const struct value *x = match_tensor(m, "x"), *c = match_tensor(m, name);
    return x->rank >= 2 && dtype_is_free(x->dtype) && (!c || is_of_channels(c, x));
}

static bool is_scale(const struct match *m)
{
    return takes(m, "A") && takes(m, "B");
}

/* One number is an attribute of the layer, several are a weight. */
static void put(struct match *m, struct node *n, int port, const char *attribute,
                const char *name, double factor)
{
    const int64_t channels = match_tensor(m, "x")->dims[1];
    const double v = match_number(m, name) * factor;
    if (match_value(m, name) < 0)
        return;
    if (isfinite(v))
        node_set_real(match_graph(m), n, attribute, (float)v);
    else
        node_set_input(match_graph(m), n, port,
                       match_constant(m, name, 1, &channels, factor));
}

/* x / A as a factor of 1/A. */
static int inverse(struct match *m, const char *name)
{
    struct graph *g = match_graph(m);
    const struct value v = *match_tensor(m, name);
    const int64_t n = value_count(&v);
    float *to = arena_get(&g->arena, (size_t)n, sizeof *to);
    for (int64_t i = 0; to && i < n; i++)
        to[i] = (float)(1 / value_real(&v, i));
    return to ? graph_add_constant(g, v.name, STRATA_FP32, 1, &n, to) : VALUE_NONE;
}

static void divide(struct match *m, struct node *n)
{
    const double v = 1 / match_number(m, "A");
    if (isfinite(v))
        node_set_real(match_graph(m), n, "scale", (float)v);
    else
        node_set_input(match_graph(m), n, 1, inverse(m, "A"));
}

/* `f` multiplies or divides by A, `s` adds or subtracts B, `t` subtracts from B. */
static struct node *emit_scale(struct match *m)
{
    const int x = match_value(m, "x");
    struct node *n = match_own(m, "Scale", &x, 1);
    if (match_op(m, "f", "Div"))
        divide(m, n);
    else
        put(m, n, 1, "scale", "A", 1);
    put(m, n, 2, "shift", "B", match_op(m, "s", "Sub") ? -1 : 1);
    if (match_node(m, "t"))
        node_set_real(match_graph(m), n, "scale", -1);
    return n;
}

static const struct pattern rows[] = {
    {.text = "f = Mul|Div x A; s = Add|Sub f B", .check = is_scale, .emit = emit_scale},
    {.text = "f = Mul|Div x A", .check = is_scale, .emit = emit_scale},
    {.text = "s = Add|Sub x B", .check = is_scale, .emit = emit_scale},
    {.text = "t = Sub B x", .check = is_scale, .emit = emit_scale},
};

const struct pattern_table pattern_scales = {rows, ARRAY_LENGTH(rows)};
