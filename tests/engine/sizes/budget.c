/* SPDX-License-Identifier: Apache-2.0
 *
 * The time for measuring, and what is told of it, is one for all sizes of an engine.
 */
#include <time.h>

#include "planner/mixed/mixed.h"
#include "planner/planner.h"
#include "tests/engine/batch_net.h"

TestSuite(budget, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

static const char profile[] = "[build]\ncosts = measure\ncosts_budget = 100ms\n"
                              "[profile]\nN = 1, 2, 3, 4\n";

static void count_late(void *user, int level, const char *line)
{
    (void)level;
    *(int *)user += strstr(line, "time for measuring ran out") != NULL;
}

/* The first ask takes all the time that there is. */
static int sleep_once(void *user)
{
    const struct timespec longer = {.tv_nsec = 150000000};
    if ((*(int *)user)++ == 0)
        nanosleep(&longer, NULL);
    return 0;
}

Test(budget, all_sizes_together_have_one)
{
    struct net n;
    strata_error err;
    int asked = 0, warnings = 0;
    strata_set_logger(count_late, &warnings, STRATA_LOG_WARNING);
    strata_set_interrupt(sleep_once, &asked);
    OK(open_net(&n, profile, "N x 3 x 6 x 6", "prob", conv_net, &err));
    strata_set_interrupt(NULL, NULL);
    strata_set_logger(NULL, NULL, STRATA_LOG_WARNING);
    cr_expect_eq(warnings, 1, "%d warnings", warnings);
    cr_assert_eq(n.engine->n_smaller, 3);
    cr_expect_eq(n.engine->planner->costs.measured, 0);
    for (size_t i = 0; i < n.engine->n_smaller; i++)
        cr_expect_eq(n.engine->smaller[i]->planner->costs.measured, 0, "size %zu", i);
    close_net(&n);
}

/* Plans with and without rounding are by a source of their own. */
Test(budget, mixtures_have_no_other_one)
{
    static const struct planner_device device = {.properties = {.build = "test"}};
    struct cost_source real = {.deadline = 5, .told_late = true};
    struct cost_memory m;
    cost_memory_open(&m, &real, &device);
    cr_expect_eq(m.source.deadline, 5);
    cr_expect(m.source.told_late);
    m.source.told_busy = m.source.told_unkept = true;
    cost_memory_close(&m);
    cr_expect(real.told_late && real.told_busy && real.told_unkept);
    cr_expect_eq(real.deadline, 5);
}
