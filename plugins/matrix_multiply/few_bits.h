/* SPDX-License-Identifier: Apache-2.0
 *
 * A constant B of few bits, as the host keeps it: panels of 16 columns, in blocks of 16
 * values of int8, of one k; or of 16 words, each of 8 values of a column from its lowest
 * bits on. Columns past the last, and what is past the last k, are zeros.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_FEW_BITS_H
#define PLUGINS_MATRIX_MULTIPLY_FEW_BITS_H

#include <strata/plugin.h>

enum { FEW_BITS_COLUMNS = 16 };

struct few_bits {
    const uint8_t *values; /* [panels][blocks], those of 4 bits in two's complement */
    const float *factors;  /* [panels][groups][16] */
    int64_t k, n, panel, group, groups; /* panel: bytes of one */
    int32_t bits;
};

/* count elements of `size` bytes for packed weights; the core frees them. */
int matrix_pack_memory(const strata_node *n, int64_t count, size_t size, void **out);

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

#endif /* PLUGINS_MATRIX_MULTIPLY_FEW_BITS_H */
