/* SPDX-License-Identifier: Apache-2.0
 *
 * Parallel regions that one thread runs. libgomp makes a team for them all the same, with
 * its memory, a barrier and a system call: 250 ns where a small layer takes as long. Here
 * the thread goes through the region itself, as it then does for the constructs in it,
 * which bind to the team of one that every thread has. Plugins are linked so that their
 * regions come here (--wrap).
 */
#include <strata/plugin.h>

#ifdef _OPENMP
#include <omp.h>

typedef void region(void *data);
void __real_GOMP_parallel(region *run, void *data, unsigned threads, unsigned flags);
void __wrap_GOMP_parallel(region *run, void *data, unsigned threads, unsigned flags);

/* threads: 0 as many as there may be; 1 also where the region's `if` says no. Within a
 * team of others a region has to have one of its own, which says that it is one. */
__attribute__((visibility("hidden"))) void
__wrap_GOMP_parallel(region *run, void *data, unsigned threads, unsigned flags)
{
    const int wanted = threads ? (int)threads : omp_get_max_threads();
    if (wanted == 1 && omp_get_num_threads() == 1)
        run(data);
    else
        __real_GOMP_parallel(run, data, threads, flags);
}
#endif
