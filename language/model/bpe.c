/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte-pair encoding: a word's characters are tokens at first, then the pair of the
 * lowest rank becomes one, until none is left. A heap holds the pairs, so that n
 * characters take n log n steps; pairs that are no more are told by what stands at their
 * place now.
 */
#include "language/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* ---- merges -----------------------------------------------------------------------
 */

static size_t slot_of(const struct merges *m, uint64_t pair)
{
    uint64_t h = pair * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (h ^ h >> 32) & (m->n_slots - 1);
    while (m->slots[i].id >= 0 && m->slots[i].pair != pair)
        i = (i + 1) & (m->n_slots - 1);
    return i;
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static const struct merge *find_merge(const struct merges *m, int32_t left, int32_t right)
{
    if (!m->n_slots)
        return NULL;
    const struct merge *found = &m->slots[slot_of(m, pair_of(left, right))];
    return found->id >= 0 ? found : NULL;
}

static int widen(struct merges *m, strata_error *err)
{
    struct merges wide = {.n_slots = m->n_slots ? m->n_slots * 2 : 64};
    wide.slots = zalloc(wide.n_slots, sizeof *wide.slots, "merges", err);
    if (!wide.slots)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < wide.n_slots; i++)
        wide.slots[i].id = -1;
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].id >= 0)
            wide.slots[slot_of(&wide, m->slots[i].pair)] = m->slots[i];
    wide.used = m->used;
    free(m->slots);
    *m = wide;
    return STRATA_OK;
}

int merges_put(struct merges *m, int32_t left, int32_t right, int32_t rank, int32_t id,
               strata_error *err)
{
    if (m->used >= MERGES)
        return error_set(err, STRATA_EUNSUPPORTED, "more than %d merges", MERGES);
    int status = m->used * 2 >= m->n_slots ? widen(m, err) : STRATA_OK;
    if (status != STRATA_OK)
        return status;
    struct merge *slot = &m->slots[slot_of(m, pair_of(left, right))];
    m->used += slot->id < 0;
    *slot = (struct merge){pair_of(left, right), rank, id};
    return STRATA_OK;
}

/* ---- a heap of candidates, the first to be merged on top --------------------------
 */

static bool before(const struct candidate *a, const struct candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

static int heap_put(struct scratch *s, struct candidate c, strata_error *err)
{
    int status = grow(&s->heap, &s->heap_room, s->n_heap, sizeof *s->heap, err);
    if (status != STRATA_OK)
        return status;
    size_t i = s->n_heap++;
    for (; i > 0 && before(&c, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = c;
    return STRATA_OK;
}

static struct candidate heap_take(struct scratch *s)
{
    const struct candidate top = s->heap[0], last = s->heap[--s->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < s->n_heap; i = child) {
        child += child + 1 < s->n_heap && before(&s->heap[child + 1], &s->heap[child]);
        if (!before(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return top;
}

/* ---- a word -----------------------------------------------------------------------
 */

static int put_symbol(struct scratch *s, int32_t id, strata_error *err)
{
    int status =
        grow(&s->symbols, &s->symbols_room, s->n_symbols, sizeof *s->symbols, err);
    if (status != STRATA_OK)
        return status;
    const int32_t place = (int32_t)s->n_symbols++;
    s->symbols[place] = (struct symbol){id, place - 1, -1};
    if (place > 0)
        s->symbols[place - 1].next = place;
    return STRATA_OK;
}

static bool bytes_known(const struct model *m, const char *text, size_t n)
{
    if (!m->byte_fallback)
        return false;
    for (size_t i = 0; i < n; i++)
        if (m->byte_ids[(unsigned char)text[i]] < 0)
            return false;
    return true;
}

static int put_bytes(const struct model *m, const char *text, size_t n, struct scratch *s,
                     strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < n && status == STRATA_OK; i++)
        status = put_symbol(s, m->byte_ids[(unsigned char)text[i]], err);
    return status;
}

/* One character as the vocabulary spells it: prefix, itself, suffix. */
static int spell(const struct model *m, const char *text, size_t n, bool first, bool last,
                 struct token_text *out, strata_error *err)
{
    out->n = 0;
    int status = first ? STRATA_OK : bytes_put(out, m->prefix.bytes, m->prefix.n, err);
    if (status == STRATA_OK)
        status = bytes_put(out, text, n, err);
    return status == STRATA_OK && last ? bytes_put(out, m->suffix.bytes, m->suffix.n, err)
                                       : status;
}

/* The characters' tokens. An unknown one waits for the next that is known, as what it is
 * fused with may follow; byte tokens do not end its waiting. */
static int put_characters(const struct model *m, const char *word, size_t n,
                          struct scratch *s, strata_error *err)
{
    int status = STRATA_OK;
    bool waits = false;
    uint32_t code;
    for (size_t at = 0, size; at < n && status == STRATA_OK; at += size) {
        size = utf8_next(word + at, n - at, &code);
        status = spell(m, word + at, size, at == 0, at + size == n, &s->text, err);
        const int32_t id = vocabulary_find(&m->words, s->text.bytes, s->text.n);
        if (status != STRATA_OK)
            break;
        if (id < 0 && bytes_known(m, s->text.bytes, s->text.n)) {
            status = put_bytes(m, s->text.bytes, s->text.n, s, err);
        } else if (id >= 0 || !m->fuse_unknown) {
            if (waits)
                status = put_symbol(s, m->unknown, err);
            waits = id < 0 && m->unknown >= 0;
            if (id >= 0 && status == STRATA_OK)
                status = put_symbol(s, id, err);
        } else {
            waits = m->unknown >= 0;
        }
    }
    return status == STRATA_OK && waits ? put_symbol(s, m->unknown, err) : status;
}

/* Consider the pair that begins at a place. */
static int consider(const struct model *m, struct scratch *s, int32_t place,
                    strata_error *err)
{
    if (place < 0 || s->symbols[place].next < 0)
        return STRATA_OK;
    const struct symbol *left = &s->symbols[place];
    const struct merge *found =
        find_merge(&m->merges, left->id, s->symbols[left->next].id);
    return found ? heap_put(s, (struct candidate){found->rank, place, found->id}, err)
                 : STRATA_OK;
}

static int merge_pair(const struct model *m, struct scratch *s, struct candidate c,
                      strata_error *err)
{
    struct symbol *left = &s->symbols[c.place];
    if (left->id < 0 || left->next < 0)
        return STRATA_OK;
    struct symbol *right = &s->symbols[left->next];
    const struct merge *found = find_merge(&m->merges, left->id, right->id);
    if (!found || found->id != c.id)
        return STRATA_OK;
    left->id = c.id;
    left->next = right->next;
    right->id = -1;
    if (left->next >= 0)
        s->symbols[left->next].previous = c.place;
    int status = consider(m, s, left->previous, err);
    return status == STRATA_OK ? consider(m, s, c.place, err) : status;
}

int bpe_encode(const struct model *m, const char *word, size_t n, struct scratch *s,
               struct tokens *out, strata_error *err)
{
    const int32_t whole = m->ignore_merges ? vocabulary_find(&m->words, word, n) : -1;
    if (whole >= 0)
        return tokens_put(out, whole, err);
    s->n_symbols = s->n_heap = 0;
    int status = put_characters(m, word, n, s, err);
    for (size_t i = 0; i < s->n_symbols && status == STRATA_OK; i++)
        status = consider(m, s, (int32_t)i, err);
    while (s->n_heap > 0 && status == STRATA_OK)
        status = merge_pair(m, s, heap_take(s), err);
    for (size_t i = 0; i < s->n_symbols && status == STRATA_OK; i++)
        if (s->symbols[i].id >= 0)
            status = tokens_put(out, s->symbols[i].id, err);
    return status;
}
