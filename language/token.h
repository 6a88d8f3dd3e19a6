/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts to tokens and back, by the tokenizer files of llama2.c (tokenizer.bin) and of
 * Hugging Face's tokenizers (tokenizer.json). docs/language.md says what of these is
 * supported; all else is refused by name when the file is opened.
 *
 * A tokenizer does not change once it is open: any number of threads may use it at the
 * same time. A stream belongs to one thread at a time and ends before its tokenizer.
 *
 * Texts are UTF-8. Bytes of a text to encode that are not become U+FFFD, one for each
 * longest beginning of a character, or byte tokens where the file is llama2.c's. Texts
 * that come out are valid UTF-8 always: bytes of tokens that make no character become
 * U+FFFD.
 */
#ifndef LANGUAGE_TOKEN_H
#define LANGUAGE_TOKEN_H

#include "core/status.h"

struct tokenizer;
struct token_stream;

/* Growing lists, all zero before the first use; what is appended stays what it was.
 * free(ids) and free(bytes) are the caller's. */
struct tokens {
    int32_t *ids;
    size_t n, room;
};
struct token_text {
    char *bytes; /* NULL while nothing was put; else a NUL follows the n bytes */
    size_t n, room;
};

/* Open a file, told by its content. EPARSE: damaged; EUNSUPPORTED: a setting that is not
 * supported, or a library that this build is without; both name file, place, what was
 * found and what was needed. */
int tokenizer_open(struct tokenizer **out, const char *path, strata_error *err);
/* The same of bytes in memory; `name` is for messages. */
int tokenizer_parse(struct tokenizer **out, const void *bytes, size_t size,
                    const char *name, strata_error *err);
void tokenizer_free(struct tokenizer *t);

/* All ids are below it; some may name no token. */
int32_t tokenizer_size(const struct tokenizer *t);
bool tokenizer_has(const struct tokenizer *t, int32_t id);
/* What models are used to find before a text; -1: nothing. */
int32_t tokenizer_begin(const struct tokenizer *t);
/* Whether a text is over with this token: the end and begin tokens of llama2.c; special
 * tokens of tokenizer.json that the models' authors end texts or turns with. */
bool tokenizer_ends(const struct tokenizer *t, int32_t id);
/* The token spelled so in the file; -1: none. */
int32_t tokenizer_find(const struct tokenizer *t, const char *text);

/* Append the tokens of `size` bytes of text; no begin token is added, nor an end token.
 * On failure `out` holds what it held. */
int tokenizer_encode(const struct tokenizer *t, const char *text, size_t size,
                     struct tokens *out, strata_error *err);
/* Append the text of n tokens, which is that of a stream that they are put into. */
int tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n,
                     struct token_text *out, strata_error *err);

/* Text put out token by token, from the beginning of a text (a prompt's tokens are put
 * first, if only what follows is wanted, too: what a token spells depends on its place).
 * Special tokens put out nothing. EINVAL: an id that names no token. */
int token_stream_open(struct token_stream **out, const struct tokenizer *t,
                      strata_error *err);
/* Append what is certain of the text by now: bytes of an unfinished character, and what
 * the next token may change, are held back. */
int token_stream_put(struct token_stream *s, int32_t id, struct token_text *out,
                     strata_error *err);
/* Append what was held back; the stream is at the beginning of a text again. */
int token_stream_end(struct token_stream *s, struct token_text *out, strata_error *err);
void token_stream_free(struct token_stream *s);

#endif /* LANGUAGE_TOKEN_H */
