/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks in a list, the newest first; a piece larger than what is left of the newest gets
 * a block of its own size or the usual one, whichever is more.
 */
#include "network/import/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/checked.h"

#define BLOCK_BYTES ((size_t)64 << 10)
#define ALIGNMENT alignof(max_align_t)

struct arena_block {
    struct arena_block *next;
    size_t used, size; /* bytes of `data` */
    alignas(max_align_t) unsigned char data[];
};

static struct arena_block *add_block(struct arena *a, size_t bytes)
{
    size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES, all;
    struct arena_block *b =
        checked_size_add(sizeof *b, size, &all) ? calloc(1, all) : NULL;
    if (!b)
        return NULL;
    b->size = size;
    b->next = a->blocks;
    a->blocks = b;
    return b;
}

void *arena_get(struct arena *a, size_t n, size_t size)
{
    size_t bytes, rounded, all;
    if (a->full || !checked_size_mul(n, size, &bytes) ||
        !checked_size_add(bytes, ALIGNMENT, &rounded) ||
        !checked_size_add(a->bytes, rounded, &all) || (a->limit && all > a->limit)) {
        a->full = true;
        return NULL;
    }
    rounded = (bytes ? bytes + ALIGNMENT - 1 : ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    struct arena_block *b = a->blocks;
    if (!b || b->size - b->used < rounded)
        b = add_block(a, rounded);
    if (!b) {
        a->full = true;
        return NULL;
    }
    void *out = b->data + b->used;
    b->used += rounded;
    a->bytes += rounded;
    return out;
}

void *arena_copy(struct arena *a, const void *from, size_t bytes)
{
    void *out = arena_get(a, bytes, 1);
    if (out && bytes)
        memcpy(out, from, bytes);
    return out;
}

char *arena_text(struct arena *a, const char *text, size_t n)
{
    char *out = n < SIZE_MAX ? arena_get(a, n + 1, 1) : NULL;
    if (out && n)
        memcpy(out, text, n);
    return out;
}

char *arena_print(struct arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *out = n >= 0 ? arena_get(a, (size_t)n + 1, 1) : NULL;
    if (out)
        vsnprintf(out, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return out;
}

void *arena_grow(struct arena *a, void *array, size_t *capacity, size_t n, size_t size)
{
    if (n < *capacity)
        return array;
    size_t wider = *capacity ? *capacity : 8;
    while (wider <= n)
        if (!checked_size_mul(wider, 2, &wider)) {
            a->full = true;
            return NULL;
        }
    void *out = arena_get(a, wider, size);
    if (!out)
        return NULL;
    if (n)
        memcpy(out, array, n * size);
    *capacity = wider;
    return out;
}

int arena_status(const struct arena *a, const char *what, strata_error *err)
{
    return a->full ? error_no_memory(err, a->bytes, what) : STRATA_OK;
}

void arena_free(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
    *a = (struct arena){.limit = a->limit};
}
