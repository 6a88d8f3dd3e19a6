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

/* Of equals, what was tried first is the last. */
static int by_gain(const void *x, const void *y)
{
    const struct attempt_pair *p = x, *q = y;
    const int gain = (p->gain > q->gain) - (p->gain < q->gain);
    const int order = (p->a < q->a) - (p->a > q->a);
    return gain ? gain : order ? order : (p->b < q->b) - (p->b > q->b);
}

static bool is_pair(const struct attempt *a, const struct attempt *b, double least)
{
    return a->gain + b->gain >= least && a->ways[0].layer != b->ways[0].layer;
}

int attempts_pair(struct attempt_pair **out, size_t *n, const struct attempts *all,
                  double least, strata_error *err)
{
    size_t capacity = 0;
    int status = STRATA_OK;
    *out = NULL;
    *n = 0;
    for (size_t b = 1; b < all->n; b++)
        for (size_t a = 0; a < b && status == STRATA_OK; a++) {
            const struct attempt *x = &all->list[a], *y = &all->list[b];
            if (!is_pair(x, y, least))
                continue;
            status = grow(out, &capacity, *n, sizeof **out, err);
            if (status == STRATA_OK)
                (*out)[(*n)++] = (struct attempt_pair){a, b, x->gain + y->gain};
        }
    if (*n > 1)
        qsort(*out, *n, sizeof **out, by_gain);
    return status;
}

void attempts_free(struct attempts *all)
{
    for (size_t i = 0; i < all->n; i++)
        attempt_free(&all->list[i]);
    free(all->list);
    *all = (struct attempts){0};
}
