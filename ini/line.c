/* SPDX-License-Identifier: Apache-2.0
 *
 * Logical lines of a source: continuations joined, comments and blanks cut, bytes
 * checked.
 */
#include "ini/private.h"

#include <string.h>

#include "core/text.h"

/* One line as it stands in the source, without its line end. */
struct piece {
    size_t from, to, next; /* offsets in the source */
};

static struct piece piece_at(const struct config_source *s, size_t offset)
{
    const char *end = memchr(s->text + offset, '\n', s->size - offset);
    struct piece p = {.from = offset, .to = end ? (size_t)(end - s->text) : s->size};
    p.next = end ? p.to + 1 : p.to;
    if (end && p.to > p.from && s->text[p.to - 1] == '\r')
        p.to--;
    return p;
}

static void set_problem(struct config_line *line, enum line_problem problem, size_t at)
{
    if (line->problem != LINE_GOOD)
        return;
    line->problem = problem;
    line->problem_at = at;
}

static void check_bytes(const struct config_source *s, const struct piece *p,
                        struct config_line *line)
{
    const unsigned char *text = (const unsigned char *)s->text;
    if (p->to - p->from > CONFIG_MAX_LINE)
        set_problem(line, LINE_TOO_LONG, p->from + CONFIG_MAX_LINE);
    for (size_t i = p->from; i < p->to;) {
        if (text[i] >= 0x80) {
            size_t size = text_character_size(text + i, p->to - i);
            if (!size) {
                set_problem(line, LINE_NOT_UTF8, i);
                return;
            }
            i += size;
        } else if ((text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f) {
            set_problem(line, LINE_CONTROL, i);
            return;
        } else {
            i++;
        }
    }
}

/* Cut an inline comment: " ;", or ';' where a continued line starts. */
static bool cut_comment(const struct config_source *s, struct piece *p,
                        struct config_line *line, bool *quoted)
{
    for (size_t i = p->from; i < p->to; i++) {
        if (s->text[i] == '"')
            *quoted = !*quoted;
        if (s->text[i] != ';' || (i > p->from && !is_blank(s->text[i - 1])))
            continue;
        if (*quoted)
            set_problem(line, LINE_QUOTED_SEMICOLON, i);
        p->to = i;
        return true;
    }
    return false;
}

static void trim_end(const struct config_source *s, struct piece *p)
{
    while (p->to > p->from && is_blank(s->text[p->to - 1]))
        p->to--;
}

static void append_piece(const struct config_source *s, const struct piece *p,
                         struct config_line *line)
{
    size_t n = p->to - p->from, blank = line->length > 0 && n > 0;
    if (line->length + blank + n > CONFIG_MAX_LINE) {
        set_problem(line, LINE_TOO_LONG, p->from);
        return;
    }
    if (blank) {
        line->text[line->length] = ' ';
        line->at[line->length++] = (uint32_t)p->from;
    }
    for (size_t i = p->from; i < p->to; i++) {
        line->text[line->length] = s->text[i];
        line->at[line->length++] = (uint32_t)i;
    }
    line->text[line->length] = '\0';
    line->at[line->length] = (uint32_t)p->to;
}

size_t config_line_read(const struct config_source *s, size_t offset,
                        struct config_line *line)
{
    bool quoted = false, continued = true;
    line->length = 0;
    line->lines = 0;
    line->indented = false;
    line->problem = LINE_GOOD;
    line->problem_at = offset;
    line->text[0] = '\0';
    line->at[0] = (uint32_t)offset;
    while (continued) {
        struct piece p = piece_at(s, offset);
        if (p.next == offset) {
            if (line->lines)
                set_problem(line, LINE_DANGLING, offset);
            break;
        }
        offset = p.next;
        check_bytes(s, &p, line);
        while (p.from < p.to && is_blank(s->text[p.from]))
            p.from++;
        if (line->lines++ == 0) {
            if (p.from < p.to && (s->text[p.from] == ';' || s->text[p.from] == '#'))
                break;
            line->indented = p.from > 0 && is_blank(s->text[p.from - 1]);
        }
        bool comment = cut_comment(s, &p, line, &quoted);
        trim_end(s, &p);
        continued = !comment && p.to > p.from && s->text[p.to - 1] == '\\';
        if (continued) {
            p.to--;
            trim_end(s, &p);
        }
        append_piece(s, &p, line);
    }
    return offset;
}

bool config_line_good(struct config *c, const struct config_cursor *at)
{
    const struct config_line *line = &at->line;
    struct config_place place = config_span(c, at->file, at->line_number, at->line_offset,
                                            line->problem_at, line->problem_at);
    const struct config_source *s = config_source(c, at->file, at->line_number);
    switch (line->problem) {
    case LINE_GOOD:
        return true;
    case LINE_TOO_LONG:
        config_error(c, place, "line longer than %d bytes, continued lines included",
                     CONFIG_MAX_LINE);
        break;
    case LINE_CONTROL:
        config_error(c, place, "control character 0x%02x%s",
                     (unsigned)(unsigned char)s->text[line->problem_at],
                     s->text[line->problem_at] ? "" : " (NUL)");
        break;
    case LINE_NOT_UTF8:
        config_error(c, place, "byte 0x%02x is not UTF-8 text",
                     (unsigned)(unsigned char)s->text[line->problem_at]);
        break;
    case LINE_QUOTED_SEMICOLON:
        config_error(c, place,
                     "' ;' inside quotes starts a comment for other readers of "
                     "INI files; write ';' without the blank before it");
        break;
    case LINE_DANGLING:
        config_error(c, place, "the last line ends in '\\', but nothing follows");
        break;
    }
    return false;
}

bool config_option_read(struct config *c, int number, struct config_cursor *at)
{
    const struct config_source *s = config_source(c, -1, number);
    at->file = -1;
    at->line_number = number;
    at->line_offset = 0;
    if (config_line_read(s, 0, &at->line) < s->size) {
        config_error(c, config_span(c, -1, number, 0, 0, 0),
                     "a line break in the option");
        return false;
    }
    return config_line_good(c, at);
}
