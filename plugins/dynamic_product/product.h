/* SPDX-License-Identifier: Apache-2.0
 *
 * DynamicProduct: what its impls and files share.
 */
#ifndef PLUGINS_DYNAMIC_PRODUCT_PRODUCT_H
#define PLUGINS_DYNAMIC_PRODUCT_PRODUCT_H

#include <strata/layers.h>
#include <strata/plugin.h>

enum { DYNAMIC_X, DYNAMIC_SCALE, DYNAMIC_ZERO };                             /* inputs */
enum { DYNAMIC_WEIGHT, DYNAMIC_BIAS, DYNAMIC_FACTORS, DYNAMIC_WEIGHT_ZERO }; /* weights */

/* Of a weight of one number, or one a column: that of column `n`. */
static inline int64_t dynamic_at(const strata_tensor *weight, int64_t n)
{
    return weight->count > 1 ? n : 0;
}

/* ---- on the host ------------------------------------------------------------------- */

enum { DYNAMIC_ROWS = 32, DYNAMIC_COLUMNS = 32 }; /* of the largest tile */

/* Sums of `rows` rows by one panel of columns: of x times the weight as they are. */
struct dynamic_tile {
    const char *x;   /* as staged */
    int64_t row;     /* bytes from one to the next */
    const int8_t *w; /* the panel: [step][column][group] */
    int64_t steps;   /* of `group` products */
    int32_t *sums;   /* [row][column] */
};

/* Numbers of a panel's columns. */
struct dynamic_columns {
    const int32_t *sum, *zero; /* Σ(w - zero), zero */
    const float *factor, *bias;
};

/* What becomes of a row of sums. */
struct dynamic_end {
    float scale;   /* of x */
    uint32_t zero; /* of x */
    uint32_t sum;  /* of the row of x */
};

typedef void dynamic_tile_fn(const struct dynamic_tile *t);

/* A way to sum. */
struct dynamic_kernel {
    int32_t group;                 /* products of a column that lie side by side */
    int32_t columns;               /* of a panel */
    int32_t rows;                  /* of a tile, at most */
    int32_t size;                  /* bytes of an element of x as staged */
    int32_t whole;                 /* steps are a multiple of */
    int32_t beyond;                /* rows of x that a tile may read past its own */
    int32_t few;                   /* fewer rows are summed without `open` and `close` */
    double parallel;               /* products that pay for a thread team */
    double parallel_few;           /* the same of fewer rows */
    dynamic_tile_fn *const *tiles; /* by rows less one */
    /* NULL, or around a thread's tiles of not fewer than `few` rows. */
    void (*open)(void);
    void (*close)(void);
    /* One row of x to `to`, zeros up to `padded`; what it sums up to. */
    uint32_t (*stage)(void *to, const uint8_t *x, int64_t n, int64_t padded);
    /* n results of one row; residual: NULL, or what is added. */
    void (*finish)(float *y, const int32_t *sums, const struct dynamic_columns *c,
                   const struct dynamic_end *e, const float *residual, int64_t n);
};

/* The fastest that this processor has. */
const struct dynamic_kernel *dynamic_kernel(void);

#endif /* PLUGINS_DYNAMIC_PRODUCT_PRODUCT_H */
