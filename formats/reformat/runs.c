/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver of runs: contiguous elements, in pieces for the threads.
 */
#include "formats/reformat/tile.h"

#define PIECE_BYTES (64 * 1024) /* of a run, for one thread */

static void move_run(const struct reformat_job *job, char *dst, const char *src,
                     int64_t n)
{
    enum { CHUNK = 2048 };
    _Alignas(64) char buffer[CHUNK * sizeof(double)];
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
