/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties and forms of characters as tokenizers' files mean them: by utf8proc, but for
 * white space, of which a table is enough.
 */
#ifndef LANGUAGE_TEXT_UNICODE_H
#define LANGUAGE_TEXT_UNICODE_H

#include "language/text/bytes.h"

/* Whether this build has utf8proc; without it only unicode_is_space may be called. */
bool unicode_present(void);
/* EUNSUPPORTED "PLACE: WHAT needs utf8proc ..." where it has not. */
int unicode_require(const char *place, const char *what, strata_error *err);

bool unicode_is_space(uint32_t code);       /* White_Space */
bool unicode_is_number(uint32_t code);      /* Nd, Nl, No */
bool unicode_is_punctuation(uint32_t code); /* P*, and all of ASCII's signs */
bool unicode_is_mark(uint32_t code);        /* Mn, Mc, Me */
bool unicode_is_accent(uint32_t code);      /* Mn */
bool unicode_is_control(uint32_t code);     /* Cc, Cf, Co */
bool unicode_is_word(uint32_t code);        /* \w of UTS #18 */

/* Append valid UTF-8 in lower case, a character at a time whatever stands around it. */
int unicode_lower(struct token_text *out, const char *text, size_t n, strata_error *err);

enum unicode_form { UNICODE_NFD, UNICODE_NFC, UNICODE_NFKD, UNICODE_NFKC };
/* Append valid UTF-8 in that form; n log n steps, whatever the marks. */
int unicode_normalise(struct token_text *out, const char *text, size_t n,
                      enum unicode_form form, strata_error *err);

#endif /* LANGUAGE_TEXT_UNICODE_H */
