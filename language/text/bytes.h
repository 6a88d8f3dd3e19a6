/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing texts and lists of tokens. Every function returns STRATA_OK or ENOMEM, and
 * leaves what was there.
 */
#ifndef LANGUAGE_TEXT_BYTES_H
#define LANGUAGE_TEXT_BYTES_H

#include <stddef.h>

#include "language/token.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define REPLACEMENT_SIZE 3
#define MAX_CHARACTER 4 /* bytes of a character in UTF-8 */

/* Append; a NUL follows the last byte, which is not counted. `bytes` must not be `to`'s
 * own. */
int bytes_put(struct token_text *to, const char *bytes, size_t n, strata_error *err);
int bytes_put_code(struct token_text *to, uint32_t code, strata_error *err);
void bytes_free(struct token_text *t);
int tokens_put(struct tokens *to, int32_t id, strata_error *err);

/* Bytes that code takes in UTF-8. */
size_t utf8_encode(char out[MAX_CHARACTER], uint32_t code);
/* The character that valid UTF-8 begins with, and its size; n > 0. */
size_t utf8_next(const char *text, size_t n, uint32_t *code);
/* Bytes of the longest beginning of a character that is none: 1 to 3; *whole is whether
 * more bytes could not make it one. n > 0. */
size_t utf8_broken(const char *text, size_t n, bool *whole);
/* Append text with U+FFFD for each such beginning. */
int utf8_mend(struct token_text *to, const char *text, size_t n, strata_error *err);

#endif /* LANGUAGE_TEXT_BYTES_H */
