/* SPDX-License-Identifier: Apache-2.0
 *
 * The row that takes everything, one element at a time, and the clearing of pads.
 */
#include "formats/reformat/kernels.h"

#include <string.h>

static void move_element(const struct reformat_job *job, int64_t to, int64_t from)
{
    char *dst = job->dst + to * (int64_t)job->dst_size;
    const char *src = job->src + from * (int64_t)job->src_size;
    reformat_convert(job->kernels, dst, job->dst_desc->dtype, src, job->src_desc->dtype,
                     1);
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
