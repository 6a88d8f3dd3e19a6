/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of a build that makes many plans: each is timed once, wherever the user keeps
 * them, but for those of a plan that asks for its own a second time.
 */
#include "planner/mixed/mixed.h"

#include <stdlib.h>

/* The queries that no plan before had told; how many. */
static size_t find_new(struct cost_memory *m, const struct cost_query *const *queries,
                       size_t n, struct cost *costs, const struct cost_query **asked,
                       int64_t *least, const int64_t *best)
{
    size_t n_asked = 0;
    for (size_t i = 0; i < n; i++) {
        const struct cost *known = cost_table_find(&m->before, queries[i]->key);
        if (known) {
            costs[i] = *known;
        } else {
            asked[n_asked] = queries[i];
            least[n_asked++] = best[i];
        }
    }
    return n_asked;
}

static int tell_new(struct cost_memory *m, const struct planner *planner,
                    const struct cost_query **asked, const int64_t *least, size_t n,
                    struct cost *told, strata_error *err)
{
    m->real->deadline = m->source.deadline;
    int status = m->real->measure(m->real, planner, asked, least, n, told, err);
    for (size_t i = 0; i < n; i++)
        if (told[i].runs > 0) {
            const int kept = cost_table_put(&m->now, asked[i]->key, told[i], err);
            status = status != STRATA_OK ? status : kept;
        }
    return status;
}

static int measure(struct cost_source *s, const struct planner *planner,
                   const struct cost_query *const *queries, const int64_t *best, size_t n,
                   struct cost *costs, strata_error *err)
{
    struct cost_memory *m = (struct cost_memory *)s;
    const struct cost_query **asked = zalloc(n, sizeof *asked, "costs", err);
    int64_t *least = zalloc(n, sizeof *least, "costs", err);
    struct cost *told = zalloc(n, sizeof *told, "costs", err);
    int status = STRATA_ENOMEM;
    if (!asked || !least || !told)
        goto done;
    const size_t n_asked = find_new(m, queries, n, costs, asked, least, best);
    status =
        n_asked > 0 ? tell_new(m, planner, asked, least, n_asked, told, err) : STRATA_OK;
    for (size_t i = 0, k = 0; i < n && k < n_asked; i++)
        if (queries[i] == asked[k])
            costs[i] = told[k++];
done:
    free(asked);
    free(least);
    free(told);
    return status;
}

/* One budget and one warning of each kind, for an engine's plans of any source. */
static void share_course(struct cost_source *to, const struct cost_source *from)
{
    to->deadline = from->deadline;
    to->told_late = from->told_late;
    to->told_busy = from->told_busy;
    to->told_unkept = from->told_unkept;
}

void cost_memory_open(struct cost_memory *m, struct cost_source *real,
                      const struct planner_device *device)
{
    *m = (struct cost_memory){
        .source = {.name = real ? real->name : "none", .measure = measure}, .real = real};
    if (real)
        share_course(&m->source, real);
    cost_table_init(&m->before, device->properties.build);
    cost_table_init(&m->now, device->properties.build);
}

int cost_memory_add(struct cost_memory *m, const struct cost_table *known,
                    strata_error *err)
{
    return cost_table_merge(&m->before, known, err);
}

int cost_memory_next(struct cost_memory *m, bool confirms, strata_error *err)
{
    int status = cost_table_merge(&m->before, &m->now, err);
    cost_table_free(&m->now);
    cost_table_init(&m->now, m->before.device);
    m->source.confirms = confirms && m->real && m->real->confirms;
    return status;
}

void cost_memory_close(struct cost_memory *m)
{
    if (m->real)
        share_course(m->real, &m->source);
    cost_table_free(&m->before);
    cost_table_free(&m->now);
}
