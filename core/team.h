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

/* The regions of the calling thread are its own from now on, without a team; returns what
 * ends that. */
static inline int team_leave(void)
{
#ifdef _OPENMP
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    return threads;
#else
    return 1;
#endif
}

static inline void team_return(int threads)
{
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    (void)threads;
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
