/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution over dense FP32 images on the host: the tasks of all images, groups and
 * filters over threads, by one of two methods.
 */
#ifndef PLUGINS_CONVOLUTION_CORE_H
#define PLUGINS_CONVOLUTION_CORE_H

#include "plugins/common/team/threads.h"
#include "plugins/common/team/turn.h"
#include "plugins/convolution/direct.h"
#include "plugins/convolution/product.h"

#define CONVOLUTION_DIRECT_FILTERS 3 /* per group, at most */
#define CONVOLUTION_PARALLEL 1e6     /* multiply-adds that pay for a thread team */

static inline int convolution_is_direct(int64_t filters_per_group)
{
    return filters_per_group <= CONVOLUTION_DIRECT_FILTERS;
}

static inline int64_t convolution_threads(void)
{
    return team_most();
}

/* Filters of a group are split where pixels alone would leave threads idle. */
static inline int64_t convolution_chunks(const struct convolution *cv, int64_t tasks)
{
    int64_t threads = convolution_threads();
    int64_t wanted = threads > 1 ? (2 * threads + tasks - 1) / tasks : 1;
    return window_min(wanted, convolution_panels(cv));
}

/* Bytes of job.scratch for the direct method: one padded copy a thread; 0 on overflow. */
static inline size_t convolution_scratch(const struct window *w)
{
    size_t size = convolution_plane_size(w);
    return __builtin_mul_overflow(size, (size_t)convolution_threads(), &size) ? 0 : size;
}

static inline void convolution_product_all(const struct convolution_job *job, double work)
{
    const struct convolution *cv = job->cv;
    int64_t plane = window_out_count(&cv->w), whole = 3 * cv->tile->vector;
    int64_t tasks = job->images * cv->groups * ((plane + whole - 1) / whole);
    int64_t chunks = work > CONVOLUTION_PARALLEL ? convolution_chunks(cv, tasks) : 1;
    int64_t next = 0;
#pragma omp parallel if (work > CONVOLUTION_PARALLEL)
    for (int64_t task; team_turn(&next, tasks * chunks, &task);)
        convolution_task(job, task, chunks);
}

/* The calling thread's padded copy, of `size` bytes. */
static inline float *convolution_copy_of(const struct convolution_job *job, size_t size)
{
    return (float *)(void *)(job->scratch + size * (size_t)team_self());
}

/* Never more threads than scratch was made for. */
static inline void convolution_direct_all(const struct convolution_job *job, double work)
{
    const struct convolution *cv = job->cv;
    int64_t tasks = job->images * cv->groups * cv->out_c;
    size_t size = convolution_plane_size(&cv->w);
    int64_t copies = (int64_t)(job->scratch_size / size);
    int threads =
        (int)window_min(work > CONVOLUTION_PARALLEL ? copies : 1, convolution_threads());
    (void)threads;
#pragma omp parallel num_threads(threads)
    {
        float *copy = convolution_copy_of(job, size);
        memset(copy, 0, size);
#pragma omp for schedule(static)
        for (int64_t task = 0; task < tasks; task++)
            convolution_direct(job, task, copy);
    }
}

/* job.scratch is needed where cv.tile is NULL. */
static inline void convolution_compute(const struct convolution_job *job)
{
    const struct convolution *cv = job->cv;
    double work = (double)job->images * (double)(cv->groups * cv->out_c) *
                  (double)window_out_count(&cv->w) * (double)cv->depth;
    if (cv->tile)
        convolution_product_all(job, work);
    else
        convolution_direct_all(job, work);
}

#endif /* PLUGINS_CONVOLUTION_CORE_H */
