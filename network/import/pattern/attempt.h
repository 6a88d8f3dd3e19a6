/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes put in place of others, or taken back: where layers refuse them, or make of them
 * what was not there before.
 */
#ifndef NETWORK_IMPORT_PATTERN_ATTEMPT_H
#define NETWORK_IMPORT_PATTERN_ATTEMPT_H

#include "network/import/private.h"

/* What an attempt may have added, to leave it out again. */
struct attempt {
    size_t n_nodes, n_refusals, n_wanted, all_refusals;
};

struct attempt attempt_begin(const struct import *im);
/* Shapes of the nodes added since; *refused: some layer does not want them. */
int attempt_infer(struct import *im, const struct attempt *a, bool *refused,
                  strata_error *err);
void attempt_undo(struct import *im, const struct attempt *a);
/* Whether one may take the other's place. */
bool attempt_fits(const struct graph *g, int value, int instead);
/* The first output of `last` takes the place of a value. */
void attempt_replace(struct graph *g, int value, struct node *last);
/* Names of what `root` stands for besides; without the part they share with it. NULL:
 * there is none. */
const char *attempt_names(struct graph *g, const struct node *root,
                          const struct node *const *nodes, int n);

#endif /* NETWORK_IMPORT_PATTERN_ATTEMPT_H */
