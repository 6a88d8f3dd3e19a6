/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions as Oniguruma reads them, written for PCRE2. What both read alike is copied,
 * \s and \w are written anew, and the rest is refused: what is not known here might mean
 * two things.
 */
#include "language/text/expression.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPRESSION_BYTES 8192
#define REPEATS 1000 /* the most in a quantifier */

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
    {'A', NULL, "\\A"},
    {'z', NULL, "\\z"},
};

struct syntax {
    const char *text;
    size_t n, at;
    bool in_class;
    int depth; /* classes in the class */
    const char *place;
    struct token_text *out;
    strata_error *err;
};

static int refuse(struct syntax *s, size_t length, const char *why)
{
    return error_set(s->err, STRATA_EUNSUPPORTED,
                     "%s: character %zu of the expression: '%.*s' is not supported (%s)",
                     s->place, s->at + 1,
                     (int)(length < s->n - s->at ? length : s->n - s->at),
                     s->text + s->at, why);
}

static char look(const struct syntax *s, size_t ahead)
{
    return ahead < s->n - s->at ? s->text[s->at + ahead] : '\0';
}

static int copy(struct syntax *s, size_t n)
{
    int status = bytes_put(s->out, s->text + s->at, n, s->err);
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
    int status = bytes_put(s->out, "\\x{", 3, s->err);
    s->at += 2;
    if (status == STRATA_OK)
        status = copy(s, 4);
    return status == STRATA_OK ? bytes_put(s->out, "}", 1, s->err) : status;
}

/* \xHH below 0x80, of which both make one character; \x{...}, \p{...}, \P{...} */
static int read_braced(struct syntax *s)
{
    size_t i = 2;
    if (look(s, 2) != '{') {
        const size_t digits = strspn(s->text + s->at + 2, "0123456789abcdefABCDEF");
        if (look(s, 1) != 'x' || digits < 2 || look(s, 2) > '7')
            return refuse(s, 3, "braces must follow, or \\x00 to \\x7f");
        return copy(s, 4);
    }
    while (look(s, i) && look(s, i) != '}')
        i++;
    return look(s, i) ? copy(s, i + 1) : refuse(s, 3, "'}' must follow");
}

static int read_escape(struct syntax *s)
{
    const char c = look(s, 1);
    if (c == 'u')
        return read_code(s);
    if (c == 'x' || c == 'p' || c == 'P')
        return read_braced(s);
    for (size_t i = 0; i < ARRAY_LENGTH(escapes); i++) {
        const char *text = s->in_class ? escapes[i].in_class : escapes[i].outside;
        if (escapes[i].letter != c || !text)
            continue;
        s->at += 2;
        return bytes_put(s->out, text, strlen(text), s->err);
    }
    return is_letter(c)
               ? refuse(s, 2,
                        "escapes are \\s \\S \\w \\W \\d \\D \\n \\r \\t \\f \\v "
                        "\\p{} \\P{} \\x \\u \\A \\z and signs")
               : copy(s, 2);
}

/* (?: (?= (?! (?> (?<= (?<! (?i: (?-i:, and (?i) where all begins */
static int read_group(struct syntax *s)
{
    static const char *const kinds[] = {"(?:",  "(?=",  "(?!",  "(?>",
                                        "(?<=", "(?<!", "(?i:", "(?-i:"};
    static const char option[] = "(?i)";
    if (look(s, 1) != '?')
        return look(s, 1) == '*' ? refuse(s, 2, "no such group") : copy(s, 1);
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        const size_t n = strlen(kinds[i]);
        if (s->n - s->at >= n && memcmp(s->text + s->at, kinds[i], n) == 0)
            return copy(s, n);
    }
    if (s->at == 0 && strncmp(s->text, option, sizeof option - 1) == 0)
        return copy(s, sizeof option - 1);
    return refuse(s, 3,
                  "groups are (?: (?= (?! (?> (?<= (?<! (?i: (?-i:, and (?i) at the "
                  "beginning");
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
    const bool exact = !memchr(s->text + s->at, ',', i);
    if (look(s, i + 1) == '+' || (exact && look(s, i + 1) == '?'))
        return refuse(s, i + 2, "'+' after '}', '?' after {n}");
    const unsigned long least = strtoul(s->text + s->at + 1, &end, 10);
    const unsigned long most =
        *end == ',' && end[1] != '}' ? strtoul(end + 1, &end, 10) : 0;
    if (least > REPEATS || most > REPEATS)
        return refuse(s, i + 1, "at most 1000 times");
    return copy(s, i + 1);
}

/* A class in a class adds to it what its signs add themselves, if it is not negated and
 * no end of a range. */
static int read_inner(struct syntax *s)
{
    const bool range = s->out->bytes[s->out->n - 1] == '-';
    if (range || strchr("^:]", look(s, 1)))
        return refuse(s, 2, "such a class in a class; write \\[ for the sign");
    s->depth++;
    s->at++;
    return STRATA_OK;
}

static int end_inner(struct syntax *s)
{
    if (look(s, 1) == '-')
        return refuse(s, 2, "'-' after a class in a class");
    s->depth--;
    s->at++;
    return STRATA_OK;
}

static int read_class(struct syntax *s)
{
    const char c = look(s, 0);
    if (c == '[')
        return read_inner(s);
    if (c == '&' && look(s, 1) == '&')
        return refuse(s, 2, "an intersection of classes");
    if (c == ']' && s->depth > 0)
        return end_inner(s);
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

int expression_translate(struct token_text *out, const char *text, size_t n,
                         const char *place, strata_error *err)
{
    static const char lines[] = "(*LF)"; /* what ends one, whatever PCRE2's default */
    struct syntax s = {.text = text, .n = n, .place = place, .out = out, .err = err};
    if (n > EXPRESSION_BYTES)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "%s: an expression of %zu bytes; at most %d are supported",
                         place, n, EXPRESSION_BYTES);
    int status = bytes_put(out, lines, sizeof lines - 1, err);
    while (s.at < s.n && status == STRATA_OK)
        status = read_item(&s);
    return status;
}
