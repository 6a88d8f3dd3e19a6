/* SPDX-License-Identifier: Apache-2.0
 *
 * What every reformat, on any device, asks of its arguments.
 */
#include "formats/reformat/reformat.h"

static int check_dims(const strata_desc *dst, const strata_desc *src, strata_error *err)
{
    if (dst->rank != src->rank)
        return error_set(err, STRATA_EINVAL,
                         "reformat: source of rank %d, destination of rank %d; both need "
                         "the same dims",
                         src->rank, dst->rank);
    for (int i = 0; i < dst->rank; i++)
        if (dst->dims[i] != src->dims[i])
            return error_set(err, STRATA_EINVAL,
                             "reformat: dim %d is %lld in the source and %lld in the "
                             "destination; both need the same dims",
                             i, (long long)src->dims[i], (long long)dst->dims[i]);
    return STRATA_OK;
}

/* Bytes from the first element to behind the last, modulo a pitch of some outer dims. */
static int64_t inner_bytes(const strata_desc *d, int64_t pitch)
{
    strata_desc inner = *d;
    for (int i = 0; i < d->rank; i++)
        if (d->strides[i] % pitch == 0)
            inner.dims[i] = i == d->vector_dim && d->dims[i] > d->vector ? d->vector
                            : i == d->vector_dim                         ? d->dims[i]
                                                                         : 1;
    return strata_desc_bytes(&inner);
}

/* Whether two that lie among each other, as parts of a larger tensor do, have no element
 * in common: modulo the pitch of some dim one ends before the other begins. */
static bool are_apart(const strata_desc *dst, uintptr_t to, const strata_desc *src,
                      uintptr_t from)
{
    const uintptr_t element = strata_dtype_size(dst->dtype);
    for (int i = 0; i < dst->rank; i++) {
        const int64_t pitch = dst->strides[i];
        if (pitch < 1 || strata_dtype_size(src->dtype) != element)
            continue;
        const uintptr_t bytes = (uintptr_t)pitch * element;
        const uintptr_t behind =
            to >= from ? (to - from) % bytes : (bytes - (from - to) % bytes) % bytes;
        if (behind >= (uintptr_t)inner_bytes(src, pitch) &&
            behind + (uintptr_t)inner_bytes(dst, pitch) <= bytes)
            return true;
    }
    return false;
}

static int check_data(const strata_desc *dst, const void *dst_data,
                      const strata_desc *src, const void *src_data, strata_error *err)
{
    const uintptr_t to = (uintptr_t)dst_data, from = (uintptr_t)src_data;
    if (dst_data == NULL || src_data == NULL)
        return error_set(err, STRATA_EINVAL,
                         "strata_reformat: %s is NULL; pass the tensor's memory",
                         dst_data == NULL ? "dst_data" : "src_data");
    if (to < from + (uintptr_t)strata_desc_bytes(src) &&
        from < to + (uintptr_t)strata_desc_bytes(dst) && !are_apart(dst, to, src, from))
        return error_set(err, STRATA_EINVAL,
                         "reformat: source and destination share memory; they need "
                         "buffers of their own");
    return STRATA_OK;
}

int reformat_check(const strata_desc *dst, const void *dst_data, const strata_desc *src,
                   const void *src_data, strata_error *err)
{
    int status = strata_desc_check(src, 0, err);
    if (status != STRATA_OK)
        error_prefix(err, "reformat source");
    else if ((status = strata_desc_check(dst, 1, err)) != STRATA_OK)
        error_prefix(err, "reformat destination");
    else
        status = check_dims(dst, src, err);
    if (status != STRATA_OK || strata_desc_count(dst) == 0)
        return status;
    return check_data(dst, dst_data, src, src_data, err);
}
