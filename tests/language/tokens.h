/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of tokenizers share: opening, encoding and decoding without failure.
 */
#ifndef TESTS_LANGUAGE_TOKENS_H
#define TESTS_LANGUAGE_TOKENS_H

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "language/token.h"

#if defined HAVE_PCRE2 && defined HAVE_UTF8PROC
#define SKIP_WITHOUT_LIBRARIES
#else
#define SKIP_WITHOUT_LIBRARIES cr_skip_test("this build is without PCRE2 or utf8proc")
#endif

static inline struct tokenizer *parsed(const char *what, const void *bytes, size_t size)
{
    struct tokenizer *t = NULL;
    strata_error err = {0};
    cr_assert_eq(tokenizer_parse(&t, bytes, size, what, &err), STRATA_OK, "%s",
                 err.message);
    cr_assert_not_null(t);
    return t;
}

static inline struct tokens encoded(const struct tokenizer *t, const char *text, size_t n)
{
    struct tokens out = {0};
    strata_error err = {0};
    /* An exact-size copy on the heap lets sanitizers see a read past the end. */
    char *copy = malloc(n ? n : 1);
    cr_assert_not_null(copy);
    if (n)
        memcpy(copy, text, n);
    cr_assert_eq(tokenizer_encode(t, copy, n, &out, &err), STRATA_OK, "%s", err.message);
    free(copy);
    return out;
}

static inline struct token_text decoded(const struct tokenizer *t, const int32_t *ids,
                                        size_t n)
{
    struct token_text out = {0};
    strata_error err = {0};
    cr_assert_eq(tokenizer_decode(t, ids, n, &out, &err), STRATA_OK, "%s", err.message);
    return out;
}

static inline void expect_ids(const char *name, const char *text,
                              const struct tokens *got, const int32_t *ids, size_t n)
{
    cr_expect(got->n == n && (n == 0 || memcmp(got->ids, ids, n * sizeof *ids) == 0),
              "%s: other tokens of '%s'", name, text);
    for (size_t i = 0; got->n != n && i < (got->n < n ? n : got->n); i++)
        fprintf(stderr, "# %zu: %d, not %d\n", i, i < got->n ? got->ids[i] : -1,
                i < n ? ids[i] : -1);
}

static inline void expect_text(const char *name, const struct token_text *got,
                               const char *text, size_t n)
{
    cr_expect(got->n == n && (n == 0 || memcmp(got->bytes, text, n) == 0),
              "%s: '%s', not '%s'", name, got->bytes ? got->bytes : "", text);
}

/* Put one by one, each time whole characters come out, and at the end what decoding at
 * once gives; and so again after it. */
static inline void expect_streamed(const char *name, const struct tokenizer *t,
                                   const int32_t *ids, size_t n)
{
    struct token_stream *s = NULL;
    struct token_text whole = decoded(t, ids, n), out = {0};
    cr_assert_eq(token_stream_open(&s, t, NULL), STRATA_OK);
    for (int again = 0; again < 2; again++) {
        out.n = 0;
        for (size_t i = 0; i < n; i++) {
            cr_assert_eq(token_stream_put(s, ids[i], &out, NULL), STRATA_OK);
            size_t size;
            for (size_t at = 0; at < out.n; at += size) {
                size = text_character_size((unsigned char *)out.bytes + at, out.n - at);
                cr_assert_gt(size, 0, "%s: part of a character is put out", name);
            }
        }
        cr_assert_eq(token_stream_end(s, &out, NULL), STRATA_OK);
        expect_text(name, &out, whole.bytes, whole.n);
    }
    token_stream_free(s);
    free(whole.bytes);
    free(out.bytes);
}

/* Text there and back. */
static inline void expect_same(const char *name, const struct tokenizer *t,
                               const char *text, size_t n)
{
    struct tokens ids = encoded(t, text, n);
    struct token_text back = decoded(t, ids.ids, ids.n);
    expect_text(name, &back, text, n);
    expect_streamed(name, t, ids.ids, ids.n);
    free(ids.ids);
    free(back.bytes);
}

#endif /* TESTS_LANGUAGE_TOKENS_H */
