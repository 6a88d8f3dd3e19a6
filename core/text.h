/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts in memory of their own, the caller's to free, NULL where memory ran out; and
 * reals in texts; and what of a text a terminal may be shown.
 */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

char *text_print(const char *format, ...) PRINTF_LIKE(1, 2);
char *text_print_va(const char *format, va_list args);

/* "%.*g", with a point in any locale of the application. */
#define TEXT_REAL 48
const char *text_real(char out[TEXT_REAL], int digits, double x);
/* "%.*f", likewise, of less than 1e40. */
const char *text_fixed(char out[TEXT_REAL], int decimals, double x);

/* As strtod, with a point in any locale of the application. *end is `text`, and the value
 * 0, where there is no number or no memory. */
double text_to_real(const char *text, char **end);

/* ---- characters, UTF-8 --------------------------------------------------------------
 */

/* Bytes of the character that n bytes begin with, and its number; 0: malformed. */
size_t text_decode(const unsigned char *text, size_t n, uint32_t *code);
size_t text_character_size(const unsigned char *text, size_t n);
/* The same; 0 also for what a terminal obeys: controls, and what turns the direction of
 * the text around it. Nothing from a file or a plugin may be printed without it. */
size_t text_shown_size(const unsigned char *text, size_t n);
/* '?' for each that is not shown, in place; '\n' and '\t' stay if `lines`. Returns the
 * new length of n bytes, at most n. */
size_t text_clean(char *text, size_t n, bool lines);

#endif /* CORE_TEXT_H */
