/* SPDX-License-Identifier: Apache-2.0
 *
 * MatrixMultiply on the host in plain C: floats through an FP32 product, the rest in its
 * own type.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_HOST_H
#define PLUGINS_MATRIX_MULTIPLY_HOST_H

#include "plugins/common/element.h"
#include "plugins/matrix_multiply/product.h"

/* FP32, in place. */
int matrix_float_run(const strata_run *r);

/* The same, of a constant B of FP32 in panels of some columns, [panel][k][width]; the
 * last one's missing columns are zeros. */
struct matrix_panels {
    const float *b;
    int64_t width;
};
int matrix_panels_setup(const strata_node *n, void *state); /* a struct matrix_panels */
int matrix_panels_run(const strata_run *r);

/* The same, of B as few_bits_setup keeps it. */
int matrix_few_bits_run(const strata_run *r);

/* FP16, BF16 and FP8, through FP32 copies in the workspace. */
size_t matrix_half_workspace(const strata_node *n);
int matrix_half_run(const strata_run *r);

/* Integers and FP64. */
int matrix_exact_run(const strata_run *r);

#endif /* PLUGINS_MATRIX_MULTIPLY_HOST_H */
