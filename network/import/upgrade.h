/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of older opsets as those of opset 21. A row for each change of an operator's
 * schema: the opset that brought it, and what makes a node of the opset before one of
 * it. Rows are applied in the order of their opsets, so each knows one step. A change
 * that only widened types has a row without a function: the tests hold the table to the
 * schemas' history.
 */
#ifndef NETWORK_IMPORT_UPGRADE_H
#define NETWORK_IMPORT_UPGRADE_H

#include "network/import/private.h"

struct upgrade {
    const char *op;
    int version; /* nodes of older opsets are changed */
    void (*apply)(struct import *im, struct node *n); /* NULL: only types were widened */
};

struct upgrade_table {
    const struct upgrade *rows;
    size_t n;
};

/* Families (upgrade/), ended by NULL. */
extern const struct upgrade_table *const upgrade_tables[];

#endif /* NETWORK_IMPORT_UPGRADE_H */
