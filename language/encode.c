/* SPDX-License-Identifier: Apache-2.0
 *
 * A text's way to tokens: what is found in it as it is, then in what it becomes when
 * normalised; what is between is split into words, each of which the model makes tokens.
 */
#include "language/private.h"

#include <stdlib.h>

#include "core/text.h"

struct work {
    const struct tokenizer *t;
    struct tokens *out;
    struct scratch scratch;
    struct pieces pieces, other;
    struct token_text normal, spare;
    strata_error *err;
};

static void work_free(struct work *w)
{
    model_scratch_free(&w->scratch);
    pieces_free(&w->pieces);
    pieces_free(&w->other);
    bytes_free(&w->normal);
    bytes_free(&w->spare);
}

/* first: the whole text begins with it. */
static int encode_words(struct work *w, const char *text, size_t n, bool first)
{
    struct pieces *p = &w->pieces;
    p->text.n = p->n = 0;
    p->first = first;
    int status = bytes_put(&p->text, text, n, w->err);
    if (status == STRATA_OK && n > 0)
        status = pieces_put(p, 0, n, w->err);
    if (status == STRATA_OK)
        status = split(&w->t->splitter, p, &w->other, w->err);
    for (size_t i = 0; i < p->n && status == STRATA_OK; i++)
        status = model_encode(&w->t->model, p->text.bytes + p->at[i].begin,
                              p->at[i].end - p->at[i].begin, &w->scratch, w->out, w->err);
    return status;
}

typedef int encode_fn(struct work *w, const char *text, size_t n, bool first);

/* The tokens of a set that the text holds, and what `rest` makes of what is between. */
static int encode_around(struct work *w, const struct added_set *set, const char *text,
                         size_t n, bool first, encode_fn *rest)
{
    struct added_search s = {.set = set, .text = text, .n = n};
    const struct added_token *found;
    int status = STRATA_OK;
    if (set->n_tokens == 0)
        return rest(w, text, n, first);
    do {
        size_t from, begin, end;
        found = added_next(&s, &from, &begin, &end);
        if (from < begin)
            status = rest(w, text + from, begin - from, first && from == 0);
        if (status == STRATA_OK && found)
            status = tokens_put(w->out, found->id, w->err);
    } while (found && status == STRATA_OK);
    return status;
}

static int encode_normal(struct work *w, const char *text, size_t n, bool first)
{
    int status = normalise(&w->t->normaliser, text, n, &w->normal, &w->spare, w->err);
    return status == STRATA_OK ? encode_around(w, &w->t->normal, w->normal.bytes,
                                               w->normal.n, first, encode_words)
                               : status;
}

/* llama2.c: one word, with a space before it; its bytes need not be characters. */
static int encode_whole(struct work *w, const char *text, size_t n)
{
    if (n == 0)
        return STRATA_OK;
    int status = bytes_put(&w->spare, " ", 1, w->err);
    if (status == STRATA_OK)
        status = bytes_put(&w->spare, text, n, w->err);
    return status == STRATA_OK ? model_encode(&w->t->model, w->spare.bytes, w->spare.n,
                                              &w->scratch, w->out, w->err)
                               : status;
}

static bool is_utf8(const char *text, size_t n)
{
    for (size_t at = 0, size; at < n; at += size) {
        size = text_character_size((const unsigned char *)text + at, n - at);
        if (size == 0)
            return false;
    }
    return true;
}

static int encode_text(struct work *w, const char *text, size_t n)
{
    struct token_text mended = {0};
    if (is_utf8(text, n))
        return encode_around(w, &w->t->raw, text, n, true, encode_normal);
    int status = utf8_mend(&mended, text, n, w->err);
    if (status == STRATA_OK)
        status =
            encode_around(w, &w->t->raw, mended.bytes, mended.n, true, encode_normal);
    bytes_free(&mended);
    return status;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t size,
                     struct tokens *out, strata_error *err)
{
    struct work w = {.t = t, .out = out, .err = err};
    const size_t before = out->n;
    int status = t->whole ? encode_whole(&w, text, size) : encode_text(&w, text, size);
    if (status != STRATA_OK)
        out->n = before;
    work_free(&w);
    return status;
}
