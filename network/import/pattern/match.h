/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pattern was found in.
 */
#ifndef NETWORK_IMPORT_PATTERN_MATCH_H
#define NETWORK_IMPORT_PATTERN_MATCH_H

#include "network/import/pattern/parse.h"

struct match {
    struct import *im;
    const struct pattern *pattern;
    const struct parsed *parsed;
    struct node *nodes[PATTERN_STATEMENTS];
    int values[PATTERN_NAMES];
};

/* Whether the pattern ends at that node; its check is not asked. */
bool match_find(struct match *m, struct node *root);

#endif /* NETWORK_IMPORT_PATTERN_MATCH_H */
