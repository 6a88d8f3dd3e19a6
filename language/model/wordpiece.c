/* SPDX-License-Identifier: Apache-2.0
 *
 * WordPiece: the longest token that a word begins with, then the longest with the prefix
 * that what is left begins with; a word that is not used up is unknown as a whole.
 */
#include "language/model/model.h"

/* Append the longest token at the word's beginning and return its bytes; 0: none. */
static size_t longest(const struct model *m, const char *word, size_t n, bool first,
                      int32_t *id)
{
    const struct token_text *prefix = &m->prefix;
    char spelled[TOKEN_BYTES_LIMIT];
    size_t used = 0, size, best = 0;
    struct text_hash h = hash_empty();
    uint32_t code;
    for (; !first && used < prefix->n; used++)
        h = hash_after(h, (unsigned char)(spelled[used] = prefix->bytes[used]));
    const size_t before = used;
    for (size_t at = 0; at < n; at += size) {
        size = utf8_next(word + at, n - at, &code);
        if (used + size > m->words.longest)
            break;
        for (size_t i = 0; i < size; i++)
            h = hash_after(h, (unsigned char)(spelled[used++] = word[at + i]));
        const int32_t found = vocabulary_find_hashed(&m->words, h, spelled, used);
        if (found >= 0) {
            *id = found;
            best = used - before;
        }
    }
    return best;
}

static bool too_long(const struct model *m, const char *word, size_t n)
{
    int64_t characters = 0;
    uint32_t code;
    for (size_t at = 0; at < n && characters <= m->max_characters; characters++)
        at += utf8_next(word + at, n - at, &code);
    return characters > m->max_characters;
}

int wordpiece_encode(const struct model *m, const char *word, size_t n,
                     struct tokens *out, strata_error *err)
{
    const size_t before = out->n;
    bool known = !too_long(m, word, n);
    for (size_t at = 0, size; known && at < n; at += size) {
        int32_t id;
        size = longest(m, word + at, n - at, at == 0, &id);
        known = size > 0;
        int status = known ? tokens_put(out, id, err) : STRATA_OK;
        if (status != STRATA_OK)
            return status;
    }
    if (known)
        return STRATA_OK;
    out->n = before;
    return tokens_put(out, m->unknown, err);
}
