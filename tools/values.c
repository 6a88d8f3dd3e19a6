/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of a tensor, apart from the format it is bound in.
 */
#include "tools/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/weights/npy.h"

static int linear(strata_desc *out, const struct values *v, strata_error *err)
{
    return format_desc(out, (struct format){v->dtype, ORDER_LINEAR, 1}, v->dims, v->rank,
                       err);
}

int values_open(struct values *v, const strata_desc *desc, const char *what,
                strata_error *err)
{
    const bool narrow = dtype_exact(desc->dtype, STRATA_FP32) && dtype_range(desc->dtype);
    *v = (struct values){.dtype = narrow ? STRATA_FP32 : desc->dtype,
                         .rank = desc->rank,
                         .count = strata_desc_count(desc)};
    memcpy(v->dims, desc->dims, sizeof v->dims);
    v->data = zalloc((size_t)v->count, strata_dtype_size(v->dtype), what, err);
    return v->data ? STRATA_OK : STRATA_ENOMEM;
}

int values_read(struct values *v, const strata_desc *desc, const void *from,
                const char *what, strata_error *err)
{
    strata_desc own;
    int status = values_open(v, desc, what, err);
    if (status == STRATA_OK)
        status = linear(&own, v, err);
    return status == STRATA_OK ? strata_reformat(&own, v->data, desc, from, err) : status;
}

int values_write(const struct values *v, const strata_desc *desc, void *to,
                 strata_error *err)
{
    strata_desc own;
    int status = linear(&own, v, err);
    return status == STRATA_OK ? strata_reformat(desc, to, &own, v->data, err) : status;
}

int values_save(const struct values *v, const char *path, strata_error *err)
{
    return npy_write(path, v->dtype, v->dims, v->rank, v->data, err);
}

void values_free(struct values *v)
{
    free(v->data);
    v->data = NULL;
}

/* Of integers. */
static int64_t whole_at(const struct values *v, int64_t i)
{
    switch (v->dtype) {
    case STRATA_INT64:
        return ((const int64_t *)v->data)[i];
    case STRATA_INT32:
        return ((const int32_t *)v->data)[i];
    case STRATA_INT8:
        return ((const int8_t *)v->data)[i];
    case STRATA_BOOL8:
        return ((const uint8_t *)v->data)[i] != 0;
    default:
        return ((const uint8_t *)v->data)[i];
    }
}

bool values_whole(const struct values *v)
{
    return dtype_range(v->dtype) == 0;
}

double values_at(const struct values *v, int64_t i)
{
    if (values_whole(v))
        return (double)whole_at(v, i);
    return v->dtype == STRATA_FP64 ? ((const double *)v->data)[i]
                                   : (double)((const float *)v->data)[i];
}

double values_apart(const struct values *v, int64_t i, const struct values *w, int64_t k)
{
    if (values_whole(v) && values_whole(w)) {
        const int64_t a = whole_at(v, i), b = whole_at(w, k);
        return a < b ? -(double)((uint64_t)b - (uint64_t)a)
                     : (double)((uint64_t)a - (uint64_t)b);
    }
    const double x = values_at(v, i), y = values_at(w, k);
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    return isnan(x - y) ? (double)INFINITY : x - y;
}

const char *values_text(char text[VALUES_TEXT], const struct values *v, int64_t i,
                        int digits)
{
    if (values_whole(v))
        snprintf(text, VALUES_TEXT, "%lld", (long long)whole_at(v, i));
    else
        snprintf(text, VALUES_TEXT, "%.*g", digits, values_at(v, i));
    return text;
}

int64_t values_odd(const struct values *v, int64_t *nans, int64_t *infinities)
{
    int64_t first = -1;
    *nans = *infinities = 0;
    for (int64_t i = 0; i < v->count; i++) {
        const double x = values_at(v, i);
        *nans += isnan(x) != 0;
        *infinities += isinf(x) != 0;
        if (first < 0 && !isfinite(x))
            first = i;
    }
    return first;
}
