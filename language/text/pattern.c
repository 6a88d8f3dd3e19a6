/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings and expressions. What of Oniguruma's syntax PCRE2 reads differently is written
 * anew (\s, \w), or refused.
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

#ifdef HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

#define EXPRESSION_BYTES 8192
#define REPEATS 1000      /* the most in a quantifier */
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

/* ---- syntax
 * -----------------------------------------------------------------------------
 */

#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\xb2\\xb3\\xb9\\xbc-\\xbe"

/* Escaped letters and what PCRE2 is given for them, in a class and outside. */
static const struct {
    char letter;
    const char *in_class, *outside;
} escapes[] = {
    {'s', "\\p{wspace}", "\\p{wspace}"},
    {'S', "\\P{wspace}", "\\P{wspace}"},
    {'w', WORD, "[" WORD "]"},
    {'W', NULL, "[^" WORD "]"},
    {'d', "\\p{Nd}", "\\p{Nd}"},
    {'D', "\\P{Nd}", "\\P{Nd}"},
    {'n', "\\n", "\\n"},
    {'r', "\\r", "\\r"},
    {'t', "\\t", "\\t"},
    {'f', "\\f", "\\f"},
    {'v', "\\x0b", "\\x0b"},
    {'p', "\\p", "\\p"},
    {'P', "\\P", "\\P"},
    {'x', "\\x", "\\x"},
    {'A', NULL, "\\A"},
    {'z', NULL, "\\z"},
};

struct syntax {
    const char *text;
    size_t n, at;
    bool in_class;
    const char *place;
    struct token_text out;
    strata_error *err;
};

static int refuse(struct syntax *s, size_t length, const char *why)
{
    return error_set(s->err, STRATA_EUNSUPPORTED,
                     "%s: character %zu of the expression: '%.*s' is not supported (%s)",
                     s->place, s->at + 1, (int)length, s->text + s->at, why);
}

static char look(const struct syntax *s, size_t ahead)
{
    return ahead < s->n - s->at ? s->text[s->at + ahead] : '\0';
}

static int copy(struct syntax *s, size_t n)
{
    int status = bytes_put(&s->out, s->text + s->at, n, s->err);
    s->at += n;
    return status;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '\0' || (unsigned char)c >= 0x80;
}

/* \uHHHH is \x{HHHH} */
static int read_code(struct syntax *s)
{
    if (s->n - s->at < 6 || strspn(s->text + s->at + 2, "0123456789abcdefABCDEF") < 4)
        return refuse(s, 2, "four hexadecimal digits must follow");
    int status = bytes_put(&s->out, "\\x{", 3, s->err);
    s->at += 2;
    if (status == STRATA_OK)
        status = copy(s, 4);
    return status == STRATA_OK ? bytes_put(&s->out, "}", 1, s->err) : status;
}

static int read_escape(struct syntax *s)
{
    const char c = look(s, 1);
    if (c == 'u')
        return read_code(s);
    for (size_t i = 0; i < ARRAY_LENGTH(escapes); i++) {
        const char *text = s->in_class ? escapes[i].in_class : escapes[i].outside;
        if (escapes[i].letter != c || !text)
            continue;
        s->at += 2;
        return bytes_put(&s->out, text, strlen(text), s->err);
    }
    return is_letter(c)
               ? refuse(s, s->n - s->at < 2 ? 1 : 2,
                        "escapes are \\s \\S \\w \\W \\d \\D \\n \\r \\t \\f \\v "
                        "\\p \\P \\x \\u \\A \\z and signs")
               : copy(s, 2);
}

/* (?: (?= (?! (?> (?<= (?<! (?i: (?-i: (?i) */
static int read_group(struct syntax *s)
{
    static const char *const kinds[] = {
        "(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:", "(?-i:", "(?i)", "(?-i)"};
    if (look(s, 1) != '?')
        return look(s, 1) == '*' ? refuse(s, 2, "no such group") : copy(s, 1);
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        const size_t n = strlen(kinds[i]);
        if (s->n - s->at >= n && memcmp(s->text + s->at, kinds[i], n) == 0)
            return copy(s, n);
    }
    return refuse(s, s->n - s->at < 3 ? 2 : 3,
                  "groups are (?: (?= (?! (?> (?<= (?<! (?i: (?-i: and (?i)");
}

/* {n}, {n,}, {n,m}; any other brace is itself. */
static int read_braces(struct syntax *s)
{
    char *end;
    size_t i = 1;
    while (look(s, i) && strchr("0123456789,", look(s, i)))
        i++;
    if (i == 1 || look(s, i) != '}')
        return copy(s, 1);
    if (look(s, 1) == ',')
        return refuse(s, i + 1, "write {0,m}");
    if (look(s, i + 1) == '+')
        return refuse(s, i + 2, "'+' after '}'");
    const unsigned long least = strtoul(s->text + s->at + 1, &end, 10);
    const unsigned long most =
        *end == ',' && end[1] != '}' ? strtoul(end + 1, &end, 10) : 0;
    if (least > REPEATS || most > REPEATS)
        return refuse(s, i + 1, "at most 1000 times");
    return copy(s, i + 1);
}

static int read_class(struct syntax *s)
{
    const char c = look(s, 0);
    if (c == '[')
        return refuse(s, 1, "a class in a class; write \\[ for the sign");
    if (c == '&' && look(s, 1) == '&')
        return refuse(s, 2, "an intersection of classes");
    s->in_class = c != ']';
    return copy(s, 1);
}

static int open_class(struct syntax *s)
{
    s->in_class = true;
    int status = copy(s, look(s, 1) == '^' ? 2 : 1);
    /* Here it does not end the class. */
    return status == STRATA_OK && look(s, 0) == ']' ? copy(s, 1) : status;
}

static int read_item(struct syntax *s)
{
    switch (look(s, 0)) {
    case '\\':
        return read_escape(s);
    case '[':
        return s->in_class ? read_class(s) : open_class(s);
    case '(':
        return s->in_class ? copy(s, 1) : read_group(s);
    case '{':
        return s->in_class ? copy(s, 1) : read_braces(s);
    default:
        return s->in_class ? read_class(s) : copy(s, 1);
    }
}

static int translate(struct syntax *s)
{
    int status = STRATA_OK;
    if (s->n > EXPRESSION_BYTES)
        return error_set(s->err, STRATA_EUNSUPPORTED,
                         "%s: an expression of %zu bytes; at most %d are supported",
                         s->place, s->n, EXPRESSION_BYTES);
    while (s->at < s->n && status == STRATA_OK)
        status = read_item(s);
    return status;
}

/* ---- PCRE2
 * ------------------------------------------------------------------------------
 */

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
    struct syntax s = {.text = text, .n = n, .place = place, .err = err};
    int status = pattern_new(out, err);
    if (status != STRATA_OK)
        return status;
    status = translate(&s);
    if (status == STRATA_OK)
        status = bytes_put(&s.out, NULL, 0, err);
    if (status == STRATA_OK)
        status = compile(*out, s.out.bytes, s.out.n, place, err);
    bytes_free(&s.out);
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
