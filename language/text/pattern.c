/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings, and expressions by PCRE2.
 *
 * PCRE2's own limit is one for each place where a match may begin, so that n of them are
 * n times as much. Here every item of the expression is a callout, which counts itself
 * and the characters passed since the last one: a search ends after STEPS for a byte.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "language/text/pattern.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "language/text/bytes.h"
#include "language/text/expression.h"

#ifdef HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

#define STEPS 512         /* for a byte of text */
#define HEAP (256u << 10) /* KiB of PCRE2's frames */

struct pattern {
    char *text; /* NULL: an expression */
    size_t n;
    void *code;
};

static int pattern_new(struct pattern **out, strata_error *err)
{
    *out = zalloc(1, sizeof **out, "a pattern", err);
    return *out ? STRATA_OK : STRATA_ENOMEM;
}

int pattern_string(struct pattern **out, const char *text, size_t n, strata_error *err)
{
    int status = pattern_new(out, err);
    if (status != STRATA_OK)
        return status;
    (*out)->n = n;
    (*out)->text = zalloc(n, 1, "a pattern", err);
    if (!(*out)->text) {
        pattern_free(*out);
        *out = NULL;
        return STRATA_ENOMEM;
    }
    memcpy((*out)->text, text, n);
    return STRATA_OK;
}

void pattern_over(struct pattern_search *s, const char *text, size_t n)
{
    s->text = text;
    s->n = n;
    s->at = s->position = 0;
    s->last = SIZE_MAX;
    s->steps += (int64_t)(n + 1) * STEPS;
}

static int next_string(struct pattern_search *s, size_t *begin, size_t *end)
{
    const struct pattern *p = s->pattern;
    const char *found =
        s->at < s->n ? memmem(s->text + s->at, s->n - s->at, p->text, p->n) : NULL;
    *begin = found ? (size_t)(found - s->text) : SIZE_MAX;
    *end = s->at = found ? *begin + p->n : s->n;
    return STRATA_OK;
}

#ifdef HAVE_PCRE2

static int compile(struct pattern *p, const char *text, size_t n, const char *place,
                   strata_error *err)
{
    int code;
    size_t at;
    p->code = pcre2_compile((PCRE2_SPTR)text, n,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_AUTO_CALLOUT |
                                PCRE2_NEVER_BACKSLASH_C,
                            &code, &at, NULL);
    if (p->code)
        return STRATA_OK;
    PCRE2_UCHAR why[128] = "";
    pcre2_get_error_message(code, why, sizeof why);
    if (code == PCRE2_ERROR_NOMEMORY)
        return error_no_memory(err, n, "an expression");
    return error_set(err, STRATA_EUNSUPPORTED, "%s: the expression cannot be read: %s",
                     place, (const char *)why);
}

int pattern_regex(struct pattern **out, const char *text, size_t n, const char *place,
                  strata_error *err)
{
    struct token_text code = {0};
    int status = pattern_new(out, err);
    if (status != STRATA_OK)
        return status;
    status = expression_translate(&code, text, n, place, err);
    if (status == STRATA_OK)
        status = compile(*out, code.bytes, code.n, place, err);
    bytes_free(&code);
    if (status != STRATA_OK) {
        pattern_free(*out);
        *out = NULL;
    }
    return status;
}

void pattern_free(struct pattern *p)
{
    if (!p)
        return;
    pcre2_code_free(p->code);
    free(p->text);
    free(p);
}

static int count(pcre2_callout_block *block, void *user)
{
    struct pattern_search *s = user;
    const size_t here = block->current_position;
    s->steps -= (int64_t)(here > s->position ? here - s->position : s->position - here);
    s->position = here;
    return --s->steps < 0 ? PCRE2_ERROR_CALLOUT : 0;
}

int pattern_begin(struct pattern_search *s, const struct pattern *p, strata_error *err)
{
    *s = (struct pattern_search){.pattern = p};
    if (!p->code)
        return STRATA_OK;
    s->match = pcre2_match_data_create_from_pattern(p->code, NULL);
    s->context = pcre2_match_context_create(NULL);
    if (!s->match || !s->context) {
        pattern_end(s);
        return error_no_memory(err, 0, "a search");
    }
    pcre2_set_callout(s->context, count, s);
    pcre2_set_heap_limit(s->context, HEAP);
    return STRATA_OK;
}

void pattern_end(struct pattern_search *s)
{
    pcre2_match_data_free(s->match);
    pcre2_match_context_free(s->context);
    s->match = s->context = NULL;
}

static int failed(int code, strata_error *err)
{
    PCRE2_UCHAR why[128] = "";
    if (code == PCRE2_ERROR_NOMEMORY)
        return error_no_memory(err, 0, "a search");
    if (code == PCRE2_ERROR_CALLOUT)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "splitting the text takes more than %d steps a byte by the "
                         "tokenizer's expression; shorten the text's longest word",
                         STEPS);
    pcre2_get_error_message(code, why, sizeof why);
    return error_set(err, STRATA_EUNSUPPORTED, "splitting the text: %s",
                     (const char *)why);
}

static int next_match(struct pattern_search *s, size_t *begin, size_t *end,
                      strata_error *err)
{
    uint32_t code;
    while (s->at <= s->n) {
        const int n = pcre2_match(s->pattern->code, (PCRE2_SPTR)s->text, s->n, s->at,
                                  PCRE2_NO_UTF_CHECK, s->match, s->context);
        if (n == PCRE2_ERROR_NOMATCH)
            break;
        if (n < 0)
            return failed(n, err);
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(s->match);
        *begin = place[0];
        *end = place[1];
        if (*begin < *end || *end != s->last) {
            s->at = s->last = *end;
            return STRATA_OK;
        }
        s->at += s->at < s->n ? utf8_next(s->text + s->at, s->n - s->at, &code) : 1;
    }
    s->at = s->n + 1;
    *begin = *end = SIZE_MAX;
    return STRATA_OK;
}

#else

int pattern_regex(struct pattern **out, const char *text, size_t n, const char *place,
                  strata_error *err)
{
    (void)text;
    (void)n;
    *out = NULL;
    return error_set(err, STRATA_EUNSUPPORTED,
                     "%s: an expression needs PCRE2, which this build is without; "
                     "install libpcre2-dev, configure and build again",
                     place);
}

void pattern_free(struct pattern *p)
{
    if (p)
        free(p->text);
    free(p);
}

int pattern_begin(struct pattern_search *s, const struct pattern *p, strata_error *err)
{
    (void)err;
    *s = (struct pattern_search){.pattern = p};
    return STRATA_OK;
}

void pattern_end(struct pattern_search *s)
{
    s->match = NULL;
}

static int next_match(struct pattern_search *s, size_t *begin, size_t *end,
                      strata_error *err)
{
    return error_set(err, STRATA_EINTERNAL, "no expression of %zu is open without PCRE2",
                     *begin = *end = s->at = SIZE_MAX);
}
#endif

int pattern_next(struct pattern_search *s, size_t *begin, size_t *end, strata_error *err)
{
    return s->pattern->text ? next_string(s, begin, end) : next_match(s, begin, end, err);
}
