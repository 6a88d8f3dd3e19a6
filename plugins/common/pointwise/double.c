/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of double: FP64 tensors, and powers whose base and exponent are of two classes.
 */
#include "plugins/common/pointwise/exact.h"
#include "plugins/common/pointwise/row.h"

#include <strata/narrow.h>

static void double_load(void *to, const void *data, int32_t dtype, int64_t step, int64_t n)
{
    double *row = to;
    switch (dtype) {
    case STRATA_FP32: EACH(float, (double)x) break;
    case STRATA_FP16: EACH(uint16_t, (double)strata_float_of_half(x)) break;
    case STRATA_BF16: EACH(uint16_t, (double)strata_float_of_bfloat(x)) break;
    case STRATA_INT8: EACH(int8_t, (double)x) break;
    case STRATA_UINT8:
    case STRATA_BOOL8: EACH(uint8_t, (double)x) break;
    case STRATA_INT32: EACH(int32_t, (double)x) break;
    case STRATA_INT64: EACH(int64_t, (double)x) break;
    default: EACH(double, x) break;
    }
}

static void double_store(void *data, int32_t dtype, int64_t step, const void *from,
                         int64_t n)
{
    const double *row = from;
    switch (dtype) {
    case STRATA_FP32: STORE_EACH(float, row[i]) break;
    case STRATA_FP16: STORE_EACH(uint16_t, strata_half_of_float((float)row[i])) break;
    case STRATA_BF16: STORE_EACH(uint16_t, strata_bfloat_of_float((float)row[i])) break;
    case STRATA_INT32: STORE_EACH(int32_t, exact_truncated(row[i], STRATA_INT32)) break;
    case STRATA_INT64: STORE_EACH(int64_t, exact_truncated(row[i], STRATA_INT64)) break;
    case STRATA_BOOL8: STORE_EACH(uint8_t, row[i] != 0) break;
    default: STORE_EACH(double, row[i]) break;
    }
}

static void double_apply(int op, const struct pointwise_constants *k, void *to,
                         const void *first, const void *second, const void *third,
                         int64_t n)
{
    const double *a = first, *b = second, *c = third;
    double *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = exact_double(op, k, a[i], b[i], c[i]);
}

const struct pointwise_class pointwise_double = {
    .size = sizeof(double),
    .load = double_load,
    .store = double_store,
    .apply = double_apply,
    .native = 1 << STRATA_FP64,
};
