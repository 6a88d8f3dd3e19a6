/* SPDX-License-Identifier: Apache-2.0
 *
 * DeformConv: what each tap of its windows reads is a GridSample, and weights times these
 * a product of matrices.
 */
#include "network/import/upgrade.h"

#include <string.h>

struct deform {
    int64_t batch, in, out, height, width, rows, columns; /* rows: of what is made */
    int64_t kernel[2], stride[2], dilation[2], pad[2], group, parts, taps;
    int dtype;
};

static void read_pair(const struct node *n, const char *name, int64_t out[2])
{
    int64_t v[2];
    if (node_integers(n, name, v, 2) >= 2)
        memcpy(out, v, sizeof v);
}

/* False: the dims do not fit. */
static bool read_deform(const struct import *im, const struct node *n, struct deform *d)
{
    const struct value *x = upgrade_input(im, n, 0), *w = upgrade_input(im, n, 1),
                       *off = upgrade_input(im, n, 2), *mask = upgrade_input(im, n, 4);
    int64_t pads[4] = {0};
    if (!x || !w || !off || x->rank != 4 || w->rank != 4 || off->rank != 4)
        return false;
    *d = (struct deform){.batch = x->dims[0],
                         .in = x->dims[1],
                         .out = w->dims[0],
                         .height = x->dims[2],
                         .width = x->dims[3],
                         .rows = off->dims[2],
                         .columns = off->dims[3],
                         .kernel = {w->dims[2], w->dims[3]},
                         .stride = {1, 1},
                         .dilation = {1, 1},
                         .group = node_integer(n, "group", 1),
                         .parts = node_integer(n, "offset_group", 1),
                         .taps = w->dims[2] * w->dims[3],
                         .dtype = x->dtype};
    read_pair(n, "strides", d->stride);
    read_pair(n, "dilations", d->dilation);
    node_integers(n, "pads", pads, 4);
    memcpy(d->pad, pads, sizeof d->pad);
    return d->group > 0 && d->parts > 0 && d->taps > 0 && d->height > 0 && d->width > 0 &&
           d->in == w->dims[1] * d->group && d->in % d->parts == 0 &&
           d->out % d->group == 0 && off->dims[0] == d->batch &&
           off->dims[1] == 2 * d->taps * d->parts && graph_is_real(x->dtype) &&
           (!mask || (mask->rank == 4 && mask->dims[1] == d->taps * d->parts));
}

/* Where taps are without offsets, as coordinates from -1 to 1: taps x rows x columns x
 * 2, y first. */
static int base_grid(struct import *im, const struct deform *d)
{
    const int64_t size[] = {d->height, d->width};
    const int64_t dims[] = {1, d->taps, d->rows, d->columns, 2},
                  count = d->taps * d->rows * d->columns * 2;
    double *v = arena_get(&im->g.arena, (size_t)count, sizeof *v);
    for (int64_t i = 0; v && i < count; i++) {
        const int64_t axis = i % 2, column = i / 2 % d->columns,
                      row = i / 2 / d->columns % d->rows,
                      tap = i / 2 / d->columns / d->rows;
        const int64_t k = axis ? tap % d->kernel[1] : tap / d->kernel[1];
        const int64_t at = (axis ? column : row) * d->stride[axis] - d->pad[axis] +
                           k * d->dilation[axis];
        v[i] = (2 * (double)at + 1) / (double)size[axis] - 1;
    }
    const int made = v ? upgrade_reals(im, d->dtype, 1, v, count) : VALUE_NONE;
    struct value *as = graph_value(&im->g, made);
    if (as) {
        as->rank = 5;
        memcpy(as->dims, dims, sizeof dims);
    }
    return made;
}

/* What all taps read, one below the other: parts x channels x (taps rows) x columns. */
static int sample(struct import *im, const struct node *n, const struct deform *d)
{
    struct graph *g = &im->g;
    const int64_t images = d->batch * d->parts, turned[] = {0, 1, 3, 4, 2},
                  order[] = {1, 0};
    const int64_t apart[] = {images, d->taps, 2, d->rows, d->columns},
                  flat[] = {images, d->taps * d->rows, d->columns, 2},
                  split[] = {images, d->in / d->parts, d->height, d->width},
                  shared[] = {images, 1, d->taps * d->rows, d->columns};
    const double each[] = {2 / (double)d->height, 2 / (double)d->width};
    const int offsets = upgrade_reshape(im, n, n->in[2], 5, apart);
    struct node *last = upgrade_add(im, n, "Transpose", &offsets, 1);
    node_set_integers(g, last, "perm", turned, 5);
    const int far = upgrade_two(im, n, "Mul", upgrade_value(last),
                                upgrade_reals(im, d->dtype, 1, each, 2));
    const int places[] = {upgrade_two(im, n, "Add", far, base_grid(im, d)),
                          graph_add_integers(g, 1, order, 2)};
    struct node *grid = upgrade_add(im, n, "Gather", places, 2);
    node_set_integer(g, grid, "axis", 4);
    const int in[] = {upgrade_reshape(im, n, n->in[0], 4, split),
                      upgrade_reshape(im, n, upgrade_value(grid), 4, flat)};
    struct node *read = upgrade_add(im, n, "GridSample", in, 2);
    node_set_text(g, read, "mode", "linear");
    node_set_text(g, read, "padding_mode", "zeros");
    const int values = upgrade_value(read);
    return upgrade_input(im, n, 4)
               ? upgrade_two(im, n, "Mul", values,
                             upgrade_reshape(im, n, n->in[4], 4, shared))
               : values;
}

static void deform(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    struct deform d;
    if (!read_deform(im, n, &d)) {
        import_refuse_node(im, n, NULL,
                           "its dims do not fit; taken are images of 2 dims, and their "
                           "offsets, of floats");
        return;
    }
    const int64_t deep = d.in / d.group * d.taps,
                  columns[] = {d.batch, d.group, deep, d.rows * d.columns},
                  weights[] = {d.group, d.out / d.group, deep},
                  dims[] = {d.batch, d.out, d.rows, d.columns}, each[] = {d.out, 1, 1};
    const int bias = upgrade_input(im, n, 3) ? n->in[3] : VALUE_NONE;
    const int all = upgrade_reshape(im, n, sample(im, n, &d), 4, columns);
    const int weight = upgrade_reshape(im, n, n->in[1], 3, weights);
    const int made =
        upgrade_reshape(im, n, upgrade_two(im, n, "MatMul", weight, all), 4, dims);
    upgrade_standard(n, bias >= 0 ? "Add" : "Identity");
    n->attributes = NULL;
    n->n_attributes = 0;
    n->n_in = 0;
    node_set_input(g, n, 0, made);
    if (bias >= 0)
        node_set_input(g, n, 1, upgrade_reshape(im, n, bias, 3, each));
}

static const struct rewrite rows[] = {{"DeformConv", "", deform}};

const struct rewrite_table upgrade_deform = {rows, sizeof rows / sizeof *rows};
