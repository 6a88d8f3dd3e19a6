/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is taken in small pieces and given back at once. A piece stays where it is
 * until then. After one refusal every further piece is refused too, so a caller may ask
 * for many and look once, at `full`. Of one thread at a time.
 */
#ifndef NETWORK_IMPORT_ARENA_H
#define NETWORK_IMPORT_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

struct arena_block;

/* All zero is an empty arena without a limit. */
struct arena {
    struct arena_block *blocks;
    size_t bytes; /* asked for so far */
    size_t limit; /* of `bytes`; 0: none */
    bool full;    /* a piece was refused */
};

/* n elements of `size` bytes, zeroed, aligned for any type; NULL if they are refused. */
void *arena_get(struct arena *a, size_t n, size_t size);
/* Copies; of a text, with a NUL behind its n bytes. */
void *arena_copy(struct arena *a, const void *from, size_t bytes);
char *arena_text(struct arena *a, const char *text, size_t n);
char *arena_print(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
/* An array of *capacity elements that holds n + 1: the same, or a larger copy. NULL if it
 * is refused; the old one stays as it is. */
void *arena_grow(struct arena *a, void *array, size_t *capacity, size_t n, size_t size);
/* STRATA_OK, or ENOMEM where a piece was refused; `what` is for the message. */
int arena_status(const struct arena *a, const char *what, strata_error *err);
void arena_free(struct arena *a);

#endif /* NETWORK_IMPORT_ARENA_H */
