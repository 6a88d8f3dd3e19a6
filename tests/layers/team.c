/* SPDX-License-Identifier: Apache-2.0
 *
 * Parallel regions as plugins have them: one thread goes through all of a region without
 * a team, a region within a team of others is whole, too, and loops of who calls it go
 * on.
 */
#include <criterion/criterion.h>

#include "plugins/common/team/turn.h"

#ifdef _OPENMP
#include <omp.h>

enum { COUNT = 100, SUM = COUNT * (COUNT - 1) / 2 };

/* What the three kinds of loops in a region add up, how often one thread alone did what
 * one is to do, and how deep the region is. */
struct sums {
    int fixed, turns, reduced, singles, level;
};

static struct sums add_up(int parallel)
{
    struct sums s = {0};
    int64_t next = 0;
    int sum = 0;
#pragma omp parallel if (parallel)
    {
        for (int64_t i; team_turn(&next, COUNT, &i);)
#pragma omp atomic
            s.turns += (int)i;
#pragma omp for schedule(static)
        for (int i = 0; i < COUNT; i++)
#pragma omp atomic
            s.fixed += i;
#pragma omp single
        {
            s.level = omp_get_level();
            s.singles++;
        }
    }
#pragma omp parallel for reduction(+ : sum) if (parallel)
    for (int i = 0; i < COUNT; i++)
        sum += i;
    s.reduced = sum;
    return s;
}

static int is_whole(const struct sums *s)
{
    return s->fixed == SUM && s->turns == SUM && s->reduced == SUM && s->singles == 1;
}

Test(team, one_thread_does_all_of_a_region_without_a_team)
{
    const struct sums s = add_up(0);
    cr_expect(is_whole(&s), "%d, %d, %d, %d", s.fixed, s.turns, s.reduced, s.singles);
#ifndef __clang__ /* its regions do not come here */
    cr_expect_eq(s.level, 0);
#endif
}

Test(team, several_threads_are_a_team)
{
    omp_set_num_threads(3);
    const struct sums s = add_up(1);
    cr_expect(is_whole(&s), "%d, %d, %d, %d", s.fixed, s.turns, s.reduced, s.singles);
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

/* A loop that libgomp keeps with the team, which is the region's own within another. */
static int add_up_dynamic(void)
{
    int sum = 0, once = 0;
#pragma omp parallel num_threads(1)
    {
        once++;
#pragma omp for schedule(dynamic, 3)
        for (int i = 0; i < COUNT; i++)
            sum += i;
    }
    return once == 1 ? sum : 0;
}

Test(team, a_callers_loop_of_one_thread_goes_on)
{
    int ran = 0, whole = 0;
#pragma omp parallel for schedule(dynamic) num_threads(1)
    for (int i = 0; i < COUNT; i++) {
        const struct sums s = add_up(0);
        whole += is_whole(&s) && add_up_dynamic() == SUM;
        ran++;
    }
    cr_expect_eq(ran, COUNT);
    cr_expect_eq(whole, COUNT);
}

/* Of the team of one that every thread has, without a region. */
Test(team, a_callers_loop_outside_regions_goes_on)
{
    int ran = 0, whole = 0;
#pragma omp for schedule(dynamic)
    for (int i = 0; i < COUNT; i++) {
        const struct sums s = add_up(0);
        whole += is_whole(&s);
        ran++;
    }
    cr_expect_eq(ran, COUNT);
    cr_expect_eq(whole, COUNT);
}
#else
Test(team, there_is_none)
{
    cr_skip_test("built without OpenMP");
}
#endif
