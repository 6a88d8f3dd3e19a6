/* SPDX-License-Identifier: Apache-2.0
 *
 * What a window takes with it: pads before it, and an addend to each channel behind it.
 */
#include <string.h>

#include "core/alloc.h"
#include "network/import/pattern/pattern.h"

/* Whether a constant, stretched to a value, has one number a channel, or one for all. */
static bool is_of_channels(const struct value *c, const struct value *y)
{
    const int64_t count = value_count(c);
    if (count == 1)
        return c->rank <= y->rank;
    for (int d = 0; d < c->rank; d++)
        if (c->dims[d] != (y->rank - c->rank + d == 1 ? y->dims[1] : 1))
            return false;
    return y->rank > 2 && c->rank >= y->rank - 1 && c->rank <= y->rank;
}

static bool adds_to_channels(const struct match *m)
{
    return is_of_channels(match_tensor(m, "B"), match_tensor(m, "c"));
}

static struct node *emit_bias(struct match *m)
{
    const struct value *y = match_tensor(m, "c");
    const int64_t channels = y->dims[1];
    const int bias = match_constant(m, "B", 1, &channels, 1);
    struct node *n = bias >= 0 ? match_again(m, "c") : NULL;
    node_set_input(match_graph(m), n, 2, bias);
    return n;
}

/* ---- pads ----------------------------------------------------------------------------
 */

/* What a Pad of zeros adds to spatial dims, as `pads` says it: begins, then ends. */
static bool read_pads(const struct match *m, int64_t *pads)
{
    const struct graph *g = match_graph((struct match *)m);
    const struct node *p = match_node(m, "p");
    const struct value *x = match_tensor(m, "x"), *list = match_tensor(m, "P");
    const struct value *fill = p->n_in > 2 ? graph_value(g, p->in[2]) : NULL;
    const bool axes = p->n_in > 3 && p->in[3] >= 0;
    const int rank = x->rank, space = rank - 2;
    if (strcmp(node_text(p, "mode", "constant"), "constant") != 0 || axes || rank < 3 ||
        value_count(list) != 2 * rank || (fill && value_real(fill, 0) != 0))
        return false;
    for (int side = 0; side < 2; side++)
        for (int d = 0; d < rank; d++) {
            const int64_t v = value_integer(list, side * rank + d);
            if (v < 0 || (d < 2 && v > 0))
                return false;
            if (d >= 2)
                pads[side * space + d - 2] = v;
        }
    return true;
}

/* The window's own pads; false: it chooses them itself. */
static bool own_pads(const struct match *m, int64_t *pads)
{
    const struct node *y = match_node(m, "y");
    const char *mode = node_text(y, "auto_pad", "NOTSET");
    memset(pads, 0, 2 * STRATA_MAX_RANK * sizeof *pads);
    if (strcmp(mode, "VALID") == 0)
        return true;
    return (strcmp(mode, "NOTSET") == 0 || !*mode) &&
           node_integers(y, "pads", pads, 2 * STRATA_MAX_RANK) <= 2 * STRATA_MAX_RANK;
}

static bool pads_add_up(const struct match *m)
{
    int64_t before[2 * STRATA_MAX_RANK], own[2 * STRATA_MAX_RANK];
    return read_pads(m, before) && own_pads(m, own);
}

/* A mean counts the zeros of a Pad; so it has to have no others. */
static bool pads_are_counted(const struct match *m)
{
    int64_t before[2 * STRATA_MAX_RANK], own[2 * STRATA_MAX_RANK];
    const struct node *y = match_node(m, "y");
    bool others = false;
    if (!read_pads(m, before) || !own_pads(m, own) || node_integer(y, "ceil_mode", 0))
        return false;
    for (int i = 0; i < 2 * STRATA_MAX_RANK; i++)
        others |= own[i] != 0;
    return !others || node_integer(y, "count_include_pad", 0);
}

static struct node *emit_padded(struct match *m)
{
    struct graph *g = match_graph(m);
    int64_t before[2 * STRATA_MAX_RANK], pads[2 * STRATA_MAX_RANK];
    struct node *n = match_again(m, "y");
    const int count = 2 * (match_tensor(m, "x")->rank - 2);
    if (!n || !read_pads(m, before) || !own_pads(m, pads))
        return NULL;
    for (int i = 0; i < count; i++)
        pads[i] += before[i];
    node_set_input(g, n, 0, match_value(m, "x"));
    node_remove(n, "auto_pad");
    node_set_integers(g, n, "pads", pads, (size_t)count);
    if (match_op(m, "y", "AveragePool"))
        node_set_integer(g, n, "count_include_pad", 1);
    return n;
}

static const struct pattern rows[] = {
    {.text = "c = Conv|ConvTranspose x W; y = Add c B",
     .check = adds_to_channels,
     .emit = emit_bias},
    {.text = "p = Pad x P ...; y = Conv p W ...",
     .check = pads_add_up,
     .emit = emit_padded},
    {.text = "p = Pad x P ...; y = AveragePool p",
     .check = pads_are_counted,
     .emit = emit_padded},
};

const struct pattern_table pattern_windows = {rows, ARRAY_LENGTH(rows)};
