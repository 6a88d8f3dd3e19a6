/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as a cost file. What is read is sorted, in range, found by
 * its key, and merges with itself to itself.
 */
#include <stdlib.h>
#include <string.h>

#include "planner/cost/cost.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct cost_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct cost_entry *e = &t->entries[i];
        const struct cost *found = cost_table_find(t, e->key);
        if (found != &e->cost || e->cost.ns < 1 || e->cost.ns > COST_NS_MAX ||
            e->cost.runs < 1 || strlen(e->key) > COST_KEY_MAX)
            abort();
        if (i && strcmp(t->entries[i - 1].key, e->key) >= 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cost_table t, same;
    strata_error err = {0};
    cost_table_init(&t, "");
    int status = cost_table_parse(&t, (const char *)data, size, "fuzz", &err);
    if (status != err.status)
        abort();
    if (status == STRATA_OK) {
        cost_table_init(&same, t.device);
        if (cost_table_merge(&same, &t, NULL) != STRATA_OK ||
            cost_table_merge(&same, &t, NULL) != STRATA_OK || same.n != t.n)
            abort();
        check(&same);
        cost_table_free(&same);
        check(&t);
    }
    cost_table_free(&t);
    return 0;
}
