/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading texts of facts.
 */
#include "io/lines.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum { MOST_DIGITS = 18 }; /* which 64 bits hold */

int lines_refuse(const struct lines *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_set_va(l->err, STRATA_EPARSE, format, args);
    va_end(args);
    error_prefix(l->err, "%s:%d: error", l->path, l->line);
    return STRATA_EPARSE;
}

const char *lines_number(const char *at, int64_t *out)
{
    const size_t digits = strspn(at, "0123456789");
    if (digits == 0 || digits > MOST_DIGITS || (digits > 1 && *at == '0') ||
        at[digits] != ' ')
        return NULL;
    *out = strtoll(at, NULL, 10);
    return at + digits + 1;
}

int lines_parse(const char *text, size_t size, const char *path, int headers,
                size_t longest,
                int (*fact)(void *of, const struct lines *l, const char *line), void *of,
                strata_error *err)
{
    struct lines l = {path, 0, err};
    char *line = zalloc(1, longest + 1, "a line", err);
    int status = line ? STRATA_OK : STRATA_ENOMEM;
    for (size_t at = 0; at < size && status == STRATA_OK;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t n = end ? (size_t)(end - (text + at)) : size - at;
        l.line++;
        if (!end)
            status =
                lines_refuse(&l, "the last line has no end; the file may be cut short");
        else if (n > longest)
            status = lines_refuse(&l, "a line of %zu bytes; at most %zu are allowed", n,
                                  longest);
        else if (memchr(text + at, '\0', n))
            status = lines_refuse(&l, "a NUL byte");
        if (status != STRATA_OK)
            break;
        memcpy(line, text + at, n);
        line[n] = '\0';
        if (l.line <= headers || (n > 0 && line[0] != '#'))
            status = fact(of, &l, line);
        at += n + 1;
    }
    free(line);
    l.line++;
    if (status == STRATA_OK && l.line <= headers)
        status = lines_refuse(&l, size ? "the file ends before its header is complete"
                                       : "the file is empty");
    return status;
}
