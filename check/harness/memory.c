/* SPDX-License-Identifier: Apache-2.0
 *
 * Bands around memory, and the role of every element of an allocation: part of an
 * index, pad lane, or gap between rows.
 */
#include "check/harness/memory.h"
#include "check/harness/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BAND 512 /* bytes on each side, a multiple of the alignment */

/* ---- guarded memory ------------------------------------------------------------ */

size_t block_whole(size_t bytes)
{
    return (bytes + 2 * BAND + 255) / 256 * 256;
}

void block_lay(struct block *b, unsigned char *memory, size_t bytes, unsigned char fill,
               bool bands_only)
{
    b->bytes = bytes;
    b->base = memory;
    b->data = b->base + BAND;
    block_set_bands(b, BAND_PLAIN);
    if (!bands_only)
        memset(b->data, fill, bytes);
}

void block_set_bands(struct block *b, unsigned char band)
{
    b->band = band;
    memset(b->base, band, BAND);
    memset(b->data + b->bytes, band, block_whole(b->bytes) - BAND - b->bytes);
}

bool block_make(struct block *b, size_t bytes, unsigned char fill)
{
    unsigned char *memory = aligned_alloc(256, block_whole(bytes));
    if (!memory)
        return false;
    block_lay(b, memory, bytes, fill, false);
    return true;
}

bool block_protect(struct block *b)
{
    b->copy = malloc(b->bytes + 1);
    if (b->copy)
        memcpy(b->copy, b->data, b->bytes);
    return b->copy;
}

void block_free(struct block *b)
{
    if (!b->device)
        free(b->base);
    free(b->copy);
    memset(b, 0, sizeof *b);
}

enum block_verdict block_check(const struct block *b, const char *what, int index,
                               strata_error *err)
{
    if (!b->base)
        return BLOCK_FINE;
    for (size_t i = 0; i < BAND; i++) {
        size_t before = BAND - 1 - i; /* the nearest bytes first */
        bool low = b->base[before] != b->band;
        if (!low && b->data[b->bytes + i] == b->band)
            continue;
        error_set(err, STRATA_EINTERNAL, "%s %d: wrote byte %zu %s its %zu bytes", what,
                  index, i + 1, low ? "before" : "past", b->bytes);
        return BLOCK_OUTSIDE;
    }
    if (!b->copy || memcmp(b->copy, b->data, b->bytes) == 0)
        return BLOCK_FINE;
    size_t at = 0;
    while (b->copy[at] == b->data[at])
        at++;
    error_set(err, STRATA_EINTERNAL, "%s %d was changed, from byte %zu on", what, index,
              at);
    return BLOCK_CHANGED;
}

/* ---- elements ------------------------------------------------------------------ */

/* Next index in row-major order; false after the last. */
static bool next_index(int64_t *index, const strata_tensor *t)
{
    for (int d = t->rank - 1; d >= 0; d--) {
        if (++index[d] < t->dims[d])
            return true;
        index[d] = 0;
    }
    return false;
}

/* Elements that lie at an even distance, from an index on: those along the last dim, but
 * one where that is the dim in vectors. */
struct row {
    int64_t n, from, step;
};

static struct row row_at(const strata_tensor *t, int64_t *index)
{
    struct row row = {.n = 1, .from = strata_offset(t, index)};
    const int last = t->rank - 1;
    if (last >= 0 && last != t->vector_dim) {
        row.n = t->dims[last];
        row.step = t->strides[last];
        index[last] = row.n - 1;
    }
    return row;
}

void tensor_fill(const strata_tensor *t, const void *values)
{
    int64_t index[STRATA_MAX_RANK] = {0}, i = 0;
    if (t->count == 0)
        return;
    do {
        const struct row row = row_at(t, index);
        for (int64_t k = 0; k < row.n; k++)
            number_store(t->data, t->dtype, row.from + k * row.step, values, i++);
    } while (next_index(index, t));
}

void tensor_read(void *values, const strata_tensor *t)
{
    int64_t index[STRATA_MAX_RANK] = {0}, i = 0;
    if (t->count == 0)
        return;
    do {
        const struct row row = row_at(t, index);
        for (int64_t k = 0; k < row.n; k++)
            number_load(values, i++, t->data, t->dtype, row.from + k * row.step);
    } while (next_index(index, t));
}

/* What each element of the allocation is. */
enum { GAP, LIVE, PAD };

static unsigned char *element_map(const strata_tensor *t)
{
    unsigned char *map = calloc(1, (size_t)t->size + 1);
    strata_tensor padded = *t;
    int64_t index[STRATA_MAX_RANK] = {0};
    if (!map || t->count == 0)
        return map;
    if (t->vector_dim >= 0)
        padded.dims[t->vector_dim] =
            (t->dims[t->vector_dim] + t->vector - 1) / t->vector * t->vector;
    do {
        const bool live =
            t->vector_dim < 0 || index[t->vector_dim] < t->dims[t->vector_dim];
        const struct row row = row_at(&padded, index);
        for (int64_t k = 0; k < row.n; k++)
            map[row.from + k * row.step] = live ? LIVE : PAD;
    } while (next_index(index, &padded));
    return map;
}

static bool has_outside(const strata_tensor *t)
{
    return t->size != t->count;
}

bool tensor_set_pads(const strata_tensor *t, bool poison)
{
    if (!has_outside(t))
        return true;
    const double nan = NAN, zero = 0;
    const int64_t low = INT64_MIN, none = 0;
    const void *real = poison ? &nan : &zero, *whole = poison ? &low : &none;
    const void *pad = number_is_real(t->dtype) ? real : whole;
    unsigned char *map = element_map(t);
    for (int64_t i = 0; map && i < t->size; i++)
        if (map[i] == PAD)
            number_store(t->data, t->dtype, i, pad, 0);
    free(map);
    return map;
}

enum tensor_verdict tensor_check_outside(const strata_tensor *t, bool dirty,
                                         unsigned char pattern, strata_error *err)
{
    if (!has_outside(t))
        return TENSOR_FINE;
    size_t size = strata_dtype_size(t->dtype);
    unsigned char *map = element_map(t), kept[8];
    char text[NUMBER_TEXT];
    union {
        double real;
        int64_t whole;
    } value;
    enum tensor_verdict verdict = map ? TENSOR_FINE : TENSOR_NO_MEMORY;
    if (!map)
        error_no_memory(err, (size_t)t->size, "element map");
    memset(kept, pattern, sizeof kept);
    for (int64_t i = 0; verdict == TENSOR_FINE && i < t->size; i++) {
        const char *element = (const char *)t->data + (size_t)i * size;
        if (map[i] == PAD && !dirty)
            number_load(&value, 0, t->data, t->dtype, i);
        if (map[i] == PAD && !dirty && number_of(&value, t->dtype, 0) != 0) {
            verdict = TENSOR_PAD;
            error_set(err, STRATA_EINTERNAL, "output pad at element %lld is %s, not 0",
                      (long long)i, number_text(text, &value, t->dtype, 0));
        } else if (map[i] == GAP && memcmp(element, kept, size) != 0) {
            verdict = TENSOR_GAP;
            error_set(err, STRATA_EINTERNAL, "wrote the gap between rows at element %lld",
                      (long long)i);
        }
    }
    free(map);
    return verdict;
}

int64_t tensor_find_pattern(const strata_tensor *t, unsigned char pattern)
{
    size_t size = strata_dtype_size(t->dtype);
    unsigned char kept[8];
    int64_t index[STRATA_MAX_RANK] = {0}, at = 0;
    memset(kept, pattern, sizeof kept);
    if (t->count == 0)
        return -1;
    do {
        const char *element = (const char *)t->data;
        if (memcmp(element + (size_t)strata_offset(t, index) * size, kept, size) == 0)
            return at;
        at++;
    } while (next_index(index, t));
    return -1;
}
