/* SPDX-License-Identifier: Apache-2.0
 *
 * A bias laid out as an addend, where the library would add it to a rounded product.
 */
#ifndef PLUGINS_COMMON_CUBLASLT_BIAS_H
#define PLUGINS_COMMON_CUBLASLT_BIAS_H

#include <strata/layers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* D is column-major: `columns` of `rows` elements of two bytes, `pitch` elements apart,
 * in each of `batch` products that are `step` apart. */
struct cublaslt_bias {
    const void
        *values; /* one for each of D's rows; device memory, or NULL: none is laid */
    int64_t rows, columns, pitch, batch, step;
};

/* Enqueue on r's stream: each column of d becomes the bias. */
int cublaslt_lay_bias(const strata_run *r, const struct cublaslt_bias *bias, void *d);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_COMMON_CUBLASLT_BIAS_H */
