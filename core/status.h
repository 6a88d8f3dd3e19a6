/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages in a strata_error, and the logger. Every function accepts err = NULL. The
 * first failure is kept: error_set on an error that already holds one appends nothing.
 * Messages and log lines hold nothing that a terminal obeys: text_clean is the one gate.
 */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>

#include <strata/strata.h>

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

void error_clear(strata_error *err);
/* Record code and message, if none is recorded yet; returns code. */
int error_set(strata_error *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);
int error_set_va(strata_error *err, int code, const char *format, va_list args);
/* Append to the message (a new line is the caller's to write). What does not fit is left
 * out from the end of a line, with a last line that says so. */
void error_append(strata_error *err, const char *format, ...) PRINTF_LIKE(2, 3);
/* Put "text: " before the message: where it happened, from inside out. */
void error_prefix(strata_error *err, const char *format, ...) PRINTF_LIKE(2, 3);
/* Whether it begins "FILE:LINE[:COLUMN]: error: ", as compilers do, or with an option. */
bool error_has_place(const strata_error *err);
/* "out of memory: N bytes for WHAT", 0: how many is not known; returns STRATA_ENOMEM. */
int error_no_memory(strata_error *err, size_t bytes, const char *what);
/* ENOMEM or EIO where memory, descriptors or a device failed; else `otherwise`. */
int status_of_errno(int number, int otherwise);
/* With the C library's text for errno behind it. */
int error_errno(strata_error *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Drops lines above the logger's level before formatting; safe from any thread. */
void log_line(int level, const char *format, ...) PRINTF_LIKE(2, 3);
void log_line_va(int level, const char *format, va_list args);
int log_level(void);

/* The nearest of n names by edit distance: at most 2, a third of the length; or NULL. */
const char *suggest(const char *word, const char *const *names, size_t n);

#endif /* CORE_STATUS_H */
