/* SPDX-License-Identifier: Apache-2.0
 *
 * Each node through the rows of its operator, oldest change first.
 */
#include "network/import/upgrade.h"

#include <string.h>

extern const struct upgrade_table upgrade_broadcast, upgrade_inputs, upgrade_meaning,
    upgrade_widened;

const struct upgrade_table *const upgrade_tables[] = {
    &upgrade_broadcast, &upgrade_inputs, &upgrade_meaning, &upgrade_widened, NULL};

static const struct rewrite_table *const rewrites[] = {
    &upgrade_attention, &upgrade_deform, &upgrade_few_bits, &upgrade_microsoft,
    &upgrade_quantized};

bool upgrade_is_for(const struct upgrade *u, int version)
{
    for (const int *v = u->versions; *v; v++)
        if (*v == version)
            return true;
    return false;
}

const struct upgrade *upgrade_next(const char *op, int64_t after, int *version)
{
    const struct upgrade *next = NULL;
    *version = 0;
    for (const struct upgrade_table *const *t = upgrade_tables; *t; t++)
        for (size_t i = 0; i < (*t)->n; i++) {
            const struct upgrade *u = &(*t)->rows[i];
            if (strcmp(u->op, op) != 0)
                continue;
            for (const int *v = u->versions; *v; v++)
                if (*v > after && (!next || *v < *version)) {
                    next = u;
                    *version = *v;
                }
        }
    return next;
}

static const struct rewrite *find_rewrite(const struct node *n)
{
    for (size_t t = 0; t < ARRAY_LENGTH(rewrites); t++)
        for (size_t i = 0; i < rewrites[t]->n; i++) {
            const struct rewrite *r = &rewrites[t]->rows[i];
            if (strcmp(r->op, n->op) == 0 && strcmp(r->domain, n->domain) == 0)
                return r;
        }
    return NULL;
}

void upgrade_node(struct import *im, struct node *n)
{
    const struct rewrite *r = find_rewrite(n);
    const struct upgrade *u;
    int version;
    if (r) {
        r->apply(im, n);
        return;
    }
    if (*n->domain)
        return;
    for (int64_t at = n->version; (u = upgrade_next(n->op, at, &version)); at = version) {
        if (u->apply)
            u->apply(im, n);
        if (node_is_refused(&im->g, n))
            return;
    }
    upgrade_computed(im, n);
}
