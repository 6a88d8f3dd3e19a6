/* SPDX-License-Identifier: Apache-2.0
 *
 * What layers gave of constants, so that a model that is imported again folds anew only
 * what its symbol changes: weights are read once. Constants of it live as long as the
 * memo.
 */
#ifndef NETWORK_IMPORT_SYMBOLS_MEMO_H
#define NETWORK_IMPORT_SYMBOLS_MEMO_H

#include "network/import/section.h"

struct memo;

struct memo *memo_make(strata_error *err);
void memo_free(struct memo *memo);

/* What tells the section's result: its layer, attributes, and constants by their place,
 * small ones by their elements; memory of the memo. NULL: no memo, or no memory. */
const char *memo_key(struct memo *memo, const struct graph *g, const struct section *s);
/* Make constants of the section's outputs, whose dims are known, if they were folded
 * before. */
bool memo_recall(struct memo *memo, const char *key, struct graph *g,
                 const struct section *s);
/* Remember them; without memory, nothing. */
void memo_keep(struct memo *memo, const char *key, const struct graph *g,
               const struct section *s);
/* Where constants go that are to be remembered; NULL: no memo. */
struct arena *memo_arena(struct memo *memo);

#endif /* NETWORK_IMPORT_SYMBOLS_MEMO_H */
