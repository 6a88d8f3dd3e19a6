/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors with their source line and a caret, collected and sorted by place.
 */
#include "ini/private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

#define WINDOW 76 /* characters of a source line that are shown */

struct buffer {
    char text[STRATA_MESSAGE_SIZE - 512];
    size_t length;
};

static void put(struct buffer *b, const char *text, size_t n)
{
    size_t room = sizeof b->text - 1 - b->length;
    if (n > room)
        n = room;
    memcpy(b->text + b->length, text, n);
    b->length += n;
    b->text[b->length] = '\0';
}

static void put_string(struct buffer *b, const char *text)
{
    put(b, text, strlen(text));
}

static void put_repeated(struct buffer *b, char ch, int n)
{
    for (int i = 0; i < n; i++)
        put(b, &ch, 1);
}

static bool continues(char ch)
{
    return ((unsigned char)ch & 0xc0) == 0x80;
}

/* The line of a place, as far as a window around its column reaches, and the caret. */
static void put_source(struct buffer *b, const char *line, size_t n, int column,
                       int length)
{
    int skip = column > WINDOW * 3 / 4 ? column - WINDOW / 2 : 0;
    int shown = 0, seen = 0;
    put_string(b, skip ? "\n    ..." : "\n    ");
    for (size_t i = 0; i < n && shown < WINDOW;) {
        size_t size = 1;
        while (i + size < n && size < 4 && continues(line[i + size]))
            size++;
        if (seen++ >= skip) {
            const unsigned char *at = (const unsigned char *)line + i;
            bool shown_so = text_shown_size(at, n - i) == size;
            bool control = *at < 0x20 || *at == 0x7f;
            put(b, shown_so ? line + i : control ? " " : "?", shown_so ? size : 1);
            shown++;
        }
        i += size;
    }
    int first = column - 1 - skip + (skip ? 3 : 0);
    int room = WINDOW - (column - 1 - skip);
    put_string(b, "\n    ");
    put_repeated(b, ' ', first);
    put_string(b, "^");
    put_repeated(b, '~', (length < room ? length : room) - 1);
}

/* Start of the line of a place in its source. */
static size_t line_start(const struct config_source *s, const struct config_place *place)
{
    size_t start = 0;
    for (int line = 1; place->file >= 0 && line < place->line; line++) {
        const char *end = memchr(s->text + start, '\n', s->size - start);
        if (!end)
            break;
        start = (size_t)(end - s->text) + 1;
    }
    return start;
}

static size_t line_length(const struct config_source *s, size_t start)
{
    const char *end = memchr(s->text + start, '\n', s->size - start);
    size_t n = end ? (size_t)(end - s->text) - start : s->size - start;
    return n && s->text[start + n - 1] == '\r' ? n - 1 : n;
}

static void compose(struct config *c, struct buffer *b, struct config_place place,
                    const char *message)
{
    const struct config_source *s = config_source(c, place.file, place.line);
    char where[64];
    put_string(b, s ? s->label : "configuration");
    snprintf(where, sizeof where, ":%d:%d", place.line, place.column);
    if (place.file >= 0)
        put_string(b, where);
    put_string(b, ": error: ");
    put_string(b, message);
    if (s) {
        size_t start = line_start(s, &place);
        put_source(b, s->text + start, line_length(s, start), place.column, place.length);
    }
    if (c->note) {
        put_string(b, "\n    ");
        put_string(b, c->note);
    }
}

void config_error(struct config *c, struct config_place place, const char *format, ...)
{
    struct buffer b;
    char message[2048];
    va_list args;
    if (c->n_errors++ >= CONFIG_MAX_ERRORS)
        return;
    b.length = 0;
    va_start(args, format);
    if (vsnprintf(message, sizeof message, format, args) >= (int)sizeof message)
        strcpy(message + sizeof message - 4, "...");
    va_end(args);
    compose(c, &b, place, message);
    struct config_message *m = &c->messages[c->n_errors - 1];
    m->place = place;
    m->text = strdup(b.text);
    if (!m->text)
        c->no_memory = true;
}

void config_failed(struct config *c, struct config_place place, const strata_error *why)
{
    if (why->status == STRATA_ENOMEM)
        c->no_memory = true;
    else
        config_error(c, place, "%s", why->message);
}

void config_locate(struct config *c, struct config_place place, strata_error *err)
{
    struct buffer b = {.length = 0};
    if (!err || err->status == STRATA_OK)
        return;
    compose(c, &b, place, err->message);
    const int status = err->status;
    error_clear(err);
    error_set(err, status, "%s", b.text);
}

size_t config_errors(const struct config *c)
{
    return c->n_errors;
}

bool config_full(const struct config *c)
{
    return c->n_errors >= CONFIG_MAX_ERRORS;
}

void config_note(struct config *c, const char *text)
{
    c->note = text;
}

void config_describe(const struct config *c, struct config_place place, char *out,
                     size_t size)
{
    const struct config_source *s = config_source(c, place.file, place.line);
    if (!s)
        snprintf(out, size, "configuration");
    else if (place.file < 0)
        snprintf(out, size, "%s", s->label);
    else
        snprintf(out, size, "%s:%d", s->label, place.line);
}

const char *config_nearest(const struct config *c, const char *word,
                           const char *const *names, size_t n)
{
    return config_full(c) ? NULL : suggest(word, names, n);
}

/* Files in the order read, then overrides. */
static int compare_places(const void *a, const void *b)
{
    const struct config_place *p = &((const struct config_message *)a)->place;
    const struct config_place *q = &((const struct config_message *)b)->place;
    if (p->file != q->file)
        return (unsigned)p->file < (unsigned)q->file ? -1 : 1;
    if (p->line != q->line)
        return p->line < q->line ? -1 : 1;
    return (p->column > q->column) - (p->column < q->column);
}

bool config_no_memory(const struct config *c)
{
    return c->no_memory;
}

int config_finish(struct config *c, strata_error *err)
{
    size_t recorded = c->n_errors < CONFIG_MAX_ERRORS ? c->n_errors : CONFIG_MAX_ERRORS;
    size_t room = STRATA_MESSAGE_SIZE - 64, written = 0;
    if (c->no_memory)
        return error_no_memory(err, 0, "reading the configuration");
    if (!c->n_errors)
        return STRATA_OK;
    qsort(c->messages, recorded, sizeof c->messages[0], compare_places);
    error_set(err, STRATA_EPARSE, "%s", c->messages[0].text);
    for (written = 1; written < recorded; written++) {
        const char *text = c->messages[written].text;
        if (err && err->length + strlen(text) + 1 > room)
            break;
        error_append(err, "\n%s", text);
    }
    if (written < c->n_errors)
        error_append(err, "\nand %zu more", c->n_errors - written);
    return STRATA_EPARSE;
}
