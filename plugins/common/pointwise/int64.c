/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of int64_t: INT64 tensors, BOOL8 beside them, and powers of two integers.
 */
#define INTEGER_BITS 64
#include "plugins/common/pointwise/integer.h"

ROW_INLINE void integer_load_row(int64_t *row, const void *data, int32_t dtype,
                                 int64_t step, int64_t n)
{
    switch (dtype) {
    case STRATA_BOOL8:
    case STRATA_UINT8: EACH(uint8_t, x) break;
    case STRATA_INT8: EACH(int8_t, x) break;
    case STRATA_INT32: EACH(int32_t, x) break;
    default: EACH(int64_t, x) break;
    }
}

ROW_INLINE void integer_store_row(void *data, int32_t dtype, int64_t step,
                                  const int64_t *row, int64_t n)
{
    if (dtype == STRATA_BOOL8)
        STORE_EACH(uint8_t, row[i] != 0)
    else if (dtype == STRATA_INT32)
        STORE_EACH(int32_t, row[i])
    else
        STORE_EACH(int64_t, row[i])
}

ROW_FUNCTIONS(integer)

const struct pointwise_class pointwise_int64 = {
    .size = sizeof(int64_t),
    .load = integer_load,
    .store = integer_store,
    .apply = integer_apply,
    .native = 1 << STRATA_INT64,
};
