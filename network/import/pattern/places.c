/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a table and what is added to each place of a text: embeddings of positions, of
 * a first segment. Of several sums one remains, rounded once.
 */
#include "core/alloc.h"
#include "formats/format.h"
#include "network/import/pattern/pattern.h"

/* Whether every matrix of n is the first one again. */
static bool is_repeated(const struct value *c, int64_t n)
{
    for (int64_t i = n; i < value_count(c); i++)
        if (value_real(c, i) != value_real(c, i % n))
            return false;
    return true;
}

/* Whether a constant has one matrix of places x columns at most, for all texts alike. */
static bool is_spread(const struct value *c, const struct value *x, int64_t columns)
{
    const int before = x->rank + 1 - c->rank; /* dims of the sum that it has not */
    int64_t n = 1;
    if (before < 0)
        return false;
    for (int d = 0; d < c->rank; d++) {
        const int64_t whole = d == c->rank - 1 ? columns : x->dims[before + d];
        if (c->dims[d] != 1 && c->dims[d] != whole)
            return false;
        n *= d < c->rank - 2 ? 1 : c->dims[d];
    }
    return is_repeated(c, n);
}

static bool is_whole(const struct value *c, int64_t places)
{
    return c->rank >= 2 && c->dims[c->rank - 2] == places;
}

/* One constant at least has a row for each place. Texts of any length have none: what
 * they add is cut from a table as they run. */
static bool is_places(const struct match *m)
{
    const struct value *table = match_tensor(m, "T"), *x = match_tensor(m, "x");
    const struct value *p = match_tensor(m, "P"), *q = match_tensor(m, "Q");
    const struct node *gather = match_node(m, "g");
    if (table->rank != 2 || x->rank == 0 || !dtype_is_free(table->dtype) ||
        (gather && node_integer(gather, "axis", 0) != 0) ||
        match_may_vary(m, "x", x->rank - 1))
        return false;
    const int64_t places = x->dims[x->rank - 1], columns = table->dims[1];
    return places > 1 && is_spread(p, x, columns) && (!q || is_spread(q, x, columns)) &&
           (is_whole(p, places) || (q && is_whole(q, places)));
}

/* Adds a constant to all places. */
static void add(double *to, const struct value *c, int64_t places, int64_t columns)
{
    const bool wide = c->rank > 0 && c->dims[c->rank - 1] > 1;
    const bool high = is_whole(c, places);
    const int64_t row = wide ? columns : 1;
    for (int64_t i = 0; i < places; i++)
        for (int64_t j = 0; j < columns; j++)
            to[i * columns + j] += value_real(c, (high ? i * row : 0) + (wide ? j : 0));
}

/* The constants' sum; VALUE_NONE: there is no memory. */
static int sum_of(struct match *m, const int64_t *dims)
{
    struct graph *g = match_graph(m);
    const char *const names[] = {"P", "Q"};
    const size_t n = (size_t)(dims[0] * dims[1]);
    double *sum = arena_get(&g->arena, n, sizeof *sum);
    float *to = arena_get(&g->arena, n, sizeof *to);
    if (!sum || !to)
        return VALUE_NONE;
    for (size_t i = 0; i < n; i++)
        sum[i] = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (match_value(m, names[i]) >= 0)
            add(sum, match_tensor(m, names[i]), dims[0], dims[1]);
    for (size_t i = 0; i < n; i++)
        to[i] = (float)sum[i];
    return graph_add_constant(g, match_tensor(m, "P")->name, STRATA_FP32, 2, dims, to);
}

static struct node *emit_places(struct match *m)
{
    const struct value *x = match_tensor(m, "x");
    const int64_t dims[] = {x->dims[x->rank - 1], match_tensor(m, "T")->dims[1]};
    const int in[] = {match_value(m, "T"), match_value(m, "x"), sum_of(m, dims)};
    return match_own(m, "Embedding", in, 3);
}

static const struct pattern rows[] = {
    {.text = "g = Gather T x; s = Add g P; t = Add s Q",
     .check = is_places,
     .emit = emit_places},
    {.text = "g = Gather T x; s = Add g P", .check = is_places, .emit = emit_places},
};

const struct pattern_table pattern_places = {rows, ARRAY_LENGTH(rows)};
