/* SPDX-License-Identifier: Apache-2.0
 *
 * Parallel regions that one thread runs. libgomp makes a team for them all the same, with
 * its memory, a barrier and a system call: 250 ns where a small layer takes as long. Here
 * the thread goes through the region itself, as it then does for the constructs in it,
 * which bind to the team of one that every thread has. Plugins are linked so that their
 * regions come here (--wrap).
 *
 * A loop of the caller's own may be under way in that team, and libgomp keeps where it is
 * with the thread. So regions have nothing that is kept there: no loops but static ones,
 * no sections, and numbers by turn.h in place of schedule(dynamic).
 */
#include <strata/plugin.h>

#ifdef _OPENMP
#include <omp.h>

typedef void region(void *data);
void __real_GOMP_parallel(region *run, void *data, unsigned threads, unsigned flags);
void __wrap_GOMP_parallel(region *run, void *data, unsigned threads, unsigned flags);

/* threads: 0 as many as there may be; 1 also where the region's `if` says no. Within
 * another region, of one thread too, a region has to have a team of its own: constructs
 * in it would be those of the other. */
__attribute__((visibility("hidden"))) void
__wrap_GOMP_parallel(region *run, void *data, unsigned threads, unsigned flags)
{
    const int wanted = threads ? (int)threads : omp_get_max_threads();
    if (wanted == 1 && omp_get_level() == 0)
        run(data);
    else
        __real_GOMP_parallel(run, data, threads, flags);
}
#endif
