/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats: dtype and layout. A layout is an order of the dims and a vector width V, and
 * applies to every rank: dim 0 is N, dim 1 is C, the rest are spatial. One descriptor
 * (strata_desc) carries the strides of all of them, so there is one offset, one size and
 * one physical-equality function.
 *
 *   order           V = 1          V > 1
 *   ORDER_LINEAR    NCHW           NC/VHWV: channel blocks outside the spatial dims
 *   ORDER_LAST      NHWC           NHWC with C padded to V (NHWC8)
 *   ORDER_BATCH     CHWN           none
 */
#ifndef FORMATS_FORMAT_H
#define FORMATS_FORMAT_H

#include <stdbool.h>

#include "core/status.h"

enum format_order { ORDER_LINEAR, ORDER_LAST, ORDER_BATCH };

struct format {
    int32_t dtype;
    int32_t order;
    int32_t vector; /* V >= 1 */
};

#define FORMAT_NAME_SIZE 48

/* The table behind the bits of a row's masks: index i is bit i. */
const struct format *format_at(int index);
/* Index in the table, or -1 for a format that has no bit. */
int format_index(struct format f);
/* The bit, or 0. */
uint64_t format_mask(struct format f);

/* "fp16:nc/2hw2", "fp32:nchw", "int8:nc/5hw5", rank 5 twins "fp32:ncdhw", rank 3 "bmn".
 * Parsing takes any rank's name for a layout; the name for rank < 3 is that of rank 4. */
void format_name(char name[FORMAT_NAME_SIZE], struct format f, int rank);
int format_parse(struct format *out, const char *text, strata_error *err);
/* The same, and the format must be in the table: what a plan can give a tensor. EPARSE
 * with the formats there are and the nearest. */
int format_lookup(struct format *out, const char *text, strata_error *err);
/* Name of a mask's single bit; "?" if it has not exactly one. Static storage. */
const char *format_mask_name(uint64_t mask, int rank);

/* Dense descriptor. EINVAL for a rank the layout does not have, EOVERFLOW. */
int format_desc(strata_desc *out, struct format f, const int64_t *dims, int rank,
                strata_error *err);
/* Whether pad lanes exist at this channel count. */
bool format_has_pads(struct format f, int64_t channels);
/* Significant bits of a dtype's values: 24 for fp32, 11 for fp16, 8 for bf16 and int8. */
int dtype_precision(int dtype);
/* Bits of its exponent: 8 for fp32 and bf16, 5 for fp16; integers have none, 0. */
int dtype_range(int dtype);
/* Whether every value of `from` survives in `to`. */
bool dtype_exact(int from, int to);

/* Dtypes that may stand for each other in a tensor that is not exact. */
static inline bool dtype_is_free(int dtype)
{
    return dtype == STRATA_FP32 || dtype == STRATA_FP16 || dtype == STRATA_BF16;
}

/* Fill the ABI's view of a tensor; pad is STRATA_PAD_*, data may be NULL. */
void tensor_view(strata_tensor *out, const strata_desc *d, uint64_t format, int pad,
                 void *data);

/* IEEE 754 binary16, round to nearest even; plain C, for single values. */
uint16_t half_from_float(float x);
float half_to_float(uint16_t h);

#endif /* FORMATS_FORMAT_H */
