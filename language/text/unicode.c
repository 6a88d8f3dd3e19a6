/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters by utf8proc. Its own function for whole texts orders a run of n marks in n^2
 * steps; here the run is sorted.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "language/text/unicode.h"

#include <stdlib.h>

#include "core/alloc.h"

#ifdef HAVE_UTF8PROC
#include <utf8proc.h>
#endif

struct range {
    uint32_t first, last;
};

static bool within(const struct range *ranges, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

bool unicode_is_space(uint32_t code)
{
    static const struct range spaces[] = {
        {0x09, 0x0d},     {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
        {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
        {0x205f, 0x205f}, {0x3000, 0x3000},
    };
    return within(spaces, ARRAY_LENGTH(spaces), code);
}

int unicode_require(const char *place, const char *what, strata_error *err)
{
    return unicode_present()
               ? STRATA_OK
               : error_set(err, STRATA_EUNSUPPORTED,
                           "%s: %s needs utf8proc, which this build is without; install "
                           "libutf8proc-dev, configure and build again",
                           place, what);
}

#ifdef HAVE_UTF8PROC

bool unicode_present(void)
{
    return true;
}

static utf8proc_category_t category(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t)code);
}

bool unicode_is_number(uint32_t code)
{
    const utf8proc_category_t c = category(code);
    return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool unicode_is_punctuation(uint32_t code)
{
    static const struct range ascii[] = {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}};
    const utf8proc_category_t c = category(code);
    return (c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO) ||
           within(ascii, ARRAY_LENGTH(ascii), code);
}

bool unicode_is_mark(uint32_t code)
{
    const utf8proc_category_t c = category(code);
    return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

bool unicode_is_accent(uint32_t code)
{
    return category(code) == UTF8PROC_CATEGORY_MN;
}

bool unicode_is_control(uint32_t code)
{
    const utf8proc_category_t c = category(code);
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF ||
           c == UTF8PROC_CATEGORY_CO;
}

bool unicode_is_word(uint32_t code)
{
    /* Letters in circles and squares, and the joiners. */
    static const struct range others[] = {
        {0x24b6, 0x24e9},   {0x1f130, 0x1f149}, {0x1f150, 0x1f169},
        {0x1f170, 0x1f189}, {0x200c, 0x200d},
    };
    const utf8proc_category_t c = category(code);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) ||
           c == UTF8PROC_CATEGORY_PC || within(others, ARRAY_LENGTH(others), code);
}

int unicode_lower(struct token_text *out, const char *text, size_t n, strata_error *err)
{
    int status = STRATA_OK;
    uint32_t code;
    for (size_t at = 0; at < n && status == STRATA_OK;) {
        at += utf8_next(text + at, n - at, &code);
        /* The only one of which two are made: i and a dot above. */
        if (code == 0x130)
            status = bytes_put(out, "i\xcc\x87", 3, err);
        else
            status = bytes_put_code(
                out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code), err);
    }
    return status;
}

/* Code points, each with its class when marks are put in order. */
struct codes {
    utf8proc_int32_t *at;
    size_t n, room;
};

static int codes_decompose(struct codes *to, uint32_t code, utf8proc_option_t options,
                           strata_error *err)
{
    enum { MOST = 32 }; /* U+FDFA becomes 18 */
    utf8proc_int32_t parts[MOST];
    const utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)code, parts, MOST, options, NULL);
    if (n < 0 || n > MOST)
        return error_set(err, STRATA_EINTERNAL, "utf8proc: %s",
                         n < 0 ? utf8proc_errmsg(n) : "a character became too many");
    int status = STRATA_OK;
    for (utf8proc_ssize_t i = 0; i < n && status == STRATA_OK; i++) {
        status = grow(&to->at, &to->room, to->n, sizeof *to->at, err);
        if (status == STRATA_OK)
            to->at[to->n++] = parts[i];
    }
    return status;
}

static unsigned combining_class(utf8proc_int32_t code)
{
    return (unsigned)utf8proc_get_property(code)->combining_class;
}

/* Stable: what a mark is sorted by is its class and where it stood. */
struct mark {
    uint64_t key;
    utf8proc_int32_t code;
};

static int by_key(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static int sort_marks(utf8proc_int32_t *at, size_t n, strata_error *err)
{
    struct mark *marks = zalloc(n, sizeof *marks, "marks to sort", err);
    if (!marks)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < n; i++)
        marks[i] = (struct mark){(uint64_t)combining_class(at[i]) << 32 | i, at[i]};
    qsort(marks, n, sizeof *marks, by_key);
    for (size_t i = 0; i < n; i++)
        at[i] = marks[i].code;
    free(marks);
    return STRATA_OK;
}

static int order_marks(struct codes *codes, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0, end; i < codes->n && status == STRATA_OK; i = end) {
        bool sorted = true;
        for (end = i + 1; end < codes->n && combining_class(codes->at[end]); end++)
            sorted = sorted && combining_class(codes->at[end - 1]) <=
                                   combining_class(codes->at[end]);
        /* The first may be no mark. */
        const size_t first = combining_class(codes->at[i]) ? i : i + 1;
        if (!sorted)
            status = sort_marks(codes->at + first, end - first, err);
    }
    return status;
}

int unicode_normalise(struct token_text *out, const char *text, size_t n,
                      enum unicode_form form, strata_error *err)
{
    const bool compatible = form == UNICODE_NFKD || form == UNICODE_NFKC;
    const bool compose = form == UNICODE_NFC || form == UNICODE_NFKC;
    const utf8proc_option_t options =
        UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0);
    struct codes codes = {0};
    uint32_t code;
    int status = STRATA_OK;
    for (size_t at = 0; at < n && status == STRATA_OK;) {
        at += utf8_next(text + at, n - at, &code);
        status = codes_decompose(&codes, code, options, err);
    }
    if (status == STRATA_OK)
        status = order_marks(&codes, err);
    if (status == STRATA_OK && compose && codes.n > 0)
        codes.n = (size_t)utf8proc_normalize_utf32(codes.at, (utf8proc_ssize_t)codes.n,
                                                   UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    for (size_t i = 0; i < codes.n && status == STRATA_OK; i++)
        status = bytes_put_code(out, (uint32_t)codes.at[i], err);
    free(codes.at);
    return status;
}

#else /* no tokenizer that asks these is opened: unicode_require */

#define NEVER(name)                                                                      \
    bool name(uint32_t code)                                                             \
    {                                                                                    \
        (void)code;                                                                      \
        return false;                                                                    \
    }
NEVER(unicode_is_number)
NEVER(unicode_is_punctuation)
NEVER(unicode_is_mark)
NEVER(unicode_is_accent)
NEVER(unicode_is_control)
NEVER(unicode_is_word)

bool unicode_present(void)
{
    return false;
}

int unicode_lower(struct token_text *out, const char *text, size_t n, strata_error *err)
{
    return bytes_put(out, text, n, err);
}

int unicode_normalise(struct token_text *out, const char *text, size_t n,
                      enum unicode_form form, strata_error *err)
{
    (void)form;
    return bytes_put(out, text, n, err);
}

#endif
