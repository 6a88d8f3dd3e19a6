/* SPDX-License-Identifier: Apache-2.0
 *
 * What texts are split at and replaced by: a string, or a regular expression as
 * Oniguruma reads it, matched by PCRE2.
 */
#ifndef LANGUAGE_TEXT_PATTERN_H
#define LANGUAGE_TEXT_PATTERN_H

#include <stddef.h>

#include "core/status.h"

struct pattern;

/* A string, of at least one byte, to be found as it is. */
int pattern_string(struct pattern **out, const char *text, size_t n, strata_error *err);
/* An expression; `place` is for messages. EUNSUPPORTED: syntax that both libraries read
 * differently, or no PCRE2 in this build. */
int pattern_regex(struct pattern **out, const char *text, size_t n, const char *place,
                  strata_error *err);
void pattern_free(struct pattern *p);

/* A search for matches, in one text after another; all of it is private. */
struct pattern_search {
    const struct pattern *pattern;
    const char *text;
    size_t n, at;
    size_t last;     /* where the last match ended; SIZE_MAX: there was none */
    int64_t steps;   /* that may still be taken */
    size_t position; /* of the last step */
    void *match, *context;
};
int pattern_begin(struct pattern_search *s, const struct pattern *p, strata_error *err);
/* Look through n bytes of valid UTF-8 from here on. */
void pattern_over(struct pattern_search *s, const char *text, size_t n);
/* The next match from the left, none over another, an empty one not where the one before
 * ends; *begin is SIZE_MAX when there is none. EUNSUPPORTED: it takes more steps than
 * texts of this length may, as some expressions do for some texts. */
int pattern_next(struct pattern_search *s, size_t *begin, size_t *end, strata_error *err);
void pattern_end(struct pattern_search *s);

#endif /* LANGUAGE_TEXT_PATTERN_H */
