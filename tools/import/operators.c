/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators that are imported, as a table: what docs/onnx.md has is printed by this.
 */
#include <string.h>

#include "network/import/map.h"
#include "tools/import/model.h"

int operators_print(int format)
{
    static const char *const columns[] = {"family", "operator", "layer",
                                          "what is not taken"};
    struct table t;
    if (format < 0)
        return tool_error("-o: --operators prints md, csv, json or jsonl");
    table_open(&t, columns, 4, 0);
    for (const struct map_table *const *family = map_tables; *family; family++)
        for (size_t i = 0; i < (*family)->n; i++) {
            const struct map_rule *r = &(*family)->rules[i];
            if (r->domain && strcmp(r->domain, "strata") == 0)
                continue; /* what patterns make */
            table_cell(&t, "%s", (*family)->title);
            table_cell(&t, "%s%s%s", r->domain ? r->domain : "", r->domain ? "::" : "",
                       r->op);
            table_cell(&t, "%s",
                       r->layer                  ? r->layer
                       : *family == &map_refused ? "none"
                                                 : "several");
            table_cell(&t, "%s", r->note ? r->note : "");
        }
    table_print(&t, format, stdout);
    table_close(&t);
    return EXIT_OK;
}
