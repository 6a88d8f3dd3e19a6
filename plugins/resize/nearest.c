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

#define BLOCK 16 /* rows that a thread takes at once */

struct nearest {
    const char *from;
    char *to;
    struct resize_plan plan;
    const struct resize_plan_axis *row; /* NULL: nothing is resized */
    int64_t *at[RESIZE_AXES];           /* offsets in the input; of the row axis, in it */
    int64_t size, row_out;              /* bytes of an element; elements of a row */
    int twice;                          /* each element of a row is there two times */
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

/* Where a row lies, and the input row it comes from. */
static void locate(const struct nearest *c, const struct resize_place *p, int64_t *to,
                   int64_t *from)
{
    *to = *from = 0;
    for (int32_t k = 0; k < outer_axes(c); k++) {
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

int resize_nearest_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct nearest c = {.from = x->data, .to = y->data, .size = index_size(y->dtype)};
    int64_t rows = 1;
    c.plan = resize_plan(r->params, x, y);
    c.row = c.plan.n ? &c.plan.axis[c.plan.n - 1] : NULL;
    c.row_out = c.plan.lanes * (c.row ? c.row->n : 1);
    make_tables(&c, r->params, r->workspace);
    for (int32_t k = 0; k < c.plan.n - 1; k++)
        rows *= c.plan.axis[k].n;
#pragma omp parallel for schedule(static) if (y->count >= WALK_PARALLEL)
    for (int64_t block = 0; block < (rows + BLOCK - 1) / BLOCK; block++) {
        int64_t last = -1, last_to = 0, to, from;
        struct resize_place place =
            resize_place_of(&c.plan, outer_axes(&c), block * BLOCK);
        for (int64_t i = block * BLOCK; i < rows && i < (block + 1) * BLOCK; i++) {
            locate(&c, &place, &to, &from);
            resize_advance(&place, &c.plan, outer_axes(&c));
            if (from == last)
                memcpy(c.to + to * c.size, c.to + last_to * c.size,
                       (size_t)(c.row_out * c.size));
            else
                pick_row(&c, c.to + to * c.size, c.from + from * c.size);
            last = from;
            last_to = to;
        }
    }
    walk_clear_pads(y);
    return STRATA_OK;
}
