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

static int check_data(const strata_desc *dst, const void *dst_data,
                      const strata_desc *src, const void *src_data, strata_error *err)
{
    const uintptr_t to = (uintptr_t)dst_data, from = (uintptr_t)src_data;
    if (dst_data == NULL || src_data == NULL)
        return error_set(err, STRATA_EINVAL,
                         "strata_reformat: %s is NULL; pass the tensor's memory",
                         dst_data == NULL ? "dst_data" : "src_data");
    if (to < from + (uintptr_t)strata_desc_bytes(src) &&
        from < to + (uintptr_t)strata_desc_bytes(dst))
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
