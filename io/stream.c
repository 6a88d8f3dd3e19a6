/* SPDX-License-Identifier: Apache-2.0
 *
 * See stream.h.
 */
#include "io/stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What a stream writes to; *text and *size are those of its caller. */
struct growing {
    char **text;
    size_t *size, capacity;
    bool failed; /* from then on nothing is taken, so that no bytes are missing inside */
};

static ssize_t grow_write(void *cookie, const char *bytes, size_t n)
{
    struct growing *g = cookie;
    const size_t need = *g->size + n + 1;
    if (need > g->capacity && !g->failed) {
        const size_t capacity = need > 2 * g->capacity ? need : 2 * g->capacity;
        char *larger = realloc(*g->text, capacity);
        g->failed = !larger;
        *g->text = larger ? larger : *g->text;
        g->capacity = larger ? capacity : g->capacity;
    }
    if (g->failed)
        return 0; /* the stream's error indicator is set */
    memcpy(*g->text + *g->size, bytes, n);
    *g->size += n;
    (*g->text)[*g->size] = '\0';
    return (ssize_t)n;
}

/* For ftell alone. */
static int grow_seek(void *cookie, off64_t *offset, int whence)
{
    const struct growing *g = cookie;
    const off64_t end = (off64_t)*g->size;
    if (whence == SEEK_SET ? *offset != end : *offset != 0)
        return -1;
    *offset = end;
    return 0;
}

static int grow_close(void *cookie)
{
    struct growing *g = cookie;
    const bool failed = g->failed;
    free(g);
    return failed ? -1 : 0;
}

FILE *text_stream(char **text, size_t *size)
{
    static const cookie_io_functions_t functions = {
        .write = grow_write, .seek = grow_seek, .close = grow_close};
    enum { FIRST = 256 };
    struct growing *g = malloc(sizeof *g);
    *text = calloc(1, FIRST);
    *size = 0;
    FILE *f = NULL;
    if (g && *text) {
        *g = (struct growing){.text = text, .size = size, .capacity = FIRST};
        f = fopencookie(g, "w", functions);
    }
    if (!f) {
        free(g);
        free(*text);
        *text = NULL;
    }
    return f;
}

char *text_finish(FILE *f, char **text)
{
    bool failed = ferror(f) != 0;
    failed |= fclose(f) != 0;
    if (failed) {
        free(*text);
        *text = NULL;
    }
    return *text;
}
