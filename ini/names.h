/* SPDX-License-Identifier: Apache-2.0
 *
 * A map from names to small integers (indices into the caller's arrays). Names are not
 * copied and must outlive the map.
 */
#ifndef INI_NAMES_H
#define INI_NAMES_H

#include <stdbool.h>

#include "core/status.h"

struct names_slot {
    const char *name; /* NULL: free */
    int value;
};

/* All zero is an empty map. */
struct names {
    struct names_slot *slots;
    size_t n, capacity; /* capacity is 0 or a power of two */
};

/* Value of a name, or -1. */
int names_get(const struct names *map, const char *name);
/* Add a name, or give it another value; value >= 0. STRATA_OK or ENOMEM. */
int names_put(struct names *map, const char *name, int value, strata_error *err);
void names_free(struct names *map);

#endif /* INI_NAMES_H */
