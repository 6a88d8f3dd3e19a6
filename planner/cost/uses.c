/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan runs, by its costs: each key once, with how many of its layers have it.
 */
#include "planner/cost/cost.h"

#include <stdlib.h>
#include <string.h>

#include "planner/planner.h"

/* Of the key, where it is already; NULL: it is not. */
static struct cost_use *find(struct cost_use *uses, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(uses[i].key, key) == 0)
            return &uses[i];
    return NULL;
}

/* Costs that are no times are left out, as nothing was measured there. */
static int add(struct cost_use *uses, size_t *n, const struct planner *planner,
               const struct planner_candidate *c, strata_error *err)
{
    struct cost_query q;
    int status = cost_query_run(&q, planner, c, err);
    const struct cost *cost =
        status == STRATA_OK ? cost_table_find(&planner->known, q.key) : NULL;
    struct cost_use *old = cost ? find(uses, *n, q.key) : NULL;
    if (old) {
        old->uses++;
    } else if (cost) {
        struct cost_use *use = &uses[(*n)++];
        *use = (struct cost_use){.key = q.key, .cost = *cost, .uses = 1};
        q.key = NULL;
        use->layer = duplicate(q.layer, err);
        status = use->layer ? STRATA_OK : STRATA_ENOMEM;
    }
    cost_query_free(&q);
    return status;
}

static int by_time(const void *a, const void *b)
{
    const struct cost_use *x = a, *y = b;
    const int64_t p = x->cost.ns * (int64_t)x->uses, q = y->cost.ns * (int64_t)y->uses;
    return p != q ? (p < q) - (p > q) : strcmp(x->key, y->key);
}

int cost_uses(struct cost_use **out, size_t *n, const struct planner *planner,
              strata_error *err)
{
    struct cost_use *uses = *out =
        zalloc(planner->n_nodes, sizeof *uses, "what a plan runs", err);
    int status = uses ? STRATA_OK : STRATA_ENOMEM;
    *n = 0;
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++) {
        const struct planner_candidate *c = planner_chosen(planner, planner->plan, i);
        if (planner_runs(c))
            status = add(uses, n, planner, c, err);
    }
    if (status == STRATA_OK)
        qsort(uses, *n, sizeof *uses, by_time);
    return status;
}

void cost_free_uses(struct cost_use *uses, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(uses[i].key);
        free(uses[i].layer);
    }
    free(uses);
}
