/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy .npy files, versions 1 to 3, little-endian; Fortran order is transposed while
 * reading. Pickled objects are refused.
 */
#ifndef IO_WEIGHTS_NPY_H
#define IO_WEIGHTS_NPY_H

#include "io/weights/weights.h"

/* Header of a file in memory. *data_offset is where the elements start; the view's data
 * is NULL. *fortran says the elements are column-major. */
int npy_parse(struct weight_view *out, size_t *data_offset, int *fortran,
              const void *bytes, size_t size, const struct weight_limits *limits,
              strata_error *err);
/* Write row-major elements of a core dtype, whole or not at all (a temporary file beside
 * the target, renamed); BF16 and FP8, which NumPy has not, as FP32. "-" is standard
 * output, whose errors are the caller's to see. */
int npy_write(const char *path, int dtype, const int64_t *dims, int rank,
              const void *data, strata_error *err);

#endif /* IO_WEIGHTS_NPY_H */
