/* SPDX-License-Identifier: Apache-2.0
 *
 * Nearest neighbours on the host, row by row: a row that comes from the same place as the
 * one before is a copy of that.
 */
#include "plugins/resize/interpolate.h"

#include <string.h>

#include "plugins/common/index.h"
#include "plugins/common/walk.h"
#include "plugins/resize/plan.h"

#define BLOCK 16          /* rows that a thread takes at once */
#define CACHED (4L << 20) /* bytes of an output that a cache holds */

struct nearest {
    const char *from;
    char *to;
    struct resize_plan plan;
    const struct resize_plan_axis *row; /* NULL: nothing is resized */
    int64_t *at[RESIZE_AXES];           /* offsets in the input; of the row axis, in it */
    int64_t size, row_out;              /* bytes of an element; elements of a row */
    int twice;                          /* each element of a row is there two times, */
    int cached;                         /* and of a small output */
};

size_t resize_nearest_workspace(const strata_node *n)
{
    const strata_resize *p = n->params;
    size_t entries = 0;
    for (int32_t k = 0; k < resize_axes(p, n->in[0].rank); k++)
        entries += (size_t)n->out[0].dims[resize_dim(p, n->in[0].rank, k)];
    return entries * sizeof(int64_t);
}

static void make_tables(struct nearest *c, const strata_resize *p, int64_t *memory)
{
    for (int32_t k = 0; k < c->plan.n; k++) {
        const struct resize_plan_axis *axis = &c->plan.axis[k];
        if (axis->taps < 0)
            continue;
        const struct resize_axis *a = &c->plan.resize[axis->taps];
        const int64_t stride = axis == c->row ? c->plan.lanes : axis->from;
        c->at[axis->taps] = memory;
        int64_t same = 0;
        for (int64_t i = 0; i < a->out; i++) {
            *memory = resize_nearest(p, a, i) * stride;
            same += *memory++ == i / 2;
        }
        c->twice = axis == c->row ? same == a->out && a->out % 2 == 0 : c->twice;
    }
}

static int32_t outer_axes(const struct nearest *c)
{
    return c->plan.n - (c->row != NULL);
}

/* Where rows at a place of the first n axes begin, and the input's that they come from.
 */
static void locate(const struct nearest *c, const struct resize_place *p, int32_t n,
                   int64_t *to, int64_t *from)
{
    *to = *from = 0;
    for (int32_t k = 0; k < n; k++) {
        const struct resize_plan_axis *a = &c->plan.axis[k];
        *to += p->index[k] * a->to;
        *from += a->taps < 0 ? p->index[k] * a->from : c->at[a->taps][p->index[k]];
    }
}

#define PICK(type)                                                                       \
    if (c->twice)                                                                        \
        for (int64_t j = 0; j < c->row_out / 2; j++) {                                   \
            const type x = ((const type *)(const void *)from)[j];                        \
            ((type *)(void *)to)[2 * j] = x;                                             \
            ((type *)(void *)to)[2 * j + 1] = x;                                         \
        }                                                                                \
    else                                                                                 \
        for (int64_t j = 0; j < c->row_out; j++)                                         \
            ((type *)(void *)to)[j] = ((const type *)(const void *)from)[at[j]];         \
    return

/* Two rows of elements that are there two times, one after the other, both from the
 * input: copied, the second would wait for the first's stores. */
#define TWICE(type)                                                                      \
    static void twice_##type(void *one, void *other, const void *from, int64_t n)        \
    {                                                                                    \
        for (int row = 0; row < 2; row++) {                                              \
            type *restrict y = row == 0 ? one : other;                                   \
            const type *restrict x = from;                                               \
            for (int64_t j = 0; j < n; j++)                                              \
                y[2 * j] = y[2 * j + 1] = x[j];                                          \
        }                                                                                \
    }
TWICE(uint8_t)
TWICE(uint16_t)
TWICE(uint32_t)
TWICE(uint64_t)
#undef TWICE

typedef void twice_fn(void *one, void *other, const void *from, int64_t n);

/* NULL: rows are picked one by one. */
static twice_fn *twice_of(const struct nearest *c)
{
    static twice_fn *const sizes[] = {[1] = twice_uint8_t,
                                      [2] = twice_uint16_t,
                                      [4] = twice_uint32_t,
                                      [8] = twice_uint64_t};
    return c->twice && c->cached && c->plan.lanes == 1 ? sizes[c->size] : NULL;
}

static void pick_row(const struct nearest *c, char *to, const char *from)
{
    const int64_t lanes = c->plan.lanes, bytes = lanes * c->size;
    const int64_t *at = c->row ? c->at[c->row->taps] : NULL;
    if (!at) {
        memcpy(to, from, (size_t)(c->row_out * c->size));
        return;
    }
    switch (lanes == 1 ? c->size : 0) {
    case 1:
        PICK(uint8_t);
    case 2:
        PICK(uint16_t);
    case 4:
        PICK(uint32_t);
    case 8:
        PICK(uint64_t);
    default:
        for (int64_t j = 0; j < c->row->n; j++)
            memcpy(to + j * bytes, from + at[j] * c->size, (size_t)bytes);
    }
}

/* Rows [begin, end) along the last of the outer axes, at a place of those before it. */
static void make_rows(const struct nearest *c, const struct resize_place *place,
                      int64_t begin, int64_t end)
{
    const int32_t outer = outer_axes(c);
    const struct resize_plan_axis none = {.taps = -1};
    const struct resize_plan_axis *a = outer > 0 ? &c->plan.axis[outer - 1] : &none;
    const int64_t *at = a->taps < 0 ? NULL : c->at[a->taps];
    twice_fn *const both = at ? twice_of(c) : NULL;
    int64_t to, from, last = -1;
    locate(c, place, outer - 1, &to, &from);
    for (int64_t i = begin; i < end; i++) {
        const int64_t source = from + (at ? at[i] : i * a->from);
        char *row = c->to + (to + i * a->to) * c->size;
        if (both && i + 1 < end && at[i + 1] == at[i]) {
            both(row, row + a->to * c->size, c->from + source * c->size, c->row_out / 2);
            i++;
        } else if (source == last && !c->twice) {
            memcpy(row, row - a->to * c->size, (size_t)(c->row_out * c->size));
        } else {
            pick_row(c, row, c->from + source * c->size);
        }
        last = source;
    }
}

int resize_nearest_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct nearest c = {.from = x->data, .to = y->data, .size = index_size(y->dtype)};
    c.plan = resize_plan(r->params, x, y);
    c.row = c.plan.n ? &c.plan.axis[c.plan.n - 1] : NULL;
    c.row_out = c.plan.lanes * (c.row ? c.row->n : 1);
    c.cached = y->count <= CACHED / c.size;
    make_tables(&c, r->params, r->workspace);
    const int32_t outer = outer_axes(&c);
    const int64_t rows = outer > 0 ? c.plan.axis[outer - 1].n : 1;
    const int64_t blocks = (rows + BLOCK - 1) / BLOCK;
    int64_t items = blocks;
    for (int32_t k = 0; k < outer - 1; k++)
        items *= c.plan.axis[k].n;
#pragma omp parallel for schedule(static) if (y->count >= WALK_PARALLEL)
    for (int64_t item = 0; item < items; item++) {
        const struct resize_place place =
            resize_place_of(&c.plan, outer - 1, item / blocks);
        const int64_t begin = item % blocks * BLOCK, end = begin + BLOCK;
        make_rows(&c, &place, begin, end < rows ? end : rows);
    }
    walk_clear_pads(y);
    return STRATA_OK;
}
