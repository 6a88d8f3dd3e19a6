/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of int64_t: INT64 tensors, BOOL8 beside them, and powers of two integers.
 */
#define INTEGER_BITS 64
#include "plugins/common/pointwise/integer.h"

static void int64_load(void *to, const void *data, int32_t dtype, int64_t step, int64_t n)
{
    int64_t *row = to;
    switch (dtype) {
    case STRATA_BOOL8:
    case STRATA_UINT8: EACH(((const uint8_t *)data)[i * step]) break;
    case STRATA_INT8: EACH(((const int8_t *)data)[i * step]) break;
    case STRATA_INT32: EACH(((const int32_t *)data)[i * step]) break;
    default: EACH(((const int64_t *)data)[i * step]) break;
    }
}

static void int64_store(void *data, int32_t dtype, int64_t step, const void *from, int64_t n)
{
    const int64_t *row = from;
    if (dtype == STRATA_BOOL8)
        STORE_EACH(uint8_t, row[i] != 0)
    else if (dtype == STRATA_INT32)
        STORE_EACH(int32_t, row[i])
    else
        STORE_EACH(int64_t, row[i])
}

const struct pointwise_class pointwise_int64 = {
    .size = sizeof(int64_t),
    .load = int64_load,
    .store = int64_store,
    .apply = integer_apply,
    .native = 1 << STRATA_INT64,
};
