/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches of keys and values as states (--cache): before an import, options that follow;
 * in it, one more state; behind it, what is left of inputs and outputs.
 */
#ifndef NETWORK_IMPORT_CACHE_H
#define NETWORK_IMPORT_CACHE_H

#include "network/import/private.h"

struct cache {
    struct import_state *states;
    struct import_symbol *symbols;
    size_t n_states, n_symbols, states_capacity, symbols_capacity;
    int64_t room; /* the least of all caches */
};

/* What a model's attention tells: dims of heads, and what caches of o->cache keys (0: as
 * inputs and outputs) make of it, states and sizes. EINVAL: it has none. Free in every
 * case. */
int cache_find(struct cache *c, const struct onnx_model *m,
               const struct import_options *o, strata_error *err);
/* Options with these, which are the cache's. */
struct import_options cache_options(const struct cache *c,
                                    const struct import_options *o);
void cache_free(struct cache *c);

/* A pass's part: the input that counts what rows of caches hold; its next value is the
 * last output (upgrade/grouped.c). */
void cache_load(struct import *im);
/* Make that pair a state with room. */
int cache_pair(struct import *im, int64_t room, strata_error *err);
/* Leave out inputs that nobody reads: masks and places, which the state tells. */
void cache_drop(struct import *im);

#endif /* NETWORK_IMPORT_CACHE_H */
