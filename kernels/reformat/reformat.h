/* SPDX-License-Identifier: Apache-2.0
 *
 * Reformat on the device: the same function as formats/reformat/reformat.h, on a CUDA
 * stream. A table of kernels, best row first; the last row takes everything.
 */
#ifndef KERNELS_REFORMAT_REFORMAT_H
#define KERNELS_REFORMAT_REFORMAT_H

#include "core/status.h"

size_t reformat_cuda_rows(void);
const char *reformat_cuda_row_name(size_t row); /* "tile" */
/* The first row that takes this pair at these addresses. */
size_t reformat_cuda_choose(const strata_desc *dst, const void *dst_data,
                            const strata_desc *src, const void *src_data);
/* Launch a row on a cudaStream_t. STRATA_EUNSUPPORTED if the row does not take the pair;
 * *cuda is the cudaError_t of the launch, which the caller judges. The pair is checked.
 */
int reformat_cuda_row(size_t row, const strata_desc *dst, void *dst_data,
                      const strata_desc *src, const void *src_data, void *stream,
                      int *cuda, strata_error *err);

#endif /* KERNELS_REFORMAT_REFORMAT_H */
