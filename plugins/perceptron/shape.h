/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Perceptron's impls share: the sizes of its products.
 */
#ifndef PLUGINS_PERCEPTRON_SHAPE_H
#define PLUGINS_PERCEPTRON_SHAPE_H

#include <strata/layers.h>

#define PERCEPTRON_PRODUCTS STRATA_PERCEPTRON_PRODUCTS

static inline int perceptron_weight(int product)
{
    return 2 * product;
}

static inline int perceptron_bias(int product)
{
    return 2 * product + 1;
}

struct perceptron_shape {
    int32_t products;
    int64_t rows;
    int64_t depth[PERCEPTRON_PRODUCTS], units[PERCEPTRON_PRODUCTS];
};

/* The last product's. */
static inline int64_t perceptron_units(const struct perceptron_shape *s)
{
    return s->units[s->products - 1];
}

/* Of an input and weights whose dims are known, or whose units are told; 0: a product
 * that is needed has neither. */
static inline int perceptron_shape_of(struct perceptron_shape *s,
                                      const strata_perceptron *p, const strata_tensor *x,
                                      const strata_tensor *weight)
{
    int64_t depth = p->mean ? x->dims[1] : x->dims[x->rank - 1];
    s->products = 0;
    s->rows = 1;
    s->depth[0] = depth;
    s->units[0] = 0;
    for (int d = 0; d < (p->mean ? 1 : x->rank - 1); d++)
        s->rows *= x->dims[d];
    for (int i = 0; i < PERCEPTRON_PRODUCTS; i++) {
        const strata_tensor *w = &weight[perceptron_weight(i)];
        const int64_t units = p->product[i].units ? p->product[i].units
                              : w->rank == 2 ? w->dims[p->product[i].transposed ? 1 : 0]
                                             : 0;
        if (units < 1)
            break;
        s->depth[i] = depth;
        s->units[i] = depth = units;
        s->products++;
    }
    return s->products > 0;
}

/* The formats in which rows lie as such, without pads. */
#define PERCEPTRON_LINEAR (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW)

/* Why a node's formats do not do; NULL: they do. */
static inline const char *perceptron_refuse(const strata_perceptron *p,
                                            const strata_tensor *x,
                                            const strata_tensor *y)
{
    return !p->mean && !(x->format & y->format & PERCEPTRON_LINEAR)
               ? "rows are read and written in linear formats"
           : p->end == STRATA_PERCEPTRON_FACTORS && x->format != y->format
               ? "the channels of x are written in its format"
               : NULL;
}

/* Pixels of a plane. */
static inline int64_t perceptron_pixels(const strata_tensor *x)
{
    int64_t pixels = 1;
    for (int d = 2; d < x->rank; d++)
        pixels *= x->dims[d];
    return pixels;
}

#endif /* PLUGINS_PERCEPTRON_SHAPE_H */
