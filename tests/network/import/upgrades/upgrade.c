/* SPDX-License-Identifier: Apache-2.0
 *
 * The upgrades against the schemas' history: each opset that changed an operator has a
 * row, once, and no row is for another. Operators that no row and no mapper knows are
 * refused at any opset, so they need none.
 */
#include "network/import/upgrade.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network/import/map.h"

#define HISTORY "tests/network/import/schema_history.txt"
#define MAX_OPS 512
#define MAX_VERSIONS 24

struct history {
    char op[64];
    int versions[MAX_VERSIONS], n;
};

static struct history all[MAX_OPS];
static size_t n_all;

static void read_history(void)
{
    const char *source = getenv("srcdir");
    char path[512], line[256];
    snprintf(path, sizeof path, "%s/%s", source ? source : ".", HISTORY);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "cannot open %s", path);
    while (fgets(line, sizeof line, f)) {
        struct history *h = &all[n_all];
        char *rest = line, *word = strtok_r(line, " \n", &rest);
        if (!word || *word == '#')
            continue;
        cr_assert_lt(n_all++, (size_t)MAX_OPS);
        snprintf(h->op, sizeof h->op, "%s", word);
        while ((word = strtok_r(NULL, " \n", &rest))) {
            cr_assert_lt(h->n, MAX_VERSIONS);
            h->versions[h->n++] = atoi(word);
        }
    }
    fclose(f);
    cr_assert_gt(n_all, (size_t)190, "%s is not whole", path);
}

static int rows_for(const char *op, int version)
{
    int n = 0;
    for (const struct upgrade_table *const *t = upgrade_tables; *t; t++)
        for (size_t i = 0; i < (*t)->n; i++)
            n += strcmp((*t)->rows[i].op, op) == 0 &&
                 (version == 0 || upgrade_is_for(&(*t)->rows[i], version));
    return n;
}

static const struct history *find_history(const char *op)
{
    for (size_t i = 0; i < n_all; i++)
        if (strcmp(all[i].op, op) == 0)
            return &all[i];
    return NULL;
}

TestSuite(import_upgrade, .init = read_history);

Test(import_upgrade, every_change_of_a_schema_has_one_row)
{
    int checked = 0;
    for (size_t i = 0; i < n_all; i++) {
        const struct history *h = &all[i];
        if (!map_find(h->op, "") && rows_for(h->op, 0) == 0)
            continue;
        for (int k = 1; k < h->n; k++) {
            const int n = rows_for(h->op, h->versions[k]);
            checked++;
            cr_expect_eq(n, 1, "%s: opset %d changed it; %d rows say how", h->op,
                         h->versions[k], n);
        }
    }
    cr_expect_gt(checked, 300, "%d changes", checked);
}

Test(import_upgrade, every_row_is_a_change_of_its_schema)
{
    for (const struct upgrade_table *const *t = upgrade_tables; *t; t++)
        for (size_t i = 0; i < (*t)->n; i++) {
            const struct upgrade *u = &(*t)->rows[i];
            const struct history *h = find_history(u->op);
            cr_assert_not_null(h, "%s is no operator of ai.onnx", u->op);
            cr_expect_eq(u->versions[ARRAY_LENGTH(u->versions) - 1], 0,
                         "%s: the row has no end", u->op);
            cr_expect_neq(u->versions[0], 0, "%s: the row is for no opset", u->op);
            for (const int *v = u->versions; *v; v++) {
                bool found = false;
                for (int k = 1; k < h->n; k++)
                    found |= h->versions[k] == *v;
                cr_expect(found, "%s: opset %d did not change it", u->op, *v);
                cr_expect_leq(*v, GRAPH_OPSET, "%s: opset %d", u->op, *v);
            }
        }
}

Test(import_upgrade, changes_come_in_the_order_of_their_opsets)
{
    int version;
    for (size_t i = 0; i < n_all; i++) {
        const struct history *h = &all[i];
        int64_t at = h->versions[0];
        for (int k = 1; k < h->n && rows_for(h->op, 0); k++, at = version) {
            cr_expect_not_null(upgrade_next(h->op, at, &version));
            cr_expect_eq(version, h->versions[k], "%s: %d after %lld", h->op, version,
                         (long long)at);
        }
        cr_expect_null(upgrade_next(h->op, GRAPH_OPSET, &version), "%s", h->op);
    }
}
