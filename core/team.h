/* SPDX-License-Identifier: Apache-2.0
 *
 * Teams of threads inside kernels. A thread that opens a parallel region keeps its team
 * for the next one. Once the teams of a process have more threads than the machine has
 * processors, libgomp lets all of them sleep between regions instead of wait actively,
 * which costs tens of microseconds a region: more than many layers take. So who is done
 * with regions for now ends its team.
 */
#ifndef CORE_TEAM_H
#define CORE_TEAM_H

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

/* Processors that the process may use; 1 without OpenMP. */
static inline int team_processors(void)
{
#ifdef _OPENMP
    return omp_get_num_procs();
#else
    return 1;
#endif
}

/* Threads of regions that the calling thread opens from now on; returns the number until
 * now. Without OpenMP it is always 1. */
static inline int threads_set(int threads)
{
#ifdef _OPENMP
    const int before = omp_get_max_threads();
    if (threads > 0)
        omp_set_num_threads(threads);
    return before;
#else
    (void)threads;
    return 1;
#endif
}

/* Of the calling thread, outside of any region. Its next region makes a new one. */
static inline void team_end(void)
{
#if defined _OPENMP && defined HAVE_OMP_PAUSE_RESOURCE
    omp_pause_resource(omp_pause_soft, omp_get_initial_device());
#endif
}

#endif /* CORE_TEAM_H */
