/* SPDX-License-Identifier: Apache-2.0
 *
 * What was decided of siblings, layers of one input that may be one.
 */
#include "tools/explain/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/merge/merge.h"

static size_t count_done(const struct planner_merges *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->groups.n; i++)
        n += m->verdicts[i].done;
    return n;
}

void explain_print_merge_summary(const strata_engine *e)
{
    const struct planner_merges *m = e->planner->merges;
    if (m && m->groups.n > 0)
        tool_print("%zu of %zu groups of siblings merged, which --fusions lists\n",
                   count_done(m), m->groups.n);
}

/* Of the layer that stands for the at-th of a group. */
static const char *merged_name(const strata_network *net, const strata_network *base,
                               const struct network_siblings *g, int at)
{
    const int end = network_siblings_result(base, g, 0);
    const int first = net->tensors[end].producer - network_siblings_made(g) + 1;
    const int k = at < g->n * g->length ? at % g->length : g->length;
    const int output = base->layers[g->layers[at]].outputs[0];
    const bool join = g->behind == BEHIND_JOINED && k == g->length;
    return net->layers[join ? net->tensors[output].producer - 1 : first + k].name;
}

const char *explain_merged_name(const strata_engine *e, const char *layer)
{
    const struct planner_merges *m = e->planner->merges;
    const strata_network *base = planner_unmerged(e->planner);
    for (size_t i = 0; m && i < m->groups.n; i++) {
        const struct network_siblings *g = &m->groups.list[i];
        for (int at = 0; m->verdicts[i].done && at < network_siblings_count(g); at++) {
            if (strcmp(base->layers[g->layers[at]].name, layer) == 0)
                return merged_name(e->network, base, g, at);
        }
    }
    return layer;
}

static void price_cell(struct table *t, const struct planner_verdict *v, int64_t cost)
{
    char text[TEXT_REAL];
    table_cell(t, "%s", v->apart || v->merged ? explain_in_us(text, cost) : "");
}

void explain_print_merges(const strata_engine *e, int format)
{
    static const char *const columns[] = {"siblings", "merged", "us merged", "us apart",
                                          "why"};
    const struct planner_merges *m = e->planner->merges;
    struct table t;
    if (!m || m->groups.n == 0)
        return;
    if (format == TABLE_TEXT || format == TABLE_MARKDOWN)
        fputs("\n", stdout);
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 2 | 1 << 3);
    for (size_t i = 0; i < m->groups.n; i++) {
        const struct planner_verdict *v = &m->verdicts[i];
        char *name = network_siblings_name(planner_unmerged(e->planner),
                                           &m->groups.list[i], 0, NULL);
        const bool joined = m->groups.list[i].behind == BEHIND_JOINED;
        table_cell(&t, "%s", name ? name : "");
        t.failed |= !name;
        free(name);
        table_cell(&t, "%s", v->done ? "yes" : "no");
        price_cell(&t, v, v->merged);
        price_cell(&t, v, v->apart);
        table_cell(&t, "%s",
                   v->why     ? v->why
                   : !v->done ? "one for each costs no more"
                   : joined ? "one launch for all, inside of what joins them, costs less"
                            : "one launch for all costs less");
    }
    table_print(&t, format, stdout);
    table_close(&t);
}
