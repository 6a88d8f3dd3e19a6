/* SPDX-License-Identifier: Apache-2.0
 *
 * Host reformat: copy between any two descriptors of equal dims, dtype conversion
 * included, pad lanes of the destination written as zero. A table of kernels, best row
 * first; the last row takes everything and is the reference the others are tested
 * against. Kernels use OpenMP inside and allocate nothing.
 */
#ifndef FORMATS_REFORMAT_REFORMAT_H
#define FORMATS_REFORMAT_REFORMAT_H

#include "formats/format.h"

/* As strata_reformat. dst must not overlap itself, nor src. */
int reformat(const strata_desc *dst, void *dst_data, const strata_desc *src,
             const void *src_data, strata_error *err);

/* The same on a stream, in its order and by its device's kernels: both tensors lie in
 * that device's memory and stay there until the stream has come so far. */
int reformat_enqueue(strata_stream *s, const strata_desc *dst, void *dst_data,
                     const strata_desc *src, const void *src_data, strata_error *err);

/* The argument checks of reformat alone; nothing is read or written. */
int reformat_check(const strata_desc *dst, const void *dst_data, const strata_desc *src,
                   const void *src_data, strata_error *err);

/* Convert n contiguous elements by the rule of reformats, on this thread; dst and src are
 * apart and aligned to their elements. */
void reformat_elements(void *dst, int dst_dtype, const void *src, int src_dtype,
                       size_t n);
/* The same out of FP64. */
void reformat_from_double(void *dst, int dtype, const double *src, size_t n);

/* The kernel table, for tests and benchmarks. */
size_t reformat_rows(void);
const char *reformat_row_name(size_t row); /* "transpose_avx2" */
/* EUNSUPPORTED if the row does not take this pair or this CPU. */
int reformat_row(size_t row, const strata_desc *dst, void *dst_data,
                 const strata_desc *src, const void *src_data, strata_error *err);
/* The row reformat() would use. */
size_t reformat_choose(const strata_desc *dst, const strata_desc *src);

/* Set every pad lane of a tensor to zero, leaving the rest. */
void reformat_clear_pads(const strata_desc *d, void *data);

#endif /* FORMATS_REFORMAT_REFORMAT_H */
