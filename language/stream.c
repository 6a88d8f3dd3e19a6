/* SPDX-License-Identifier: Apache-2.0
 *
 * Text put out token by token. A token's bytes wait until they are characters; characters
 * that may be stripped from the text's end wait until another follows.
 */
#include "language/private.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"

struct token_stream {
    const struct tokenizer *t;
    bool begun;                /* a token has been put out */
    bool after_begin;          /* llama2.c: nothing since the begin token */
    int32_t waiting;           /* a token whose text the next one changes; -1: none */
    struct token_text pending; /* bytes that are no character yet */
    size_t stripped, held;     /* marks left out at the start, held back at the end */
    struct token_text token, spare;
    struct token_text *out; /* of this call */
    strata_error *err;
};

const char *tokenizer_spelling(const struct tokenizer *t, int32_t id, size_t *n)
{
    const struct vocabulary *all[] = {&t->shown, &t->added, &t->model.words};
    const char *text = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(all) && !text; i++)
        text = vocabulary_spelling(all[i], id, n);
    return text;
}

static void start(struct token_stream *s)
{
    s->begun = false;
    s->after_begin = true;
    s->waiting = -1;
    s->pending.n = s->held = 0;
    s->stripped = s->t->decoder.strip.start;
}

int token_stream_open(struct token_stream **out, const struct tokenizer *t,
                      strata_error *err)
{
    *out = zalloc(1, sizeof **out, "a stream of tokens", err);
    if (!*out)
        return STRATA_ENOMEM;
    (*out)->t = t;
    start(*out);
    return STRATA_OK;
}

void token_stream_free(struct token_stream *s)
{
    if (!s)
        return;
    bytes_free(&s->pending);
    bytes_free(&s->token);
    bytes_free(&s->spare);
    free(s);
}

/* ---- characters -------------------------------------------------------------------
 */

/* A whole character, unless it is one to strip. */
static int put_character(struct token_stream *s, const char *text, size_t n)
{
    const struct decode_step *strip = &s->t->decoder.strip;
    const bool mark = strip->text.n == n && memcmp(strip->text.bytes, text, n) == 0;
    if (mark && s->stripped > 0) {
        s->stripped--;
        return STRATA_OK;
    }
    s->stripped = 0;
    if (mark && s->held < strip->stop) {
        s->held++;
        return STRATA_OK;
    }
    int status = STRATA_OK;
    /* Of marks in a row the first go out, and as many as before are held. */
    for (; !mark && s->held > 0 && status == STRATA_OK; s->held--)
        status = bytes_put(s->out, strip->text.bytes, strip->text.n, s->err);
    return status == STRATA_OK ? bytes_put(s->out, text, n, s->err) : status;
}

static int put_broken(struct token_stream *s, size_t n)
{
    int status = STRATA_OK;
    for (size_t i = s->t->decoder.byte_tokens ? n : 1; i > 0 && status == STRATA_OK; i--)
        status = put_character(s, REPLACEMENT, REPLACEMENT_SIZE);
    return status;
}

/* The characters that the pending bytes make; `last`: no more will follow. */
static int put_pending(struct token_stream *s, bool last)
{
    const char *text = s->pending.bytes;
    const size_t n = s->pending.n;
    size_t at = 0;
    int status = STRATA_OK;
    while (at < n && status == STRATA_OK) {
        bool whole;
        size_t size = text_character_size((const unsigned char *)text + at, n - at);
        if (size > 0) {
            status = put_character(s, text + at, size);
        } else {
            size = utf8_broken(text + at, n - at, &whole);
            if (!whole && !last)
                break;
            status = put_broken(s, size);
        }
        at += size;
    }
    if (n > 0)
        memmove(s->pending.bytes, text + at, n - at);
    s->pending.n = n - at;
    return status;
}

/* ---- tokens -----------------------------------------------------------------------
 */

static int put_token(struct token_stream *s, int32_t id, bool last)
{
    const struct decoder *d = &s->t->decoder;
    size_t n;
    bool byte;
    const char *text = tokenizer_spelling(s->t, id, &n);
    const bool space = d->strip_after_begin && s->after_begin && n > 0 && text[0] == ' ';
    s->after_begin = false;
    int status = decoder_token(d, text + space, n - space, !s->begun, last, &s->token,
                               &s->spare, &byte, s->err);
    s->begun = true;
    /* A token that is no byte ends what bytes had begun. */
    if (status == STRATA_OK && d->byte_tokens && !byte && s->token.n > 0)
        status = put_pending(s, true);
    if (status == STRATA_OK)
        status = bytes_put(&s->pending, s->token.bytes, s->token.n, s->err);
    return status == STRATA_OK ? put_pending(s, false) : status;
}

int token_stream_put(struct token_stream *s, int32_t id, struct token_text *out,
                     strata_error *err)
{
    size_t n;
    s->out = out;
    s->err = err;
    if (!tokenizer_spelling(s->t, id, &n))
        return error_set(err, STRATA_EINVAL,
                         "token %d: the tokenizer has none of this id; ids are below %zu",
                         id, s->t->size);
    int status = bytes_put(out, NULL, 0, err);
    if (status != STRATA_OK)
        return status;
    if (s->t->flags[id] & TOKEN_SPECIAL) {
        s->after_begin = id == s->t->begin;
        return STRATA_OK;
    }
    if (!decoder_waits(&s->t->decoder))
        return put_token(s, id, false);
    const int32_t before = s->waiting;
    s->waiting = id;
    return before >= 0 ? put_token(s, before, false) : STRATA_OK;
}

int token_stream_end(struct token_stream *s, struct token_text *out, strata_error *err)
{
    s->out = out;
    s->err = err;
    int status = bytes_put(out, NULL, 0, err);
    if (status == STRATA_OK && s->waiting >= 0)
        status = put_token(s, s->waiting, true);
    if (status == STRATA_OK)
        status = put_pending(s, true);
    start(s);
    return status;
}

int tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n,
                     struct token_text *out, strata_error *err)
{
    struct token_stream *s;
    const size_t before = out->n;
    int status = token_stream_open(&s, t, err);
    for (size_t i = 0; i < n && status == STRATA_OK; i++)
        status = token_stream_put(s, ids[i], out, err);
    if (status == STRATA_OK)
        status = token_stream_end(s, out, err);
    if (status != STRATA_OK)
        out->n = before;
    token_stream_free(s);
    return status;
}
