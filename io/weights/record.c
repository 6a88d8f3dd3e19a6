/* SPDX-License-Identifier: Apache-2.0
 *
 * What the readers of weights files share: limits, element types, records.
 */
#include "io/weights/private.h"

#include <inttypes.h>

#include "core/checked.h"

const struct weight_limits weight_default_limits = {
    .file_bytes = UINT64_C(64) << 30,
    .header_bytes = 100000000,
    .tensors = 1048576,
    .dim = INT32_MAX,
    .elements = INT64_C(1) << 40,
    .name_bytes = 255,
};

static const struct {
    const char *name;
    size_t size;
    int core; /* dtype, or -1 */
} dtypes[WEIGHT_DTYPE_COUNT] = {
    [WEIGHT_F64] = {"F64", 8, STRATA_FP64},
    [WEIGHT_F32] = {"F32", 4, STRATA_FP32},
    [WEIGHT_F16] = {"F16", 2, STRATA_FP16},
    [WEIGHT_BF16] = {"BF16", 2, STRATA_BF16},
    [WEIGHT_F8_E4M3] = {"F8_E4M3", 1, STRATA_E4M3},
    [WEIGHT_F8_E5M2] = {"F8_E5M2", 1, STRATA_E5M2},
    [WEIGHT_I64] = {"I64", 8, STRATA_INT64},
    [WEIGHT_I32] = {"I32", 4, STRATA_INT32},
    [WEIGHT_I16] = {"I16", 2, -1},
    [WEIGHT_I8] = {"I8", 1, STRATA_INT8},
    [WEIGHT_U64] = {"U64", 8, -1},
    [WEIGHT_U32] = {"U32", 4, -1},
    [WEIGHT_U16] = {"U16", 2, -1},
    [WEIGHT_U8] = {"U8", 1, STRATA_UINT8},
    [WEIGHT_BOOL] = {"BOOL", 1, STRATA_BOOL8},
};

const char *weight_dtype_name(enum weight_dtype d)
{
    return (size_t)d < WEIGHT_DTYPE_COUNT ? dtypes[d].name : NULL;
}

size_t weight_dtype_size(enum weight_dtype d)
{
    return (size_t)d < WEIGHT_DTYPE_COUNT ? dtypes[d].size : 0;
}

int weight_dtype_core(enum weight_dtype d)
{
    return (size_t)d < WEIGHT_DTYPE_COUNT ? dtypes[d].core : -1;
}

enum weight_dtype weight_dtype_of(int dtype)
{
    int d = 0;
    while (d < WEIGHT_DTYPE_COUNT && dtypes[d].core != dtype)
        d++;
    return (enum weight_dtype)d;
}

int weight_count(int64_t *out, const int64_t *dims, int rank,
                 const struct weight_limits *limits, const char *what, strata_error *err)
{
    int64_t most = limits->dim < INT32_MAX ? limits->dim : INT32_MAX;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || dims[i] > most)
            return error_set(err, STRATA_EPARSE,
                             "%s: dim %d is %" PRId64 ", allowed are 0 to %" PRId64, what,
                             i, dims[i], most);
    int64_t count;
    if (!checked_product(dims, rank, &count) || count > limits->elements)
        return error_set(err, STRATA_EPARSE,
                         "%s: the product of its %d dims is more than the %" PRId64
                         " elements allowed",
                         what, rank, limits->elements);
    *out = count;
    return STRATA_OK;
}

struct weight_view weights_at(const struct weights *w, size_t i)
{
    const struct weight_record *r = &w->records[i];
    struct weight_view view = {
        .name = w->names + r->name,
        .dtype = (enum weight_dtype)r->dtype,
        .rank = r->rank,
        .data = w->data + r->offset,
        .bytes = weight_dtype_size((enum weight_dtype)r->dtype),
    };
    for (int d = 0; d < view.rank; d++) {
        view.dims[d] = r->dims[d];
        view.bytes *= r->dims[d]; /* checked against the file when it was read */
    }
    return view;
}
