/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts behind a config, and the way from bytes of a line to file, line and column.
 */
#include "ini/private.h"

#include <string.h>

const struct config_source *config_source(const struct config *c, int file, int line)
{
    if (file >= 0)
        return (size_t)file < c->n_files ? &c->files[file] : NULL;
    return line >= 1 && (size_t)line <= c->n_overrides ? &c->overrides[line - 1] : NULL;
}

/* Characters in bytes [from, to). */
static int characters(const char *text, size_t from, size_t to)
{
    int n = 0;
    for (; from < to; from++)
        n += ((unsigned char)text[from] & 0xc0) != 0x80;
    return n;
}

struct config_place config_span(const struct config *c, int file, int anchor_line,
                                size_t anchor, size_t from, size_t to)
{
    const struct config_source *s = config_source(c, file, anchor_line);
    int line = anchor_line;
    size_t start = anchor;
    for (size_t i = anchor; i < from; i++)
        if (s->text[i] == '\n') {
            line++;
            start = i + 1;
        }
    const char *end = memchr(s->text + from, '\n', to > from ? to - from : 0);
    if (end)
        to = (size_t)(end - s->text);
    return (struct config_place){.file = file,
                                 .line = file < 0 ? anchor_line : line,
                                 .column = characters(s->text, start, from) + 1,
                                 .length = characters(s->text, from, to)};
}

struct config_place config_cursor_place(const struct config *c,
                                        const struct config_cursor *at, size_t from,
                                        size_t to)
{
    const uint32_t *map = at->line.at;
    size_t end = to > from ? map[to - 1] + 1u : map[from];
    return config_span(c, at->file, at->line_number, at->line_offset, map[from], end);
}
