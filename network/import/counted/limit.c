/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes that nobody reads. A NonMaxSuppression of one class has its boxes in falling
 * order of scores, so where only the first 300 of them are read, 300 is its most: the
 * boxes behind are not compared with all that were kept.
 */
#include "network/import/counted/counted.h"

#include <string.h>

/* The end of a Slice that begins with the first row, along an axis; INT64_MAX: it is
 * none. */
static int64_t end_of(const struct import *im, const struct node *n, int axis, int rank)
{
    const struct value *starts = upgrade_input(im, n, 1), *ends = upgrade_input(im, n, 2),
                       *axes = upgrade_input(im, n, 3), *steps = upgrade_input(im, n, 4);
    if (!starts || !ends || !starts->constant || !ends->constant ||
        (axes && !axes->constant) || (steps && !steps->constant))
        return INT64_MAX;
    for (int64_t i = 0; i < value_count(ends); i++) {
        const int64_t a = axes ? value_integer(axes, i) : i;
        if ((a < 0 ? a + rank : a) == axis && value_integer(starts, i) == 0 &&
            value_integer(ends, i) > 0 && (!steps || value_integer(steps, i) == 1))
            return value_integer(ends, i);
    }
    return INT64_MAX;
}

/* Operators that hand on the rows of their first input one by one. */
static bool hands_on(const struct import *im, const struct node *n, int axis, int rank)
{
    const int64_t chosen = node_integer(n, "axis", 0);
    if (strcmp(n->op, "Gather") == 0 && (chosen < 0 ? chosen + rank : chosen) == axis)
        return false;
    static const char *const ops[] = {"Gather",    "Squeeze",  "Unsqueeze",
                                      "Transpose", "Identity", "Cast"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(n->op, ops[i]) == 0)
            return n->n_out == 1 && counted_axis(im, n->out[0]) >= 0;
    return false;
}

/* How many rows of a value are read, at most. `cut`: it has so many from now on, and so
 * has what they are handed on to; 0: it stays. */
static int64_t rows_read(struct import *im, int value, int64_t cut)
{
    struct graph *g = &im->g;
    const int axis = counted_axis(im, value), rank = g->values[value].rank;
    int64_t most = 0;
    if (cut)
        g->values[value].dims[axis] = cut;
    if (counted_of(im, value)->told)
        return INT64_MAX;
    for (size_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == value)
            return INT64_MAX;
    for (size_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++) {
            const struct node *n = g->nodes[i];
            if (n->in[k] != value)
                continue;
            const int64_t read = k > 0                         ? INT64_MAX
                                 : strcmp(n->op, "Slice") == 0 ? end_of(im, n, axis, rank)
                                 : hands_on(im, n, axis, rank)
                                     ? rows_read(im, n->out[0], cut)
                                     : INT64_MAX;
            most = read > most ? read : most;
        }
    return most;
}

void counted_limit(struct import *im)
{
    struct graph *g = &im->g;
    const size_t nodes = g->n_nodes;
    for (size_t i = 0; i < nodes; i++) {
        struct node *n = g->nodes[i];
        const struct value *scores = upgrade_input(im, n, 1);
        if (strcmp(n->op, "NonMaxSuppression") != 0 || *n->domain || n->n_out < 2 ||
            g->values[n->out[0]].constant || counted_axis(im, n->out[0]) != 0 ||
            scores->dims[0] * scores->dims[1] != 1)
            continue;
        const int64_t read = rows_read(im, n->out[0], 0);
        if (read < 1 || read >= g->values[n->out[0]].dims[0])
            continue;
        rows_read(im, n->out[0], read);
        node_set_input(g, n, 2, graph_add_integers(g, 1, &read, 1));
    }
}
