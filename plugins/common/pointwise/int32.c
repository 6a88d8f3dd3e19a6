/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of int32_t: INT32, INT8, UINT8 and BOOL8 tensors.
 */
#define INTEGER_BITS 32
#include "plugins/common/pointwise/integer.h"

ROW_INLINE void integer_load_row(int32_t *row, const void *data, int32_t dtype,
                                 int64_t step, int64_t n)
{
    if (dtype == STRATA_INT32)
        EACH(int32_t, x)
    else if (dtype == STRATA_INT8)
        EACH(int8_t, x)
    else
        EACH(uint8_t, x)
}

ROW_INLINE void integer_store_row(void *data, int32_t dtype, int64_t step,
                                  const int32_t *row, int64_t n)
{
    if (dtype == STRATA_INT32)
        STORE_EACH(int32_t, row[i])
    else if (dtype == STRATA_BOOL8)
        STORE_EACH(uint8_t, row[i] != 0)
    else /* the low bits of INT8 are those of UINT8 */
        STORE_EACH(uint8_t, row[i])
}

ROW_FUNCTIONS(integer)

const struct pointwise_class pointwise_int32 = {
    .size = sizeof(int32_t),
    .load = integer_load,
    .store = integer_store,
    .apply = integer_apply,
    .native = 1 << STRATA_INT32,
};
