/* SPDX-License-Identifier: Apache-2.0
 *
 * Parallel regions as plugins have them: one thread goes through all of a region without
 * a team, and a region within a team of others is whole, too.
 */
#include <criterion/criterion.h>

#ifdef _OPENMP
#include <omp.h>

enum { COUNT = 100, SUM = COUNT * (COUNT - 1) / 2 };

/* What the three kinds of loops in a region add up, and how deep the region is. */
struct sums {
    int fixed, dynamic, reduced, level;
};

static struct sums add_up(int parallel)
{
    struct sums s = {0};
    int sum = 0;
#pragma omp parallel if (parallel)
    {
#pragma omp for schedule(static)
        for (int i = 0; i < COUNT; i++)
#pragma omp atomic
            s.fixed += i;
#pragma omp for schedule(dynamic, 3)
        for (int i = 0; i < COUNT; i++)
#pragma omp atomic
            s.dynamic += i;
#pragma omp single
        s.level = omp_get_level();
    }
#pragma omp parallel for reduction(+ : sum) if (parallel)
    for (int i = 0; i < COUNT; i++)
        sum += i;
    s.reduced = sum;
    return s;
}

static int is_whole(const struct sums *s)
{
    return s->fixed == SUM && s->dynamic == SUM && s->reduced == SUM;
}

Test(team, one_thread_does_all_of_a_region_without_a_team)
{
    const struct sums s = add_up(0);
    cr_expect(is_whole(&s), "%d, %d, %d", s.fixed, s.dynamic, s.reduced);
#ifndef __clang__ /* its regions do not come here */
    cr_expect_eq(s.level, 0);
#endif
}

Test(team, several_threads_are_a_team)
{
    omp_set_num_threads(3);
    const struct sums s = add_up(1);
    cr_expect(is_whole(&s), "%d, %d, %d", s.fixed, s.dynamic, s.reduced);
    cr_expect_eq(s.level, 1);
}

/* By itself, whatever part of the work around it a thread has. */
Test(team, each_thread_of_a_team_does_all_of_a_region)
{
    int whole = 0, threads = 0;
#pragma omp parallel num_threads(3) reduction(+ : whole, threads)
    {
        const struct sums s = add_up(0);
        whole += is_whole(&s);
        threads++;
    }
    cr_expect_gt(threads, 1);
    cr_expect_eq(whole, threads);
}
#else
Test(team, there_is_none)
{
    cr_skip_test("built without OpenMP");
}
#endif
