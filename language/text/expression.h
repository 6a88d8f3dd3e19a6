/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions as Oniguruma reads them, written for PCRE2.
 */
#ifndef LANGUAGE_TEXT_EXPRESSION_H
#define LANGUAGE_TEXT_EXPRESSION_H

#include "language/text/bytes.h"

/* Append to an empty `out`. EUNSUPPORTED, with the place, for what both read differently.
 */
int expression_translate(struct token_text *out, const char *text, size_t n,
                         const char *place, strata_error *err);

#endif /* LANGUAGE_TEXT_EXPRESSION_H */
