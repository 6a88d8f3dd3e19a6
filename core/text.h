/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts in memory of their own, the caller's to free, NULL where memory ran out; and
 * reals in texts.
 */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <stdio.h>

#include "core/status.h"

char *text_print(const char *format, ...) PRINTF_LIKE(1, 2);
char *text_print_va(const char *format, va_list args);
/* Close a stream that open_memstream gave for *text: what it collected, or NULL if it
 * failed anywhere, *text freed. */
char *text_finish(FILE *f, char **text);

/* "%.*g", with a point in any locale of the application. */
#define TEXT_REAL 48
const char *text_real(char out[TEXT_REAL], int digits, double x);
/* "%.*f", likewise, of less than 1e40. */
const char *text_fixed(char out[TEXT_REAL], int decimals, double x);

/* As strtod, with a point in any locale of the application. *end is `text`, and the value
 * 0, where there is no number or no memory. */
double text_to_real(const char *text, char **end);

#endif /* CORE_TEXT_H */
