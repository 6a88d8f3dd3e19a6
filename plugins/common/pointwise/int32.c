/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of int32_t: INT32, INT8, UINT8 and BOOL8 tensors.
 */
#define INTEGER_BITS 32
#include "plugins/common/pointwise/integer.h"

static void int32_load(void *to, const void *data, int32_t dtype, int64_t step, int64_t n)
{
    int32_t *row = to;
    if (dtype == STRATA_INT32)
        EACH(((const int32_t *)data)[i * step])
    else if (dtype == STRATA_INT8 && step == 1)
        EACH(((const int8_t *)data)[i])
    else if (dtype == STRATA_INT8)
        EACH(((const int8_t *)data)[i * step])
    else if (step == 1)
        EACH(((const uint8_t *)data)[i])
    else
        EACH(((const uint8_t *)data)[i * step])
}

static void int32_store(void *data, int32_t dtype, int64_t step, const void *from, int64_t n)
{
    const int32_t *row = from;
    if (dtype == STRATA_INT32)
        STORE_EACH(int32_t, row[i])
    else if (dtype == STRATA_BOOL8)
        STORE_EACH(uint8_t, row[i] != 0)
    else /* the low bits of INT8 are those of UINT8 */
        STORE_EACH(uint8_t, row[i])
}

const struct pointwise_class pointwise_int32 = {
    .size = sizeof(int32_t),
    .load = int32_load,
    .store = int32_store,
    .apply = integer_apply,
    .native = 1 << STRATA_INT32,
};
