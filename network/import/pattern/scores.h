/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of an attention, from the softmax back to the product of queries and keys.
 */
#ifndef NETWORK_IMPORT_PATTERN_SCORES_H
#define NETWORK_IMPORT_PATTERN_SCORES_H

#include <string.h>

#include "network/import/graph.h"

enum { SCORES_ADDENDS = 3 };

/* What is added to scores. Or where there is a fill, which scores are that instead: those
 * where the value is `filled`. The fill is as good as minus infinity. */
struct addend {
    int value, fill; /* VALUE_NONE: none */
    bool filled;
};

/* scale*queries*keys + addends; the keys are turned. */
struct scores {
    int queries, keys, n;
    struct addend addend[SCORES_ADDENDS];
    double scale;
};

/* What `value` is made of; what lies between is read by nobody else. false: no scores. */
bool scores_find(const struct graph *g, int value, struct scores *out);

/* Whether it is that operator of ONNX's own. */
static inline bool is_op(const struct node *n, const char *op)
{
    return n && !*n->domain && strcmp(n->op, op) == 0;
}

/* The node that makes a value; NULL: none, or a constant. */
static inline const struct node *maker(const struct graph *g, int value)
{
    const struct value *v = graph_value(g, value);
    return v && !v->constant ? v->node : NULL;
}

#endif /* NETWORK_IMPORT_PATTERN_SCORES_H */
