/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans to try.
 */
#include "engine/trials/attempts.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"

int attempt_join(struct attempt *a, const struct attempt *other, strata_error *err)
{
    int status = near_add(&a->left, &other->left, err);
    a->surplus += other->surplus;
    for (size_t i = 0; i < other->n_ways && status == STRATA_OK; i++) {
        status = grow(&a->ways, &a->capacity, a->n_ways, sizeof *a->ways, err);
        if (status == STRATA_OK)
            a->ways[a->n_ways++] = other->ways[i];
    }
    return status;
}

int attempt_add_way(struct attempt *a, const struct near_use *use, double with_ms,
                    strata_error *err)
{
    int status = grow(&a->ways, &a->capacity, a->n_ways, sizeof *a->ways, err);
    if (status == STRATA_OK)
        a->ways[a->n_ways++] = (struct planner_left){.layer = (char *)use->layer,
                                                     .impl = (char *)use->impl,
                                                     .uses = use->uses,
                                                     .with_ns = llround(with_ms * 1e6)};
    return status;
}

void attempt_free(struct attempt *a)
{
    near_free_left(&a->left);
    free(a->ways);
    plan_free(a->plan);
    *a = (struct attempt){0};
}

int attempts_put(struct attempts *all, struct attempt *a, strata_error *err)
{
    int status = grow(&all->list, &all->capacity, all->n, sizeof *all->list, err);
    if (status == STRATA_OK) {
        all->list[all->n++] = *a;
        *a = (struct attempt){0};
    }
    attempt_free(a);
    return status;
}

/* Of equals the first: what takes most of the time. */
bool attempts_take(struct attempts *all, struct attempt *out)
{
    size_t least = 0;
    if (all->n == 0)
        return false;
    for (size_t i = 1; i < all->n; i++)
        if (attempt_cost(&all->list[i]) < attempt_cost(&all->list[least]))
            least = i;
    *out = all->list[least];
    for (size_t i = least; i + 1 < all->n; i++)
        all->list[i] = all->list[i + 1];
    all->n--;
    return true;
}

void attempts_free(struct attempts *all)
{
    for (size_t i = 0; i < all->n; i++)
        attempt_free(&all->list[i]);
    free(all->list);
    *all = (struct attempts){0};
}
