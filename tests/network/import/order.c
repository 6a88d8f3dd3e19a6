/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders of rows, against rows that are numbered and moved one by one.
 */
#include "network/import/pattern/order/order.h"

#include <string.h>

#include <criterion/criterion.h>

#include "network/import/pattern/pattern.h"

enum { CASES = 400, ROWS = 4096, COLUMNS = 3 };

struct turned {
    struct graph g;
    const struct node *t;
    int64_t dims[STRATA_MAX_RANK], perm[STRATA_MAX_RANK];
    int rank; /* of the rows' dims */
};

static unsigned draw(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

/* A Transpose of these dims and columns behind them. */
static void open_turned(struct turned *x)
{
    int64_t dims[STRATA_MAX_RANK], perm[STRATA_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    memcpy(perm, x->perm, sizeof perm);
    dims[x->rank] = COLUMNS;
    perm[x->rank] = x->rank;
    const int in = graph_add_value(&x->g, "x"), out = graph_add_value(&x->g, "y");
    x->g.values[in].rank = x->g.values[out].rank = x->rank + 1;
    for (int d = 0; d <= x->rank; d++) {
        x->g.values[in].dims[d] = dims[d];
        x->g.values[out].dims[d] = dims[perm[d]];
    }
    struct node *t = graph_add_node(&x->g, "Transpose", &in, 1, &out, 1);
    node_set_integers(&x->g, t, "perm", perm, (size_t)x->rank + 1);
    x->t = t;
}

/* Dims are of 1 to 4. */
static void draw_turned(struct turned *x, unsigned *seed)
{
    *x = (struct turned){.rank = 1 + (int)draw(seed, 5)};
    for (int d = 0; d < x->rank; d++) {
        const int at = (int)draw(seed, (unsigned)d + 1);
        x->dims[d] = 1 + draw(seed, 4);
        x->perm[d] = x->perm[at];
        x->perm[at] = d;
    }
    open_turned(x);
}

static int64_t count(const struct turned *x)
{
    int64_t n = 1;
    for (int d = 0; d < x->rank; d++)
        n *= x->dims[d];
    return n;
}

/* Where each row of the output comes from. */
static void walk(const struct turned *x, int64_t *from)
{
    for (int64_t row = 0; row < count(x); row++) {
        int64_t at[STRATA_MAX_RANK], left = row;
        for (int d = x->rank; d-- > 0; left /= x->dims[x->perm[d]])
            at[x->perm[d]] = left % x->dims[x->perm[d]];
        from[row] = 0;
        for (int d = 0; d < x->rank; d++)
            from[row] = from[row] * x->dims[d] + at[d];
    }
}

static int64_t row_of(const struct order *o, int64_t row)
{
    int64_t at = 0;
    for (int i = o->n; i-- > 0; row /= o->part[i].n)
        at += row % o->part[i].n * o->part[i].step;
    return at;
}

Test(order, of_a_transpose)
{
    static int64_t from[ROWS];
    unsigned seed = 5;
    for (int i = 0; i < CASES; i++) {
        struct turned x;
        struct order o;
        bool same = true;
        draw_turned(&x, &seed);
        cr_assert(order_of(&o, &x.g, x.t));
        walk(&x, from);
        for (int64_t row = 0; row < count(&x); row++) {
            cr_assert_eq(row_of(&o, row), from[row], "case %d, row %d", i, (int)row);
            same &= from[row] == row;
        }
        cr_expect_eq(order_is_same(&o), same, "case %d", i);
        arena_free(&x.g.arena);
    }
}

Test(order, leads_back)
{
    unsigned seed = 6;
    for (int i = 0; i < CASES; i++) {
        struct turned x;
        struct order o, none;
        draw_turned(&x, &seed);
        cr_assert(order_of(&o, &x.g, x.t));
        const struct order back = order_back(&o);
        for (int64_t row = 0; row < count(&x); row++)
            cr_assert_eq(row_of(&back, row_of(&o, row)), row, "case %d", i);
        cr_assert(order_join(&none, &o, &back));
        cr_expect(order_is_same(&none), "case %d: %d parts", i, none.n);
        arena_free(&x.g.arena);
    }
}

/* A Transpose of other dims of as many rows behind the first: what it makes of that is
 * one order, or refused; of the same dims it is never refused. */
Test(order, of_one_behind_another)
{
    unsigned seed = 7;
    int joined = 0;
    for (int i = 0; i < CASES; i++) {
        struct turned a, b;
        struct order x, y, both;
        draw_turned(&a, &seed);
        b = (struct turned){.rank = a.rank};
        for (int d = 0; d < a.rank; d++) {
            const int at = (int)draw(&seed, (unsigned)d + 1);
            b.dims[d] = i % 2 ? a.dims[d] : a.dims[a.perm[d]];
            b.perm[d] = b.perm[at];
            b.perm[at] = d;
        }
        open_turned(&b);
        cr_assert(order_of(&x, &a.g, a.t) && order_of(&y, &b.g, b.t));
        const bool fits = order_join(&both, &y, &x);
        cr_expect(fits || i % 2, "case %d", i);
        for (int64_t row = 0; fits && row < count(&a); row++)
            cr_assert_eq(row_of(&both, row), row_of(&x, row_of(&y, row)), "case %d", i);
        joined += fits && i % 2;
        arena_free(&a.g.arena);
        arena_free(&b.g.arena);
    }
    cr_expect_gt(joined, CASES / 8);
}

Test(order, is_spread_by_a_transpose)
{
    static int64_t from[ROWS];
    unsigned seed = 8;
    for (int i = 0; i < CASES; i++) {
        struct turned x, again = {.rank = 0};
        struct order o;
        draw_turned(&x, &seed);
        cr_assert(order_of(&o, &x.g, x.t));
        again.rank = o.n;
        order_spread(&o, again.dims, again.perm);
        walk(&again, from);
        cr_assert_eq(count(&again), count(&x));
        for (int64_t row = 0; row < count(&x); row++)
            cr_assert_eq(from[row], row_of(&o, row), "case %d", i);
        arena_free(&x.g.arena);
    }
}

/* What moves the last dim has no rows to speak of. */
Test(order, of_rows_alone)
{
    static const int64_t moves[] = {0, 2, 1};
    struct turned x = {.rank = 2, .dims = {2, 4}, .perm = {1, 0}};
    struct order o;
    open_turned(&x);
    cr_expect(order_of(&o, &x.g, x.t));
    node_set_integers(&x.g, (struct node *)x.t, "perm", moves, 3);
    cr_expect_not(order_of(&o, &x.g, x.t));
    node_remove((struct node *)x.t, "perm");
    cr_expect_not(order_of(&o, &x.g, x.t));
    arena_free(&x.g.arena);
}
