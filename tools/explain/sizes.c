/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run takes at the sizes that plans were made for, and half way between them.
 */
#include "tools/explain/explain.h"

#include <strata/sizes.h>

#include <inttypes.h>
#include <string.h>

static void size_cells(struct table *t, const int64_t *sizes, int n)
{
    for (int i = 0; i < n; i++)
        table_cell(t, "%" PRId64, sizes[i]);
}

/* "its own", or "of 4 x 128". */
static void plan_cell(struct table *t, const strata_estimate *at)
{
    char text[192];
    tool_dims(text, sizeof text, at->sizes, at->n_sizes);
    if (at->planned)
        table_cell(t, "its own");
    else
        table_cell(t, "of %s", text);
}

static int add_row(struct table *t, const strata_engine *e, const int64_t *sizes,
                   strata_error *err)
{
    const int n = (int)e->network->n_symbols;
    strata_estimate at = {.struct_size = sizeof at};
    int status = strata_engine_estimate(e, sizes, n, &at, err);
    if (status != STRATA_OK)
        return status;
    size_cells(t, sizes, n);
    plan_cell(t, &at);
    table_cell(t, "%.1f", at.predicted_us);
    table_cell(t, "%.2f", (double)at.arena_bytes / 1048576);
    return STRATA_OK;
}

/* Between the listed sizes of one name, the others at their largest. */
static int add_between(struct table *t, const strata_engine *e, size_t symbol,
                       strata_error *err)
{
    const struct network_symbol *s = &e->network->symbols[symbol];
    int64_t sizes[NETWORK_MAX_SYMBOLS], below = s->least;
    int status = STRATA_OK;
    for (size_t k = 0; k < s->n_sizes && status == STRATA_OK; below = s->sizes[k++]) {
        memcpy(sizes, e->sizes, sizeof sizes);
        sizes[symbol] = below + (s->sizes[k] - below) / s->step / 2 * s->step;
        if (sizes[symbol] != below || (k == 0 && below != s->sizes[0]))
            status = add_row(t, e, sizes, err);
    }
    return status;
}

int explain_print_sizes(const strata_engine *e, int format, strata_error *err)
{
    const strata_network *net = e->network;
    const char *columns[NETWORK_MAX_SYMBOLS + 3];
    int64_t sizes[NETWORK_MAX_SYMBOLS];
    size_t n = net->n_symbols;
    struct table t;
    int status = STRATA_OK;
    for (size_t i = 0; i < n; i++)
        columns[i] = net->symbols[i].name;
    columns[n] = "plan";
    columns[n + 1] = "us";
    columns[n + 2] = "memory MiB";
    table_open(&t, columns, n + 3, ~(UINT64_C(1) << n));
    for (size_t k = 0; k < engine_count_plans(net) && n > 0 && status == STRATA_OK; k++) {
        engine_plan_sizes(net, k, sizes);
        status = add_row(&t, e, sizes, err);
    }
    for (size_t i = 0; i < n && status == STRATA_OK; i++)
        if ((int)i != e->batch_symbol)
            status = add_between(&t, e, i, err);
    if (status == STRATA_OK)
        table_print(&t, format, stdout);
    table_close(&t);
    return status;
}
