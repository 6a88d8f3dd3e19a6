/* SPDX-License-Identifier: Apache-2.0
 *
 * See order.h.
 */
#include "network/import/pattern/order/order.h"

#include <string.h>

#include "core/checked.h"

int64_t order_rows(const struct value *v)
{
    int64_t n = 0, all;
    if (!v || v->rank < 2 || !checked_product(v->dims, v->rank, &all) || all == 0)
        return 0;
    checked_product(v->dims, v->rank - 1, &n);
    return n;
}

/* One more part, outside of those that are there. The list is innermost first. */
static bool put(struct order *o, int64_t n, int64_t step)
{
    struct order_part *inner = o->n ? &o->part[o->n - 1] : NULL;
    if (n == 1)
        return true;
    if (inner && step == inner->n * inner->step) {
        inner->n *= n;
        return true;
    }
    if (o->n == ORDER_PARTS)
        return false;
    o->part[o->n++] = (struct order_part){n, step};
    return true;
}

static void reverse(struct order *o)
{
    for (int i = 0; i < o->n / 2; i++) {
        const struct order_part part = o->part[i];
        o->part[i] = o->part[o->n - 1 - i];
        o->part[o->n - 1 - i] = part;
    }
}

struct order order_same(int64_t rows)
{
    struct order o = {.n = 0};
    put(&o, rows, 1);
    return o;
}

bool order_is_same(const struct order *o)
{
    return o->n == 0 || (o->n == 1 && o->part[0].step == 1);
}

bool order_equal(const struct order *a, const struct order *b)
{
    return a->n == b->n && memcmp(a->part, b->part, (size_t)a->n * sizeof *a->part) == 0;
}

bool order_of(struct order *out, const struct graph *g, const struct node *t)
{
    const struct value *x = graph_value(g, t->in[0]);
    int64_t perm[STRATA_MAX_RANK], step[STRATA_MAX_RANK];
    *out = (struct order){.n = 0};
    if (!order_rows(x) || node_integers(t, "perm", perm, STRATA_MAX_RANK) != x->rank ||
        perm[x->rank - 1] != x->rank - 1)
        return false;
    step[x->rank - 1] = 1;
    for (int d = x->rank - 1; d-- > 0;)
        step[d] = d == x->rank - 2 ? 1 : step[d + 1] * x->dims[d + 1];
    bool fits = true;
    for (int d = x->rank - 1; fits && d-- > 0;)
        fits = put(out, x->dims[perm[d]], step[perm[d]]);
    reverse(out);
    return fits;
}

/* n rows of b, `step` apart: they begin within one of its parts and may go on in those
 * outside of it. */
static bool put_through(struct order *out, const struct order *b, int64_t n, int64_t step)
{
    int64_t inside = 1; /* rows of b's parts further in */
    for (int i = b->n; i-- > 0 && n > 1; inside *= b->part[i].n) {
        const struct order_part *p = &b->part[i];
        if (step >= inside * p->n)
            continue;
        const int64_t first = step / inside;
        if (step % inside || p->n % first)
            return false;
        const int64_t room = p->n / first, part = n < room ? n : room;
        if (n % part || !put(out, part, first * p->step))
            return false;
        n /= part;
        step = inside * p->n;
    }
    return n == 1;
}

bool order_join(struct order *out, const struct order *a, const struct order *b)
{
    bool fits = true;
    *out = (struct order){.n = 0};
    for (int i = a->n; fits && i-- > 0;)
        fits = put_through(out, b, a->part[i].n, a->part[i].step);
    reverse(out);
    return fits;
}

struct order order_back(const struct order *o)
{
    struct order_part left[ORDER_PARTS];
    struct order out = {.n = 0};
    int64_t rows = 1;
    for (int i = o->n; i-- > 0; rows *= o->part[i].n)
        left[i] = (struct order_part){o->part[i].n, rows};
    for (int n = 0; n < o->n; n++) {
        int at = -1; /* the smallest step that is left */
        for (int i = 0; i < o->n; i++)
            if (left[i].n && (at < 0 || o->part[i].step < o->part[at].step))
                at = i;
        put(&out, left[at].n, left[at].step);
        left[at].n = 0;
    }
    reverse(&out);
    return out;
}

void order_spread(const struct order *o, int64_t *dims, int64_t *perm)
{
    const struct order back = order_back(o);
    int64_t rows = 1;
    for (int i = o->n; i-- > 0; rows *= o->part[i].n)
        for (int k = 0; k < o->n; k++)
            if (back.part[k].step == rows) {
                dims[k] = o->part[i].n;
                perm[i] = k;
            }
}
