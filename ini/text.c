/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory behind names and values: they live as long as the config.
 */
#include "ini/private.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK 65536 /* bytes */

char *config_text(struct config *c, const char *text, size_t n)
{
    struct config_chunk *chunk = c->chunks;
    if (!chunk || chunk->size - chunk->used < n + 1) {
        size_t size = n + 1 > CHUNK ? n + 1 : CHUNK;
        chunk = malloc(sizeof *chunk + size);
        if (!chunk) {
            c->no_memory = true;
            return NULL;
        }
        chunk->next = c->chunks;
        chunk->used = 0;
        chunk->size = size;
        c->chunks = chunk;
    }
    char *copy = chunk->bytes + chunk->used;
    chunk->used += n + 1;
    memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

void config_text_free(struct config *c)
{
    for (struct config_chunk *chunk = c->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
}
