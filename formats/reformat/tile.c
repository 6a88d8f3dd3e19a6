/* SPDX-License-Identifier: Apache-2.0
 *
 * Moving contiguous elements: conversion, stores past the caches, vectors of a tile.
 */
#include "formats/reformat/tile.h"

void job_put(const struct reformat_job *job, char *dst, const char *src, int64_t n)
{
    const size_t bytes = (size_t)n * job->dst_size;
    if (job->bytes >= STREAM_BYTES)
        job->kernels->stream(dst, src, bytes);
    else
        memcpy(dst, src, bytes);
}

void job_convert(const struct reformat_job *job, char *dst, const char *src, int64_t n)
{
    if (same_dtype(job)) /* whose elements may be wider than the dtype's */
        memcpy(dst, src, (size_t)n * job->dst_size);
    else
        reformat_convert(job->kernels, dst, job->dst_desc->dtype, src,
                         job->src_desc->dtype, (size_t)n);
}

void job_convert_fetching(const struct reformat_job *job, char *dst, const char *src,
                          int64_t n)
{
    enum { CHUNK = 1024 };
    const int64_t size = (int64_t)job->src_size;
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t m = min64(n - i, CHUNK);
        fetch(src + (n + i) * size, m * size);
        job_convert(job, dst + i * (int64_t)job->dst_size, src + i * size, m);
    }
}

void tile_put(const struct reformat_job *job, const struct panel *p, const struct tile *t,
              int64_t c, int64_t n, const char *packed)
{
    const int64_t size = (int64_t)job->dst_size, step = p->pixel.dst;
    char *dst = t->dst + (t->pixel * step + lane_offset(&p->dst, t->channel + c)) * size;
    if (step == n) {
        job_put(job, dst, packed, n * t->pixels);
        return;
    }
    for (int64_t i = 0; i < t->pixels; i++)
        job_put(job, dst + i * step * size, packed + i * n * size, n);
}
