/* SPDX-License-Identifier: Apache-2.0
 *
 * Words to tokens: byte-pair encoding and WordPiece, over one vocabulary.
 */
#ifndef LANGUAGE_MODEL_MODEL_H
#define LANGUAGE_MODEL_MODEL_H

#include "language/model/vocabulary.h"

/* Pairs of tokens that become one, the lowest rank first, the leftmost of equal ones. */
struct merge {
    uint64_t pair; /* left id << 32 | right id */
    int32_t rank, id;
};
#define MERGES (1 << 23)
struct merges {
    struct merge *slots; /* id < 0: free */
    size_t n_slots, used;
};

enum model_kind { MODEL_BPE, MODEL_WORDPIECE };

struct model {
    enum model_kind kind;
    struct vocabulary words;
    int32_t unknown; /* -1: what is unknown is left out */
    /* Before each word's later parts, and after its last character; may be empty. */
    struct token_text prefix, suffix;
    /* BPE */
    struct merges merges;
    bool fuse_unknown, byte_fallback, ignore_merges;
    int32_t byte_ids[256]; /* -1: none */
    /* WordPiece */
    int64_t max_characters; /* of a word; longer ones are unknown */
};

/* Memory that encoding one word after another needs; all zero at first. */
struct symbol {
    int32_t id, previous, next; /* places of the neighbours, -1: none; id -1: merged */
};
struct candidate {
    int32_t rank, place, id;
};
struct scratch {
    struct symbol *symbols;
    size_t n_symbols, symbols_room;
    struct candidate *heap;
    size_t n_heap, heap_room;
    struct token_text text;
};
void model_scratch_free(struct scratch *s);

/* Append the tokens of one word, valid UTF-8 unless bytes are looked up one by one. */
int model_encode(const struct model *m, const char *word, size_t n, struct scratch *s,
                 struct tokens *out, strata_error *err);
void model_free(struct model *m);
/* Find the tokens <0x00> to <0xFF>. */
void model_find_bytes(struct model *m);
/* Whether a spelling is <0xHH>, and which byte it is. */
bool byte_token(const char *text, size_t n, unsigned char *byte);

/* bpe.c: the last of equal pairs stays; at most MERGES of them. */
int merges_put(struct merges *m, int32_t left, int32_t right, int32_t rank, int32_t id,
               strata_error *err);
int bpe_encode(const struct model *m, const char *word, size_t n, struct scratch *s,
               struct tokens *out, strata_error *err);
/* wordpiece.c */
int wordpiece_encode(const struct model *m, const char *word, size_t n,
                     struct tokens *out, strata_error *err);

#endif /* LANGUAGE_MODEL_MODEL_H */
