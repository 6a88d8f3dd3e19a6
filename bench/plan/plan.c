/* SPDX-License-Identifier: Apache-2.0
 *
 * Time of exact planning on made-up problems, one core (processor time): median and worst
 * over seeds, nodes of branch and bound, gap left (0: proved). bench/plan/plan [labels=5]
 * [support=0.7] [seeds=30] [max nodes=0]
 */
#include "bench/plan/nets.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/samples.h"

/* Of this thread's own work: other loads of the machine do not count. */
static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int measure(const struct net_builder *builder, int labels, double support,
                   int seeds, uint64_t max_nodes)
{
    static struct net n;
    double ms[256], gap = 0;
    uint64_t nodes = 0;
    size_t ops = 0;
    for (int seed = 0; seed < seeds; seed++) {
        struct plan *plan = NULL;
        struct plan_options options = {.max_nodes = max_nodes};
        strata_error err = {0};
        if (!net_make(&n, builder, labels, support, (uint64_t)seed + 1))
            return 1;
        double start = milliseconds();
        if (plan_solve(&plan, &n.p, &options, &err) != STRATA_OK) {
            fprintf(stderr, "%s: %s\n", builder->name, err.message);
            return 1;
        }
        ms[seed] = milliseconds() - start;
        double left = 100.0 * (double)(plan->cost - plan->bound) / (double)plan->cost;
        gap = left > gap ? left : gap;
        nodes = plan->nodes > nodes ? plan->nodes : nodes;
        ops = n.p.n_ops;
        plan_free(plan);
        net_free(&n);
    }
    qsort(ms, (size_t)seeds, sizeof *ms, by_value);
    printf("%-22s %5zu %9.2f %9.2f %9llu %8.3f\n", builder->name, ops, ms[seeds / 2],
           ms[seeds - 1], (unsigned long long)nodes, gap);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    int labels = argc > 1 ? atoi(argv[1]) : 5, seeds = argc > 3 ? atoi(argv[3]) : 30;
    double support = argc > 2 ? atof(argv[2]) : 0.7;
    uint64_t max_nodes = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    if (labels < 2 || labels > 16 || seeds < 1 || seeds > 256) {
        fprintf(stderr, "usage: plan [labels 2..16] [support] [seeds 1..256] [nodes]\n");
        return 2;
    }
    printf("%d labels, support %.2f, %d seeds\n%-22s %5s %9s %9s %9s %8s\n", labels,
           support, seeds, "network", "ops", "median ms", "max ms", "max nodes", "gap %");
    for (int i = 0; i < n_net_builders; i++)
        if (measure(&net_builders[i], labels, support, seeds, max_nodes))
            return 1;
    return 0;
}
