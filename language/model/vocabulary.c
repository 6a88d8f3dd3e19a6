/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens by id and by spelling: one text for all spellings, and an open hash table.
 */
#include "language/model/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define BASE UINT64_C(0x9e3779b97f4a7c15)
#define NO_TOKEN UINT32_MAX

struct text_hash hash_empty(void)
{
    return (struct text_hash){0, 1};
}

struct text_hash hash_after(struct text_hash h, unsigned char c)
{
    return (struct text_hash){h.value * BASE + c + 1, h.power * BASE};
}

struct text_hash hash_before(unsigned char c, struct text_hash h)
{
    return (struct text_hash){(c + UINT64_C(1)) * h.power + h.value, h.power * BASE};
}

struct text_hash hash_text(const char *text, size_t n)
{
    struct text_hash h = hash_empty();
    for (size_t i = 0; i < n; i++)
        h = hash_after(h, (unsigned char)text[i]);
    return h;
}

/* All bits of the value, in the low ones. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

/* The slot of a spelling, or the free one where it belongs. */
static size_t slot_of(const struct vocabulary *v, uint64_t hash, const char *text,
                      size_t n)
{
    size_t i = mix(hash) & (v->n_slots - 1);
    for (; v->slots[i] >= 0; i = (i + 1) & (v->n_slots - 1)) {
        const struct spelling *s = &v->spelled[v->slots[i]];
        if (v->hashes[i] == hash && s->size == n &&
            memcmp(v->text.bytes + s->at, text, n) == 0)
            break;
    }
    return i;
}

static int widen(struct vocabulary *v, strata_error *err)
{
    const size_t n = v->n_slots ? v->n_slots * 2 : 64;
    int32_t *slots = zalloc(n, sizeof *slots, "a vocabulary", err);
    uint64_t *hashes = zalloc(n, sizeof *hashes, "a vocabulary", err);
    if (!slots || !hashes) {
        free(slots);
        free(hashes);
        return STRATA_ENOMEM;
    }
    memset(slots, -1, n * sizeof *slots);
    for (size_t i = 0; i < v->n_slots; i++) {
        if (v->slots[i] < 0)
            continue;
        size_t to = mix(v->hashes[i]) & (n - 1);
        while (slots[to] >= 0)
            to = (to + 1) & (n - 1);
        slots[to] = v->slots[i];
        hashes[to] = v->hashes[i];
    }
    free(v->slots);
    free(v->hashes);
    v->slots = slots;
    v->hashes = hashes;
    v->n_slots = n;
    return STRATA_OK;
}

static int make_room(struct vocabulary *v, size_t id, strata_error *err)
{
    int status = grow(&v->spelled, &v->room, id, sizeof *v->spelled, err);
    for (; status == STRATA_OK && v->n <= id; v->n++)
        v->spelled[v->n].size = NO_TOKEN;
    if (status == STRATA_OK && v->used * 2 >= v->n_slots)
        status = widen(v, err);
    return status;
}

int vocabulary_add(struct vocabulary *v, int32_t id, const char *text, size_t n,
                   strata_error *err)
{
    size_t size;
    if (id < 0 || id >= TOKEN_IDS || n > TOKEN_BYTES_LIMIT ||
        vocabulary_spelling(v, id, &size))
        return STRATA_EINVAL;
    int status = make_room(v, (size_t)id, err);
    const size_t at = v->text.n;
    if (status == STRATA_OK && at > UINT32_MAX - TOKEN_BYTES_LIMIT)
        status = error_no_memory(err, at, "a vocabulary");
    if (status == STRATA_OK)
        status = bytes_put(&v->text, text, n, err);
    if (status != STRATA_OK)
        return status;
    v->spelled[id] = (struct spelling){(uint32_t)at, (uint32_t)n};
    v->longest = n > v->longest ? n : v->longest;
    const uint64_t hash = hash_text(text, n).value;
    const size_t slot = slot_of(v, hash, text, n);
    if (v->slots[slot] < 0) {
        v->slots[slot] = id;
        v->hashes[slot] = hash;
        v->used++;
    }
    return STRATA_OK;
}

void vocabulary_free(struct vocabulary *v)
{
    bytes_free(&v->text);
    free(v->spelled);
    free(v->slots);
    free(v->hashes);
    *v = (struct vocabulary){0};
}

int32_t vocabulary_find_hashed(const struct vocabulary *v, struct text_hash h,
                               const char *text, size_t n)
{
    return v->n_slots ? v->slots[slot_of(v, h.value, text, n)] : -1;
}

int32_t vocabulary_find(const struct vocabulary *v, const char *text, size_t n)
{
    return vocabulary_find_hashed(v, hash_text(text, n), text, n);
}

const char *vocabulary_spelling(const struct vocabulary *v, int32_t id, size_t *n)
{
    *n = 0;
    if (id < 0 || (size_t)id >= v->n || v->spelled[id].size == NO_TOKEN)
        return NULL;
    *n = v->spelled[id].size;
    return v->text.bytes + v->spelled[id].at;
}
