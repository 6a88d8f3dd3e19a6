/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators that are imported, as a table: what docs/onnx.md has is printed by this.
 */
#include <string.h>

#include "network/import/control/control.h"
#include "network/import/map.h"
#include "network/import/upgrade.h"
#include "tools/import/model.h"

static void put_row(struct table *t, const char *family, const char *domain,
                    const char *op, const char *becomes, const char *note)
{
    table_cell(t, "%s", family);
    table_cell(t, "%s%s%s", domain, *domain ? "::" : "", op);
    table_cell(t, "%s", becomes);
    table_cell(t, "%s", note);
}

static void put_family(struct table *t, const struct map_table *family)
{
    for (size_t i = 0; i < family->n; i++) {
        const struct map_rule *r = &family->rules[i];
        const char *domain = r->domain ? r->domain : "";
        if (strcmp(domain, "strata") != 0) /* what patterns make */
            put_row(t, family->title, domain, r->op,
                    r->layer                 ? r->layer
                    : family == &map_refused ? "none"
                                             : "several",
                    r->note ? r->note : "");
    }
}

static void put_controls(struct table *t, const struct control *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_row(t, "Control and lists", all[i].domain ? all[i].domain : "", all[i].op,
                "put in place", all[i].note);
}

static void put_rewrites(struct table *t, const struct rewrite_table *all)
{
    for (size_t i = 0; i < all->n; i++)
        put_row(t, "Rewritten", all->rows[i].domain, all->rows[i].op,
                "standard operators", "");
}

int operators_print(int format)
{
    static const char *const columns[] = {"family", "operator", "becomes",
                                          "what is taken, or not"};
    struct table t;
    if (format < 0)
        return tool_error("-o: --operators prints md, csv, json or jsonl");
    table_open(&t, columns, 4, 0);
    for (const struct map_table *const *family = map_tables; *family; family++)
        if (*family != &map_refused)
            put_family(&t, *family);
    put_controls(&t, control_graphs, control_n_graphs);
    put_controls(&t, control_sequences, control_n_sequences);
    put_rewrites(&t, &upgrade_attention);
    put_rewrites(&t, &upgrade_few_bits);
    put_rewrites(&t, &upgrade_microsoft);
    put_rewrites(&t, &upgrade_quantized);
    put_rewrites(&t, &upgrade_deform);
    put_family(&t, &map_refused);
    table_print(&t, format, stdout);
    table_close(&t);
    return EXIT_OK;
}
