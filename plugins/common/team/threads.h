/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of regions, one where there is no OpenMP, as under ThreadSanitizer.
 */
#ifndef PLUGINS_COMMON_TEAM_THREADS_H
#define PLUGINS_COMMON_TEAM_THREADS_H

#ifdef _OPENMP
#include <omp.h>

/* Of the next region, at most. */
static inline int team_most(void)
{
    return omp_get_max_threads();
}

/* Of the region that this is in, and which one this is. */
static inline int team_size(void)
{
    return omp_get_num_threads();
}

static inline int team_self(void)
{
    return omp_get_thread_num();
}
#else
static inline int team_most(void)
{
    return 1;
}

static inline int team_size(void)
{
    return 1;
}

static inline int team_self(void)
{
    return 0;
}
#endif

#endif /* PLUGINS_COMMON_TEAM_THREADS_H */
