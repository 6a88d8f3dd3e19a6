/* SPDX-License-Identifier: Apache-2.0
 *
 * What decoders make of one token.
 */
#include "language/steps/decode.h"

#include <string.h>

#include "language/model/model.h"

/* Bytes of the text that are the mark up to `most` times. */
static size_t marks_at_start(const struct token_text *mark, const char *text, size_t n,
                             size_t most)
{
    size_t at = 0;
    while (most-- > 0 && n - at >= mark->n &&
           memcmp(text + at, mark->bytes, mark->n) == 0)
        at += mark->n;
    return at;
}

static size_t marks_at_end(const struct token_text *mark, const char *text, size_t n,
                           size_t most)
{
    const size_t all = n;
    while (most-- > 0 && n >= mark->n &&
           memcmp(text + n - mark->n, mark->bytes, mark->n) == 0)
        n -= mark->n;
    return all - n;
}

static int strip(const struct decode_step *s, const char *text, size_t n,
                 struct token_text *out, strata_error *err)
{
    const size_t start = marks_at_start(&s->text, text, n, s->start);
    const size_t stop = marks_at_end(&s->text, text + start, n - start, s->stop);
    return bytes_put(out, text + start, n - start - stop, err);
}

static int clean(struct token_text *text, struct token_text *spare, strata_error *err)
{
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(pairs); i++) {
        const size_t size = strlen(pairs[i][0]);
        const char *found;
        size_t done = 0;
        spare->n = 0;
        while ((found = memmem(text->bytes + done, text->n - done, pairs[i][0], size))) {
            const size_t at = (size_t)(found - text->bytes);
            int status = bytes_put(spare, text->bytes + done, at - done, err);
            if (status == STRATA_OK)
                status = bytes_put(spare, pairs[i][1], strlen(pairs[i][1]), err);
            if (status != STRATA_OK)
                return status;
            done = at + size;
        }
        int status = bytes_put(spare, text->bytes + done, text->n - done, err);
        if (status != STRATA_OK)
            return status;
        const struct token_text last = *text;
        *text = *spare;
        *spare = last;
    }
    return STRATA_OK;
}

static int metaspace(const struct decode_step *s, const char *text, size_t n, bool first,
                     struct token_text *out, strata_error *err)
{
    const struct token_text space = {.bytes = (char[]){" "},
                                     .n = s->flag && first ? 0 : 1};
    return pattern_replace(s->pattern, text, n, &space, out, err);
}

static int wordpiece(const struct decode_step *s, const char *text, size_t n, bool first,
                     struct token_text *out, struct token_text *spare, strata_error *err)
{
    size_t skipped = 0;
    int status = STRATA_OK;
    if (!first && n >= s->text.n && memcmp(text, s->text.bytes, s->text.n) == 0)
        skipped = s->text.n;
    else if (!first)
        status = bytes_put(out, " ", 1, err);
    if (status == STRATA_OK)
        status = bytes_put(out, text + skipped, n - skipped, err);
    return status == STRATA_OK && s->flag ? clean(out, spare, err) : status;
}

static int suffix(const struct decode_step *s, const char *text, size_t n, bool last,
                  struct token_text *out, strata_error *err)
{
    const struct token_text space = {.bytes = (char[]){" "}, .n = last ? 0 : 1};
    return pattern_replace(s->pattern, text, n, &space, out, err);
}

static int apply(const struct decode_step *s, const struct token_text *text, bool first,
                 bool last, struct token_text *out, struct token_text *spare,
                 strata_error *err)
{
    switch (s->kind) {
    case DECODE_REPLACE:
        return pattern_replace(s->pattern, text->bytes, text->n, &s->text, out, err);
    case DECODE_STRIP:
        return strip(s, text->bytes, text->n, out, err);
    case DECODE_METASPACE:
        return metaspace(s, text->bytes, text->n, first, out, err);
    case DECODE_WORDPIECE:
        return wordpiece(s, text->bytes, text->n, first, out, spare, err);
    default:
        return suffix(s, text->bytes, text->n, last, out, err);
    }
}

/* The bytes that a token's characters stand for, if all of them do. */
static int despell(struct token_text *text, struct token_text *spare, strata_error *err)
{
    uint32_t code;
    int status = STRATA_OK;
    spare->n = 0;
    for (size_t at = 0; at < text->n && status == STRATA_OK;) {
        char byte;
        at += utf8_next(text->bytes + at, text->n - at, &code);
        if (!byte_spelled(code, &byte))
            return STRATA_OK;
        status = bytes_put(spare, &byte, 1, err);
    }
    const struct token_text last = *text;
    *text = *spare;
    *spare = last;
    return status;
}

int decoder_token(const struct decoder *d, const char *text, size_t n, bool first,
                  bool last, struct token_text *out, struct token_text *spare, bool *byte,
                  strata_error *err)
{
    struct token_text help = {0};
    unsigned char value;
    out->n = 0;
    *byte = false;
    int status = d->words && !first ? bytes_put(out, " ", 1, err) : STRATA_OK;
    if (status == STRATA_OK)
        status = bytes_put(out, text, n, err);
    for (size_t i = 0; i < d->n && status == STRATA_OK; i++) {
        spare->n = 0;
        status = bytes_put(spare, NULL, 0, err);
        if (status == STRATA_OK)
            status = apply(&d->steps[i], out, first, last, spare, &help, err);
        const struct token_text before = *out;
        *out = *spare;
        *spare = before;
    }
    bytes_free(&help);
    if (status == STRATA_OK && d->spelled_bytes)
        return despell(out, spare, err);
    if (status == STRATA_OK && d->byte_tokens && byte_token(out->bytes, out->n, &value)) {
        *byte = true;
        out->n = 0;
        return bytes_put(out, (const char *)&value, 1, err);
    }
    return status;
}

bool decoder_waits(const struct decoder *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->steps[i].kind == DECODE_SUFFIX)
            return true;
    return false;
}
