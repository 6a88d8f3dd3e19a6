/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass: each node through the rows of its operator, oldest change first.
 */
#include "network/import/upgrade.h"

#include <string.h>

#define NEWEST                                                                           \
    28 /* opset of ai.onnx that is known; a newer one changes what it changes */

extern const struct upgrade_table upgrade_axes;

const struct upgrade_table *const upgrade_tables[] = {&upgrade_axes, NULL};

/* The oldest change of an operator after a version; NULL: none. */
static const struct upgrade *next_change(const char *op, int64_t version)
{
    const struct upgrade *next = NULL;
    for (const struct upgrade_table *const *t = upgrade_tables; *t; t++)
        for (size_t i = 0; i < (*t)->n; i++) {
            const struct upgrade *u = &(*t)->rows[i];
            if (u->version > version && strcmp(u->op, op) == 0 &&
                (!next || u->version < next->version))
                next = u;
        }
    return next;
}

int import_upgrade(struct import *im, strata_error *err)
{
    for (size_t i = 0; i < im->g.n_nodes; i++) { /* a row may add nodes */
        struct node *n = im->g.nodes[i];
        const struct upgrade *u;
        if (*n->domain)
            continue;
        while ((u = next_change(n->op, n->version))) {
            n->version = u->version;
            if (u->apply)
                u->apply(im, n);
        }
    }
    return arena_status(&im->g.arena, "a model", err);
}
