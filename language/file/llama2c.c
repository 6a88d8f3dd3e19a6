/* SPDX-License-Identifier: Apache-2.0
 *
 * llama2.c's tokenizer.bin, little-endian: int32 bytes of the longest token; then for
 * each token float score, int32 bytes, bytes. How many there are is told by the file's
 * end.
 *
 * Two tokens become one where there is one of their spellings together, that of the
 * highest score first. All such pairs are found here once, so that encoding is that of
 * merges whose ranks are the scores, put in order.
 */
#include "language/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum { UNKNOWN = 0, BEGIN = 1, END = 2, LEAST = 3 /* tokens */ };

/* Scores not above it merge nothing. */
static const float least_score = -1e10f;

struct reader {
    const char *bytes;
    size_t size, at;
    struct model *m;
    float *scores;
    size_t n, room;
    strata_error *err;
};

static uint32_t read_u32(struct reader *r)
{
    uint32_t x = 0;
    for (size_t i = 0; i < 4; i++)
        x |= (uint32_t)(unsigned char)r->bytes[r->at + i] << 8 * i;
    r->at += 4;
    return x;
}

static int read_token(struct reader *r)
{
    const size_t at = r->at;
    if (r->size - at < 8)
        return error_set(r->err, STRATA_EPARSE,
                         "byte %zu: token %zu: found %zu bytes where 8 of score and "
                         "length are needed; the file is cut short",
                         at, r->n, r->size - at);
    const uint32_t bits = read_u32(r), n = read_u32(r);
    float score;
    memcpy(&score, &bits, sizeof score);
    if (!isfinite(score))
        return error_set(r->err, STRATA_EPARSE,
                         "byte %zu: token %zu: the score is not a finite number", at,
                         r->n);
    if (n < 1 || n > TOKEN_BYTES_LIMIT)
        return error_set(r->err, STRATA_EPARSE,
                         "byte %zu: token %zu: length %u; 1 to %d bytes are allowed",
                         at + 4, r->n, n, TOKEN_BYTES_LIMIT);
    if (n > r->size - r->at)
        return error_set(r->err, STRATA_EPARSE,
                         "byte %zu: token %zu: %u bytes are needed, but %zu follow; the "
                         "file is cut short",
                         at + 4, r->n, n, r->size - r->at);
    int status = grow(&r->scores, &r->room, r->n, sizeof *r->scores, r->err);
    if (status == STRATA_OK)
        status = vocabulary_add(&r->m->words, (int32_t)r->n, r->bytes + r->at, n, r->err);
    if (status == STRATA_EINVAL)
        return error_set(r->err, STRATA_EPARSE,
                         "byte %zu: more than the %d tokens allowed", at, TOKEN_IDS);
    if (status == STRATA_OK)
        r->scores[r->n++] = score;
    r->at += n;
    return status;
}

/* ---- merges -----------------------------------------------------------------------
 */

static int by_score(const void *a, const void *b, void *user)
{
    const float *scores = user;
    const float x = scores[*(const int32_t *)a], y = scores[*(const int32_t *)b];
    return x > y ? -1 : x < y;
}

/* Ranks by id, 0 of the highest score; equal scores have one rank. */
static int32_t *rank(const struct reader *r)
{
    int32_t *order = zalloc(r->n, sizeof *order, "ranks", r->err);
    int32_t *ranks = zalloc(r->n, sizeof *ranks, "ranks", r->err);
    for (size_t i = 0; order && i < r->n; i++)
        order[i] = (int32_t)i;
    if (order && ranks)
        qsort_r(order, r->n, sizeof *order, by_score, r->scores);
    for (size_t i = 1; order && ranks && i < r->n; i++)
        ranks[order[i]] =
            ranks[order[i - 1]] + (r->scores[order[i]] < r->scores[order[i - 1]]);
    free(order);
    return ranks;
}

/* The pairs that a token is made of: each of its beginnings with what follows it. The
 * hashes of all endings come first, from the last byte on. */
static int put_pairs(const struct reader *r, int32_t id, int32_t rank_of_id)
{
    struct text_hash endings[TOKEN_BYTES_LIMIT + 1], beginning = hash_empty();
    const struct vocabulary *v = &r->m->words;
    size_t n;
    const char *text = vocabulary_spelling(v, id, &n);
    endings[n] = hash_empty();
    for (size_t i = n; i-- > 0;)
        endings[i] = hash_before((unsigned char)text[i], endings[i + 1]);
    int status = STRATA_OK;
    for (size_t i = 1; i < n && status == STRATA_OK; i++) {
        beginning = hash_after(beginning, (unsigned char)text[i - 1]);
        const int32_t left = vocabulary_find_hashed(v, beginning, text, i);
        const int32_t right =
            left < 0 ? -1 : vocabulary_find_hashed(v, endings[i], text + i, n - i);
        if (right >= 0)
            status = merges_put(&r->m->merges, left, right, rank_of_id, id, r->err);
    }
    return status;
}

static int make_merges(const struct reader *r)
{
    int32_t *ranks = rank(r);
    int status = ranks ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < r->n && status == STRATA_OK; i++) {
        size_t n;
        const char *text = vocabulary_spelling(&r->m->words, (int32_t)i, &n);
        const bool found = vocabulary_find(&r->m->words, text, n) == (int32_t)i;
        if (found && r->scores[i] > least_score)
            status = put_pairs(r, (int32_t)i, ranks[i]);
    }
    free(ranks);
    return status;
}

static int read_tokens(struct reader *r)
{
    int status = STRATA_OK;
    if (r->size < 4)
        return error_set(r->err, STRATA_EPARSE,
                         "found %zu bytes; neither tokenizer.json nor tokenizer.bin",
                         r->size);
    const uint32_t longest = read_u32(r);
    if (longest < 1 || longest > TOKEN_BYTES_LIMIT)
        return error_set(r->err, STRATA_EPARSE,
                         "byte 0: found %u where 1 to %d, the longest token's bytes, are "
                         "needed; neither tokenizer.json nor tokenizer.bin",
                         longest, TOKEN_BYTES_LIMIT);
    while (r->at < r->size && status == STRATA_OK)
        status = read_token(r);
    if (status == STRATA_OK && r->n < LEAST)
        return error_set(r->err, STRATA_EPARSE,
                         "found %zu tokens where at least 3 are needed: unknown, begin "
                         "and end",
                         r->n);
    return status;
}

int llama2c_read(struct tokenizer *t, const char *bytes, size_t size, strata_error *err)
{
    struct reader r = {.bytes = bytes, .size = size, .m = &t->model, .err = err};
    int status = read_tokens(&r);
    if (status == STRATA_OK)
        status = make_merges(&r);
    free(r.scores);
    if (status != STRATA_OK)
        return status;
    t->size = r.n;
    t->flags = zalloc(t->size, 1, "flags of tokens", err);
    if (!t->flags)
        return STRATA_ENOMEM;
    t->flags[BEGIN] = t->flags[END] = TOKEN_SPECIAL | TOKEN_ENDS;
    t->begin = BEGIN;
    t->whole = t->model.byte_fallback = true;
    t->model.unknown = UNKNOWN;
    t->decoder.byte_tokens = t->decoder.strip_after_begin = true;
    model_find_bytes(&t->model);
    return STRATA_OK;
}
