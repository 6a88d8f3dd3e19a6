/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of facts, a line each, that programs exchange and people edit: cost files,
 * ranges. The first line says what a text is; later ones that begin with '#' are
 * comments.
 */
#ifndef IO_LINES_H
#define IO_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* Where a reader is. */
struct lines {
    const char *path; /* for messages */
    int line;         /* from 1 on */
    strata_error *err;
};

/* STRATA_EPARSE, with "PATH:LINE: error: " before the message. */
int lines_refuse(const struct lines *l, const char *format, ...) PRINTF_LIKE(2, 3);

/* A whole number of up to 18 digits, without sign or leading zeros, then one blank: what
 * follows that, or NULL. */
const char *lines_number(const char *at, int64_t *out);

/* Calls `fact` for each line, without its end and with a NUL behind it, until one is
 * refused: for `headers` lines whatever they are, then for those that are neither empty
 * nor comments. Every line must have an end and at most `longest` bytes, none of them
 * NUL; there must be all headers. */
int lines_parse(const char *text, size_t size, const char *path, int headers,
                size_t longest,
                int (*fact)(void *of, const struct lines *l, const char *line), void *of,
                strata_error *err);

#endif /* IO_LINES_H */
