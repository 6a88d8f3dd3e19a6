/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens by id and by spelling.
 */
#ifndef LANGUAGE_MODEL_VOCABULARY_H
#define LANGUAGE_MODEL_VOCABULARY_H

#include "language/text/bytes.h"

#define TOKEN_IDS (1 << 22)    /* ids are below it */
#define TOKEN_BYTES_LIMIT 4096 /* of one token */

/* A hash that grows with its text at either end: of text and what follows it from both.
 */
struct text_hash {
    uint64_t value, power; /* power: of the base, by the number of bytes */
};
struct text_hash hash_empty(void);
struct text_hash hash_text(const char *text, size_t n);
struct text_hash hash_after(struct text_hash h, unsigned char c);  /* text, c */
struct text_hash hash_before(unsigned char c, struct text_hash h); /* c, text */

struct spelling {
    uint32_t at, size; /* bytes in text; size UINT32_MAX: no such token */
};

/* All zero is empty. */
struct vocabulary {
    struct token_text text;
    struct spelling *spelled; /* by id */
    size_t n, room;           /* ids below n */
    int32_t *slots;           /* ids by hash, -1: free */
    uint64_t *hashes;         /* of slots */
    size_t n_slots, used;     /* n_slots is 0 or a power of two */
    size_t longest;           /* bytes */
};

/* Add a token. The first of several of one spelling is the one found. EINVAL, without a
 * message: the id is taken, or out of range, or the spelling too long. */
int vocabulary_add(struct vocabulary *v, int32_t id, const char *text, size_t n,
                   strata_error *err);
void vocabulary_free(struct vocabulary *v);

/* The id, or -1. */
int32_t vocabulary_find(const struct vocabulary *v, const char *text, size_t n);
int32_t vocabulary_find_hashed(const struct vocabulary *v, struct text_hash h,
                               const char *text, size_t n);
/* Spelling of an id and its bytes, or NULL. */
const char *vocabulary_spelling(const struct vocabulary *v, int32_t id, size_t *n);

#endif /* LANGUAGE_MODEL_VOCABULARY_H */
