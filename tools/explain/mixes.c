/* SPDX-License-Identifier: Apache-2.0
 *
 * What was decided of regions that are quantised: 8 bits, or floats where those are
 * faster.
 */
#include "tools/explain/explain.h"

#include <stdio.h>
#include <stdlib.h>

#include "planner/mixed/mixed.h"

void explain_print_mix_summary(const strata_engine *e)
{
    const struct planner_mixes *m = e->planner->mixes;
    size_t dropped = 0;
    for (size_t r = 0; m && r < m->pairs.n_regions; r++)
        dropped += m->list[r].dropped;
    if (m)
        tool_print("%zu of %zu quantised regions are computed in floats, which "
                   "--quantised lists\n",
                   dropped, m->pairs.n_regions);
}

void explain_print_mixes(const strata_engine *e, int format)
{
    const struct planner_mixes *m = e->planner->mixes;
    const char *const columns[] = {
        "region", "computed in", m && m->in_place ? "us 8 bits, in place" : "us 8 bits",
        m && m->in_place ? "us floats, in place" : "us floats"};
    struct table t;
    if (!m)
        return;
    if (format == TABLE_TEXT || format == TABLE_MARKDOWN)
        fputs("\n", stdout);
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 2 | 1 << 3);
    for (size_t r = 0; r < m->pairs.n_regions; r++) {
        const struct planner_mix *v = &m->list[r];
        char *name = network_region_name(m->network, &m->pairs.regions[r], NULL);
        char text[TEXT_REAL];
        table_cell(&t, "%s", name ? name : "");
        t.failed |= !name;
        free(name);
        table_cell(&t, "%s", v->dropped ? "floats" : "8 bits");
        table_cell(&t, "%s", explain_in_us(text, v->rounded));
        table_cell(&t, "%s", explain_in_us(text, v->floats));
    }
    table_print(&t, format, stdout);
    table_close(&t);
}
