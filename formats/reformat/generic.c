/* SPDX-License-Identifier: Apache-2.0
 *
 * The row that takes everything, one element at a time, and the clearing of pads.
 */
#include "formats/reformat/kernels.h"

#include <math.h>
#include <string.h>

/* double holds every value of every dtype. */
static double load(const char *p, int dtype)
{
    float f;
    uint16_t h;
    int32_t i;
    switch (dtype) {
    case STRATA_FP32:
        memcpy(&f, p, sizeof(f));
        return f;
    case STRATA_FP16:
        memcpy(&h, p, sizeof(h));
        return half_to_float(h);
    case STRATA_INT32:
        memcpy(&i, p, sizeof(i));
        return i;
    case STRATA_INT8:
        return *(const signed char *)p;
    default:
        return *(const unsigned char *)p;
    }
}

static double rounded(double x, double low, double high)
{
    return x != x ? 0 : x < low ? low : x > high ? high : rint(x);
}

static void store(char *p, int dtype, double x)
{
    const float f = (float)x;
    uint16_t h;
    int32_t i;
    switch (dtype) {
    case STRATA_FP32:
        memcpy(p, &f, sizeof(f));
        break;
    case STRATA_FP16:
        h = half_from_float(f);
        memcpy(p, &h, sizeof(h));
        break;
    case STRATA_INT32:
        i = (int32_t)rounded(x, INT32_MIN, INT32_MAX);
        memcpy(p, &i, sizeof(i));
        break;
    case STRATA_INT8:
        *p = (char)(int)rounded(x, INT8_MIN, INT8_MAX);
        break;
    default:
        *(unsigned char *)p = (unsigned char)rounded(x, 0, UINT8_MAX);
    }
}

static void move_element(const struct reformat_job *job, int64_t to, int64_t from)
{
    char *dst = job->dst + to * (int64_t)job->dst_size;
    const char *src = job->src + from * (int64_t)job->src_size;
    if (job->dst_desc->dtype == job->src_desc->dtype)
        memcpy(dst, src, job->dst_size);
    else
        store(dst, job->dst_desc->dtype, load(src, job->src_desc->dtype));
}

static void seek(const strata_desc *d, int64_t linear, int64_t index[STRATA_MAX_RANK])
{
    for (int i = d->rank - 1; i >= 0; i--) {
        index[i] = linear % d->dims[i];
        linear /= d->dims[i];
    }
}

void generic_drive(const struct reformat_job *job)
{
    const strata_desc *d = job->dst_desc;
    const int last = d->rank - 1;
    const int64_t lines = strata_desc_count(d) / d->dims[last];
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (job->bytes > 32 * 1024)
#endif
    for (int64_t i = 0; i < lines; i++) {
        int64_t index[STRATA_MAX_RANK];
        seek(d, i * d->dims[last], index);
        for (index[last] = 0; index[last] < d->dims[last]; index[last]++)
            move_element(job, strata_desc_offset(d, index),
                         strata_desc_offset(job->src_desc, index));
    }
    reformat_clear_pads(d, job->dst);
}

void reformat_clear_pads(const strata_desc *d, void *data)
{
    const int v = d->vector_dim;
    const int64_t used = v < 0 ? 0 : d->dims[v] % d->vector;
    const int64_t count = strata_desc_count(d);
    if (used == 0 || count == 0)
        return;
    const size_t size = strata_dtype_size(d->dtype);
    struct loop loops[STRATA_MAX_RANK], inner = {1, 0, 0};
    int n = 0;
    for (int i = 0; i < d->rank; i++)
        if (i != v)
            loops[n++] = (struct loop){d->dims[i], d->strides[i], 0};
    if (n > 0)
        inner = loops[--n];
    char *base =
        (char *)data + (d->dims[v] / d->vector * d->strides[v] + used) * (int64_t)size;
    const size_t bytes = (size_t)(d->vector - used) * size;
    const int64_t lines = count / d->dims[v] / inner.extent;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (count > 32 * 1024)
#endif
    for (int64_t i = 0; i < lines; i++) {
        int64_t none;
        const int64_t at = loops_seek(loops, n, i, &none);
        for (int64_t k = 0; k < inner.extent; k++)
            memset(base + (at + k * inner.dst) * (int64_t)size, 0, bytes);
    }
}
