/* SPDX-License-Identifier: Apache-2.0
 *
 * Moving contiguous elements: conversion, stores past the caches, and the driver of runs.
 */
#include "formats/reformat_tile.h"

#define PIECE_BYTES (64 * 1024) /* of a run, for one thread */
/* Of dst: results past it are not in the caches when the next layer reads them, and
 * storing past the caches spares reading each line before it is written. */
#define STREAM_BYTES (8 * 1024 * 1024)

void job_put(const struct reformat_job *job, char *dst, const char *src, int64_t n)
{
    const size_t bytes = (size_t)n * job->dst_size;
    if (job->bytes >= STREAM_BYTES)
        job->kernels->stream(dst, src, bytes);
    else
        memcpy(dst, src, bytes);
}

void reformat_convert(const struct reformat_kernels *k, void *dst, int dst_dtype,
                      const void *src, int src_dtype, size_t n)
{
    enum { CHUNK = 512 };
    _Alignas(64) float middle[CHUNK];
    if (dst_dtype == src_dtype) {
        memcpy(dst, src, n * strata_dtype_size(dst_dtype));
    } else if (src_dtype == STRATA_FP32) {
        k->from_float[dst_dtype](dst, src, n);
    } else if (dst_dtype == STRATA_FP32) {
        k->to_float[src_dtype](dst, src, n);
    } else {
        for (size_t i = 0; i < n; i += CHUNK) {
            const size_t m = n - i < CHUNK ? n - i : CHUNK;
            k->to_float[src_dtype](
                middle, (const char *)src + i * strata_dtype_size(src_dtype), m);
            k->from_float[dst_dtype]((char *)dst + i * strata_dtype_size(dst_dtype),
                                     middle, m);
        }
    }
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

/* ---- runs ------------------------------------------------------------------------- */

static void move_run(const struct reformat_job *job, char *dst, const char *src,
                     int64_t n)
{
    enum { CHUNK = 2048 };
    _Alignas(64) char buffer[CHUNK * sizeof(float)];
    if (same_dtype(job)) {
        job_put(job, dst, src, n);
    } else if (job->bytes < STREAM_BYTES) {
        job_convert(job, dst, src, n);
    } else {
        for (int64_t i = 0; i < n; i += CHUNK) {
            const int64_t m = min64(n - i, CHUNK);
            job_convert(job, buffer, src + i * (int64_t)job->src_size, m);
            job_put(job, dst + i * (int64_t)job->dst_size, buffer, m);
        }
    }
}

void runs_drive(const struct reformat_job *job, const struct runs *r)
{
    const int64_t piece = PIECE_BYTES / (int64_t)job->dst_size;
    const int64_t pieces = divide_up(r->length, piece);
    const int64_t tasks = loops_steps(r->outer, r->n_outer) * pieces;
#ifdef _OPENMP
#pragma omp parallel if (job->bytes > PARALLEL_BYTES)
#endif
    {
#ifdef _OPENMP
#pragma omp for schedule(static)
#endif
        for (int64_t t = 0; t < tasks; t++) {
            const int64_t at = t % pieces * piece;
            int64_t from;
            const int64_t to = loops_seek(r->outer, r->n_outer, t / pieces, &from);
            move_run(job, job->dst + (to + at) * (int64_t)job->dst_size,
                     job->src + (from + at) * (int64_t)job->src_size,
                     min64(piece, r->length - at));
        }
        job->kernels->fence();
    }
}
