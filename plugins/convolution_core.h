/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution over dense FP32 images on the host: the tasks of all images, groups and
 * filters over threads, by one of two methods.
 */
#ifndef PLUGINS_CONVOLUTION_CORE_H
#define PLUGINS_CONVOLUTION_CORE_H

#include "plugins/convolution_direct.h"
#include "plugins/convolution_product.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#define CONVOLUTION_DIRECT_FILTERS 3 /* per group, at most */
#define CONVOLUTION_PARALLEL 1e6     /* multiply-adds that pay for a thread team */

/* Filters of a group are split where pixels alone would leave threads idle. */
static inline int64_t convolution_chunks(const struct convolution *cv, int64_t tasks)
{
    int64_t wanted = 1;
#ifdef _OPENMP
    int64_t threads = omp_get_max_threads();
    if (threads > 1)
        wanted = (2 * threads + tasks - 1) / tasks;
#endif
    return window_min(wanted, convolution_panels(cv));
}

static inline void convolution_compute(const struct convolution_job *job)
{
    const struct convolution *cv = job->cv;
    int64_t plane = window_out_count(&cv->w), tasks, chunks = 1;
    double work = (double)job->images * (double)(cv->groups * cv->out_c) *
                  (double)plane * (double)cv->depth;
    if (cv->tile) {
        int64_t whole = 3 * cv->tile->vector;
        tasks = job->images * cv->groups * ((plane + whole - 1) / whole);
        chunks = work > CONVOLUTION_PARALLEL ? convolution_chunks(cv, tasks) : 1;
        tasks *= chunks;
    } else {
        tasks = job->images * cv->groups * cv->out_c;
    }
#pragma omp parallel for schedule(dynamic) if (work > CONVOLUTION_PARALLEL)
    for (int64_t task = 0; task < tasks; task++)
        if (cv->tile)
            convolution_task(job, task, chunks);
        else
            convolution_direct(job, task);
}

#endif /* PLUGINS_CONVOLUTION_CORE_H */
