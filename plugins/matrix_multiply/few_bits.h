/* SPDX-License-Identifier: Apache-2.0
 *
 * A constant B of few bits, as the host keeps it: panels of 16 columns, a row of bytes
 * for each k, or for two of 4 bits, so that what a step of k needs lies together. Columns
 * past the last are zeros.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_FEW_BITS_H
#define PLUGINS_MATRIX_MULTIPLY_FEW_BITS_H

#include <strata/plugin.h>

enum { FEW_BITS_COLUMNS = 16, FEW_BITS_ZERO = 8 /* what stands for 0 in 4 bits */ };

struct few_bits {
    const uint8_t *values; /* [panels][rows][16] */
    const float *factors;  /* [panels][groups][16] */
    int64_t k, n, rows, group, groups;
    int32_t per_byte;
};

int few_bits_accept(const strata_node *n);
int few_bits_setup(const strata_node *n, void *state); /* a struct few_bits */

/* Rows of A as the product has them, and what becomes of them. */
struct few_bits_product {
    const struct few_bits *b;
    const float *a;
    int64_t a_row, a_step, c_row; /* distances in elements */
    float *c;
    int64_t rows, column, columns; /* column is a panel's first */
};
void few_bits_multiply(const struct few_bits_product *p);

/* depth rows from row k on of `columns` columns, as floats, `width` apart. */
void few_bits_unpack(const struct few_bits *b, int64_t k, int64_t depth, int64_t column,
                     int64_t columns, int64_t width, float *to);

#endif /* PLUGINS_MATRIX_MULTIPLY_FEW_BITS_H */
