/* SPDX-License-Identifier: Apache-2.0
 *
 * What a token puts out: the decoder of tokenizer.json, and that of llama2.c.
 *
 * A token's text goes through the steps, one after another; then it is bytes, which
 * make characters with those of the tokens before; of these some may be stripped where
 * the text begins and ends.
 */
#ifndef LANGUAGE_STEPS_DECODE_H
#define LANGUAGE_STEPS_DECODE_H

#include "language/steps/normalise.h"

enum decode_kind {
    DECODE_REPLACE,
    DECODE_STRIP,     /* of each token */
    DECODE_METASPACE, /* a mark is a space, but for the first token's */
    DECODE_WORDPIECE, /* words apart, what the prefix begins joined */
    DECODE_SUFFIX,    /* the suffix is a space, but for the last token's */
};
struct decode_step {
    enum decode_kind kind;
    struct pattern *pattern;
    struct token_text text; /* content, mark, prefix, suffix */
    size_t start, stop;     /* characters to strip, at most */
    bool flag;              /* Metaspace: not of the first; WordPiece: cleanup */
};
struct decoder {
    struct decode_step *steps;
    size_t n, room;
    bool words;               /* a space between tokens */
    bool spelled_bytes;       /* ByteLevel */
    bool byte_tokens;         /* <0xHH> is a byte */
    struct decode_step strip; /* of the whole text; text.n is 0: nothing */
    bool strip_after_begin;   /* one more space, right after the begin token */
};

/* node.value NULL: tokens with a space between them. */
int decoder_read(struct decoder *out, const struct node *node, strata_error *err);
void decoder_free(struct decoder *d);

/* Replace `out` by what the steps make of a token, as bytes; `spare` is used meanwhile.
 * first, last: of the text's tokens. *byte: it is a byte token's. */
int decoder_token(const struct decoder *d, const char *text, size_t n, bool first,
                  bool last, struct token_text *out, struct token_text *spare, bool *byte,
                  strata_error *err);
/* Whether a token's text depends on whether another follows. */
bool decoder_waits(const struct decoder *d);

#endif /* LANGUAGE_STEPS_DECODE_H */
